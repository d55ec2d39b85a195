"""PostgreSQL servers that fail over: which of them is the primary, and commits that its standby confirms."""
