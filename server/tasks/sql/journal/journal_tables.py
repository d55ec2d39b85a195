"""The tables of tasks. Every one is keyed by `context_id`, but for two directories: task -> context, message -> task,
and for `removed_contexts` and `task_counts`.

`tasks` has the columns that are queried, and a snapshot of the record at generation `snapshot`: `head` (all but the
next two), `transcript` and `artifacts`. Entries after it are in `pages`: one row of entries for each commit. A closed
version is not repeated there: the artifacts of a task, and the entries that close versions, name it (`codec.py`).
Neither are the large files of messages, which are in `message_files`. The column `named` has all names of the row, with
sizes. Times are microseconds since 1970, but `replicas.heartbeat_at` is seconds by the database's own clock.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, Table

from a2a_canvas.store.sql.compression import compress, decompress
from a2a_canvas.store.sql.database import TextSize
from a2a_canvas.store.sql.tables import CompressedText, Text, metadata
from a2a_canvas.store.text.unicode import replace_unstorable

tasks = Table(
    "tasks",
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("number", Integer, nullable=False),  # in its context: 1, 2, 3…
    Column("owner", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("replica", Text),  # its owner; null when it was given up
    Column("resumptions", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),  # a request to its owner
    Column("snapshot", Integer, nullable=False),  # the generation of the three that follow
    Column("head", CompressedText, nullable=False),
    Column("transcript", CompressedText, nullable=False),
    Column("artifacts", CompressedText, nullable=False),
    Column("named", Text),  # the versions and files that the three name; null for none
    Column("push", Boolean, nullable=False),  # it has push configs, or had some
    Index("tasks_by_owner", "owner", "changed_at", "task_id"),
    Index("tasks_by_owner_and_state", "owner", "state", "changed_at", "task_id"),
    Index("tasks_by_context", "context_id", "changed_at", "task_id", "owner", "state"),
    Index("tasks_by_state", "state", "replica"),
)

pages = Table(
    "pages",
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("first", Integer, primary_key=True),  # the generation after the last one of the page before it
    Column("last", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("position", BigInteger),  # in the context, of its last artifact change; null if it has none
    Column("entries", LargeBinary, nullable=False),  # JSON, compressed where that makes it shorter
    Column("named", Text),  # the versions and files that the entries name; null for none
    Index("pages_by_position", "context_id", "position"),
)

latest_changes = Table(
    "latest_changes",  # the last change of each artifact of a context
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("closed", Boolean, nullable=False),  # the change has made a version
    Column("name", Text, nullable=False),  # of the artifact
)

task_counts = Table(
    "task_counts",  # the sums are how many tasks an owner has in a state (`task_counts.py`)
    metadata,
    Column("owner", Text, primary_key=True),
    Column("state", Text, primary_key=True),
    Column("replica_id", Text, primary_key=True),  # that has counted; empty for none
    Column("tasks", BigInteger, nullable=False),
)

context_watchers = Table(
    "context_watchers",  # the event streams of a context that a replica has
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("replica_id", Text, primary_key=True),
    Column("streams", Integer, nullable=False),
)

inbox_messages = Table(
    "inbox_messages",  # messages for tasks that another replica runs
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("inbox_id", Text, primary_key=True),
    Column("sent_at", BigInteger, nullable=False),
    Column("key", Text, nullable=False),  # as in `message_keys`; empty for none
    Column("message", Text, nullable=False),
    Column("named", Text),  # the files that the message names; null for none
)

message_files = Table(
    "message_files",  # the large files of messages (`message_files.py`)
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("digest", Text, primary_key=True),  # SHA-256 of the content
    Column("content", LargeBinary, nullable=False),
)

unnamed_files = Table(
    "unnamed_files",  # those of them that no task names yet
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("written_at", BigInteger, nullable=False),
    Index("unnamed_files_by_time", "written_at"),
)

task_contexts = Table(
    "task_contexts",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("context_id", Text, nullable=False),
)

message_keys = Table(
    "message_keys",
    metadata,
    Column("key", Text, primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("context_id", Text, nullable=False),
    Column("accepted_at", BigInteger, nullable=False),
    Index("message_keys_by_time", "accepted_at"),
    Index("message_keys_by_context", "context_id"),
)

replicas = Table(
    "replicas",
    metadata,
    Column("replica_id", Text, primary_key=True),
    Column("heartbeat_at", Float, nullable=False),
    Column("commits", BigInteger, nullable=False),  # number of its transactions that were committed
)


RECORD = ("head", "transcript", "artifacts")
"""The columns of a task's saved record."""
RECORD_SIZE = TextSize(*(tasks.c[name] for name in RECORD))
PAGE_SIZE = TextSize(pages.c.entries)


def stored_entries(entries: str) -> bytes:
    """The entries of a page, as its row has them."""
    text = replace_unstorable(entries)
    return compress(text) or text.encode()


def page_entries(page: Any) -> str:
    """The entries of a page's row."""
    return decompress(page.entries)
