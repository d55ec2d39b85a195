"""Delivery from the outbox: in order, at least once, and nobody waits for a receiver that hangs."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Literal

import pytest

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.agent.events import State, StatusChanged
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.push import places
from a2a_canvas.server.push.delivery import PushDelivery
from a2a_canvas.server.push.outbox import Delivery, InMemoryPush
from a2a_canvas.server.push.places import LARGE, MAX_FAILING, MAX_LARGE, MAX_PLACES, PER_TARGET, PER_USER
from a2a_canvas.server.push.retries import MAX_ATTEMPTS, DeliveryAccepted, DeliveryFailed, Outcome
from a2a_canvas.server.tasks.errors import TaskNotFound
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from tests.fakes import Clock
from tests.metric_values import values

Answer = Callable[[str], Awaitable[Outcome]]
REFUSED = DeliveryFailed("the receiver answered 500")
SOON = 20.0
"""Seconds after which a test fails because what it waits for has not happened."""


async def accept(url: str) -> Outcome:
    return DeliveryAccepted()


class Receivers:
    """All receivers: they answer by `answer`, and remember the bodies by url.

    Attributes:
        most: how many were being sent to at once, at most, by target and (empty) in all.
    """

    def __init__(self) -> None:
        self.answer: Answer = accept
        self.got: list[tuple[str, str]] = []
        self.most: Counter[str] = Counter()
        self._now: Counter[str] = Counter()
        self._news = asyncio.Condition()

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        where = ("", url.split("/")[2])
        async with self._news:
            self.got.append((url, body.decode()))
            self._now.update(where)
            self.most |= self._now
            self._news.notify_all()
        try:
            return await self.answer(url)
        finally:
            self._now.subtract(where)

    async def until(self, enough: Callable[[], bool]) -> None:
        async with self._news:
            await self._news.wait_for(enough)

    def of(self, url: str) -> list[str]:
        return [body for each, body in self.got if each == url]

    async def close(self) -> None:
        pass


class WatchedOutbox(InMemoryPush):
    """An outbox that is waited for.

    Attributes:
        failures: attempts that were not accepted.
        releases: claims that were given back.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.failures = self.releases = 0
        self._news = asyncio.Condition()

    async def mark_failed(self, delivery: Delivery, retry_at: datetime) -> None:
        await super().mark_failed(delivery, retry_at)
        self.failures += 1
        await self._tell()

    async def give_up(self, delivery: Delivery, reason: str) -> None:
        await super().give_up(delivery, reason)
        self.failures += 1
        await self._tell()

    async def release(self, delivery: Delivery) -> None:
        await super().release(delivery)
        self.releases += 1
        await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def until_failures(self, number: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self.failures == number)

    async def until_releases(self, number: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self.releases == number)


class Wake(asyncio.Event):
    """Sets `waiting` when a wait for it begins that is not over at once."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()

    async def wait(self) -> Literal[True]:
        if not self.is_set():
            self.waiting.set()
        return await super().wait()


class World:
    """An outbox in memory, and what delivers from it.

    Attributes:
        rendered: the targets for which bodies were written; those of targets that are called so are large.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.outbox = WatchedOutbox(self.clock)
        self.receivers = Receivers()
        self.metrics = Metrics()
        self.delivery = PushDelivery(
            self.outbox, self.render, self.receivers, self.clock, self.metrics, chance=lambda: 1.0
        )
        self.readable = True
        self.rendered: list[str] = []
        self._generation = 1

    async def render(self, delivery: Delivery) -> bytes:
        if not self.readable:
            raise TaskNotFound("t")
        event = delivery.entry.event
        assert isinstance(event, StatusChanged)
        self.rendered.append(delivery.config.target)
        body = f"{delivery.entry.generation} {event.state.value}".encode()
        return body.ljust(LARGE + 1) if "large" in delivery.config.target else body

    def register(self, task: str, target: str = "a:443", user: str = "") -> str:
        url = f"https://{target}/{task}"
        key = ConfigKey("c", task, "p")
        self.outbox.register(PushConfig(key, Caller(user), "1.0", url, target, "t0ken", "Bearer", "s3cret"))
        return url

    def tell(self, task: str, *states: State) -> None:
        for state in states:
            self._generation += 1
            entry = Entry(1, self._generation, self.clock(), StatusChanged(state))
            self.outbox.put(TaskRecord(task, "c", "", self.clock()), entry)

    async def failure(self, task: str) -> str:
        config = await self.outbox.get(ConfigKey("c", task, "p"))
        assert config
        return config.failure

    def later(self) -> None:
        """An hour later."""
        self.clock.move(timedelta(hours=1))
        self.outbox.wake.set()


