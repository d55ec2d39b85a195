"""A slow database gets no more queries of those that wait for the same answer."""

from __future__ import annotations

import asyncio

import pytest

from a2a_canvas.server.accounts.sql.recent_reads import MAX_AGE, RecentReads


@pytest.mark.parametrize(("single_flight", "queries"), [(True, 1), (False, 3)])
async def test_a_query_in_progress_is_waited_for_however_old_it_is_or_while_its_answer_would_count(
    single_flight: bool, queries: int
) -> None:
    begun, answered, now = 0, asyncio.Event(), 0.0

    async def read(key: str) -> str:
        nonlocal begun
        begun += 1
        await answered.wait()
        return key

    recent = RecentReads(read, lambda: now, single_flight=single_flight)
    waiting = []
    for _ in range(3):
        waiting += [asyncio.create_task(recent.get("ann")) for _ in range(2)]
        await asyncio.sleep(0)
        now += MAX_AGE
    await asyncio.sleep(0)
    answered.set()
    assert await asyncio.gather(*waiting) == ["ann"] * 6
    assert begun == queries
