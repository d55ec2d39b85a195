"""The watchers of a context on several replicas: each counts once, and goes with its replica, however that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from a2a_canvas.server.tasks.journal.activity import Activity
from a2a_canvas.server.tasks.sql.projections.watchers import context_watchers
from tests.fakes import Hold, answer, text
from tests.server.tasks.sql.replica_harness import BOTH_WAYS, SHORT_LEASE, Replica, Replicas

SOON = 30.0


@pytest.fixture
async def open_streams() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def watched(stack: AsyncExitStack, replica: Replica, context: str = "c") -> AsyncGenerator[Activity, None]:
    """A watcher that was told something."""
    watcher = await stack.enter_async_context(aclosing(replica.backend.journal.watch(context)))
    async with asyncio.timeout(SOON):
        await anext(watcher)
    return watcher


async def is_told(watcher: AsyncGenerator[Activity, None], expected: Activity) -> None:
    async with asyncio.timeout(SOON):
        while replace(await anext(watcher), tasks=0, updated_at=None) != expected:
            pass


async def test_watchers_of_all_replicas_are_counted_and_leave(several: Replicas, open_streams: AsyncExitStack) -> None:
    first, other = await several.start(), await several.start()
    watcher = await watched(open_streams, first)
    async with AsyncExitStack() as leaving:
        there = await watched(leaving, other)
        await watched(leaving, other)
        await watched(leaving, other, "another context")
        await is_told(watcher, Activity(3, ()))
        await is_told(there, Activity(3, ()))
    await is_told(watcher, Activity(1, ()))


@BOTH_WAYS
async def test_a_task_on_another_replica_is_told_when_it_begins_and_ends(
    several: Replicas, open_streams: AsyncExitStack
) -> None:
    hold = Hold()
    first, other = await several.start(), await several.start([hold, *answer(text("Done."))])
    watcher = await watched(open_streams, first)
    task_id = (await other.send("Write")).snapshot.task_id
    await is_told(watcher, Activity(1, (task_id,)))
    hold.release.set()
    await is_told(watcher, Activity(1, ()))


async def test_the_watchers_of_a_killed_replica_vanish(several: Replicas, open_streams: AsyncExitStack) -> None:
    first, other = await several.start(timing=SHORT_LEASE), await several.start(timing=SHORT_LEASE)
    watcher = await watched(open_streams, first)
    await watched(open_streams, other)
    await is_told(watcher, Activity(2, ()))
    await other.crash(expire=False)
    await is_told(watcher, Activity(1, ()))
    async with first.backend._database.read() as connection:
        assert await connection.scalar(select(func.count()).select_from(context_watchers)) == 1


async def test_those_of_one_that_stops_vanish_at_once(several: Replicas, open_streams: AsyncExitStack) -> None:
    first, other = await several.start(), await several.start()  # no lease expires
    watcher = await watched(open_streams, first)
    await watched(open_streams, other)
    await is_told(watcher, Activity(2, ()))
    await other.stop()
    other.dead = True
    await is_told(watcher, Activity(1, ()))


async def test_one_that_has_lost_its_lease_reports_its_watchers_anew(
    several: Replicas, open_streams: AsyncExitStack
) -> None:
    first, other = await several.start(), await several.start()
    watcher = await watched(open_streams, first)
    await watched(open_streams, other)
    await is_told(watcher, Activity(2, ()))
    await other._expire()
    await watched(open_streams, first)
    await is_told(watcher, Activity(2, ()))
    await is_told(watcher, Activity(3, ()))


async def test_what_was_missed_is_read_when_the_replica_listens_again(
    several: Replicas, open_streams: AsyncExitStack
) -> None:
    first, other = await several.start(), await several.start()
    watcher = await watched(open_streams, first)
    await first.backend._listener.stop()
    await watched(open_streams, other)
    first.backend._listener.start()
    await is_told(watcher, Activity(2, ()))
