"""The deliveries that are under way, and which others may be begun: a bookkeeping, without I/O.

Rule 1: a receiver that hangs takes a place until its attempt times out. So no user can take all places, and receivers
        that failed last time share a few.
Rule 2: a body is in memory while it is sent. So large ones share a few places, too. That a body is large is known when
        it is written: if there is no place for it then, it waits, and its config is remembered.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from a2a_canvas.server.push.fair_choice import Room, UnderWay
from a2a_canvas.server.push.outbox import Delivery
from a2a_canvas.server.tasks.push_configs import ConfigKey

MAX_SENDING = 80
"""Deliveries under way at once: each has a connection."""
PER_USER = 40
"""Of them, those of one user."""
MAX_FAILING = 20
"""Those to receivers that failed last time."""
PER_TARGET = 4
"""Those to one host and port."""
MAX_LARGE = 4
"""Those with a large body."""
LARGE = 256 * 1024
"""Bytes that a body may have without being large."""
REMEMBERED_TARGETS = 500
"""Targets of which it is remembered that they failed last time."""
REMEMBERED_CONFIGS = 10_000
"""Configs of which it is remembered that their next body is large."""

T = TypeVar("T", bound=Hashable)


class Places:
    """What is under way in one process."""

    def __init__(self) -> None:
        self._number = 0
        self._targets: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._failing: set[ConfigKey] = set()
        self._large: set[ConfigKey] = set()
        self._slow: OrderedDict[str, None] = OrderedDict()
        self._large_configs: OrderedDict[ConfigKey, None] = OrderedDict()

    def room(self) -> Room:
        """What may be begun now."""
        return Room(
            total=MAX_SENDING - self._number,
            failing=MAX_FAILING - len(self._failing),
            large=MAX_LARGE - len(self._large),
            per_target=PER_TARGET,
            per_user=PER_USER,
            under_way=UnderWay(self._targets, self._users),
            slow=self._slow.keys(),
            large_configs=self._large_configs.keys(),
        )

    def begin(self, delivery: Delivery) -> None:
        key, target = delivery.config.key, delivery.config.target
        self._number += 1
        self._targets[target] += 1
        self._users[delivery.config.registrant.name] += 1
        if delivery.attempts > 0 or target in self._slow:
            self._failing.add(key)

    def end(self, delivery: Delivery) -> None:
        config = delivery.config
        self._number -= 1
        self._targets -= Counter((config.target,))
        self._users -= Counter((config.registrant.name,))
        self._failing.discard(config.key)
        self._large.discard(config.key)

    def admits(self, delivery: Delivery, size: int) -> bool:
        """Whether there is a place for a body of so many bytes (rule 2); the delivery has it until it ends."""
        key = delivery.config.key
        self._large.discard(key)
        if size <= LARGE:
            self._large_configs.pop(key, None)
            return True
        if len(self._large) >= MAX_LARGE:
            _remember(self._large_configs, key, REMEMBERED_CONFIGS)
            return False
        self._large.add(key)
        return True

    def record_outcome(self, delivery: Delivery, *, accepted: bool) -> None:
        """An attempt has ended: whether its target counts as one that fails."""
        target = delivery.config.target
        if accepted:
            self._slow.pop(target, None)
            self._large_configs.pop(delivery.config.key, None)
        else:
            _remember(self._slow, target, REMEMBERED_TARGETS)


def _remember(remembered: OrderedDict[T, None], value: T, most: int) -> None:
    remembered.pop(value, None)
    remembered[value] = None
    if len(remembered) > most:
        remembered.popitem(last=False)
