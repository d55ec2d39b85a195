"""A last word is said whole, whenever a cancel comes."""

import asyncio

import pytest

from a2a_canvas.server.agent.listener import shield


class Slow:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.go_on = asyncio.Event()
        self.done = False

    async def __call__(self) -> str:
        await self.go_on.wait()
        self.done = True
        if self.error:
            raise self.error
        return "done"


async def cancelled(step: Slow, times: int = 1) -> "asyncio.Task[object]":
    """Whoever awaits the step, after cancels that came in the middle of it."""
    caller = asyncio.create_task(shield(step()))
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


async def test_undisturbed_a_step_gives_what_it_gives() -> None:
    for error in (None, ValueError("?")):
        step = Slow(error)
        step.go_on.set()
        if error is None:
            assert await shield(step()) == "done"
        else:
            with pytest.raises(ValueError, match=r"\?"):
                await shield(step())


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancel_in_the_middle_of_a_last_step_comes_too_late(times) -> None:
    assert (await cancelled(Slow(), times)).result() == "done"


async def test_what_goes_wrong_in_a_step_goes_before_a_cancel() -> None:
    error = ValueError("?")
    assert (await cancelled(Slow(error))).exception() is error


@pytest.mark.parametrize("times", [0, 1])
async def test_a_step_that_says_itself_that_all_is_over_is_not_waited_for_any_longer(times) -> None:
    class Over(asyncio.CancelledError):
        pass

    caller = await cancelled(Slow(Over()), times)
    with pytest.raises(Over):
        caller.result()
