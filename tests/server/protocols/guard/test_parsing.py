"""Large bodies are parsed one at a time, and users share that time."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.guard.parsing import HALF_LIFE, INLINE_PARSE_BYTES, ParsingThread, TimeShares
from tests.fakes import Seconds

LARGE = INLINE_PARSE_BYTES + 1


def order(shares: TimeShares[str], seconds: dict[str, float]) -> list[str]:
    """What is taken until nothing waits, each item taking its user's seconds; an item is named after its user."""
    taken = []
    while (user := shares.next_user) is not None:
        taken.append(shares.take(user))
        shares.charge(user, seconds[user])
    return taken


def test_a_user_with_one_body_is_served_before_the_second_of_a_user_with_many() -> None:
    shares: TimeShares[str] = TimeShares(Seconds())
    for item in ("a1", "a2", "a3", "b1"):
        shares.add(item[0], item)
    assert order(shares, {"a": 1.0, "b": 1.0}) == ["a1", "b1", "a2", "a3"]


def test_a_user_whose_bodies_take_long_is_served_less_often() -> None:
    shares: TimeShares[str] = TimeShares(Seconds())
    for number in range(4):
        for user in "ab":
            shares.add(user, f"{user}{number}")
    assert order(shares, {"a": 3.5, "b": 1.0}) == ["a0", "b0", "b1", "b2", "b3", "a1", "a2", "a3"]


def test_what_a_user_had_long_ago_is_forgotten() -> None:
    shares: TimeShares[str] = TimeShares(clock := Seconds())
    shares.charge("a", 8.0)
    shares.charge("b", 2.0)
    assert (shares.recent_seconds("a"), shares.recent_seconds("c")) == (8.0, 0)
    clock.now = 2 * HALF_LIFE
    assert shares.recent_seconds("a") == 2.0
    for user in "ab":
        shares.add(user, f"{user}1")
    assert order(shares, {"a": 1.0, "b": 1.0}) == ["b1", "a1"]


def test_whoever_comes_while_others_have_waited_long_is_next_and_soon_has_no_more_than_they_have() -> None:
    shares: TimeShares[str] = TimeShares(clock := Seconds())
    served: list[str] = []
    for step in range(60):
        for user in "ab" if step >= 30 else "a":
            shares.add(user, user)
        clock.now += 1.0
        user = shares.next_user
        assert user
        shares.take(user)
        shares.charge(user, 1.0)
        served.append(user)
    assert served[30] == "b"
    assert abs(served[36:].count("a") - served[36:].count("b")) <= 2


def test_an_item_that_no_longer_waits_is_left_out() -> None:
    shares: TimeShares[str] = TimeShares(Seconds())
    for item in ("a1", "a2", "b1"):
        shares.add(item[0], item)
    shares.remove("a", "a1")
    shares.remove("b", "b1")
    shares.remove("b", "b1")
    assert order(shares, {"a": 1.0, "b": 1.0}) == ["a2"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.001, 9)), max_size=40))
def test_every_item_is_taken_once_and_those_of_a_user_in_their_order(sent: list[tuple[str, float]]) -> None:
    shares: TimeShares[str] = TimeShares(Seconds())
    for number, (user, _) in enumerate(sent):
        shares.add(user, f"{user}{number:02}")
    taken = order(shares, {user: seconds for user, seconds in sent})
    assert sorted(taken, key=lambda item: item[1:]) == [f"{user}{n:02}" for n, (user, _) in enumerate(sent)]
    for user in "abc":
        assert [item for item in taken if item[0] == user] == sorted(item for item in taken if item[0] == user)


def of_thread() -> int:
    return threading.get_ident()


async def test_a_small_body_is_parsed_at_once_and_a_large_one_in_a_thread() -> None:
    parsing = ParsingThread()
    assert await parsing.run("a", INLINE_PARSE_BYTES, of_thread) == of_thread()
    assert await parsing.run("a", LARGE, of_thread) != of_thread()


async def test_one_large_body_is_parsed_at_a_time_and_the_others_in_turn() -> None:
    parsing, release, begun = ParsingThread(), threading.Event(), threading.Event()
    seen: list[str] = []

    def first() -> None:
        begun.set()
        release.wait()
        seen.append("a0")

    def parse(name: str) -> Callable[[], None]:
        return lambda: seen.append(name)

    running = [asyncio.create_task(parsing.run("a", LARGE, first))]
    await asyncio.to_thread(begun.wait)
    for name in ("a1", "a2", "b1"):
        running.append(asyncio.create_task(parsing.run(name[0], LARGE, parse(name))))
    given_up = asyncio.create_task(parsing.run("c", LARGE, parse("c1")))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    assert seen == []
    release.set()
    await asyncio.gather(*running)
    assert (seen[:2], sorted(seen)) == (["a0", "b1"], ["a0", "a1", "a2", "b1"])


async def test_a_body_whose_sender_leaves_while_it_is_parsed_keeps_the_thread_until_its_end() -> None:
    parsing, release, begun = ParsingThread(), threading.Event(), threading.Event()
    seen: list[str] = []

    def first() -> None:
        begun.set()
        release.wait()
        seen.append("a0")

    left = asyncio.create_task(parsing.run("a", LARGE, first))
    await asyncio.to_thread(begun.wait)
    running = [asyncio.create_task(parsing.run(name[0], LARGE, partial(seen.append, name))) for name in ("a1", "b1")]
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    await asyncio.sleep(0)
    assert (left.cancelled(), seen) == (True, [])
    release.set()
    await asyncio.gather(*running)
    assert seen == ["a0", "b1", "a1"]


async def test_what_cannot_be_parsed_leaves_the_thread_to_the_next() -> None:
    parsing = ParsingThread()

    def fail() -> None:
        raise ValueError("no")

    failed, parsed = await asyncio.gather(
        parsing.run("a", LARGE, fail), parsing.run("b", LARGE, of_thread), return_exceptions=True
    )
    assert isinstance(failed, ValueError)
    assert parsed


async def test_the_thread_rests_after_a_body_but_not_for_a_user_that_has_hardly_had_it() -> None:
    clock = Seconds()
    parsing = ParsingThread(clock)
    seen: list[str] = []

    def parse(name: str, seconds: float) -> None:
        seen.append(name)
        clock.now += seconds

    await parsing.run("a", LARGE, lambda: parse("a0", 0.1))
    second = asyncio.create_task(parsing.run("a", LARGE, lambda: parse("a1", 0.0)))
    await asyncio.sleep(0)
    await parsing.run("b", LARGE, lambda: parse("b0", 0.01))
    await parsing.run("b", LARGE, lambda: parse("b1", 0.01))
    assert seen == ["a0", "b0", "b1"]
    clock.now += 10  # the rest is over
    await second
    assert seen == ["a0", "b0", "b1", "a1"]
