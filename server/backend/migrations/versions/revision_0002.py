"""Contexts and artifacts that are removed and made anew are told apart; the messages of a context are found by it."""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for table in ("artifacts", "contexts"):
        op.add_column(table, Column("incarnation", BigInteger, nullable=False, server_default=text("0")))
    op.create_index("messages_by_context", "messages", ["context_id"])
