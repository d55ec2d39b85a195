"""Contexts are listed by owner, with names and requests; both are filled in when a context of before is listed."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "owned_contexts",
        Column("context_id", Text, primary_key=True),
        Column("owner", Text, primary_key=True),
        Column("name", Text),
        Column("request", Text),
        Column("created_at", BigInteger),
        Column("changed_at", BigInteger, nullable=False),
    )
    op.create_index("owned_contexts_by_owner", "owned_contexts", ["owner", "changed_at", "context_id"])
    op.execute(
        "INSERT INTO owned_contexts (context_id, owner, changed_at) "
        "SELECT context_id, owner, max(changed_at) FROM tasks GROUP BY context_id, owner"
    )
    op.add_column("latest_changes", Column("name", Text))
