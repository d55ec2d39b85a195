"""Who calls, what they may do, and what they may use: callers, access, shares, keys, sessions, secrets, quotas.

It knows no task and no protocol. `sql/` has the same in a database.
Owns the tables of `sql/account_tables.py` and the usage of each day (`sql/sql_usage.py`).
"""
