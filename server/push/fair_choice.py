"""Which deliveries may be begun. Pure.

Deliveries under way are bounded: in all, for each target, for each user, for receivers that failed last time,
and for large bodies. Of what is due the users with the fewest under way are served first. So receivers that do
not answer hold up little of their own user's, and nothing of others'.
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
class UnderWay:
    """The deliveries under way, by target and by user."""

    targets: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Room:
    """What may be begun now (the rule of this module).

    Attributes:
        total, failing, large: deliveries in all, to receivers that failed last time, and of large bodies.
        per_target, per_user: deliveries under way at once to one target, and of one user. Callers without a name are
            one user.
        slow: targets that failed last time; one delivery at once goes to each.
        large_configs: configs whose next body is known to be large.
    """

    total: int
    failing: int
    large: int
    per_target: int
    per_user: int
    under_way: UnderWay = UnderWay()
    slow: Collection[str] = ()
    large_configs: Collection[ConfigKey] = ()

    @property
    def full_targets(self) -> frozenset[str]:
        """Targets to which nothing may be begun."""
        full = {target for target, number in self.under_way.targets.items() if number >= self._limit(target)}
        return frozenset(full if self.failing > 0 else full.union(self.slow))

    @property
    def full_users(self) -> frozenset[str]:
        """Users of whom nothing may be begun."""
        return frozenset(user for user, number in self.under_way.users.items() if number >= self.per_user)

    def choose(self, due: Iterable[Due]) -> list[Due]:
        """Those that may be begun: of each user in order, and one of the user with the fewest under way at a time."""
        waiting: defaultdict[str, deque[Due]] = defaultdict(deque)
        for each in due:
            waiting[each.user].append(each)
        users = [(self.under_way.users.get(user, 0), place, user) for place, user in enumerate(waiting)]
        heapify(users)
        chosen: list[Due] = []
        targets, failing, large = Counter(self.under_way.targets), self.failing, self.large
        while users and len(chosen) < self.total and users[0][0] < self.per_user:
            number, place, user = heappop(users)
            while waiting[user]:
                each = waiting[user].popleft()
                fails, is_large = self._fails(each), each.key in self.large_configs
                if targets[each.target] < self._limit(each.target) and failing >= fails and large >= is_large:
                    chosen.append(each)
                    targets[each.target] += 1
                    failing -= fails
                    large -= is_large
                    heappush(users, (number + 1, place, user))
                    break
        return chosen

    def _fails(self, each: Due) -> bool:
        return each.attempts > 0 or each.target in self.slow

    def _limit(self, target: str) -> int:
        return 1 if target in self.slow else self.per_target
