"""A context that is removed on one replica is gone on all of them, and what happens there at the same time is whole."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import func, select

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.accounts.errors import ContextNotFound
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.errors import ContextInUse, StreamLost, TaskNotFound
from a2a_canvas.server.tasks.sql.journal.removal import of_context
from a2a_canvas.store.models import Ref
from tests.fakes import answer, ask, text, write
from tests.server.tasks.sql.replica_harness import Replica, Replicas

ASKS = (answer(write("T", "One")), answer(ask("Q", "Shall I go on?")))
DONE = answer(text("Done."))
SOON = 30.0


async def waiting(replica: Replica) -> str:
    """A task that has written and waits for an answer."""
    record = await (await replica.send("Write")).wait_until_settled()
    assert record.state is State.INPUT_REQUIRED
    return record.task_id


async def rows(replica: Replica) -> int:
    async with replica.backend._database.read() as connection:
        counts = [await connection.scalar(select(func.count()).select_from(table)) for table in of_context()]
    return sum(each or 0 for each in counts)


async def test_its_streams_end_on_every_replica_and_its_id_begins_anew(several: Replicas) -> None:
    first = await several.start(*ASKS)
    other = await several.start(answer(write("T", "Two")), DONE)
    task_id = await waiting(first)
    streams = [
        aiter(stream)
        for replica in (first, other)
        for stream in (
            await replica.runtime.follow(task_id, ANONYMOUS),
            await replica.backend.journal.follow_context("c"),
        )
    ]
    await other.text()  # it is in memory there
    await other.backend.contexts.remove("c", "")
    for stream in streams:
        async with asyncio.timeout(SOON):
            with pytest.raises(StreamLost):
                await anext(stream)
    assert await rows(first) == 0
    for replica in (first, other):
        with pytest.raises(TaskNotFound):
            await replica.record(task_id)
        assert await replica.backend.store.list("c") == ()
    await (await other.send("Write")).wait_until_settled()
    for replica in (first, other):
        assert await replica.text() == "Two"
        assert len(await replica.backend.store.versions(Ref("c", "doc", ""))) == 1


@pytest.mark.parametrize("attempt", range(4))
async def test_an_answer_at_the_same_time_is_taken_or_the_context_is_gone(several: Replicas, attempt: int) -> None:
    first = await several.start(*ASKS, DONE, DONE)
    other = await several.start(DONE)
    task_id = await waiting(first)
    removing = asyncio.create_task(other.backend.contexts.remove("c", ""))
    for _ in range(attempt * 3):
        await asyncio.sleep(0)
    try:
        answered = await first.send("Yes", task=task_id)
    except TaskNotFound:
        await removing
        assert await rows(first) == 0
        return
    try:
        await removing
    except ContextInUse:
        assert (await answered.wait_until_settled()).state is State.COMPLETED
    else:  # it was done before
        with pytest.raises(ContextNotFound):
            await first.backend.contexts.rename("c", "", "Name")
        assert await rows(first) == 0


async def test_removed_twice_at_once_it_is_not_found_by_one(several: Replicas) -> None:
    first, other = await several.start(*ASKS), await several.start()
    await waiting(first)
    removals = [replica.backend.contexts.remove("c", "") for replica in (first, other)]
    outcomes = await asyncio.gather(*removals, return_exceptions=True)
    assert sorted(type(each).__name__ for each in outcomes) == ["ContextNotFound", "NoneType"]
