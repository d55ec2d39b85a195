"""How much users may use: of requests, streams, turns, tokens and bytes, each alone and all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.accounts import quotas
from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.accounts.errors import QuotaReached, StorageFull
from a2a_canvas.server.accounts.quotas import DAY, EVERYBODY, GUEST, Meter, Quota, Tally, payer, wait_for_request
from tests.fakes import Clock

ANN, JOE = "ann", "joe"
MIDNIGHT = timedelta(days=1)


class Metered:
    """A meter, and a clock that stands still until it is moved."""

    def __init__(self, of_user: Quota | None = None, of_all: Quota | None = None) -> None:
        self.clock = Clock()
        self.meter = Meter(self.clock, of_user, of_all)

    def requests(self, user: str, count: int) -> int:
        """How many of so many requests pass."""
        for passed in range(count):
            try:
                self.meter.count_request(user)
            except QuotaReached:
                return passed
        return count

    def move(self, **by: float) -> None:
        self.clock.move(timedelta(**by))

    def today(self, user: str) -> Tally:
        return next(tally for (name, _), tally in self.meter.take_changed().items() if name == user)


# ------------------------------------------------------------------------- requests


def test_a_user_may_make_so_many_requests_in_a_minute_and_others_are_not_affected() -> None:
    metered = Metered(Quota(requests=3))
    assert metered.requests(ANN, 5) == 3
    assert metered.requests(JOE, 5) == 3


def test_all_together_may_make_so_many() -> None:
    metered = Metered(of_all=Quota(requests=3))
    assert metered.requests(ANN, 2) == 2
    assert metered.requests(JOE, 5) == 1


def test_midnight_is_a_minute_like_any_other() -> None:
    metered = Metered(Quota(requests=60, streams=1))
    metered.move(seconds=-metered.clock().timestamp() % DAY - 1)
    metered.meter.set_elsewhere(ANN, "b", Tally(0, streams=1))
    assert metered.requests(ANN, 60) == 60
    metered.move(seconds=2)
    assert metered.requests(ANN, 60) == 1
    with pytest.raises(QuotaReached), metered.meter.stream(ANN):
        pass


def test_the_refusal_says_how_many_and_when_to_try_again() -> None:
    metered = Metered(Quota(requests=6))
    metered.requests(ANN, 6)
    with pytest.raises(QuotaReached, match=r"Request limit reached \(6 per minute\)") as refused:
        metered.meter.count_request(ANN)
    assert refused.value.retry_after == 70
    metered.move(seconds=refused.value.retry_after)
    assert metered.requests(ANN, 6) == 1


def test_what_is_refused_does_not_count() -> None:
    metered = Metered(Quota(requests=1))
    assert metered.requests(ANN, 1) == 1
    for _ in range(10):
        metered.requests(ANN, 1)
    assert metered.today(ANN).requests == 1


@given(most=st.integers(1, 50), in_minute=st.integers(0, 60), before=st.integers(0, 60), second=st.floats(0, 59.9))
def test_after_the_wait_a_request_passes_and_not_before(most: int, in_minute: int, before: int, second: float) -> None:
    wait = wait_for_request(most, in_minute, before, second)
    assert 0 <= wait <= 120

    def passes(later: float) -> bool:
        at = second + later
        now, then = (in_minute, before) if at < 60 else (0, in_minute) if at < 120 else (0, 0)
        return wait_for_request(most, now, then, at % 60) == 0

    assert passes(wait + 1e-6)
    assert wait < 0.01 or not passes(wait - 0.01)


@given(st.lists(st.floats(0, 30), max_size=80))
def test_in_no_minute_there_are_many_more_than_may_be(pauses: list[float]) -> None:
    """The estimate takes the requests of the minute before as spread evenly: twice as many is the worst."""
    metered, passed, now = Metered(Quota(requests=5)), list[float](), 0.0
    for pause in pauses:
        metered.move(seconds=pause)
        now += pause
        if metered.requests(ANN, 1):
            passed.append(now)
    assert all(sum(begin <= at < begin + 60 for at in passed) <= 10 for begin in passed)


# -------------------------------------------------------------------------- streams


def test_a_user_may_have_so_many_streams_open() -> None:
    meter = Metered(Quota(streams=2)).meter
    with meter.stream(ANN), ExitStack() as second:
        second.enter_context(meter.stream(ANN))
        with pytest.raises(QuotaReached, match=r"Stream limit reached \(2 open\)"), meter.stream(ANN):
            pass
        with meter.stream(JOE):
            pass
        second.close()
        with meter.stream(ANN):
            pass


def test_all_together_may_have_so_many_open_on_each_server() -> None:
    meter = Metered(of_all=Quota(streams=1)).meter
    meter.set_elsewhere(EVERYBODY, "b", Tally(0, streams=1))
    with meter.stream(ANN), pytest.raises(QuotaReached, match="Stream limit of this server reached"), meter.stream(JOE):
        pass


@pytest.mark.parametrize(("users", "each"), [(1, 15), (2, 10), (4, 6)])
def test_users_without_a_limit_of_their_own_leave_streams_of_a_server_to_others(users: int, each: int) -> None:
    meter, opened = Metered(of_all=Quota(streams=30)).meter, Counter[str]()
    with ExitStack() as streams:
        for _, user in product(range(30), (f"user{number}" for number in range(users))):
            with suppress(QuotaReached):
                streams.enter_context(meter.stream(user))
                opened[user] += 1
        assert [*opened.values()] == [each] * users
        with meter.stream(JOE), pytest.raises(QuotaReached, match="reserved for other users"), meter.stream("user0"):
            pass


@pytest.mark.parametrize(("user", "of_user"), [("", Quota()), (ANN, Quota(streams=30))], ids=["anonymous", "limited"])
def test_anonymous_callers_and_users_with_a_limit_of_their_own_may_have_all_streams(user: str, of_user: Quota) -> None:
    meter = Metered(of_user, Quota(streams=30)).meter
    with ExitStack() as streams:
        for _ in range(30):
            streams.enter_context(meter.stream(user))


def test_a_stream_that_is_open_at_midnight_is_still_open() -> None:
    metered = Metered(Quota(streams=1))
    with metered.meter.stream(ANN):
        metered.clock.move(MIDNIGHT)
        with pytest.raises(QuotaReached), metered.meter.stream(ANN):
            pass
    with metered.meter.stream(ANN):
        pass


# --------------------------------------------------------------------------- tokens


def test_tokens_are_those_of_a_day() -> None:
    metered = Metered(Quota(tokens=100))
    metered.move(hours=20)
    metered.meter.spend(ANN, 90, 9)
    metered.meter.check_tokens(ANN)
    metered.meter.spend(ANN, 0, 1)
    metered.meter.check_tokens(JOE)
    with pytest.raises(QuotaReached, match=r"Token limit reached \(100 per day\)") as refused:
        metered.meter.check_tokens(ANN)
    assert refused.value.retry_after == 4 * 3600
    metered.move(hours=4)
    metered.meter.check_tokens(ANN)


def test_the_tokens_left_are_those_of_the_tightest_limit() -> None:
    meter = Metered(Quota(tokens=100), Quota(tokens=120)).meter
    meter.spend(ANN, 30, 10)
    assert (meter.tokens_left(ANN), meter.tokens_left(JOE)) == (60, 80)
    meter.spend(JOE, 90, 0)
    assert (meter.tokens_left(ANN), meter.tokens_left(JOE)) == (0, 0)
    assert Metered().meter.tokens_left(ANN) is None


@pytest.mark.parametrize(("reported", "counted"), [(10**30, quotas.MAX_TOKENS), (-(10**30), 5)])
def test_tokens_that_cannot_be_are_counted_so_that_all_counts_can_be_written(reported: int, counted: int) -> None:
    metered = Metered(Quota(tokens=100))
    metered.meter.spend(ANN, 5, 5)
    metered.meter.spend(ANN, reported, reported)
    tallies = metered.meter.take_changed().values()  # of Ann, and of everybody
    assert [(tally.tokens_in, tally.tokens_out) for tally in tallies] == [(counted, counted)] * 2


def test_all_together_have_so_many_tokens() -> None:
    meter = Metered(of_all=Quota(tokens=10)).meter
    meter.spend(ANN, 5, 5)
    with pytest.raises(QuotaReached, match=r"Token limit of this server reached \(10 per day\)"):
        meter.check_tokens(JOE)


# ------------------------------------------------------------------- what is counted


def test_each_user_is_counted_and_all_together() -> None:
    metered = Metered()
    metered.requests(ANN, 2)
    metered.requests(JOE, 1)
    with metered.meter.turn(ANN):
        metered.meter.spend(ANN, 3, 4)
    changed = {user: tally for (user, _), tally in metered.meter.take_changed().items()}
    assert changed.keys() == {ANN, JOE, EVERYBODY}
    counted = {user: (each.requests, each.turns, each.tokens_in, each.tokens_out) for user, each in changed.items()}
    assert counted == {ANN: (2, 1, 3, 4), JOE: (1, 0, 0, 0), EVERYBODY: (3, 1, 3, 4)}
    assert not metered.meter.take_changed()


def test_what_could_not_be_written_comes_again() -> None:
    metered = Metered()
    metered.requests(ANN, 1)
    metered.meter.put_back(metered.meter.take_changed())
    metered.requests(ANN, 1)
    assert metered.today(ANN).requests == 2


def test_the_end_of_a_day_is_not_lost() -> None:
    metered = Metered()
    metered.requests(ANN, 1)
    metered.clock.move(MIDNIGHT)
    metered.requests(ANN, 2)
    unwritten = metered.meter.take_changed()
    metered.meter.put_back(unwritten)
    for found in (unwritten, metered.meter.take_changed()):
        assert sorted(tally.requests for (user, _), tally in found.items() if user == ANN) == [1, 2]


def test_what_others_have_counted_is_added() -> None:
    metered = Metered(Quota(requests=5, streams=2, turns=1, tokens=100))
    metered.requests(ANN, 1)
    mine = metered.today(ANN)
    metered.meter.set_elsewhere(
        ANN, "b", Tally(mine.day, tokens_in=60, minute=mine.minute, in_minute=3, streams=1, running=1)
    )
    assert metered.requests(ANN, 5) == 1
    assert not metered.meter.may_run(ANN)
    metered.meter.spend(ANN, 0, 40)
    with pytest.raises(QuotaReached):
        metered.meter.check_tokens(ANN)
    with metered.meter.stream(ANN), pytest.raises(QuotaReached), metered.meter.stream(ANN):
        pass


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_ACCOUNTS", 3)
    metered = Metered(Quota(requests=2))
    assert [metered.requests(f"user{number}", 2) for number in range(5)] == [2, 2, 2, 0, 0]
    metered.clock.move(MIDNIGHT)
    assert metered.requests("user4", 2) == 2


@pytest.mark.parametrize(("sender", "paid_by"), [(Caller("joe"), "joe"), (Caller(link="l1"), "ann"), (Caller(), "ann")])
def test_who_sends_a_message_uses_its_quota_and_a_link_that_of_the_owner(sender: Caller, paid_by: str) -> None:
    assert payer("ann", sender.author) == paid_by


# ---------------------------------------------------------------------------- bytes


class Stored:
    """A `KeptBytes` of given numbers."""

    def __init__(self, **of_users: int) -> None:
        self._of_users = of_users

    async def sum_of(self, owners: Collection[str]) -> int:
        return sum(self._of_users.get(owner or "anonymous", 0) for owner in owners)

    async def sum_of_all(self) -> int:
        return sum(self._of_users.values())


def storing(of_user: int | None = None, of_all: int | None = None, adopter: str = "", **of_users: int) -> Meter:
    meter = Meter(Clock(), Quota(bytes=of_user), Quota(bytes=of_all), adopter=adopter)
    meter.kept = Stored(**of_users)
    return meter


async def test_what_would_be_more_than_a_user_may_keep_is_refused() -> None:
    meter = storing(100, ann=90, joe=100)
    await meter.check_bytes(ANN, ANN)
    await meter.check_bytes(ANN, ANN, 10)
    with pytest.raises(StorageFull, match="you store 90 of 100 bytes, and this adds 11"):
        await meter.check_bytes(ANN, ANN, 11)
    with pytest.raises(StorageFull):
        await meter.check_bytes(JOE, JOE)


async def test_who_keeps_more_than_a_new_limit_is_refused_and_others_are_not() -> None:
    meter = storing(100, ann=500)
    with pytest.raises(StorageFull):
        await meter.check_bytes(ANN, ANN)
    await meter.check_bytes(JOE, JOE, 100)


async def test_all_together_may_keep_so_many_and_nobody_is_told_whose_they_are() -> None:
    meter = storing(of_all=100, ann=99, joe=0)
    await meter.check_bytes(JOE, JOE, 1)
    with pytest.raises(StorageFull) as refused:
        await meter.check_bytes(JOE, JOE, 2)
    assert "storage is full" in str(refused.value)
    assert not any(character.isdigit() for character in str(refused.value))


@pytest.mark.parametrize("guest", [JOE, "link x", "", GUEST])
async def test_a_guest_writes_into_the_owners_bytes_and_is_not_told_their_number(guest: str) -> None:
    meter = storing(100, ann=99, joe=0)
    await meter.check_bytes(ANN, guest, 1)
    with pytest.raises(StorageFull) as refused:
        await meter.check_bytes(ANN, guest, 2)
    assert not any(character.isdigit() for character in str(refused.value))


async def test_who_has_adopted_the_contexts_of_anonymous_callers_keeps_them_too() -> None:
    meter = storing(100, adopter=ANN, ann=60, anonymous=30)
    for owner in (ANN, ""):
        await meter.check_bytes(owner, ANN, 10)
        with pytest.raises(StorageFull, match="you store 90"):
            await meter.check_bytes(owner, ANN, 11)
    await meter.check_bytes(JOE, JOE, 100)


async def test_without_an_adopter_anonymous_callers_are_one_user() -> None:
    meter = storing(100, anonymous=100, ann=0)
    with pytest.raises(StorageFull, match="you store 100"):
        await meter.check_bytes("", "")
    await meter.check_bytes(ANN, ANN)


async def test_without_a_limit_nothing_is_asked() -> None:
    await storing(ann=10**15).check_bytes(ANN, ANN, 10**9)
    await Meter(Clock(), Quota(bytes=1)).check_bytes(ANN, ANN, 10**9)  # nobody counts


# ------------------------------------------------------------------- workers at one address


class Workers:
    """The meters of several workers, which exchange their counts one after the other, in any order."""

    def __init__(self, count: int, of_user: Quota) -> None:
        self.clock = Clock()
        self.meters = [Meter(self.clock, of_user, workers=count) for _ in range(count)]
        self._told: dict[tuple[str, int], Tally] = {}

    def exchange(self, order: Sequence[int] | None = None) -> None:
        for number in range(len(self.meters)) if order is None else order:
            meter = self.meters[number]
            self._told |= {(user, number): tally for (user, _), tally in meter.take_changed().items()}
            for (user, other), tally in self._told.items():
                if other != number:
                    meter.set_elsewhere(user, str(other), tally)
            meter.mark_exchanged()

    def requests(self, count: int, *numbers: int) -> int:
        """How many of so many requests pass at each of these workers."""
        return sum(passed(self.meters[number], count) for number in numbers)


def passed(meter: Meter, count: int) -> int:
    for number in range(count):
        try:
            meter.count_request(ANN)
        except QuotaReached:
            return number
    return count


@pytest.mark.parametrize(("workers", "limit"), [(2, 60), (4, 60), (7, 30), (8, 3)])
@given(st.data())
def test_workers_together_allow_what_is_set_however_requests_and_exchanges_mix(
    workers: int, limit: int, data: st.DataObject
) -> None:
    several, count = Workers(workers, Quota(requests=limit)), 0
    for asked in data.draw(st.lists(st.lists(st.integers(0, workers - 1), max_size=workers), max_size=12)):
        count += sum(several.requests(limit, number) for number in asked)
        several.exchange(data.draw(st.permutations(range(workers))))
    assert count <= max(limit, workers) + workers - 1  # each part is rounded up


def test_a_client_of_one_worker_gets_all_of_its_quota_after_some_exchanges() -> None:
    several, count = Workers(4, Quota(requests=60)), 0
    for _ in range(48):
        count += several.requests(60, 0)
        several.exchange()
    assert count == 60


def test_workers_together_open_as_many_streams_as_a_user_may_and_count_those_that_are_closed() -> None:
    several, opened = Workers(4, Quota(streams=8)), ExitStack()
    for meter in several.meters:
        for _ in range(2):
            opened.enter_context(meter.stream(ANN))
        with pytest.raises(QuotaReached, match="many streams at once"), meter.stream(ANN):
            pass
    several.exchange()
    several.exchange()  # the first one has told before the others
    with pytest.raises(QuotaReached, match="8 open"), several.meters[0].stream(ANN):
        pass
    opened.close()
    several.exchange()
    for _ in range(9):
        with several.meters[0].stream(ANN):
            pass


@given(
    st.lists(st.one_of(st.tuples(st.just("open"), st.integers(0, 3)), st.tuples(st.just("close"), st.integers(0, 9)))),
    st.data(),
)
def test_workers_together_never_have_more_streams_open_than_a_user_may(
    steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    several, opened = Workers(4, Quota(streams=12)), list[ExitStack]()
    for verb, number in steps:
        if verb == "close" and opened:
            opened.pop(number % len(opened)).close()
        elif verb == "open":
            stack = ExitStack()
            with suppress(QuotaReached):
                stack.enter_context(several.meters[number].stream(ANN))
                opened.append(stack)
        if data.draw(st.booleans()):
            several.exchange(data.draw(st.permutations(range(4))))
        assert len(opened) <= 12 + 3
    for stack in opened:
        stack.close()
