"""The values of agents in a database: one transaction with the task's entries, several replicas, counts and removal."""

import asyncio
import contextlib
import logging
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.turn_values import STATE, StateConflict
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.server.tasks.sql.projections.context_holders import context_holders
from a2a_canvas.server.tasks.sql.projections.loop_values import loop_values, states_before
from a2a_canvas.server.tasks.sql.projections.pages import page_entries, pages
from a2a_canvas.server.tasks.sql.projections.records import tasks
from tests.server.tasks.kept_count import counted, recounted
from tests.server.tasks.runtime.runtime_harness import rest
from tests.server.tasks.sql.replica_harness import Replica, Replicas

SOON = 60.0
TABLES = (loop_values, states_before, context_holders)


async def rows_of(replica: Replica, table) -> list:
    async with replica.backend._database.read() as connection:
        return [*(await connection.execute(select(table))).all()]


async def ended(replica: Replica, message: str, **where) -> State:
    async with asyncio.timeout(SOON):
        return (await (await replica.send(message, **where)).wait_until_settled()).state


async def state_of(replica: Replica, context: str = "c") -> bytes | None:
    return await replica.backend.journal.values.get(context, STATE)


async def assert_counted(replica: Replica) -> None:
    assert await counted(replica.backend._database) == await recounted(replica.backend._database)


async def remember(turn: Turn) -> None:
    """It asks if the message says so, and appends to its state before and after."""
    heard = await turn.state.get() or []
    await turn.state.set([*heard, turn.text])
    await turn.values.set(f"message {turn.text}", turn.text.encode() * 1000)
    if turn.text == "ask":
        answer = await turn.ask("Where?")
        await turn.state.set([*heard, turn.text, answer])
    if turn.text == "forget":
        await turn.state.set([])
        for name in await turn.values.list():
            await turn.values.delete(name)


async def test_values_are_counted_as_they_are_stored_and_removed_with_their_context(started: Replicas) -> None:
    replica = await started.start(agent=remember)
    for message in ("one", "two"):
        assert await ended(replica, message) is State.COMPLETED
        await assert_counted(replica)
    assert await state_of(replica) == b'["one","two"]'
    assert await ended(replica, "forget") is State.COMPLETED
    await assert_counted(replica)
    assert [row.name for row in await rows_of(replica, loop_values)] == [STATE]
    await replica.backend.contexts.remove("c", "")
    assert [await rows_of(replica, table) for table in TABLES] == [[], [], []]
    assert await counted(replica.backend._database) == {}


async def test_what_a_run_may_need_again_is_stored_while_its_task_waits_and_removed_at_its_end(
    started: Replicas,
) -> None:
    replica = await started.start(agent=remember)
    await ended(replica, "one")
    waiting = await replica.send("ask")
    assert (await waiting.wait_until_settled()).state is State.INPUT_REQUIRED
    assert len(await rows_of(replica, states_before)) == 1
    await assert_counted(replica)
    assert await ended(replica, "Brest", task=waiting.snapshot.task_id) is State.COMPLETED
    assert await state_of(replica) == b'["one","ask","Brest"]'
    assert await rows_of(replica, states_before) == []
    await assert_counted(replica)


async def test_it_is_removed_by_a_sweep_if_the_task_ended_without_a_turn(started: Replicas) -> None:
    replica = await started.start(agent=remember)
    await ended(replica, "one")
    waiting = await replica.send("ask")
    await waiting.wait_until_settled()
    database = replica.backend._database
    keep = Retention(timedelta(days=1))
    await prune(database, keep, datetime.now(UTC))
    assert len(await rows_of(replica, states_before)) == 1
    await replica.runtime.cancel(waiting.snapshot.task_id, ANONYMOUS)
    await prune(database, keep, datetime.now(UTC))
    assert await rows_of(replica, states_before) == []
    await assert_counted(replica)


async def test_values_are_removed_by_the_retention_of_contexts(started: Replicas) -> None:
    replica = await started.start(agent=remember)
    await ended(replica, "one")
    keep = Retention(timedelta(days=1), contexts=timedelta(days=1))
    await prune(replica.backend._database, keep, datetime.now(UTC))
    assert len(await rows_of(replica, loop_values)) == 2
    await prune(replica.backend._database, keep, datetime.now(UTC) + timedelta(days=2), replica.backend.store.frozen)
    assert await rows_of(replica, loop_values) == []


