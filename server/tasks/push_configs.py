"""Push notifications: what a client registers for a task, and what it is told of. Pure.

What is to be sent goes to an outbox (`server/push/outbox.py`): by `PushQueues` in memory, by an `OutboxWriter` in SQL.

Rule 1: a notification tells of a change of the task's status, or of a version that was closed; not of deltas and
        labels, nor of a version that the task sends again to its streams after a call was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.agent.events import ArtifactChanged, StatusChanged, TurnEvent
from a2a_canvas.server.tasks.record import Entry, TaskRecord, is_durable
from a2a_canvas.store.ids import SEPARATOR, ContextKey, context_key


class ConfigKey(NamedTuple):
    """A config among all."""

    context_id: ContextKey
    task_id: str
    config_id: str

    @property
    def is_guests(self) -> bool:
        """Whether somebody else than the owner of the task has registered it."""
        return SEPARATOR in self.config_id


def config_key(record: TaskRecord, registrant: Caller, config_id: str) -> ConfigKey:
    """The key of a registrant's config: ids are scoped to their registrant, so that nobody replaces another's.

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


def is_notified(record: TaskRecord, event: TurnEvent) -> bool:
    """Whether a notification tells of an event (rule 1).

    Args:
        record: the task before the event.
    """
    match event:
        case ArtifactChanged(resent=False):
            before = record.artifacts.get(event.artifact_id)
            return event.last_chunk and (before is None or before.closed != event.version)
        case StatusChanged():
            return is_durable(record.state, event)
        case _:
            return False


class PushConfigs(Protocol):
    """The push configs of tasks. Every method raises `Unavailable` while the database cannot be used."""

    async def add(self, config: PushConfig) -> None:
        """Register a config, in place of one with the same id.

        Raises:
            TaskNotFound: there is no such task.
            TooManyPushConfigs: the task has as many as it may have.
        """
        ...

    async def get(self, key: ConfigKey) -> PushConfig | None: ...

    async def list(self, context_id: ContextKey, task_id: str, after: str, limit: int) -> Sequence[PushConfig]:
        """Those that notifications are sent to, by id, from the one after `after`."""
        ...

    async def remove(self, key: ConfigKey) -> None:
        """Remove a config, if there is one, with what waits for it."""
        ...


class PushQueues(Protocol):
    """What the journal in memory reports of its tasks, in the same step as their entries."""

    def register(self, config: PushConfig) -> None:
        """The first config of a new task."""
        ...

    def put(self, record: TaskRecord, entry: Entry) -> None:
        """An entry that notifications tell of.

        Args:
            record: the task after it.
        """
        ...

    def forget(self, context_id: ContextKey, task_id: str) -> None:
        """A task was removed."""
        ...