@asynccontextmanager
async def delivering() -> AsyncIterator[World]:
    world = World()
    world.delivery.start()
    try:
        yield world
    finally:
        await world.delivery.stop()


async def test_notifications_of_a_task_come_in_order() -> None:
    async with delivering() as world:
        url = world.register("t")
        world.tell("t", State.WORKING, State.INPUT_REQUIRED)
        world.tell("t", State.WORKING, State.COMPLETED)
        await world.receivers.until(lambda: len(world.receivers.got) == 4)
        assert world.receivers.of(url) == ["2 working", "3 input-required", "4 working", "5 completed"]


async def test_after_a_delivery_it_waits_until_it_is_woken_again() -> None:
    async with delivering() as world:
        wake = world.outbox._wake = Wake()
        world.register("t")
        world.tell("t", State.COMPLETED)
        await world.receivers.until(lambda: bool(world.receivers.got))
        wake.waiting.clear()
        async with asyncio.timeout(SOON):
            await wake.waiting.wait()


async def test_what_is_not_accepted_is_tried_again_before_anything_else() -> None:
    async with delivering() as world:
        refusals = iter([REFUSED, REFUSED])

        async def answer(url: str) -> Outcome:
            return next(refusals, DeliveryAccepted())

        world.receivers.answer = answer
        url = world.register("t")
        world.tell("t", State.WORKING, State.COMPLETED)
        for attempts in (1, 2):
            await world.outbox.until_failures(attempts)
            world.later()
        await world.receivers.until(lambda: len(world.receivers.got) == 4)
        assert world.receivers.of(url) == ["2 working"] * 3 + ["3 completed"]