async def test_a_set_is_committed_in_the_transaction_of_its_step_or_not_at_all(started: Replicas) -> None:
    begun = asyncio.Event()

    async def agent(turn: Turn) -> None:
        heard = await turn.state.get() or []
        await turn.state.set([*heard, "step"])
        await turn.once("step", answer)
        assert await turn.state.get() == [*heard, "step"]
        await turn.state.set([*heard, "step", "end"])
        begun.set()
        if not turn.resumed:
            await asyncio.Event().wait()

    async def answer() -> int:
        return 1

    first = await started.start(agent=agent)
    following = await first.send("Go")
    await begun.wait()
    assert await state_of(first) == b'["step"]'
    await first.crash()
    second = await started.start(agent=agent)
    async with asyncio.timeout(SOON):
        record = await rest_of(second, following.snapshot.task_id)
    assert record.state is State.COMPLETED
    assert await state_of(second) == b'["step","end"]'
    await assert_counted(second)


async def rest_of(replica: Replica, task_id: str):
    await rest(await replica.runtime.follow(task_id, ANONYMOUS))
    return await replica.record(task_id)


async def test_no_entry_and_no_record_has_a_value(started: Replicas) -> None:
    async def agent(turn: Turn) -> None:
        await turn.state.set("a value")
        await turn.once("step", answer)
        await turn.values.set("name", b"a value")

    async def answer() -> int:
        return 1

    replica = await started.start(agent=agent)
    assert await ended(replica, "Go") is State.COMPLETED
    assert await state_of(replica) == b'"a value"'
    [task], written = await rows_of(replica, tasks), await rows_of(replica, pages)
    stored = [task.head, task.transcript, task.artifacts, *map(page_entries, written)]
    assert "step" in "".join(stored)
    assert "a value" not in "".join(stored)


# ---------------------------------------------------------------------------- several replicas


@pytest.mark.postgres
async def test_the_loser_on_another_replica_is_told_at_its_set_and_loses_nothing(several: Replicas) -> None:
    both_have_read, conflicts = asyncio.Barrier(2), []

    async def agent(turn: Turn) -> None:
        heard = await turn.state.get() or []
        await both_have_read.wait()
        while True:
            try:
                await turn.state.set([*heard, turn.text])
                return
            except StateConflict:
                conflicts.append(turn.text)
                heard = await turn.state.get()

    replicas = [await several.start(agent=agent) for _ in range(2)]
    sent = [await replica.send(f"m{number}") for number, replica in enumerate(replicas)]
    async with asyncio.timeout(SOON):
        states = [(await each.wait_until_settled()).state for each in sent]
    assert states == [State.COMPLETED, State.COMPLETED]
    assert len(conflicts) == 1
    winner = "m1" if conflicts == ["m0"] else "m0"
    assert await state_of(replicas[0]) == f'["{winner}","{conflicts[0]}"]'.encode()
    assert await rows_of(replicas[0], context_holders) == []


@pytest.mark.postgres
async def test_a_dead_replica_holds_nothing(several: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    holding, waits = asyncio.Event(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        await turn.state.set(turn.text)
        if turn.text == "holder" and not turn.resumed:
            holding.set()
            await waits.wait()

    first, second = await several.start(agent=agent), await several.start(agent=agent)
    await first.send("holder")
    await holding.wait()
    other = await second.send("other")
    assert len(await rows_of(second, context_holders)) == 1
    await first.crash()
    async with asyncio.timeout(SOON):
        assert (await other.wait_until_settled()).state is State.COMPLETED
    waits.set()


@pytest.mark.postgres
async def test_a_replica_that_was_only_paused_overwrites_nothing(several: Replicas) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        while True:
            with contextlib.suppress(StateConflict):  # "other" runs while "paused" is taken over
                await turn.state.set([*(await turn.state.get() or []), turn.text])
                break
        if turn.text == "paused" and not turn.resumed:
            begun.set()
            await may_end.wait()

    first, second = await several.start(agent=agent), await several.start(agent=agent)
    paused = await first.send("paused")
    await begun.wait()
    first.freeze()
    await first._expire()
    assert await ended(second, "other") is State.COMPLETED
    may_end.set()
    first.thaw()
    async with asyncio.timeout(SOON):
        record = await rest_of(second, paused.snapshot.task_id)
    assert record.state is State.COMPLETED
    assert sorted((await state_of(second) or b"").decode().strip("[]").split(",")) == ['"other"', '"paused"']
