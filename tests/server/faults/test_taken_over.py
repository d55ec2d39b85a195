"""Servers on one PostgreSQL: what one of them leaves behind, dead or only standing still, another one goes on with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import asyncpg
import httpx
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb

from tests.database_fixtures import execute, postgresql_url
from tests.new_database import with_tables
from tests.server.app_server import Stream, said
from tests.server.faults.fault_scripts import BEGUN, TEXTS, WRITE, WRITTEN
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.outcome_checks import assert_written
from tests.server.faults.server_processes import PATIENCE, ServerGroup, eventually, server_group
from tests.server.faults.sse_client import Refused

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[str, ServerGroup]]:
    url = await with_tables(postgresql_url())
    async with server_group(url, tmp_path_factory.mktemp("script")) as servers:
        yield url, servers


def in_the_third_call(told: ObservedTask) -> bool:
    return len(told.texts.get("report", "")) > len(BEGUN) + 50


@asynccontextmanager
async def held_up(url: str) -> AsyncIterator[None]:
    """Somebody is in the middle of a transaction, and waits in it for as long as this lasts."""
    blocker = await asyncpg.connect(url)
    try:
        async with blocker.transaction():
            await blocker.execute("LOCK TABLE pages IN SHARE MODE")
            await eventually(lambda: blocker.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            yield
    finally:
        await blocker.close()


def pages(url: str, task_id: str) -> list[tuple[Any, ...]]:
    """What is written of a task: the first and the last generation of each page, and its epoch."""
    query = f"SELECT first, last, epoch FROM pages WHERE task_id = '{task_id}' ORDER BY first"
    return [tuple(row) for row in execute(url, query)]


async def test_a_watcher_of_another_server_sees_a_killed_ones_turn_go_on(shared: tuple[str, ServerGroup]) -> None:
    owner, second, third = await shared[1].several(3)
    told = ObservedTask()
    async with owner.sends(WRITE, told) as own:
        await own.until(lambda told: told.task_id)
        watching = Stream(second.sdk().subscribe(pb.SubscribeToTaskRequest(id=told.task_id)))
        await own.until(in_the_third_call)
        await watching.until_text(len(BEGUN))
        await owner.kill()
        with pytest.raises(httpx.TransportError):
            await own.rest()
    async with third.joins(told) as back, asyncio.timeout(PATIENCE):
        await back.rest()
        await watching.rest()
    assert told.epoch == 2
    await assert_written(told, third)
    texts = {each.artifact_id: "".join(part.text for part in each.parts) for each in watching.task.artifacts}
    assert (watching.task.status.state, said(watching.task.status)) == (pb.TASK_STATE_COMPLETED, WRITTEN)
    assert texts == TEXTS


async def test_an_owner_that_stands_still_and_wakes_up_writes_nothing(shared: tuple[str, ServerGroup]) -> None:
    url, servers = shared
    owner, other = await servers.several(2)
    mine, theirs = ObservedTask(), ObservedTask()
    async with owner.sends(WRITE, mine) as own:
        await own.until(in_the_third_call)
        theirs.task_id = mine.task_id
        async with other.joins(theirs) as watching, asyncio.timeout(PATIENCE):
            with owner.stopped():
                await watching.until(lambda told: told.epoch == 2)
                before = [page for page in pages(url, mine.task_id) if page[2] == 1]
            with pytest.raises(Refused) as lost:
                await own.rest()
            assert lost.value.retryable
            await watching.rest()
    after = pages(url, mine.task_id)
    assert [page for page in after if page[2] == 1] == before
    assert {page[2] for page in after} == {1, 2}
    assert [page[0] for page in after] == [2, *(page[1] + 1 for page in after[:-1])]
    await assert_written(theirs, other)
    await assert_written(theirs, owner)

    again = ObservedTask()
    async with owner.sends(WRITE, again) as own:
        await own.rest()
    assert again.epoch == 1
    await assert_written(again, other)


async def test_so_does_one_that_was_stopped_in_the_middle_of_a_transaction(shared: tuple[str, ServerGroup]) -> None:
    """Its locks must not outlast its lease: nobody else could say that it is dead."""
    url, servers = shared
    owner, other = await servers.several(2)
    mine, theirs = ObservedTask(), ObservedTask()
    async with owner.sends(WRITE, mine) as own:
        await own.until(in_the_third_call)
        theirs.task_id = mine.task_id
        async with other.joins(theirs) as watching, asyncio.timeout(PATIENCE):
            await watching.next()
            with ExitStack() as standing:
                async with held_up(url):
                    standing.enter_context(owner.stopped())
                await watching.until(lambda told: told.epoch == 2)
            with pytest.raises(Refused) as lost:
                await own.rest()
            assert lost.value.retryable
            await watching.rest()
    await assert_written(theirs, owner)
