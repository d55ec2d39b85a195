"""Accounts in a database.

Owns the tables `api_keys`, `shares`, `ended_sessions`, `server_secrets`, `contexts`, `owned_contexts`,
`removed_contexts` and `usage`.
"""
