"""Delivers what is in the outbox, beside the turns.

Rule 1: one attempt for each claim; the next notification of the config follows when it was accepted. A receiver that
        accepts many in a row makes room for others now and then.
Rule 2: what is not accepted is tried again, later each time (`retries.py`), and given up in the end: the log says so,
        and so does the config.
Rule 3: the log names task, config and host: never a path, a token or a credential.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from a2a_canvas.server.log_output import about
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.push.retries import Accepted, NotAccepted, Outcome, delay_after
from a2a_canvas.server.push.sending import Send
from a2a_canvas.server.push.signing import headers_of
from a2a_canvas.server.tasks.errors import TaskError, TaskNotFound
from a2a_canvas.server.tasks.journal.push_outbox import Outbox
from a2a_canvas.server.tasks.push import Delivery, Room
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

MAX_SENDING = 80
"""Attempts under way at once: each has a connection."""
MAX_FAILING = 20
"""Of them, those to receivers that failed last time."""
PER_TARGET = 4
"""Attempts under way to one host and port."""
IN_A_ROW = 10
"""Notifications of one config before others get their turn."""
REMEMBERED = 500
"""Targets of which it is remembered that they failed last time."""
POLL_SECONDS = 1.0
"""Between two looks into the outbox: for attempts that are due, and for what other replicas have left."""

Render = Callable[[Delivery], Awaitable[bytes]]
"""Writes the body of a notification. Raises `TaskNotFound` if the registrant may not read
the task, another `TaskError` if it cannot be read."""


class PushDelivery:
    """Delivers notifications while it runs.

    Args:
        render: writes bodies.
        now: the clock.
        metrics: count attempts.
        chance: gives a number from 0 to 1.
    """

    def __init__(
        self,
        outbox: Outbox,
        render: Render,
        send: Send,
        now: Callable[[], datetime],
        metrics: Metrics | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._attempts = (metrics or Metrics()).push_attempts
        self._outbox = outbox
        self._render = render
        self._send = send
        self._now = now
        self._chance = chance
        self._sending: Counter[str] = Counter()
        self._failing = 0
        self._slow: OrderedDict[str, None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.create_task(self._run(), name="push")

    async def stop(self) -> None:
        """Stop at once: what was under way is due again."""
        running = [task for task in (self._loop, *self._tasks) if task]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._send.close()

    async def _run(self) -> None:
        while True:
            self._outbox.wake.clear()
            try:
                while self._room().total > 0 and await self._begin_some():
                    pass
            except Unavailable:
                pass  # at the next look
            except Exception:
                logger.exception("Push notifications could not be read")
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._outbox.wake.wait()

    def _room(self) -> Room:
        total = MAX_SENDING - len(self._tasks)
        return Room(total, min(total, MAX_FAILING - self._failing), PER_TARGET, self._sending, self._slow.keys())

    async def _begin_some(self) -> bool:
        """Whether there were any."""
        claimed = await self._outbox.claim(self._room())
        for delivery in claimed:
            self._begin(delivery)
        return bool(claimed)

    def _begin(self, delivery: Delivery) -> None:
        target = delivery.config.target
        failing = delivery.attempts > 0 or target in self._slow
        task = asyncio.create_task(self._deliver(delivery), name=f"push to {target}")
        self._tasks.add(task)
        self._sending[target] += 1
        self._failing += failing
        task.add_done_callback(partial(self._end, target, failing))

    def _end(self, target: str, failing: bool, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._sending -= Counter((target,))
        self._failing -= failing
        self._outbox.wake.set()

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            await self._deliver_in_order(delivery)
        except Unavailable:
            pass  # it is due again when the claim expires
        except Exception:
            logger.exception("A push notification could not be delivered", extra=_about(delivery))

    async def _deliver_in_order(self, first: Delivery) -> None:
        delivery: Delivery | None = first
        for _ in range(IN_A_ROW):
            if delivery is None:
                return
            try:
                outcome = await self._attempt(delivery)
            except asyncio.CancelledError:
                with suppress(Unavailable):
                    await self._outbox.release(delivery)
                raise
            delivery = await self._settle(delivery, outcome)
        if delivery:
            await self._outbox.release(delivery)

    async def _attempt(self, delivery: Delivery) -> Outcome:
        try:
            body = await self._render(delivery)
        except TaskNotFound:
            return NotAccepted("who registered it may not read the task any more", final=True)
        except TaskError:
            return NotAccepted("the task cannot be read")
        return await self._send(delivery.config.url, headers_of(delivery, body, self._now()), body)

    async def _settle(self, delivery: Delivery, outcome: Outcome) -> Delivery | None:
        """The next notification of the same config, if this one was accepted and there is one."""
        self._remember(delivery.config.target, failed=isinstance(outcome, NotAccepted))
        match outcome:
            case Accepted():
                self._attempts.add("accepted")
                return await self._outbox.delivered(delivery)
            case NotAccepted():
                await self._later(delivery, outcome)
                return None

    def _remember(self, target: str, *, failed: bool) -> None:
        self._slow.pop(target, None)
        if failed:
            self._slow[target] = None
            if len(self._slow) > REMEMBERED:
                self._slow.popitem(last=False)

    async def _later(self, delivery: Delivery, outcome: NotAccepted) -> None:
        failed = delivery.attempts + 1
        said = (delivery.config.key.config_id, delivery.config.target, outcome.reason)
        delay = delay_after(failed, outcome, self._chance())
        if delay is None:
            self._attempts.add("given_up")
            logger.warning(
                "Push notifications to config %s (%s) are given up after %d attempts: %s",
                *said[:2],
                failed,
                outcome.reason,
                extra=_about(delivery),
            )
            await self._outbox.give_up(delivery, f"after {failed} attempts {outcome.reason}")
            return
        self._attempts.add("failed")
        logger.info("A push notification to config %s (%s) failed: %s", *said, extra=_about(delivery))
        await self._outbox.failed(delivery, self._now() + delay)


def _about(delivery: Delivery) -> dict[str, Any]:
    return about(delivery.config.key.task_id, delivery.config.key.context_id)
