"""The storage that a server runs with: in memory, or in a database with its schema.

`Backend` hands out stores, journal, accounts and outbox that fit together; `open_database` decides which it is.
`SqlBackend` also runs the heartbeat and the takeovers of its replica.
"""
