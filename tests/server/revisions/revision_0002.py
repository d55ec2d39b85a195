"""A revision as the second release may have it; `test_migrations.py` upgrades to it."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("task_contexts", Column("note", Text, nullable=False, server_default=text("'none'")))
