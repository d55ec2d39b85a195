"""The places that the deliveries of one process take, and which are free. Pure.

Rule 1: a target that hangs takes a place until its attempt times out. So no user can take all places, and targets that
        failed last time share a few.
Rule 2: a body is in memory while it is sent. So large ones share a few places, too. That a body is large is known when
        it is written: if no place for large bodies is free then, it waits, and its config is remembered.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from a2a_canvas.server.push.fair_choice import FreePlaces, TakenPlaces
from a2a_canvas.server.push.outbox import Delivery
from a2a_canvas.server.tasks.push_configs import ConfigKey

MAX_PLACES = 80
"""Places in all: each delivery has a connection."""
PER_USER = 40
"""Places of one user."""
MAX_FAILING = 20
"""Places for targets that failed last time."""
PER_TARGET = 4
"""Places for one target: a host and port."""
MAX_LARGE = 4
"""Places for large bodies."""
LARGE = 256 * 1024
"""Bytes that a body may have without being large."""
REMEMBERED_TARGETS = 500
"""Targets of which it is remembered that they failed last time."""
REMEMBERED_CONFIGS = 10_000
"""Configs of which it is remembered that their next body is large."""

T = TypeVar("T", bound=Hashable)


class Places:
    """The places of one process."""

    def __init__(self) -> None:
        self._number = 0
        self._targets: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._failing: set[ConfigKey] = set()
        self._large: set[ConfigKey] = set()
        self._failing_targets: OrderedDict[str, None] = OrderedDict()
        self._large_configs: OrderedDict[ConfigKey, None] = OrderedDict()

    def free(self) -> FreePlaces:
        return FreePlaces(
            total=MAX_PLACES - self._number,
            failing=MAX_FAILING - len(self._failing),
            large=MAX_LARGE - len(self._large),
            per_target=PER_TARGET,
            per_user=PER_USER,
            taken=TakenPlaces(self._targets, self._users),
            failing_targets=self._failing_targets.keys(),
            large_configs=self._large_configs.keys(),
        )

    def take(self, delivery: Delivery) -> None:
        """A delivery begins."""
        key, target = delivery.config.key, delivery.config.target
        self._number += 1
        self._targets[target] += 1
        self._users[delivery.config.registrant.name] += 1
        if delivery.attempts > 0 or target in self._failing_targets:
            self._failing.add(key)

    def leave(self, delivery: Delivery) -> None:
        """A delivery has ended."""
        config = delivery.config
        self._number -= 1
        self._targets -= Counter((config.target,))
        self._users -= Counter((config.registrant.name,))
        self._failing.discard(config.key)
        self._large.discard(config.key)

    def take_for_body(self, delivery: Delivery, size: int) -> bool:
        """Take a place for large bodies if a body of `size` bytes needs one; False if none is free (rule 2)."""
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
        """Note whether the target counts as one that failed last time (rule 1)."""
        target = delivery.config.target
        if accepted:
            self._failing_targets.pop(target, None)
            self._large_configs.pop(delivery.config.key, None)
        else:
            _remember(self._failing_targets, target, REMEMBERED_TARGETS)


def _remember(remembered: OrderedDict[T, None], value: T, most: int) -> None:
    remembered.pop(value, None)
    remembered[value] = None
    if len(remembered) > most:
        remembered.popitem(last=False)
