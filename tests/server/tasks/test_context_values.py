"""What the values of contexts promise, wherever they are stored."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from a2a_canvas.server.agent.events import State, StatusChanged, ToolStep, TranscriptAppended
from a2a_canvas.server.agent.loops.turn_values import STATE, SavedValues, digest_of, stored_value
from a2a_canvas.server.tasks.journal.journal import Journal
from tests.fakes import Clock
from tests.server.tasks.journal.test_journal import MAKERS, new_task

SET = TranscriptAppended((ToolStep("", "set", '[1,"…"]'),))
RANDOM = bytes(range(256)) * 10
ZSTD = b"\x28\xb5\x2f\xfd looks compressed"


@pytest.fixture(params=MAKERS)
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    """With two tasks in one context, and one in another."""
    async with MAKERS[request.param](tmp_path) as make:
        journal = await make(Clock())
        await journal.create(new_task("a", "context"))
        await journal.create(new_task("b", "context"))
        await journal.create(new_task("c", "elsewhere"))
        yield journal


async def save(journal: Journal, task: str = "a", context: str = "context", *, first: bool = False, **values) -> None:
    """Stage values with an entry of the task, and wait for the commit."""
    await journal.values.hold(context, task)
    named = {"" if name == "state" else name: value for name, value in values.items()}
    journal.values.stage(context, task, SavedValues(named, first))
    await journal.append(task, SET)
    await journal.flushed(task)


async def test_values_are_read_by_name_in_their_context(journal: Journal) -> None:
    await save(journal, state=b"{}", one=RANDOM, two=ZSTD, empty=b"")
    values = journal.values
    assert [await values.get("context", name) for name in (STATE, "one", "two", "empty", "three")] == [
        *(b"{}", RANDOM, ZSTD, b""),
        None,
    ]
    assert await values.get("elsewhere", "one") is None
    assert (await values.digest("context"), await values.digest("elsewhere")) == (digest_of(b"{}"), digest_of(None))


async def test_names_are_listed_by_their_prefix_and_case(journal: Journal) -> None:
    await save(journal, state=b"{}", b1=b"", a2=b"", a1=b"", A3=b"", **{"a%": b"", "a_": b""})
    assert await journal.values.list("context", "a") == ["a%", "a1", "a2", "a_"]
    assert await journal.values.list("context", "a_") == ["a_"]
    assert await journal.values.list("context", "") == ["A3", "a%", "a1", "a2", "a_", "b1"]


async def test_values_are_replaced_and_deleted(journal: Journal) -> None:
    await save(journal, one=b"1", two=b"2")
    await save(journal, one=b"one", two=None, three=None)
    assert await journal.values.list("context", "") == ["one"]
    assert await journal.values.get("context", "one") == b"one"


async def test_staged_values_are_read_before_their_commit_and_counted_after_it(journal: Journal) -> None:
    values = journal.values
    await values.hold("context", "a")
    values.stage("context", "a", SavedValues({"one": b"1", STATE: b"[]"}))
    assert (await values.get("context", "one"), await values.list("context", "")) == (b"1", ["one"])
    assert await values.digest("context") == digest_of(b"[]")
    assert await values.hold("context", "b") == {"one": stored_value("one", b"1"), STATE: stored_value(STATE, b"[]")}


async def test_a_hold_waits_for_that_of_another_task_of_the_context(journal: Journal) -> None:
    values = journal.values
    await values.hold("context", "a")
    await values.hold("context", "a")
    await values.hold("elsewhere", "c")
    waiting = asyncio.create_task(values.hold("context", "b"))
    values.stage("context", "a", SavedValues({"one": b"1"}, ends=False))
    await journal.append("a", SET)
    await journal.flushed("a")
    assert not waiting.done()
    values.stage("context", "a", SavedValues({"one": b"2"}))
    async with asyncio.timeout(10):
        assert await waiting == {"one": stored_value("one", b"2")}


async def test_a_hold_that_is_abandoned_or_cancelled_keeps_nobody_waiting(journal: Journal) -> None:
    values = journal.values
    await values.hold("context", "a")
    waiting = asyncio.create_task(values.hold("context", "b"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    values.abandon("context", "b")
    values.stage("context", "a", SavedValues({}))
    values.abandon("context", "a")
    async with asyncio.timeout(10):
        await values.hold("context", "b")


async def test_what_the_state_was_before_a_run_set_it_is_stored_until_the_task_ends(journal: Journal) -> None:
    values = journal.values
    assert await values.get_before("context", "a") is None
    await save(journal, "b", state=b"[1]")
    await save(journal, "a", state=b"[1,2]", first=True)
    await save(journal, "a", state=b"[1,2,3]")
    assert await values.get_before("context", "a") == b"[1]"
    await save(journal, "a", state=b"[4]", first=True)
    assert await values.get_before("context", "a") == b"[1,2,3]"
    assert await values.get_before("context", "b") is None
    await journal.append("a", StatusChanged(State.COMPLETED))
    await journal.flushed("a")
    assert await values.get_before("context", "a") is None
    assert await values.get("context", STATE) == b"[4]"
