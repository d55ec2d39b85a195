"""The tasks of an owner are counted by each replica, and read as sums."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import insert, select

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.projections.task_counts import (
    add_counts,
    count_of_owners,
    count_transition,
    fold_counts,
    task_counts,
)
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.new_database import create_tables

DONE, WORKING = State.COMPLETED.value, State.WORKING.value


@pytest_asyncio.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(postgresql_url() if request.param == "postgresql" else sqlite_url(tmp_path))
    await create_tables(database)
    async with database.write() as connection:
        await connection.execute(insert(replicas).values(replica_id="alive", heartbeat_at=0, commits=0))
    yield database
    await database.close()


async def add(database: Database, added: dict[tuple[str, str], int], replica: str = "") -> None:
    async with database.write() as connection:
        await connection.run_sync(add_counts, added, replica)


async def count(database: Database, *owners: str, state: State | None = None) -> int:
    async with database.read() as connection:
        return await count_of_owners(connection, owners, state)


async def test_what_replicas_count_is_added_up_by_owner_and_state(database: Database) -> None:
    await add(database, {("ann", DONE): 5, ("ann", WORKING): 1, ("", DONE): 2}, "alive")
    await add(database, {("ann", DONE): -2}, "dead")
    await add(database, dict(count_transition("ann", WORKING, DONE)))
    assert await count(database, "ann") == 4
    assert await count(database, "ann", "") == 6
    assert await count(database, "ann", state=State.COMPLETED) == 4
    assert await count(database, "ann", state=State.WORKING) == 0
    assert await count(database, "bob") == 0


async def test_a_sweep_keeps_one_row_of_what_dead_replicas_have_counted(database: Database) -> None:
    for replica in ("dead", "dead too", "alive", ""):
        await add(database, {("ann", DONE): 1}, replica)
    await fold_counts(database, datetime.now(UTC))
    async with database.read() as connection:
        rows = await connection.execute(select(task_counts.c.replica_id, task_counts.c.tasks))
        assert dict(map(tuple, rows)) == {"": 3, "alive": 1}
