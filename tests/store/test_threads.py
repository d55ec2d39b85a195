"""A step in a thread ends before its waiter does."""

from __future__ import annotations

import asyncio
import threading

import pytest

from a2a_canvas.store.threads import run_to_end


async def test_it_returns_and_raises_what_the_step_does() -> None:
    def fail() -> None:
        raise ValueError("no")

    assert await run_to_end(asyncio.ensure_future(asyncio.to_thread(lambda: 7))) == 7
    with pytest.raises(ValueError, match="no"):
        await run_to_end(asyncio.ensure_future(asyncio.to_thread(fail)))


@pytest.mark.parametrize("fails", [False, True])
async def test_however_often_it_is_cancelled_it_waits_for_the_end_of_the_step(fails: bool) -> None:
    go = threading.Event()

    def step() -> None:
        go.wait()
        assert not fails

    waiting = asyncio.create_task(run_to_end(asyncio.ensure_future(asyncio.to_thread(step))))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        assert not waiting.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
