"""The storage that a server runs with: in memory, or in a database with its schema and its migrations.

`Backend` hands out stores, journal, accounts and outbox that fit together; `open_database` finds out which it is.
Owns the table `schema_revision`.
"""
