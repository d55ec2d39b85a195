"""Short texts are compared at once, and long ones in a thread."""

import asyncio
import threading

import pytest

from a2a_canvas.store.text.comparing import THREAD_THRESHOLD, run_comparison
from tests.store.artifact_builders import result


def test_short_texts_are_compared_at_once() -> None:
    assert result(run_comparison(lambda *texts: "".join(texts), "a", "b", "c")) == "abc"


@pytest.mark.parametrize("lengths", [(THREAD_THRESHOLD + 1, 0), (0, THREAD_THRESHOLD + 1)])
async def test_the_event_loop_goes_on_while_long_texts_are_compared(lengths: tuple[int, int]) -> None:
    gone_on = threading.Event()

    def compare(*texts: str) -> tuple[int, ...]:
        assert gone_on.wait(60)
        return tuple(map(len, texts))

    asyncio.get_running_loop().call_soon(gone_on.set)
    assert await run_comparison(compare, *("a" * length for length in lengths)) == lengths
