"""The one way to a context, its tasks and its artifacts, for every protocol.

Rule 1: what a caller may do is decided before anything is read. What the caller may not read takes as many queries as
        what does not exist, and has the same answer.
Rule 2: a `Context` is one context for one caller; only `Contexts` makes them. Methods that read need no further check.
Rule 3: a stream of a context that others share with the caller asks again while it runs: it ends within two seconds
        after the share does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from a2a_canvas.server.accounts.access import Access, Caller, ContextGrant, Level, Share
from a2a_canvas.server.accounts.errors import ContextNotFound, ReadOnly
from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.log_output import set_task
from a2a_canvas.server.tasks.errors import StreamLost, TaskNotFound
from a2a_canvas.server.tasks.journal.activity import Activity
from a2a_canvas.server.tasks.journal.artifact_readings import After, ArtifactReading, TaskEnd
from a2a_canvas.server.tasks.journal.context_log import ContextSubscription
from a2a_canvas.server.tasks.journal.journal import Journal, TaskSubscription
from a2a_canvas.server.tasks.journal.listing import TaskPage, TaskQuery
from a2a_canvas.server.tasks.journal.owned_contexts import ContextPage, ContextQuery, ContextSummary, OwnedContexts
from a2a_canvas.server.tasks.journal.text_search import TextPage, TextQuery, search_texts
from a2a_canvas.server.tasks.presence.present_people import PresentPeople
from a2a_canvas.server.tasks.presence.roster import CursorPlace, Roster
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.annotations.annotation import PlacedAnnotation, Writer
from a2a_canvas.store.annotations.annotation_places import place_annotations
from a2a_canvas.store.annotations.annotation_store import AnnotationStore
from a2a_canvas.store.annotations.review import suggested_by
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.ids import ContextKey, public_id
from a2a_canvas.store.models import Artifact, Ref, Version

EMPTY_PAGE = TaskPage((), 0, more=False)


class Contexts:
    """Opens contexts for callers. Every method may raise `Unavailable`.

    Args:
        access: decides what callers may do.
        owned: lists, renames and removes contexts.
        presence: who is present in them; None if no other replica is to know.
    """

    def __init__(
        self,
        access: Access,
        journal: Journal,
        store: ArtifactStore,
        owned: OwnedContexts,
        presence: PresentPeople | None = None,
    ) -> None:
        self.access = access
        self.journal = journal
        self.store = store
        self.owned = owned
        self.presence = presence or PresentPeople()
        self._searching = asyncio.Lock()

    async def open(self, caller: Caller, context_id: str, level: Level = Level.READ) -> Context:
        """The context that a caller calls by an id; perhaps one of its own that has not begun yet.

        Raises:
            ContextNotFound: the caller can have none of this id.
            ReadOnly: it may read the context, but not do what `level` allows.
        """
        grant = await self.access.find(caller, context_id)
        if grant is None:
            raise ContextNotFound(context_id)
        return self._require_level(caller, grant, level)

    async def open_task(self, caller: Caller, task_id: str, level: Level = Level.READ) -> Context:
        """The context of a task.

        Raises:
            TaskNotFound: there is no such task that the caller may read.
            ReadOnly: it may read the task, but not do what `level` allows.
        """
        set_task(task_id)
        grants = await self.access.grants(caller)
        key, owner = await self.journal.find_context_and_owner(task_id)
        granted = grants.level(key, owner)
        if granted < Level.READ:
            raise TaskNotFound(task_id)
        context = self._require_level(caller, ContextGrant(key, owner, granted), level)
        set_task(task_id, key)
        return context

    def artifacts_beside(self, task: TaskRecord) -> ContextArtifacts:
        """The artifacts of the context of a task that a caller may read, since it has the record."""
        return ContextArtifacts(task.context_id, self.store, self.journal.annotations)

    def _require_level(self, caller: Caller, grant: ContextGrant, level: Level) -> Context:
        if grant.level < level:
            raise ReadOnly(level, grant.level)
        return Context(grant.key, grant.owner, grant.level, caller, self)

    async def check_link(self, caller: Caller) -> None:
        """Raises `ReadOnly` if the caller has a link that allows no message, before anything is named."""
        if caller.link and await self.access.link_is_below(caller, Level.COMMENT):
            raise ReadOnly(Level.COMMENT, Level.READ)

    async def list(self, caller: Caller, query: ContextQuery) -> tuple[ContextPage, Mapping[ContextKey, Share]]:
        """A page of the caller's contexts, and of those that others share with it; these shares, by key."""
        shared = await self.access.find_shares(caller)
        owners = (await self.access.grants(caller)).owners
        return await self.owned.list(replace(query, owners=owners, shared=tuple(shared))), shared

    async def search(self, caller: Caller, query: TextQuery) -> tuple[TextPage, Mapping[ContextKey, Share]]:
        """A page of the artifacts in whose texts something is found, in the same contexts; the shares, by key."""
        shared = await self.access.find_shares(caller)
        owners = (await self.access.grants(caller)).owners
        texts = self.owned.texts(replace(query, owners=owners, shared=tuple(shared)))
        return await search_texts(query, texts, self._searching), shared

    async def tasks(self, caller: Caller, context_id: str = "") -> VisibleTasks:
        """The caller's own tasks; those of one context that it may read, if an id is given."""
        if not context_id:
            return VisibleTasks((await self.access.grants(caller)).owners, None, self.journal)
        grant = await self.access.find(caller, context_id)
        return VisibleTasks((grant.owner,), grant.key, self.journal) if grant else VisibleTasks((), None, self.journal)


