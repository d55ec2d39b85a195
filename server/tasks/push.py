"""Push notifications: what a client registers for a task, and what it is told of. Pure.

Rule 1: a notification tells of a change of the task's status, or of a version that was closed; not of deltas and
        labels.
Rule 2: each config has its own queue. Its notifications are delivered in the order of the entries, at least once: the
        next one is sent when the one before it was accepted.
Rule 3: deliveries are bounded: in all, for each target, and, so that receivers that do not answer hold nobody up, for
        those that failed last time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged, TurnEvent
from a2a_canvas.server.tasks.access import Caller
from a2a_canvas.server.tasks.record import Entry, TaskRecord, is_durable

MAX_CONFIGS = 100
"""Configs of one task."""
CLAIM_SECONDS = 30.0
"""After which another replica may deliver what one has claimed: longer than an attempt takes."""


class ConfigKey(NamedTuple):
    """A config among all."""

    context_id: str
    task_id: str
    config_id: str


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
        key = ConfigKey(record.context_id, record.task_id, self.key.config_id or record.task_id)
        return replace(self, key=key)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification that this process has claimed.

    Attributes:
        entry: what it tells of; that of a version has all its parts.
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


def is_notified(state: State, event: TurnEvent) -> bool:
    """Whether a notification tells of an event (rule 1).

    Args:
        state: the task's before the event.
    """
    return isinstance(event, StatusChanged | ArtifactChanged) and is_durable(state, event)


class Due(NamedTuple):
    """A config with something to deliver now."""

    key: ConfigKey
    target: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Room:
    """What may be begun now (rule 3).

    Attributes:
        total, failing: deliveries in all, and of those that failed last time.
        per_target: deliveries to one target at once.
        sending: the deliveries under way, by target.
        slow: targets that failed last time.
    """

    total: int
    failing: int
    per_target: int
    sending: Mapping[str, int]
    slow: Collection[str] = ()

    @property
    def excluded(self) -> frozenset[str]:
        """Targets to which nothing may be begun."""
        full = {target for target, number in self.sending.items() if number >= self.per_target}
        return frozenset(full if self.failing > 0 else full.union(self.slow))

    def choose(self, due: Iterable[Due]) -> list[Due]:
        """Those that may be begun, in order."""
        sending, failing = Counter(self.sending), self.failing
        chosen: list[Due] = []
        for each in due:
            fails = each.attempts > 0 or each.target in self.slow
            if len(chosen) < self.total and sending[each.target] < self.per_target and (failing > 0 or not fails):
                chosen.append(each)
                sending[each.target] += 1
                failing -= fails
        return chosen
