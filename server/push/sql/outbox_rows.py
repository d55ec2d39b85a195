"""The rows of push configs and of the outbox, and how the entries that notifications tell of are written there.

Rule 1: a writer of the outbox, or one that finds it empty, has locked the rows of the configs first, so every config
        with notifications waiting has a due time.
Rule 2: a version is named, not repeated: its content is read when it is delivered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, Table, select, tuple_, update

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.tasks.codec import entries_to_json
from a2a_canvas.server.tasks.push_configs import PushConfig
from a2a_canvas.server.tasks.record import Entry
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, TaskKey
from a2a_canvas.store.sql.database import TextSize
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.tables import CompressedText, ContextKeyText, Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

push_configs = Table(
    "push_configs",  # where clients want notifications; one row is a queue
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
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
    Index("push_configs_by_due", "due_at"),  # claims
)

push_outbox = Table(
    "push_outbox",  # notifications that are to be delivered
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
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

KEY = (push_configs.c.context_id, push_configs.c.task_id, push_configs.c.config_id)
_ADD_CONFIG = RowStatement(lambda _: push_configs.insert(), push_configs.c.keys(), CONFIG)


def config_row(config: PushConfig) -> dict[str, Any]:
    """The row of a config with nothing to deliver."""
    names = ("version", "url", "target", "token", "scheme", "credentials", "failure")
    values = {name: getattr(config, name) for name in names}
    values |= {"registrant": config.registrant.name, "link": config.registrant.link}
    return {**config.key._asdict(), **values, "attempts": 0, "due_at": None, "claim": None}


class SqlOutboxWriter:
    """An `OutboxWriter`."""

    def write(self, connection: Connection, commit: JournalCommit) -> None:
        """A `Projection`: the first configs of new tasks, and what entries tell of."""
        configs = (config_row(each.batch.push) for each in commit.tasks if each.batch.push)
        commit.kept.update(_ADD_CONFIG.execute(connection, configs))
        told = {each.key: each.batch.push_entries for each in commit.tasks if each.has_push}
        self.put(connection, told, commit.at)

    def put(self, connection: Connection, told: Mapping[TaskKey, Sequence[Entry]], at: datetime) -> None:
        """Write what entries tell of for each config of their tasks."""
        told = {key: entries for key, entries in told.items() if entries}
        if not told:
            return
        of_tasks = tuple_(push_configs.c.context_id, push_configs.c.task_id).in_(list(told))
        active = select(*KEY).where(of_tasks, push_configs.c.failure == "").order_by(*KEY).with_for_update()
        configs: defaultdict[TaskKey, list[str]] = defaultdict(list)
        for context_id, task_id, config_id in connection.execute(active):
            configs[context_id, task_id].append(config_id)
        now = to_microseconds(at)
        rows = [
            {**_key(key), "config_id": config_id, "written_at": now, **row}
            for key, entries in told.items()
            if configs[key]
            for row in _entry_rows(entries)
            for config_id in configs[key]
        ]
        if rows:
            connection.execute(push_outbox.insert(), rows)
            idle = push_configs.c.due_at.is_(None), push_configs.c.failure == ""
            connection.execute(update(push_configs).where(of_tasks, *idle).values(due_at=now))


def _key(key: TaskKey) -> dict[str, str]:
    return {"context_id": key[0], "task_id": key[1]}


def _entry_rows(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "generation": entry.generation,
            "epoch": entry.epoch,
            "entry": entries_to_json([_whole(entry)], naming=(entry.generation,)),
        }
        for entry in entries
    ]


def _whole(entry: Entry) -> Entry:
    match entry.event:
        case ArtifactChanged() as event:
            return replace(entry, event=replace(event, append=False))
        case _:
            return entry
