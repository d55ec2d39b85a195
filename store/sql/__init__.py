"""Artifacts in a database, SQLite or PostgreSQL: the store, its leases, and the group commit of all staged work.

Owns the tables `artifacts`, `versions`, `kept_bytes` and `drafts`.
"""
