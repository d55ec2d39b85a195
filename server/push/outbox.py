"""The push configs of tasks, and the outbox of what is to be delivered to them.

Rule 1: a notification is in the outbox from the moment its entry is durable: both are written in one transaction.
Rule 2: a config with something to deliver is *due*. Who delivers claims it, for CLAIM_SECONDS: one process at a time
        delivers to it, and what a process that ended has claimed is due again.
Rule 3: what is claimed is small: the content of a version is read when its turn to be sent has come (`whole`).
Rule 4: when a notification is given up, so is its config, with everything that waits behind it: what comes later would
        be out of order. It says why, until it is registered again.
Rule 5: each config has its own queue. Its notifications are delivered in the order of the entries, at least once: the
        next one is sent when the one before it was accepted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.push.fair_choice import Due, FreePlaces
from a2a_canvas.server.tasks.errors import TooManyPushConfigs
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig, PushConfigs
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.store.ids import ContextKey, new_id

MAX_CONFIGS = 100
"""Configs of one task: a limit for those of its owner, and one for those of guests."""
CLAIM_SECONDS = 30.0
"""After which another replica may deliver what one has claimed: longer than an attempt takes."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification that this process has claimed.

    Attributes:
        entry: what it tells of; that of a version names it, until `Outbox.whole` has read it.
        attempts: that have failed.
        claim: tells this claim from a later one of the same config.
    """

    config: PushConfig
    entry: Entry
    attempts: int
    claim: str

    @property
    def event_id(self) -> str:
        """The same for every attempt, and for every config of the task."""
        return f"{self.config.key.task_id}:{self.entry.generation}"


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has not been delivered yet: the number of notifications, and when the oldest was written."""

    depth: int = 0
    oldest: datetime | None = None


class Outbox(Protocol):
    """What is to be delivered. Every method raises `Unavailable` while the database cannot be used.

    Attributes:
        wake: set when there may be more to deliver.
    """

    @property
    def wake(self) -> asyncio.Event: ...

    async def claim(self, free: FreePlaces) -> Sequence[Delivery]:
        """Claim due configs, as the free places choose them: each user's in the order in which they became due.

        Returns:
            The first notification of each.
        """
        ...

    async def whole(self, delivery: Delivery) -> Delivery | None:
        """The same with all parts of the version that it tells of (rule 3); None if it was removed meanwhile."""
        ...

    async def mark_delivered(self, delivery: Delivery) -> Delivery | None:
        """It was accepted. The next one of the config, which stays claimed; None if there is none."""
        ...

    async def mark_failed(self, delivery: Delivery, retry_at: datetime) -> None:
        """It was not accepted."""
        ...

    async def give_up(self, delivery: Delivery, reason: str) -> None:
        """It will not be tried again (rule 4)."""
        ...

    async def release(self, delivery: Delivery) -> None:
        """It was not tried: it is due again."""
        ...

    async def backlog(self) -> Backlog: ...


class PushStore(PushConfigs, Outbox, Protocol):
    """Both, as a backend has them."""


@dataclass(slots=True)
class _Queue:
    """A config with what waits for it; `due` is None if there is nothing."""

    config: PushConfig
    waiting: deque[Entry] = field(default_factory=deque)
    attempts: int = 0
    due: datetime | None = None
    claim: str = ""


