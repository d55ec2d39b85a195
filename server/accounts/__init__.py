"""Who calls, what they may do, and what they may use: callers, access, shares, keys, sessions, secrets, quotas.

It knows no task and no protocol. `sql/` has the same in a database.
"""
