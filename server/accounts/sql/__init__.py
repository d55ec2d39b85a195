"""Who may do what, in a database: API keys, shares, sessions that have ended, and the secrets of its servers."""
