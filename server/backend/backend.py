"""The storage of tasks and artifacts: in memory, or in a database (`durable_backend.py`)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from a2a_canvas.server.accounts.access import Shares
from a2a_canvas.server.accounts.api_key import ApiKeys
from a2a_canvas.server.accounts.browser_session import EndedSessions, InMemoryEndedSessions
from a2a_canvas.server.accounts.quotas import Meter
from a2a_canvas.server.accounts.server_secrets import InMemorySecrets, ServerSecrets
from a2a_canvas.server.accounts.sharing import InMemoryShares
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.push.outbox import InMemoryPush, PushStore
from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.server.settings.value_types import POSTGRESQL_FORM
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, Journal
from a2a_canvas.server.tasks.journal.owned_contexts import InMemoryContexts, OwnedContexts
from a2a_canvas.server.tasks.presence.present_people import PresentPeople
from a2a_canvas.server.tasks.runtime.ownership import Ownership, TaskRunner
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Limits


class Backend(Protocol):
    """The storage of a server's tasks and artifacts.

    Attributes:
        api_keys: None if they cannot be stored.
        ownership: None if nothing outlives the process.
    """

    @property
    def journal(self) -> Journal: ...
    @property
    def store(self) -> ArtifactStore: ...
    @property
    def contexts(self) -> OwnedContexts: ...
    @property
    def presence(self) -> PresentPeople: ...
    @property
    def push(self) -> PushStore: ...
    @property
    def shares(self) -> Shares: ...
    @property
    def secrets(self) -> ServerSecrets: ...
    @property
    def ended_sessions(self) -> EndedSessions: ...
    @property
    def api_keys(self) -> ApiKeys | None: ...
    @property
    def ownership(self) -> Ownership | None: ...

    async def start(self, runner: TaskRunner) -> None:
        """Open it, and take over the tasks that no replica runs.

        Raises:
            DatabaseError: it is unusable.
        """
        ...

    async def share_usage(self, meter: Meter, exchanged: Callable[[], None]) -> None:
        """Exchange a meter's counts with those of the other replicas, until it is closed.

        Args:
            exchanged: called after each exchange.
        """
        ...

    async def stop(self) -> None:
        """Close it."""
        ...

    async def ready(self) -> str | None:
        """Why it is unusable now; None if it is usable."""
        ...


def make_backend(
    settings: Settings, now: Callable[[], datetime], metrics: Metrics | None = None, connections: int | None = None
) -> Backend:
    """The backend of the settings, not opened yet.

    Args:
        connections: to PostgreSQL; the usual number if it is None.

    Raises:
        SettingsError: a setting needs several servers on one PostgreSQL.
    """
    _check_shared(settings)
    limits = Limits(settings.max_artifact_bytes)
    if settings.database == "memory":
        return MemoryBackend(now, limits)
    from a2a_canvas.server.backend.durable_backend import DurableBackend

    return DurableBackend(settings, now, limits, metrics, connections)


def _check_shared(settings: Settings) -> None:
    shared = "--broker" if settings.broker else "" if settings.max_turns else "--max-turns 0"
    if shared and not settings.database.startswith("postgresql:"):
        raise SettingsError(
            f"{shared} is for several servers on one PostgreSQL: set --database {POSTGRESQL_FORM}, or leave it out."
        )


class MemoryBackend:
    """A `Backend` whose data end with the process."""

    def __init__(self, now: Callable[[], datetime], limits: Limits) -> None:
        push = InMemoryPush(now)
        self.push: PushStore = push
        journal = InMemoryJournal(now, push)
        self.journal: Journal = journal
        store = InMemoryArtifactStore(limits)
        self.store: ArtifactStore = store
        shares = InMemoryShares(now)
        self.shares: Shares = shares
        self.contexts: OwnedContexts = InMemoryContexts(journal, store, shares)
        self.presence = PresentPeople()
        self.secrets: ServerSecrets = InMemorySecrets()
        self.ended_sessions: EndedSessions = InMemoryEndedSessions()
        self.api_keys: ApiKeys | None = None
        self.ownership: Ownership | None = None

    async def start(self, runner: TaskRunner) -> None:
        pass

    async def share_usage(self, meter: Meter, exchanged: Callable[[], None]) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def ready(self) -> str | None:
        return None
