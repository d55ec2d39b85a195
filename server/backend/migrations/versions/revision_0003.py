"""Names for what the tables hold: requests to cancel, latest changes, inboxes, heartbeats and keys of messages."""

from alembic import op

revision = "0003"
down_revision = "0002"

TABLES = {"standings": "latest_changes", "mail": "inbox_messages", "messages": "message_keys"}
COLUMNS = (
    ("tasks", "cancelled", "cancel_requested"),
    ("inbox_messages", "mail_id", "inbox_id"),
    ("replicas", "beat", "heartbeat_at"),
    ("artifacts", "draft_kept", "draft_completed"),
)
INDEXES = (
    ("messages_by_time", "message_keys_by_time", "accepted_at"),
    ("messages_by_context", "message_keys_by_context", "context_id"),
)


def upgrade() -> None:
    for old, new in TABLES.items():
        op.rename_table(old, new)
    for table, old, new in COLUMNS:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    for old, new, column in INDEXES:  # SQLite cannot rename one
        op.drop_index(old, table_name="message_keys")
        op.create_index(new, "message_keys", [column])
    if op.get_bind().dialect.name == "postgresql":
        for old, new in TABLES.items():
            op.execute(f"ALTER INDEX {old}_pkey RENAME TO {new}_pkey")
