"""The tables as they were first: tasks and artifacts, each keyed by its context, and two directories."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Float, Integer, Text

revision = "0001"
down_revision = None


def upgrade() -> None:
    _artifacts()
    _tasks()
    _directories()


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        Column("context_id", Text, primary_key=True),
        Column("artifact_id", Text, primary_key=True),
        Column("holder", Text),
        Column("revision", Integer, nullable=False),
        Column("changed", BigInteger, nullable=False),
        Column("changed_by", Text, nullable=False),
        Column("current", Integer, nullable=False),
        Column("newest", Integer, nullable=False),
        Column("pruned", Integer, nullable=False),
        Column("draft_task", Text),
        Column("draft_author", Text),
        Column("draft_dirty", Boolean, nullable=False),
        Column("draft_kept", Integer),
    )
    op.create_table(
        "versions",
        Column("context_id", Text, primary_key=True),
        Column("artifact_id", Text, primary_key=True),
        Column("number", Integer, primary_key=True),
        Column("parent", Integer, nullable=False),
        Column("author", Text, nullable=False),
        Column("task_id", Text, nullable=False),
        Column("incomplete", Boolean, nullable=False),
        Column("edited_start", Integer),
        Column("edited_end", Integer),
        Column("edited_length", Integer),
        Column("content", Text),
        Column("replacement", Text),
        Column("made_at", DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "drafts",
        Column("context_id", Text, primary_key=True),
        Column("artifact_id", Text, primary_key=True),
        Column("seq", Integer, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("content", Text, nullable=False),
    )


def _tasks() -> None:
    op.create_table(
        "contexts",
        Column("context_id", Text, primary_key=True),
        Column("tasks", Integer, nullable=False),
        Column("position", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
    )
    op.create_table(
        "tasks",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("number", Integer, nullable=False),
        Column("owner", Text, nullable=False),
        Column("state", Text, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        Column("epoch", Integer, nullable=False),
        Column("generation", Integer, nullable=False),
        Column("replica", Text),
        Column("resumptions", Integer, nullable=False),
        Column("cancelled", Boolean, nullable=False),
        Column("snapshot", Integer, nullable=False),
        Column("head", Text, nullable=False),
        Column("transcript", Text, nullable=False),
        Column("artifacts", Text, nullable=False),
    )
    op.create_index("tasks_by_owner", "tasks", ["owner", "changed_at", "task_id"])
    op.create_index("tasks_by_state", "tasks", ["state", "replica"])
    op.create_table(
        "pages",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("first", Integer, primary_key=True),
        Column("last", Integer, nullable=False),
        Column("epoch", Integer, nullable=False),
        Column("position", BigInteger),
        Column("entries", Text, nullable=False),
    )
    op.create_index("pages_by_position", "pages", ["context_id", "position"])
    op.create_table(
        "standings",
        Column("context_id", Text, primary_key=True),
        Column("artifact_id", Text, primary_key=True),
        Column("position", BigInteger, nullable=False),
        Column("task_id", Text, nullable=False),
        Column("closed", Boolean, nullable=False),
    )
    op.create_table(
        "mail",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("mail_id", Text, primary_key=True),
        Column("sent_at", BigInteger, nullable=False),
        Column("key", Text, nullable=False),
        Column("message", Text, nullable=False),
    )


def _directories() -> None:
    op.create_table(
        "task_contexts",
        Column("task_id", Text, primary_key=True),
        Column("context_id", Text, nullable=False),
    )
    op.create_table(
        "messages",
        Column("key", Text, primary_key=True),
        Column("task_id", Text, nullable=False),
        Column("context_id", Text, nullable=False),
        Column("accepted_at", BigInteger, nullable=False),
    )
    op.create_index("messages_by_time", "messages", ["accepted_at"])
    op.create_table(
        "replicas",
        Column("replica_id", Text, primary_key=True),
        Column("beat", Float, nullable=False),
        Column("commits", BigInteger, nullable=False),
    )
