"""Each replica tells the others how many streams of a context it has."""

from alembic import op
from sqlalchemy import Column, Integer, Text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "context_watchers",
        Column("context_id", Text, primary_key=True),
        Column("replica_id", Text, primary_key=True),
        Column("streams", Integer, nullable=False),
    )
