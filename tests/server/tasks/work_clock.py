"""A clock of the readers of an event loop that shows only the time that a test says they have worked."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from a2a_canvas.server.tasks.journal import round_robin
from a2a_canvas.server.tasks.journal.round_robin import RoundRobin


class WorkClock:
    """Seconds that pass while a reader works."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def work(self, seconds: float) -> None:
        self.seconds += seconds


@contextmanager
def work_clock() -> Iterator[WorkClock]:
    """The clock of the running loop's readers."""
    clock, loop = WorkClock(), asyncio.get_running_loop()
    round_robin._ROUND_ROBINS[loop] = RoundRobin(clock)
    try:
        yield clock
    finally:
        del round_robin._ROUND_ROBINS[loop]


async def turns_until(reached: Callable[[], bool]) -> None:
    """Let the loop turn until something is so; it is asked once for each turn."""
    while not reached():  # noqa: ASYNC110  the turns are what is tested
        await asyncio.sleep(0)
