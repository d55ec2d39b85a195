"""Reads that several ask for at once: each caller gets one that began after it had asked."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_canvas.server.tasks.sql.journal.shared_reads import SharedReads
from a2a_canvas.store.errors import Unavailable

STEPS = st.lists(st.tuples(st.sampled_from(["ask", "write", "end", "leave"]), st.sampled_from("ab")), max_size=40)


@given(STEPS)
@example([("ask", "a"), ("leave", "a"), ("ask", "a"), ("leave", "a")])  # a read whose last reader has left
async def test_each_caller_sees_what_was_written_before_it_asked_and_a_key_is_read_by_one_at_a_time(
    steps: list[tuple[str, str]],
) -> None:
    written = {"a": 0, "b": 0}
    reading: dict[str, asyncio.Event] = {}
    asked: list[tuple[asyncio.Task[int], int]] = []

    async def read(key: str) -> int:
        assert key not in reading
        found, reading[key] = written[key], asyncio.Event()
        await reading[key].wait()
        del reading[key]
        return found

    reads = SharedReads(read)
    for verb, key in steps:
        match verb:
            case "ask":
                asked.append((asyncio.create_task(reads.get(key)), written[key]))
            case "write":
                written[key] += 1
            case "end" if key in reading:
                reading[key].set()
            case "leave" if asked:
                asked[len(asked) // 2][0].cancel()
            case _:
                pass
        for _ in range(4):
            await asyncio.sleep(0)
    while any(not task.done() for task, _ in asked) or reads._running or reads._next:
        for each in tuple(reading.values()):
            each.set()
        await asyncio.sleep(0)
    assert all(task.cancelled() or task.result() >= before for task, before in asked)
    assert (reads._running, reads._next, reading) == ({}, {}, {})


async def test_many_who_ask_at_once_are_two_reads() -> None:
    count = 0

    async def read(key: str) -> int:
        nonlocal count
        count += 1
        await asyncio.sleep(0)
        return count

    reads = SharedReads(read)
    first = asyncio.create_task(reads.get("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await asyncio.gather(*(reads.get("a") for _ in range(100))) == [2] * 100
    assert await first == 1


async def test_a_failed_read_raises_in_all_its_callers_and_the_next_read_succeeds() -> None:
    failing = [Unavailable("gone"), None]

    async def read(key: str) -> str:
        if error := failing.pop(0):
            raise error
        return "found"

    reads = SharedReads(read)
    found = await asyncio.gather(*(reads.get("a") for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable] * 3
    assert await reads.get("a") == "found"


async def test_nothing_is_read_any_more_when_the_server_has_stopped() -> None:
    never = asyncio.Event()

    async def read(key: str) -> None:
        await never.wait()

    reads = SharedReads(read)
    waiting = [asyncio.create_task(reads.get("a")) for _ in range(3)]
    await asyncio.sleep(0)
    await reads.stop()
    for each in waiting:
        with pytest.raises(Unavailable, match="stopping"):
            await each
    with pytest.raises(Unavailable, match="stopping"):
        await reads.get("a")
    await reads.stop()
