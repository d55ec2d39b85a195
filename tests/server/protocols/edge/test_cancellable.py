"""A block that another task cancels: it ends, and what follows it runs on."""

import asyncio

import pytest

from a2a_canvas.server.protocols.edge import cancellable
from a2a_canvas.server.protocols.edge.cancellable import Cancellable


async def hang(block: Cancellable, outer: Cancellable | None = None) -> str:
    if outer:
        with outer:
            return await hang(block)
        return "after the outer"
    with block:
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(0)
    return "after the block"


async def begun(block: Cancellable, outer: Cancellable | None = None) -> asyncio.Task[str]:
    task = asyncio.create_task(hang(block, outer))
    await asyncio.sleep(0)
    return task


async def test_a_cancelled_block_ends_alone() -> None:
    block = Cancellable()
    task = await begun(block)
    block.cancel()
    block.cancel()
    assert await task == "after the block"
    assert block.cancelled
    assert task.cancelling() == 0


async def test_the_outer_one_of_two_ends_both() -> None:
    block, outer = Cancellable(), Cancellable()
    task = await begun(block, outer)
    outer.cancel()
    assert await task == "after the outer"
    assert (block.cancelled, outer.cancelled) == (False, True)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_both_are_cancelled_at_once(order: tuple[int, int]) -> None:
    block, outer = Cancellable(), Cancellable()
    task = await begun(block, outer)
    for number in order:
        (block, outer)[number].cancel()
    assert await task == "after the outer"
    assert task.cancelling() == 0


async def test_a_task_that_is_cancelled_from_outside_is_cancelled() -> None:
    block = Cancellable()
    task = await begun(block)
    block.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_block_that_swallows_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellable, "AGAIN_SECONDS", 0.0)
    block, swallowed = Cancellable(), 0

    async def swallow() -> str:
        nonlocal swallowed
        with block:
            while swallowed < 3:
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    swallowed += 1
            await asyncio.get_running_loop().create_future()
        return "after the block"

    task = asyncio.create_task(swallow())
    await asyncio.sleep(0)
    block.cancel()
    assert await task == "after the block"
    assert (swallowed, task.cancelling()) == (3, 0)


async def test_an_error_and_an_ordinary_end_pass() -> None:
    with Cancellable() as block:
        pass
    block.cancel()
    await asyncio.sleep(0)
    assert not block.cancelled
    with pytest.raises(KeyError), Cancellable() as failing:
        raise KeyError
    failing.cancel()
    await asyncio.sleep(0)
