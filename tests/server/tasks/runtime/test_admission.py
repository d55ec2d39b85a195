"""How many turns run at once, what is refused, and who is told what place it has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.accounts.quotas import Meter, Quota, Tally
from a2a_canvas.server.tasks.errors import QueueFull
from a2a_canvas.server.tasks.runtime.admission import EXACT_POSITIONS, Admission, Ticket
from tests.fakes import Clock


class Waiter:
    """A turn that asks for its place, and remembers what it was told."""

    def __init__(self, admission: Admission, context_id: str = "c", user: str = "") -> None:
        self.told: list[int] = []
        self.runs = False
        self.ticket = admission.enter(context_id, user)
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


# ---------------------------------------------------------------------------- users


def metered(most: int, queued: int, of_user: int) -> Admission:
    return Admission(most, queued, interval=0, meter=Meter(Clock(), Quota(turns=of_user)))


async def test_the_turns_of_a_user_beyond_its_quota_wait_and_those_of_others_run() -> None:
    admission = metered(4, 10, of_user=2)
    waiters = [Waiter(admission, f"c{number}", user) for number, user in enumerate("aaaab")]
    await settled()
    assert running(waiters) == [0, 1, 4]
    admission.leave(waiters[4].ticket)
    await settled()
    assert running(waiters) == [0, 1, 4]
    admission.leave(waiters[0].ticket)
    await settled()
    assert running(waiters) == [0, 1, 2, 4]


async def test_whose_quota_is_used_is_told_that_a_turn_will_wait() -> None:
    admission = metered(4, 10, of_user=1)
    Waiter(admission, user="a")
    with admission.reserve("a") as waits, admission.reserve("b") as waits_too:
        assert (waits, waits_too) == (True, False)


async def test_a_user_with_a_name_leaves_half_of_the_queue_to_others() -> None:
    admission = metered(1, 4, of_user=1)
    for _ in range(3):
        Waiter(admission, user="a")
    with pytest.raises(QueueFull, match="2 of your tasks are waiting already"), admission.reserve("a"):
        pass
    for user in ("b", ""):
        with admission.reserve(user) as waits:
            assert waits


async def test_turns_that_end_on_another_replica_let_those_run_that_wait_here() -> None:
    meter = Meter(Clock(), Quota(turns=1))
    admission = Admission(2, 10, interval=0, meter=meter)
    meter.set_elsewhere("a", "other", Tally(0, running=1))
    waiter = Waiter(admission, user="a")
    await settled()
    assert not waiter.runs
    meter.set_elsewhere("a", "other", Tally(0))
    admission.admit()
    await settled()
    assert waiter.runs
