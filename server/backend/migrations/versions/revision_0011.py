"""Sessions of browsers that have ended before their time."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "ended_sessions",
        Column("user_name", Text, primary_key=True),
        Column("session_id", Text, primary_key=True),
        Column("ended_at", BigInteger, nullable=False),
    )
