"""Tasks in a database, and what several replicas of the server agree on through it."""
