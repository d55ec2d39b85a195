"""What is done is told of whole, whenever a cancel comes."""

import asyncio

import pytest

from server.agent.telling import to_the_end, whole


class Slow:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.go_on = asyncio.Event()
        self.done = False

    async def __call__(self) -> str:
        await self.go_on.wait()
        self.done = True
        if self.error:
            raise self.error
        return "done"


async def cancelled(awaiting, step: Slow, times: int = 1) -> "asyncio.Task[object]":
    """Whoever awaits the step, after cancels that came in the middle of it."""
    caller = asyncio.create_task(awaiting(step()))
    for _ in range(times):
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.sleep(0)
    assert not step.done
    assert not caller.done()
    step.go_on.set()
    await asyncio.wait([caller])
    assert step.done
    return caller


@pytest.mark.parametrize("awaiting", [to_the_end, whole])
async def test_undisturbed_a_step_gives_what_it_gives(awaiting) -> None:
    for error in (None, ValueError("?")):
        step = Slow(error)
        step.go_on.set()
        if error is None:
            assert await awaiting(step()) == "done"
        else:
            with pytest.raises(ValueError, match=r"\?"):
                await awaiting(step())


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancel_in_the_middle_of_a_last_step_comes_too_late(times) -> None:
    assert (await cancelled(to_the_end, Slow(), times)).result() == "done"


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancel_in_the_middle_of_another_step_waits_for_its_end(times) -> None:
    assert (await cancelled(whole, Slow(), times)).cancelled()


@pytest.mark.parametrize("awaiting", [to_the_end, whole])
async def test_what_goes_wrong_in_a_step_goes_before_a_cancel(awaiting) -> None:
    error = ValueError("?")
    assert (await cancelled(awaiting, Slow(error))).exception() is error