async def test_it_is_given_up_in_the_end_and_both_the_log_and_the_config_say_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(url: str) -> Outcome:
        return REFUSED

    async with delivering() as world:
        world.receivers.answer = refuse
        url = world.register("t")
        world.tell("t", State.WORKING, State.COMPLETED)
        with caplog.at_level(logging.INFO):
            for attempts in range(1, MAX_ATTEMPTS + 1):
                await world.outbox.until_failures(attempts)
                world.later()
        assert values(world.metrics.push_attempts) == {("failed",): MAX_ATTEMPTS - 1, ("given_up",): 1}
        assert world.receivers.of(url) == ["2 working"] * MAX_ATTEMPTS
        assert await world.failure("t") == f"after {MAX_ATTEMPTS} attempts the receiver answered 500"
        [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert "config p (a:443) are given up after 20 attempts: the receiver answered 500" in warning.message
        assert not any(secret in caplog.text for secret in ("t0ken", "s3cret", url))


async def test_a_registrant_who_may_not_read_the_task_any_more_is_told_nothing() -> None:
    async with delivering() as world:
        world.readable = False
        world.register("t")
        world.tell("t", State.COMPLETED)
        await world.outbox.until_failures(1)
        assert world.receivers.got == []
        assert "may not read" in await world.failure("t")


async def test_receivers_that_hang_hold_nobody_up() -> None:
    """1,000 of them; each attempt ends when the test says so, as its time-out would."""
    slow, timed_out = 1_000, asyncio.Event()

    async def answer(url: str) -> Outcome:
        if "slow" in url:
            await timed_out.wait()
            return DeliveryFailed("the receiver did not answer within 10 seconds")
        return DeliveryAccepted()

    async def told(user: str, name: str) -> None:
        """Receivers of a user that answer have all notifications of their tasks."""
        tasks = [f"{name}{number}" for number in range(10)]
        urls = [world.register(task, f"{task}:443", user) for task in tasks]
        for task in tasks:
            world.tell(task, State.WORKING, State.COMPLETED)
        await world.receivers.until(lambda: all(len(world.receivers.of(url)) == 2 for url in urls))

    def hang() -> int:
        return sum("slow" in url for url, _ in world.receivers.got)

    async with delivering() as world:
        world.receivers.answer = answer
        for number in range(slow):
            world.register(f"s{number}", f"slow{number}:443", "ann")
            world.tell(f"s{number}", State.WORKING, State.COMPLETED)
        await world.receivers.until(lambda: hang() == PER_USER)
        await told("bob", "first")  # nobody knows yet that they hang, and they have all places that a user may have
        assert hang() == PER_USER
        timed_out.set()
        await world.outbox.until_failures(slow)  # all of them once
        timed_out.clear()
        assert world.receivers.most[""] <= MAX_PLACES
        world.later()  # they are due again, all at once, and hang again
        await world.receivers.until(lambda: hang() == slow + MAX_FAILING)
        await told("bob", "second")
        await told("ann", "third")  # nor do they hold up her own receivers that answer
        assert hang() == slow + MAX_FAILING


async def test_one_target_gets_only_so_many_at_once() -> None:
    open_again = asyncio.Event()

    async def answer(url: str) -> Outcome:
        if "busy" in url:
            await open_again.wait()
        return DeliveryAccepted()

    async with delivering() as world:
        world.receivers.answer = answer
        busy = [world.register(f"b{number}", "busy:443") for number in range(20)]
        for number in range(20):
            world.tell(f"b{number}", State.COMPLETED)
        other = world.register("t", "other:443")
        world.tell("t", State.COMPLETED)
        await world.receivers.until(lambda: bool(world.receivers.of(other)))
        open_again.set()
        await world.receivers.until(lambda: all(world.receivers.of(url) for url in busy))
        assert world.receivers.most["busy:443"] == PER_TARGET


async def test_a_delivery_that_has_not_ended_when_it_stops_is_due_again() -> None:
    async def hang(url: str) -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    async with delivering() as world:
        world.receivers.answer = hang
        url = world.register("t")
        world.tell("t", State.COMPLETED)
        await world.receivers.until(lambda: bool(world.receivers.got))
    world.receivers.answer = accept
    again = PushDelivery(world.outbox, world.render, world.receivers, world.clock)
    again.start()
    await world.receivers.until(lambda: len(world.receivers.got) == 2)
    await again.stop()
    assert world.receivers.of(url) == ["2 completed"] * 2


async def test_large_bodies_share_a_few_places_and_none_is_written_again_while_it_waits() -> None:
    open_again, sending, most = asyncio.Event(), 0, 0

    async def answer(url: str) -> Outcome:
        nonlocal sending, most
        if "large" in url:
            sending += 1
            most = max(most, sending)
            await open_again.wait()
            sending -= 1
        return DeliveryAccepted()

    async with delivering() as world:
        world.receivers.answer = answer
        large = [world.register(f"t{number}", f"large{number}:443") for number in range(12)]
        for number in range(12):
            world.tell(f"t{number}", State.COMPLETED)
        await world.outbox.until_releases(12 - MAX_LARGE)
        small = world.register("t", "small:443")
        world.tell("t", State.COMPLETED)
        await world.receivers.until(lambda: bool(world.receivers.of(small)))
        assert len(world.rendered) == 12 + 1
        open_again.set()
        await world.receivers.until(lambda: all(world.receivers.of(url) for url in large))
        assert most == MAX_LARGE


async def test_a_config_with_much_to_deliver_leaves_its_place_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_PLACES", 1)
    async with delivering() as world:
        first, second = world.register("t", "a:443"), world.register("u", "b:443")
        world.tell("t", *[State.WORKING, State.INPUT_REQUIRED] * 20)
        world.tell("u", State.COMPLETED)
        world.clock.move(timedelta(seconds=1))
        await world.receivers.until(lambda: len(world.receivers.got) == 41)
        assert len(world.receivers.of(first)) == 40
        assert [url for url, _ in world.receivers.got].index(second) < 20
