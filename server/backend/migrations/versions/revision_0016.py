"""The tasks of each owner in each state are counted when they change, not when they are listed."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "task_counts",
        Column("owner", Text, primary_key=True),
        Column("state", Text, primary_key=True),
        Column("replica_id", Text, primary_key=True),
        Column("tasks", BigInteger, nullable=False),
    )
    op.execute(
        "INSERT INTO task_counts (owner, state, replica_id, tasks) "
        "SELECT owner, state, '', count(*) FROM tasks GROUP BY owner, state"
    )
