"""Accounts in a database.

Owns the tables `api_keys`, `shares`, `ended_sessions`, `server_secrets` and `usage`.
"""
