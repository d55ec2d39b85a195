"""Delivers what is in the outbox, beside the turns.

Rule 1: one attempt for each claim; the next notification of the config follows when it was accepted. A receiver that
        accepts many in a row leaves its place to others now and then (`places.py`).
Rule 2: what is not accepted is tried again, later each time (`retries.py`), and given up in the end: the log says so,
        and so does the config.
Rule 3: the log names task, config and host: never a path, a token or a credential.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from a2a_canvas.server.log_output import about
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.push.outbox import Delivery, Outbox
from a2a_canvas.server.push.places import Places
from a2a_canvas.server.push.retries import DeliveryAccepted, DeliveryFailed, Outcome, delay_after
from a2a_canvas.server.push.sending import Send
from a2a_canvas.server.push.signing import headers_of
from a2a_canvas.server.tasks.errors import TaskError, TaskNotFound
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import public_id

logger = logging.getLogger(__name__)

IN_A_ROW = 10
"""Notifications of one config before others get their turn."""
SPACING_SECONDS = 0.05
"""Between two looks at least: many attempts that end at once make one look."""
READING = 2
"""Bodies that are read from the database and written at once."""
POLL_SECONDS = 1.0
"""Between two looks into the outbox: for attempts that are due, and for what other replicas have left."""

Render = Callable[[Delivery], Awaitable[bytes]]
"""Writes the body of a notification. Raises `TaskNotFound` if the registrant may not read
the task, another `TaskError` if it cannot be read."""


class PushDelivery:
    """Delivers notifications while it runs.

    Args:
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
        self._metrics = metrics or Metrics()
        self._metrics.refreshers.append(self._measure_outbox)
        self._outbox = outbox
        self._render = render
        self._send = send
        self._now = now
        self._chance = chance
        self._places = Places()
        self._reading = asyncio.Semaphore(READING)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    async def _measure_outbox(self) -> None:
        backlog = await self._outbox.backlog()
        self._metrics.outbox_depth.set(backlog.depth)
        self._metrics.outbox_age.set((self._now() - backlog.oldest).total_seconds() if backlog.oldest else 0)

    def start(self) -> None:
        self._loop = asyncio.create_task(self._run(), name="push")

    async def stop(self) -> None:
        """Stop at once: deliveries that have not ended are due again."""
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
                while self._places.free().total > 0 and await self._begin_some():
                    pass
            except Unavailable:
                pass  # at the next look
            except Exception:
                logger.exception("Push notifications could not be read")
            looked = asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._outbox.wake.wait()
            await asyncio.sleep(looked + SPACING_SECONDS - asyncio.get_running_loop().time())

    async def _begin_some(self) -> bool:
        """Whether there were any."""
        claimed = await self._outbox.claim(self._places.free())
        for delivery in claimed:
            self._places.take(delivery)
            task = asyncio.create_task(self._deliver(delivery), name=f"push to {delivery.config.target}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return bool(claimed)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            await self._deliver_in_order(delivery)
        except Unavailable:
            pass  # it is due again when the claim expires
        except Exception:
            logger.exception("A push notification could not be delivered", extra=_about(delivery))
        finally:
            self._places.leave(delivery)
            self._outbox.wake.set()

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
            if outcome is None:
                break
            delivery = await self._settle(delivery, outcome)
        if delivery:
            await self._outbox.release(delivery)

    async def _attempt(self, delivery: Delivery) -> Outcome | None:
        """None if it was not made: no place is free for its body, or it was removed."""
        try:
            body = await self._body(delivery)
        except TaskNotFound:
            return DeliveryFailed("who registered it may not read the task any more", final=True)
        except TaskError:
            return DeliveryFailed("the task cannot be read")
        if body is None:
            return None
        return await self._send(delivery.config.url, headers_of(delivery, body, self._now()), body)

    async def _body(self, delivery: Delivery) -> bytes | None:
        async with self._reading:
            whole = await self._outbox.whole(delivery)
            body = await self._render(whole) if whole else None
            return body if body is not None and self._places.take_for_body(delivery, len(body)) else None

    async def _settle(self, delivery: Delivery, outcome: Outcome) -> Delivery | None:
        """The next notification of the same config, if this one was accepted and there is one."""
        self._places.record_outcome(delivery, accepted=isinstance(outcome, DeliveryAccepted))
        match outcome:
            case DeliveryAccepted():
                self._metrics.push_attempts.labels("accepted").inc()
                return await self._outbox.mark_delivered(delivery)
            case DeliveryFailed():
                await self._later(delivery, outcome)
                return None

    async def _later(self, delivery: Delivery, outcome: DeliveryFailed) -> None:
        failed = delivery.attempts + 1
        said = (public_id(delivery.config.key.config_id), delivery.config.target, outcome.reason)
        delay = delay_after(failed, outcome, self._chance())
        if delay is None:
            self._metrics.push_attempts.labels("given_up").inc()
            logger.warning(
                "Push notifications to config %s (%s) are given up after %d attempts: %s",
                *said[:2],
                failed,
                outcome.reason,
                extra=_about(delivery),
            )
            await self._outbox.give_up(delivery, f"after {failed} attempts {outcome.reason}")
            return
        self._metrics.push_attempts.labels("failed").inc()
        logger.info("A push notification to config %s (%s) failed: %s", *said, extra=_about(delivery))
        await self._outbox.mark_failed(delivery, self._now() + delay)


def _about(delivery: Delivery) -> dict[str, Any]:
    return about(delivery.config.key.task_id, delivery.config.key.context_id)
