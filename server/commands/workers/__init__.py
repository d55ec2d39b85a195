"""`serve --workers`: several processes behind one address, and the one that starts them.

`supervisor` is the parent; `place` and `parent_link` are a worker's side. `restarts` and `connection_shares` decide.
"""
