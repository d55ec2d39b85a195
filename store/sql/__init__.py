"""Artifacts in a database: SQLite or PostgreSQL. Only here and in `server/tasks/sql` is SQLAlchemy imported."""
