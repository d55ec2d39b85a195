"""The server. `app.py` puts its rooms together; docs/architecture.md draws them, and says which imports which."""