class InMemoryPush:
    """`PushConfigs` and `Outbox` in a dictionary."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._queues: dict[tuple[str, str], dict[str, _Queue]] = {}
        self._due: dict[ConfigKey, _Queue] = {}  # those with something to deliver
        self._wake = asyncio.Event()

    @property
    def wake(self) -> asyncio.Event:
        return self._wake

    # ----------------------------------------------------------------------- as `PushConfigs`

    async def add(self, config: PushConfig) -> None:
        self.register(config)

    def register(self, config: PushConfig) -> None:
        """As `add`."""
        queues = self._queues.setdefault(config.key[:2], {})
        before = queues.get(config.key.config_id)
        same = sum(queue.config.key.is_guests == config.key.is_guests for queue in queues.values())
        if before is None and same >= MAX_CONFIGS:
            raise TooManyPushConfigs(config.key.task_id, MAX_CONFIGS)
        queue = queues[config.key.config_id] = _Queue(config, before.waiting if before else deque())
        self._set_due(queue, self._now() if queue.waiting else None)
        self._wake.set()

    async def get(self, key: ConfigKey) -> PushConfig | None:
        queue = self._find(key)
        return queue.config if queue else None

    async def list(self, context_id: ContextKey, task_id: str, after: str, limit: int) -> Sequence[PushConfig]:
        queues = self._queues.get((context_id, task_id), {})
        active = (queues[name].config for name in sorted(queues) if name > after and not queues[name].config.failure)
        return tuple(islice(active, limit))

    async def remove(self, key: ConfigKey) -> None:
        if queue := self._queues.get(key[:2], {}).pop(key.config_id, None):
            self._set_due(queue, None)

    def forget(self, context_id: ContextKey, task_id: str) -> None:
        """A task was removed."""
        for queue in self._queues.pop((context_id, task_id), {}).values():
            self._set_due(queue, None)

    # ----------------------------------------------------------------------------- as `Outbox`

    def put(self, record: TaskRecord, entry: Entry) -> None:
        """Put what an entry tells of into the outbox.

        Args:
            record: the task after it.
        """
        for queue in self._queues.get((record.context_id, record.task_id), {}).values():
            if not queue.config.failure:
                queue.waiting.append(_whole(record, entry))
                self._set_due(queue, queue.due or self._now())
                self._wake.set()

    async def claim(self, free: FreePlaces) -> Sequence[Delivery]:
        now = self._now()
        due = sorted(
            (queue.due, Due(key, queue.config.target, queue.config.registrant.name, queue.attempts))
            for key, queue in self._due.items()
            if queue.due and queue.due <= now
        )
        return [self._claim(each.key) for each in free.choose(each for _, each in due)]

    async def whole(self, delivery: Delivery) -> Delivery | None:
        return delivery

    def _claim(self, key: ConfigKey) -> Delivery:
        queue = self._queues[key[:2]][key.config_id]
        queue.claim = new_id()
        return self._next(queue)

    def _next(self, queue: _Queue) -> Delivery:
        self._set_due(queue, self._now() + timedelta(seconds=CLAIM_SECONDS))
        return Delivery(queue.config, queue.waiting[0], queue.attempts, queue.claim)

    async def mark_delivered(self, delivery: Delivery) -> Delivery | None:
        queue = self._claimed_by(delivery)
        if queue is None:
            return None
        queue.waiting.popleft()
        queue.attempts = 0
        if queue.waiting:
            return self._next(queue)
        queue.claim = ""
        self._set_due(queue, None)
        return None

    async def mark_failed(self, delivery: Delivery, retry_at: datetime) -> None:
        if queue := self._claimed_by(delivery):
            queue.attempts += 1
            queue.claim = ""
            self._set_due(queue, retry_at)

    async def give_up(self, delivery: Delivery, reason: str) -> None:
        if queue := self._claimed_by(delivery):
            queue.config = replace(queue.config, failure=reason)
            queue.waiting.clear()
            queue.claim, queue.attempts = "", 0
            self._set_due(queue, None)

    async def release(self, delivery: Delivery) -> None:
        if queue := self._claimed_by(delivery):
            queue.claim = ""
            self._set_due(queue, self._now())
            self._wake.set()

    async def backlog(self) -> Backlog:
        waiting = [each.at for queue in self._due.values() for each in queue.waiting]
        return Backlog(len(waiting), min(waiting, default=None))

    def _set_due(self, queue: _Queue, due: datetime | None) -> None:
        queue.due = due
        if due:
            self._due[queue.config.key] = queue
        else:
            self._due.pop(queue.config.key, None)

    def _find(self, key: ConfigKey) -> _Queue | None:
        return self._queues.get(key[:2], {}).get(key.config_id)

    def _claimed_by(self, delivery: Delivery) -> _Queue | None:
        queue = self._find(delivery.config.key)
        return queue if queue and queue.claim == delivery.claim else None


def _whole(record: TaskRecord, entry: Entry) -> Entry:
    """An entry that closes a version, with the whole version."""
    match entry.event:
        case ArtifactChanged() as event:
            content = record.artifacts[event.artifact_id].content
            return replace(entry, event=replace(event, append=False, parts=content.parts))
        case _:
            return entry
