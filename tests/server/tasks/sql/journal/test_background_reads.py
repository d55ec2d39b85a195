"""However much is to be read at once, a server has one read of a kind in progress."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from a2a_canvas.server.tasks.sql.journal.background_reads import BackgroundReads
from a2a_canvas.store.errors import Unavailable


@pytest.mark.parametrize("fault", [None, Unavailable("gone"), ValueError("a row")])
async def test_what_is_due_while_a_read_is_in_progress_is_read_by_the_next_one(fault: Exception | None) -> None:
    reads: list[set[str]] = []
    may_end = asyncio.Event()

    async def read(ids: Iterable[str]) -> None:
        reads.append({*ids})
        await may_end.wait()
        if fault and len(reads) == 1:
            raise fault

    background = BackgroundReads(read)
    background.start(["first"])
    await asyncio.sleep(0)
    ids = {f"task{number}" for number in range(100)}
    for each in (*ids, "first"):  # its entries may be newer than what the read has seen
        background.start([each])
        await asyncio.sleep(0)
    assert reads == [{"first"}]
    may_end.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert reads[1] == {*ids, "first"}
    background.start(["later"])
    await background.stop()
    assert reads[2:] == [{"later"}]
