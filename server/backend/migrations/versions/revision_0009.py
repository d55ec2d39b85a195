"""Push configs, and the outbox of notifications that are to be delivered."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Integer, Text, false

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "push_configs",
        *_key(),
        *(Column(name, Text, nullable=False) for name in ("registrant", "link", "version", "url", "target")),
        *(Column(name, Text, nullable=False) for name in ("token", "scheme", "credentials")),
        Column("attempts", Integer, nullable=False),
        Column("due_at", BigInteger),
        Column("claim", Text),
        Column("failure", Text, nullable=False),
    )
    op.create_index("push_configs_by_due", "push_configs", ["due_at"])
    op.create_table(
        "push_outbox",
        *_key(),
        Column("generation", Integer, primary_key=True),
        Column("epoch", Integer, nullable=False),
        Column("written_at", BigInteger, nullable=False),
        Column("entry", Text, nullable=False),
    )
    op.add_column("tasks", Column("push", Boolean, nullable=False, server_default=false()))


def _key() -> list[Column[str]]:
    return [Column(name, Text, primary_key=True) for name in ("context_id", "task_id", "config_id")]
