"""How many turns run at once, what is refused, and who is told what place it has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tasks.errors import QueueFull
from a2a_canvas.server.tasks.runtime.admission import EXACT_POSITIONS, Admission, Ticket


class Waiter:
    """A turn that asks for its place, and remembers what it was told."""

    def __init__(self, admission: Admission, context_id: str = "c") -> None:
        self.told: list[int] = []
        self.runs = False
        self.ticket = admission.enter(context_id)
        self._task = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        while place := await self.ticket.next_position():
            self.told.append(place)
        self.runs = True


async def settled() -> None:
    """Let everybody hear what there is to hear."""
    for _ in range(4):
        await asyncio.sleep(0)


def running(waiters: Iterable[Waiter]) -> list[int]:
    return [number for number, waiter in enumerate(waiters) if waiter.runs]


async def test_who_may_run_is_told_no_place() -> None:
    waiters = [Waiter(admission := Admission(2, 10, interval=0)) for _ in range(1)]
    waiters.append(Waiter(admission))
    await settled()
    assert [(waiter.runs, waiter.told) for waiter in waiters] == [(True, [])] * 2


async def test_the_others_are_told_their_places_and_when_these_change() -> None:
    admission = Admission(1, 10, interval=0)
    waiters = [Waiter(admission) for _ in range(4)]
    await settled()
    assert [waiter.told for waiter in waiters] == [[], [1], [2], [3]]
    admission.leave(waiters[0].ticket)
    await settled()
    assert running(waiters) == [0, 1]
    admission.leave(waiters[3].ticket)  # cancelled while it waits
    admission.leave(waiters[1].ticket)
    await settled()
    assert running(waiters) == [0, 1, 2]
    assert [waiter.told for waiter in waiters] == [[], [1], [2, 1], [3, 2]]


async def test_a_place_that_goes_up_is_not_told() -> None:
    """Others of its context stand behind those of contexts that come later."""
    admission = Admission(1, 10, interval=0)
    Waiter(admission, "x")
    second = [Waiter(admission, "a"), Waiter(admission, "a")][1]
    await settled()
    Waiter(admission, "b")
    await settled()
    assert second.told == [2]


async def test_a_turn_that_ends_tells_few_of_those_that_wait() -> None:
    """The places of a thousand change with each; told are those that soon run, and halves."""
    admission = Admission(1, 1000, interval=0)
    waiters = [Waiter(admission, f"c-{number}") for number in range(1001)]
    await settled()
    for waiter in waiters:
        admission.leave(waiter.ticket)
        await settled()
    assert running(waiters) == list(range(1001))
    assert waiters[1000].told == [1000, 500, 250, 125, 62, 31, 15, *range(EXACT_POSITIONS, 0, -1)]
    assert sum(len(waiter.told) for waiter in waiters) < 1000 * (EXACT_POSITIONS + 7)


async def test_beyond_the_queue_it_is_refused() -> None:
    admission = Admission(1, 2, interval=0)
    with admission.reserve() as waits:
        assert not waits
        waiters = [Waiter(admission) for _ in range(2)]
    with admission.reserve() as waits:
        assert waits
        with pytest.raises(QueueFull, match="2 tasks are waiting already"), admission.reserve():
            pass  # what is being accepted counts
    waiters.append(Waiter(admission))
    with pytest.raises(QueueFull), admission.reserve():
        pass
    admission.leave(waiters[1].ticket)
    with admission.reserve():
        pass


async def test_what_another_server_has_accepted_waits_however_many_there_are() -> None:
    admission = Admission(1, 0, interval=0)
    waiters = [Waiter(admission) for _ in range(3)]
    await settled()
    assert running(waiters) == [0]
    for waiter in waiters:
        admission.leave(waiter.ticket)
        await settled()
    assert running(waiters) == [0, 1, 2]


@given(
    st.integers(1, 4),
    st.lists(st.one_of(st.sampled_from("abc"), st.integers(0, 30)), max_size=60),
)
def test_as_many_run_as_may_and_never_more(most: int, steps: list[str | int]) -> None:
    """Turns come (by their contexts) and leave (by their numbers), whether they run or wait."""

    async def play() -> None:
        admission, here, came = Admission(most, 1000, interval=0), list[Ticket](), list[Waiter]()
        for step in steps:
            if isinstance(step, str):
                came.append(Waiter(admission, step))
                here.append(came[-1].ticket)
            elif here:
                admission.leave(here.pop(step % len(here)))
            await settled()
            at_work = sum(waiter.runs for waiter in came if waiter.ticket in here)
            assert at_work == min(most, len(here))
        while here:
            admission.leave(here.pop(0))
            await settled()

    asyncio.run(play())
