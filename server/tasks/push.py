"""Push notifications: what a client registers for a task, and what it is told of. Pure.

Rule 1: a notification tells of a change of the task's status, or of a version that was closed; not of deltas and
        labels, nor of a version that the task sends again to its streams after a call was cut off.
Rule 2: each config has its own queue. Its notifications are delivered in the order of the entries, at least once: the
        next one is sent when the one before it was accepted.
Rule 3: deliveries under way are bounded: in all, for each target, for each user, for receivers that failed last time,
        and for large bodies. Of what is due the users with the fewest under way are served first. So receivers that do
        not answer hold up little of their own user's, and nothing of others'.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.agent.events import ArtifactChanged, StatusChanged, TurnEvent
from a2a_canvas.server.tasks.record import Entry, TaskRecord, is_durable
from a2a_canvas.store.ids import SEPARATOR, context_key

MAX_CONFIGS = 100
"""Configs of one task that are its owner's, and of those that are others'."""
CLAIM_SECONDS = 30.0
"""After which another replica may deliver what one has claimed: longer than an attempt takes."""


class ConfigKey(NamedTuple):
    """A config among all."""

    context_id: str
    task_id: str
    config_id: str

    @property
    def is_guests(self) -> bool:
        """Whether somebody else than the owner of the task has registered it."""
        return SEPARATOR in self.config_id


def config_key(record: TaskRecord, registrant: Caller, config_id: str) -> ConfigKey:
    """The key of a registrant's config: an id is one of its registrant alone, so that nobody replaces another's.

    Args:
        config_id: empty for that of the task, as in A2A's SDK.
    """
    name = config_id or record.task_id
    is_owner = not registrant.link and registrant.name == record.owner
    named = name if is_owner else context_key(registrant.author, name)
    return ConfigKey(record.context_id, record.task_id, named)


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Where a client wants the notifications of a task.

    Attributes:
        registrant: who registered it: nobody else is told its token, and it counts as long as this caller may read the
            task.
        version: of A2A, in whose form the notifications are.
        target: host and port of the url.
        scheme, credentials: of the header Authorization, or of the signature (`server/push/signing.py`).
        failure: why no more notifications are sent; empty as long as they are.
    """

    key: ConfigKey
    registrant: Caller
    version: str
    url: str = field(repr=False)
    target: str
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)
    failure: str = ""

    def of_task(self, record: TaskRecord) -> PushConfig:
        """The same for a task; a config without an id has that of its task, as in A2A's SDK."""
        return replace(self, key=config_key(record, self.registrant, self.key.config_id))


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


def is_notified(record: TaskRecord, event: TurnEvent) -> bool:
    """Whether a notification tells of an event (rule 1).

    Args:
        record: the task before the event.
    """
    match event:
        case ArtifactChanged():
            before = record.artifacts.get(event.artifact_id)
            return event.last_chunk and (before is None or before.closed != event.version)
        case StatusChanged():
            return is_durable(record.state, event)
        case _:
            return False


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
    """What may be begun now (rule 3).

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
