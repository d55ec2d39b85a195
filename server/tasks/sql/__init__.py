"""Tasks in a database, and what several servers agree on through it."""
