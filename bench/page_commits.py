"""How many transactions of pages PostgreSQL commits for 64 replicas, by pgbench: with a NOTIFY in each, or without.

The statements are those that a replica makes for a page in the middle of a task, recorded from one. Each of pgbench's
clients is a replica with a task in a context of its own. Run as `python -m bench.page_commits BROKER RATE SECONDS` this
publishes pages, as many a second, by the connection that servers have.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import event

from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.broker.signatures import Signatures
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.page_messages import PageMessage
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Limits
from a2a_canvas.store.sql.database import Database
from bench.servers import ROOT
from tests.database_fixtures import execute, find_program
from tests.fakes import parts, said

CLIENTS = 64
FIRST = 100
"""The number of the first client: all numbers have three digits."""
CONTEXT = ContextKey("00000000-0000-8abc-8000-000000000")
"""The beginning of the keys of contexts, which are in one shard."""
STEPS = 200
"""Publications a second that each send several pages."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What was measured: transactions a second, and pages that were published meanwhile."""

    commits: float
    published: float = 0.0


def text(words: str, *, append: bool) -> ArtifactChanged:
    return ArtifactChanged("text", "Text", "", append, parts(words), False, 1, "agent", 0)


async def record_statements(url: str) -> list[str]:
    """Make a task for each client, and return the statements of one page of the first task."""
    database, statements = Database(url), list[str]()
    backend = SqlBackend(database, lambda: datetime.now(UTC), Limits(), spacing=0)
    await backend._lease.register()
    backend.commits.start()
    for number in range(FIRST, FIRST + CLIENTS):
        key, task_id = ContextKey(f"{CONTEXT}{number}"), f"task-{number}"
        await backend.journal.create(TaskRecord(task_id, key, "", datetime.now(UTC), history=(said("m", "Write"),)))
        await backend.journal.flushed(task_id)
        await backend.journal.append(task_id, StatusChanged(State.WORKING), text("x" * 100, append=False))
    await backend.journal.flushed(task_id)
    names = {backend._lease.id: "replica-:c", f"task-{FIRST}": "task-:c", f"{CONTEXT}{FIRST}": f"{CONTEXT}:c"}
    event.listen(
        database._writer.sync_engine,
        "before_cursor_execute",
        lambda _, __, statement, values, *___: statements.append(literal(statement, values, names)),
    )
    await backend.journal.append(f"task-{FIRST}", text("01234567890123456789" * 2, append=True))
    await backend.journal.flushed(f"task-{FIRST}")
    await backend.commits.stop()
    await backend.journal.stop()
    await database.close()
    return statements


def literal(statement: str, values: Sequence[Any], names: Mapping[str, str]) -> str:
    """A statement with its values, in one line.

    Args:
        names: what pgbench's client has in place of names.
    """
    for place in range(len(values), 0, -1):
        statement = statement.replace(f"${place}", _shown(values[place - 1], names))
    line = " ".join(statement.split())
    # The number of a page is the client's own.
    return line.replace("4::INTEGER, 4::INTEGER", ":n::INTEGER, :n::INTEGER") if "INTO pages" in line else line


def _shown(value: Any, names: Mapping[str, str]) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"'\\x{value.hex()}'"
        case str() as quoted:
            for name, of_client in names.items():
                quoted = quoted.replace(name, of_client)
            quoted = "'" + quoted.replace("'", "''") + "'"
            return "(" + quoted.replace(":c", "' || :c::text || '") + ")" if ":c" in quoted else quoted
        case _:
            return str(value)


async def prepare(url: str) -> list[str]:
    """Fill a database for `measure`; returns the statements of a transaction."""
    statements = await record_statements(url)
    execute(url, "UPDATE tasks SET replica = 'replica-' || right(task_id, 3)")
    numbers = f"generate_series({FIRST}, {FIRST + CLIENTS - 1})"
    execute(url, f"INSERT INTO replicas SELECT 'replica-' || n, 0, 0 FROM {numbers} n")
    return statements


async def measure(url: str, statements: Sequence[str], seconds: int, first: int, broker: str = "") -> Rate:
    """Run pgbench.

    Args:
        first: the number of the clients' first page.
        broker: where one process publishes pages, as many as were committed without it.

    Raises:
        RuntimeError: pgbench failed; the message has what it said.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        # In a pipeline: pgbench and PostgreSQL share the processors, and pgbench's share is to be small.
        lines = [f"\\set c :client_id + {FIRST}", "\\set n :n + 1", "\\startpipeline"]
        lines += [f"{statement};" for statement in ("BEGIN", *statements, "COMMIT")]
        file.write("\n".join([*lines, "\\endpipeline", ""]))
        file.flush()
        options = [
            "-n",
            "-M",
            "prepared",
            "-c",
            str(CLIENTS),
            "-j",
            "2",
            "-T",
            str(seconds),
            "-D",
            f"n={first}",
            "-f",
            file.name,
        ]
        process = await asyncio.create_subprocess_exec(
            *(find_program("pgbench") or "pgbench", *options, url),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
    found = [line for line in output.splitlines() if line.startswith("tps = ")]
    if process.returncode or not found:
        raise RuntimeError(f"pgbench: {output}")
    return Rate(float(found[0].split()[2]))


async def measure_publishing(url: str, statements: Sequence[str], seconds: int, first: int, to: str, rate: int) -> Rate:
    """The same while another process publishes pages."""
    command = [sys.executable, "-m", "bench.page_commits", to, str(rate), str(seconds)]
    publishing = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        found = await measure(url, statements, seconds, first)
        output = (await publishing.communicate())[0]
    finally:
        if publishing.returncode is None:
            publishing.kill()
            await publishing.wait()
    return Rate(found.commits, int(output) / seconds)


async def publish(address: str, rate: int, seconds: float) -> int:
    """Publish pages; how many were sent."""
    broker, signatures = Broker([address]), Signatures(b"k" * 32)
    broker.start(signatures)
    await broker.connected.wait()
    page = PageMessage(ContextKey("context"), "task", 1, 4, 5, 7, 8, b"x" * 200).encode()
    subjects = [signatures.subject("page", f"context-{number}", f"task-{number}") for number in range(CLIENTS)]
    loop = asyncio.get_running_loop()
    begun = loop.time()
    sent = 0
    while (passed := loop.time() - begun) < seconds:
        while sent < passed * rate:
            broker.publish(subjects[sent % CLIENTS], page)
            sent += 1
        await asyncio.sleep(1 / STEPS)
    sent = broker.sent
    await broker.stop()
    return sent


if __name__ == "__main__":
    print(asyncio.run(publish(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
