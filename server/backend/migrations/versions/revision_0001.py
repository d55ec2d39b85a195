"""The tables: artifacts, accounts and their contexts, tasks and their messages, push notifications,
values of agents with a loop of their own."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Float, Integer, LargeBinary, Text

revision = "0001"
down_revision = None


def upgrade() -> None:
    _artifacts()
    _accounts()
    _contexts()
    _tasks()
    _messages()
    _push()
    _loops()
    _annotations()


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
        Column("draft_completed", Integer),
        Column("incarnation", BigInteger, nullable=False),
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
        Column("edits", Text),
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
    op.create_table(
        "kept_bytes",
        Column("context_id", Text, primary_key=True),
        Column("bytes", BigInteger, nullable=False),
    )


def _accounts() -> None:
    op.create_table(
        "api_keys",
        Column("key_hash", Text, primary_key=True),
        Column("name", Text, nullable=False),
        Column("user_name", Text, nullable=False),
        Column("made_at", BigInteger, nullable=False),
        Column("revoked_at", BigInteger),
    )
    op.create_table(
        "shares",
        Column("share_id", Text, primary_key=True),
        Column("context_id", Text, nullable=False),
        Column("owner", Text, nullable=False),
        Column("level", Text, nullable=False),
        Column("made_at", BigInteger, nullable=False),
        Column("user_name", Text, nullable=False),
        Column("token_hash", Text, nullable=False),
        Column("expires_at", BigInteger),
    )
    op.create_index("shares_by_context", "shares", ["context_id"])
    op.create_index("shares_by_token", "shares", ["token_hash"])
    op.create_index("shares_by_user", "shares", ["user_name"])
    op.create_table(
        "ended_sessions",
        Column("user_name", Text, primary_key=True),
        Column("session_id", Text, primary_key=True),
        Column("ended_at", BigInteger, nullable=False),
    )
    op.create_table(
        "server_secrets",
        Column("name", Text, primary_key=True),
        Column("secret", Text, nullable=False),
        Column("made_at", BigInteger, nullable=False),
    )
    op.create_table(
        "brokers",
        Column("place", Text, primary_key=True),
        Column("used_at", Float, nullable=False),
    )
    op.create_table(
        "usage",
        Column("user_name", Text, primary_key=True),
        Column("day", Integer, primary_key=True),
        Column("replica_id", Text, primary_key=True),
        Column("requests", BigInteger, nullable=False),
        Column("turns", BigInteger, nullable=False),
        Column("tokens_in", BigInteger, nullable=False),
        Column("tokens_out", BigInteger, nullable=False),
        Column("minute", Integer, nullable=False),
        Column("in_minute", Integer, nullable=False),
        Column("before", Integer, nullable=False),
        Column("streams", Integer, nullable=False),
        Column("running", Integer, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
    )
    op.create_index("usage_by_change", "usage", ["changed_at"])


def _contexts() -> None:
    op.create_table(
        "contexts",
        Column("context_id", Text, primary_key=True),
        Column("tasks", Integer, nullable=False),
        Column("position", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        Column("incarnation", BigInteger, nullable=False),
    )
    op.create_table(
        "owned_contexts",
        Column("context_id", Text, primary_key=True),
        Column("owner", Text, primary_key=True),
        Column("name", Text),
        Column("agents_suggest", Boolean, nullable=False),
        Column("request", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
    )
    op.create_index("owned_contexts_by_owner", "owned_contexts", ["owner", "changed_at", "context_id"])
    op.create_table(
        "removed_contexts",
        Column("key_hash", Text, primary_key=True),
    )


def _tasks() -> None:
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
        Column("cancel_requested", Boolean, nullable=False),
        Column("snapshot", Integer, nullable=False),
        Column("head", Text, nullable=False),
        Column("transcript", Text, nullable=False),
        Column("artifacts", Text, nullable=False),
        Column("named", Text),
        Column("push", Boolean, nullable=False),
    )
    op.create_index("tasks_by_owner", "tasks", ["owner", "changed_at", "task_id"])
    op.create_index("tasks_by_owner_and_state", "tasks", ["owner", "state", "changed_at", "task_id"])
    op.create_index("tasks_by_context", "tasks", ["context_id", "changed_at", "task_id", "owner", "state"])
    op.create_index("tasks_by_state", "tasks", ["state", "replica"])
    op.create_table(
        "pages",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("first", Integer, primary_key=True),
        Column("last", Integer, nullable=False),
        Column("epoch", Integer, nullable=False),
        Column("position", BigInteger),
        Column("entries", LargeBinary, nullable=False),
        Column("named", Text),
    )
    op.create_index("pages_by_position", "pages", ["context_id", "position"])
    op.create_table(
        "latest_changes",
        Column("context_id", Text, primary_key=True),
        Column("artifact_id", Text, primary_key=True),
        Column("position", BigInteger, nullable=False),
        Column("task_id", Text, nullable=False),
        Column("closed", Boolean, nullable=False),
        Column("name", Text, nullable=False),
    )
    op.create_table(
        "task_counts",
        Column("owner", Text, primary_key=True),
        Column("state", Text, primary_key=True),
        Column("replica_id", Text, primary_key=True),
        Column("tasks", BigInteger, nullable=False),
    )


def _messages() -> None:
    op.create_table(
        "context_watchers",
        Column("context_id", Text, primary_key=True),
        Column("replica_id", Text, primary_key=True),
        Column("streams", Integer, nullable=False),
    )
    op.create_table(
        "inbox_messages",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("inbox_id", Text, primary_key=True),
        Column("sent_at", BigInteger, nullable=False),
        Column("key", Text, nullable=False),
        Column("message", Text, nullable=False),
        Column("named", Text),
    )
    op.create_table(
        "message_files",
        Column("context_id", Text, primary_key=True),
        Column("digest", Text, primary_key=True),
        Column("content", LargeBinary, nullable=False),
    )
    op.create_table(
        "unnamed_files",
        Column("context_id", Text, primary_key=True),
        Column("digest", Text, primary_key=True),
        Column("size", BigInteger, nullable=False),
        Column("written_at", BigInteger, nullable=False),
    )
    op.create_index("unnamed_files_by_time", "unnamed_files", ["written_at"])
    op.create_table(
        "task_contexts",
        Column("task_id", Text, primary_key=True),
        Column("context_id", Text, nullable=False),
    )
    op.create_table(
        "message_keys",
        Column("key", Text, primary_key=True),
        Column("task_id", Text, nullable=False),
        Column("context_id", Text, nullable=False),
        Column("accepted_at", BigInteger, nullable=False),
    )
    op.create_index("message_keys_by_context", "message_keys", ["context_id"])
    op.create_index("message_keys_by_time", "message_keys", ["accepted_at"])
    op.create_table(
        "replicas",
        Column("replica_id", Text, primary_key=True),
        Column("heartbeat_at", Float, nullable=False),
        Column("commits", BigInteger, nullable=False),
        Column("room", Integer, nullable=False, server_default="0"),
        Column("room_at", Float, nullable=False, server_default="0"),
    )


def _push() -> None:
    op.create_table(
        "push_configs",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("config_id", Text, primary_key=True),
        Column("registrant", Text, nullable=False),
        Column("link", Text, nullable=False),
        Column("version", Text, nullable=False),
        Column("url", Text, nullable=False),
        Column("target", Text, nullable=False),
        Column("token", Text, nullable=False),
        Column("scheme", Text, nullable=False),
        Column("credentials", Text, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("due_at", BigInteger),
        Column("claim", Text),
        Column("failure", Text, nullable=False),
    )
    op.create_index("push_configs_by_due", "push_configs", ["due_at"])
    op.create_table(
        "push_outbox",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("config_id", Text, primary_key=True),
        Column("generation", Integer, primary_key=True),
        Column("epoch", Integer, nullable=False),
        Column("written_at", BigInteger, nullable=False),
        Column("entry", Text, nullable=False),
    )


def _loops() -> None:
    op.create_table(
        "loop_values",
        Column("context_id", Text, primary_key=True),
        Column("name", Text, primary_key=True),
        Column("value", LargeBinary, nullable=False),
        Column("size", Integer, nullable=False),
        Column("digest", Text, nullable=False),
    )
    op.create_table(
        "states_before",
        Column("context_id", Text, primary_key=True),
        Column("task_id", Text, primary_key=True),
        Column("value", LargeBinary, nullable=False),
    )
    op.create_table(
        "context_holders",
        Column("context_id", Text, primary_key=True),
        Column("subject", Text, primary_key=True),
        Column("replica_id", Text, nullable=False),
        Column("task_id", Text, nullable=False),
    )


def _annotations() -> None:
    op.create_table(
        "artifact_annotations",
        Column("context_id", Text, primary_key=True),
        Column("artifact_id", Text, primary_key=True),
        Column("annotation_id", Text, primary_key=True),
        Column("number", Integer, nullable=False),
        Column("version", Integer, nullable=False),
        Column("open", Boolean, nullable=False),
        Column("accepted_into", Integer),
        Column("annotation", LargeBinary, nullable=False),
    )
    op.create_index("annotations_by_number", "artifact_annotations", ["context_id", "artifact_id", "number", "open"])
    op.create_index("annotations_by_acceptance", "artifact_annotations", ["context_id", "artifact_id", "accepted_into"])
