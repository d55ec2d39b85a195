"""What an artifact is and how it changes. No HTTP, no A2A, no model.

`models` and `changes` are values, `mutation` applies changes, `artifact_store` is the protocol of a store.
`memory` and `sql` are stores; `evented` and `retrying` wrap one.
"""
