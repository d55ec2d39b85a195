"""Tasks and pages name the versions of artifacts in place of repeating them; tasks of before are rewritten later."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for table in ("tasks", "pages"):
        op.add_column(table, Column("named", Text))
    op.create_table(
        "rewrites",
        Column("name", Text, primary_key=True),
        Column("holder", Text),
        Column("context_id", Text, nullable=False),
        Column("task_id", Text, nullable=False),
    )
    op.execute(
        "INSERT INTO rewrites (name, context_id, task_id) "
        "SELECT 'named versions', '', '' WHERE EXISTS (SELECT 1 FROM tasks)"
    )