@dataclass(frozen=True, slots=True)
class VisibleTasks:
    """The tasks that a caller may list.

    Attributes:
        owners: their owners; none if there can be no tasks.
        key: of the context that they are in; None for all.
    """

    owners: tuple[str, ...]
    key: ContextKey | None
    journal: Journal

    async def list(self, query: TaskQuery) -> TaskPage:
        """A page of them."""
        if not self.owners:
            return EMPTY_PAGE
        return await self.journal.list(replace(query, owners=self.owners, context_id=self.key or ""))


@dataclass(frozen=True, slots=True)
class Context:
    """A context that a caller may read at least (rule 2). Methods may raise `Unavailable`.

    Attributes:
        key: its key (`store/ids.py`).
        level: what the caller may do.
    """

    key: ContextKey
    owner: str
    level: Level
    caller: Caller
    _contexts: Contexts

    @property
    def id(self) -> str:
        """What clients call it."""
        return public_id(self.key)

    async def check_begun(self) -> None:
        """Raises `ContextNotFound` if it has no task yet."""
        if not await self._contexts.journal.has_context(self.key, self.owner):
            raise ContextNotFound(self.key)

    async def tasks(self) -> tuple[TaskRecord, ...]:
        """Its tasks, oldest first."""
        return await self._contexts.journal.context(self.key)

    async def first_messages(self, task_ids: Iterable[str]) -> Mapping[str, UserMessage]:
        """The messages that began these tasks, by task; only of tasks that can be read."""
        return await self._contexts.journal.first_messages(self.key, self.owner, task_ids)

    @property
    def artifacts(self) -> ContextArtifacts:
        return ContextArtifacts(self.key, self._contexts.store, self._contexts.journal.annotations)

    async def follow(self) -> ContextSubscription:
        """A snapshot of its artifacts, and every change after it.

        Raises:
            ContextNotFound: it has not begun.
        """
        await self.check_begun()
        following = await self._contexts.journal.follow_context(self.key)
        if self.level < Level.OWN:
            following.guard(partial(self._check_readable, StreamLost()))
        return following

    async def read_artifact(self, artifact_id: str, after: After) -> ArtifactReading:
        """An artifact, or its changes after a reader's place. Raises as `Journal.read_artifact`."""
        reading = await self._contexts.journal.read_artifact(self.key, artifact_id, after)
        if self.level < Level.OWN:
            reading.following.guard(partial(self._check_readable, StreamLost()))
        return reading

    async def task_end(self, task_id: str) -> TaskEnd | None:
        """The end of one of its tasks; None while it has not ended. Raises `TaskNotFound`."""
        return await self._contexts.journal.task_end(self.key, task_id)

    async def follow_task(self, task_id: str) -> TaskSubscription:
        """A snapshot of one of its tasks, and what comes after it. Raises `TaskNotFound`."""
        return self.guard(await self._contexts.journal.follow(task_id))

    def activity(self) -> AsyncGenerator[Activity, None]:
        """Its activity, whenever it changes; the reader is a watcher meanwhile."""
        return self._contexts.journal.watch(self.key)

    def presence(self) -> AsyncGenerator[Roster, None]:
        """Who is present, whenever it changes; the caller is present meanwhile."""
        return self._contexts.presence.watch(self.key, self.caller.author)

    def move(self, window: str, place: CursorPlace | None) -> None:
        """The caller has moved the cursor of a window, or has withdrawn it (None)."""
        self._contexts.presence.move(self.key, self.caller.author, window, place)

    def guard(self, following: TaskSubscription) -> TaskSubscription:
        """A subscription to one of its tasks, which ends with `TaskNotFound` when the caller may not read it."""
        if self.level < Level.OWN:
            following.guard(partial(self._check_readable, TaskNotFound(following.snapshot.task_id)))
        return following

    async def _check_readable(self, error: Exception) -> None:
        if await self._contexts.access.level(self.caller, self.key, self.owner) < Level.READ:
            raise error

    async def summary(self) -> ContextSummary:
        """Raises `ContextNotFound` if it has not begun."""
        return await self._contexts.owned.get(self.key, self.owner)

    async def rename(self, name: str | None) -> ContextSummary:
        """Give it a name, or none.

        Raises:
            ContextNotFound: it has not begun.
        """
        return await self._contexts.owned.rename(self.key, self.owner, name)

    async def agents_suggest(self) -> bool:
        """Whether what agents change in artifacts becomes suggestions."""
        return await self._contexts.owned.agents_suggest(self.key, self.owner)

    async def let_agents_suggest(self, on: bool) -> ContextSummary:
        """Whether what agents change in artifacts becomes suggestions, for tasks that begin.

        Raises:
            ContextNotFound: it has not begun.
        """
        return await self._contexts.owned.let_agents_suggest(self.key, self.owner, on)

    async def remove(self) -> None:
        """Remove it with everything in it; subscribers get `StreamLost`.

        Raises:
            ContextNotFound: it has not begun.
            ContextInUse: a task works in it.
        """
        await self._contexts.owned.remove(self.key, self.owner)


