"""What each replica has counted of each user on each day."""

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "usage",
        Column("user_name", Text, primary_key=True),
        Column("day", Integer, primary_key=True),
        Column("replica_id", Text, primary_key=True),
        *(Column(name, BigInteger, nullable=False) for name in ("requests", "turns", "tokens_in", "tokens_out")),
        *(Column(name, Integer, nullable=False) for name in ("minute", "in_minute", "before", "streams", "running")),
        Column("changed_at", BigInteger, nullable=False),
    )
    op.create_index("usage_by_change", "usage", ["changed_at"])
