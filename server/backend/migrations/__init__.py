"""The schema of the database and its steps: the rules are in `schema.py`, the steps in `versions`."""

from a2a_canvas.server.backend.migrations.schema import (
    REVISIONS,
    SchemaError,
    can_upgrade,
    check,
    newest,
    prepare,
    revision,
    upgrade,
)

__all__ = ["REVISIONS", "SchemaError", "can_upgrade", "check", "newest", "prepare", "revision", "upgrade"]
