"""Which of the due deliveries get a place. Pure.

Each delivery takes a place until it ends. Places are limited: in all, for each target, for each user, for targets that
failed last time, and for large bodies. Users who have the fewest places are served first. So targets that do not answer
delay few deliveries of their own user, and none of others.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from a2a_canvas.server.tasks.push_configs import ConfigKey


class Due(NamedTuple):
    """A config with something to deliver now."""

    key: ConfigKey
    target: str
    user: str
    attempts: int


@dataclass(frozen=True, slots=True)
class TakenPlaces:
    """The number of places that are taken, by target and by user."""

    targets: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FreePlaces:
    """The places that due deliveries may take now.

    Attributes:
        total, failing, large: free places in all, for targets that failed last time, and for large bodies.
        per_target, per_user: the most places that one target and one user may have, free or taken. Callers without a
            name are one user.
        failing_targets: those that failed last time; each may have one place.
        large_configs: configs whose next body is known to be large.
    """

    total: int
    failing: int
    large: int
    per_target: int
    per_user: int
    taken: TakenPlaces = TakenPlaces()
    failing_targets: Collection[str] = ()
    large_configs: Collection[ConfigKey] = ()

    @property
    def full_targets(self) -> frozenset[str]:
        """Targets without a free place."""
        full = {target for target, number in self.taken.targets.items() if number >= self._limit(target)}
        return frozenset(full if self.failing > 0 else full.union(self.failing_targets))

    @property
    def full_users(self) -> frozenset[str]:
        """Users without a free place."""
        return frozenset(user for user, number in self.taken.users.items() if number >= self.per_user)

    def choose(self, due: Iterable[Due]) -> list[Due]:
        """Those that get a place: each user's in order, always the next one of the user who has the fewest places."""
        waiting: defaultdict[str, deque[Due]] = defaultdict(deque)
        for each in due:
            waiting[each.user].append(each)
        users = [(self.taken.users.get(user, 0), position, user) for position, user in enumerate(waiting)]
        heapify(users)
        chosen: list[Due] = []
        targets, failing, large = Counter(self.taken.targets), self.failing, self.large
        while users and len(chosen) < self.total and users[0][0] < self.per_user:
            number, position, user = heappop(users)
            while waiting[user]:
                each = waiting[user].popleft()
                fails, is_large = self._fails(each), each.key in self.large_configs
                if targets[each.target] < self._limit(each.target) and failing >= fails and large >= is_large:
                    chosen.append(each)
                    targets[each.target] += 1
                    failing -= fails
                    large -= is_large
                    heappush(users, (number + 1, position, user))
                    break
        return chosen

    def _fails(self, each: Due) -> bool:
        return each.attempts > 0 or each.target in self.failing_targets

    def _limit(self, target: str) -> int:
        return 1 if target in self.failing_targets else self.per_target
