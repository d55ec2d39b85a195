"""The statements of a commit, in their order: PostgreSQL answers each of them before the next one is sent.

Those whose rows no other one needs are one statement there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    BlockPosition,
    MessageReceived,
    State,
    StatusChanged,
    TextAdded,
    UserMessage,
)
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.tasks.kept_files import LARGE_BYTES, KeptFile
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.models import FilePart, text_part
from tests.fakes import Clock, said
from tests.server.tasks.context_harness import open_contexts

FILE = KeptFile.from_content(bytes(LARGE_BYTES))
CONFIG = PushConfig(ConfigKey("c", "t", "p"), Caller("ann"), "1.0", "https://a.example/x", "a.example:443")
CLOSED = ArtifactChanged("doc", "Doc", "", False, (text_part("Text"),), True, 1, "agent", 0)
PHOTO = UserMessage("m-2", (text_part("Look"), FilePart(FILE, name="photo.bin")))
STEP = re.compile(
    r"(?:^|s\d+ AS \(|\) )\s*(?:(SELECT).*?FROM|(INSERT) INTO|(UPDATE)|(DELETE) FROM|(WITH) RECURSIVE) (\w+)", re.DOTALL
)


@pytest.fixture(params=["sqlite", "postgresql"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlBackend]:
    async with open_contexts(request.param, tmp_path) as harness:
        assert isinstance(harness.backend, SqlBackend)
        yield harness.backend


@contextmanager
def statements(backend: SqlBackend) -> Iterator[list[str]]:
    """What is written meanwhile, without the lease of the replica and its notification."""
    steps: list[str] = []

    def listen(*given: object) -> None:
        found = [" ".join(filter(None, step)) for step in STEP.findall(re.sub(r"^WITH (?=s0)", "", str(given[2])))]
        if found and not found[0].endswith("replicas"):
            steps.append(" + ".join(dict.fromkeys(reversed(found))))  # executed from back to front, once for each row

    engine = backend._database._writer.sync_engine
    event.listen(engine, "before_cursor_execute", listen)
    try:
        yield steps
    finally:
        event.remove(engine, "before_cursor_execute", listen)


def together(backend: SqlBackend, *steps: str) -> list[str]:
    return [" + ".join(steps)] if backend._database.dialect == "postgresql" else [*steps]


async def test_a_task_begins_with_one_statement_for_each_table(backend: SqlBackend) -> None:
    journal = backend.journal
    with statements(backend) as made:
        await journal.create(TaskRecord("t", "c", "ann", Clock()(), history=(said("m", "Go"),)), "key", CONFIG)
        await journal.append("t", StatusChanged(State.WORKING))
        await journal.flushed("t")
    assert made == [
        "INSERT message_keys",
        "INSERT contexts",
        "INSERT tasks",
        "INSERT task_contexts",
        "INSERT push_configs",
        "SELECT push_configs",
        "INSERT push_outbox",
        "UPDATE push_configs",
        "INSERT owned_contexts",
        *together(backend, "INSERT pages", "UPDATE tasks", "INSERT kept_bytes", "INSERT task_counts"),
    ]


async def test_a_task_that_gets_a_message_writes_and_ends_changes_each_table_once(backend: SqlBackend) -> None:
    journal = backend.journal
    await journal.create(TaskRecord("t", "c", "ann", Clock()(), history=(said("m", "Go"),)), "key", CONFIG)
    await journal.keep_files("c", PHOTO)
    await journal.flushed("t")
    with statements(backend) as made:
        await journal.append("t", StatusChanged(State.WORKING), MessageReceived(PHOTO))
        await journal.acknowledge("t", "inbox", "other-key")
        await journal.append("t", CLOSED, StatusChanged(State.COMPLETED))
        await journal.flushed("t")
    assert made == [
        "INSERT message_keys",
        "SELECT tasks",  # locks
        "INSERT contexts",
        "SELECT push_configs",  # locks
        "INSERT push_outbox",
        "UPDATE push_configs",
        "INSERT owned_contexts",
        "WITH links",  # the versions whose content the record would repeat
        "SELECT tasks",  # the sizes that the record had
        "DELETE inbox_messages",
        "DELETE unnamed_files",
        "SELECT message_files",
        *together(
            backend,
            "INSERT pages",
            "INSERT latest_changes",
            "UPDATE tasks",
            "INSERT kept_bytes",
            "INSERT task_counts",
        ),
    ]


async def test_a_delta_is_one_page(backend: SqlBackend) -> None:
    journal = backend.journal
    await journal.create(TaskRecord("t", "c", "ann", Clock()(), history=(said("m", "Go"),)))
    await journal.flushed("t")
    with statements(backend) as made:
        await journal.append("t", TextAdded(BlockPosition(0, 1, 0), "Hello"))
        await journal.flushed("t")
    assert made == ["SELECT tasks", *together(backend, "INSERT pages", "UPDATE tasks", "INSERT kept_bytes")]
