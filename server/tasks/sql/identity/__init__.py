"""Who may do what, in a database: API keys, shares, and the secrets that all servers of it have."""
