"""The tables of push notifications. Times are microseconds since 1970."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from a2a_canvas.store.sql.database import TextSize
from a2a_canvas.store.sql.tables import CompressedText, Text, metadata

push_configs = Table(
    "push_configs",  # where clients want notifications; one row is a queue
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("config_id", Text, primary_key=True),
    Column("registrant", Text, nullable=False),  # the name of the caller
    Column("link", Text, nullable=False),  # the id of the share whose link the caller had; empty for none
    Column("version", Text, nullable=False),  # of A2A
    Column("url", Text, nullable=False),
    Column("target", Text, nullable=False),  # host and port
    Column("token", Text, nullable=False),
    Column("scheme", Text, nullable=False),
    Column("credentials", Text, nullable=False),
    Column("attempts", Integer, nullable=False),  # that have failed, of its first notification
    Column("due_at", BigInteger),  # when it is to be sent, or the claim expires; null for nothing to send
    Column("claim", Text),  # of the process that delivers; null for none
    Column("failure", Text, nullable=False),  # why it was given up; empty: it was not
    Index("push_configs_by_due", "due_at"),
)

push_outbox = Table(
    "push_outbox",  # notifications that are to be delivered
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("config_id", Text, primary_key=True),
    Column("generation", Integer, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("written_at", BigInteger, nullable=False),
    Column("entry", CompressedText, nullable=False),  # as in `pages`; that of a version names it
)

CONFIG = ("url", "target", "token", "credentials")
"""The columns of a push config whose sizes its sender chooses."""
CONFIG_SIZE = TextSize(*(push_configs.c[name] for name in CONFIG))