@dataclass(frozen=True, slots=True)
class ContextArtifacts:
    """The artifacts of a context, to read. Methods raise as those of `ArtifactStore`."""

    key: ContextKey
    _store: ArtifactStore
    _annotations: AnnotationStore

    async def list(self) -> tuple[Artifact, ...]:
        return await self._store.list(self.key)

    async def get(self, artifact_id: str) -> Artifact:
        return await self._store.get(self._ref(artifact_id))

    async def versions(self, artifact_id: str) -> tuple[Version, ...]:
        return await self._store.versions(self._ref(artifact_id))

    async def version(self, artifact_id: str, number: int) -> Version:
        return await self._store.version(self._ref(artifact_id), number)

    async def version_times(self, artifact_id: str) -> Mapping[int, datetime]:
        return await self._store.version_times(self._ref(artifact_id))

    async def suggested_by(self, artifact_id: str, version: int | None = None) -> Mapping[int, Sequence[Writer]]:
        """Whose suggestions each version has accepted, or this one."""
        return suggested_by(await self._annotations.list(self.key, artifact_id, version))

    async def annotations(self, artifact_id: str) -> tuple[Version | None, tuple[PlacedAnnotation, ...]]:
        """The current version of an artifact, if it has one, and its annotations as a reader of it sees them."""
        current = (await self.get(artifact_id)).version
        versions = await self.versions(artifact_id)
        stored = await self._annotations.list(self.key, artifact_id)
        version = versions[current - 1] if current else None
        return version, await place_annotations(stored, versions, current)

    def _ref(self, artifact_id: str) -> Ref:
        return Ref(self.key, artifact_id, "")
