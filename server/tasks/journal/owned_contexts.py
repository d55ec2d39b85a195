"""The contexts of an owner: listed, renamed, and removed.

Rule 1: an owner has the contexts in which there are tasks of its own. Their order is that of the newest status of
        these tasks, the newest first; of two that changed at the same time, the greater id first.
Rule 2: what is told of a context is the same for all who see it: its name, its first message, the number of its tasks.
Rule 3: a search takes the contexts in whose name, request and names of artifacts all its words are, as parts of words
        and in any case. For one page it looks at `MAX_SEARCHED` contexts at most, so a page may have fewer contexts
        than its limit, or none, and still have a next page.
Rule 4: a context is removed with everything in it: tasks, artifacts, shares, and which messages were accepted. So no
        task may work in it. A task that waits for an answer is no obstacle. The id may be used again: that begins
        another context (`context_log.py`, rule 4).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from a2a_canvas.server.accounts.errors import ContextNotFound
from a2a_canvas.server.accounts.sharing import InMemoryShares
from a2a_canvas.server.agent.events import AgentMessage, State, UserMessage
from a2a_canvas.server.agent.intent import Put, Upload
from a2a_canvas.server.agent.operation_forms import instruction_of
from a2a_canvas.server.tasks.errors import ContextInUse
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.journal.listing import ListPosition
from a2a_canvas.server.tasks.journal.text_search import ReadText, StoredText, TextQuery, is_after
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.errors import ArtifactNotFound, VersionNotFound
from a2a_canvas.store.ids import ContextKey, public_id
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Ref

MAX_REQUEST = 200
"""Characters of the first message that are told with a context."""
MAX_TITLE = 60
"""Characters of the first message that name a context without a name."""

MAX_SEARCHED = 1000
"""Contexts that a search looks at for one page."""


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """What is asked for.

    Attributes:
        owners: whose contexts; `Contexts.list` knows them, and `shared`.
        words: all of these (`words_of`).
        after: contexts after this position: when one changed, and its id.
        limit: maximal number of contexts.
        shared: the keys of contexts of other owners, which are listed as well.
    """

    owners: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    after: ListPosition | None = None
    limit: int = 50
    shared: tuple[ContextKey, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """A context, as its owner sees it.

    Attributes:
        name: given by the owner; None if it has given none.
        request: the beginning of its first message.
        created_at: when its first task began.
        changed_at: when the status of one of its tasks last changed.
        tasks, working, waiting: how many tasks it has there, how many of them are not settled, and how many wait for a
            message of the user.
        artifacts: names by id, the last changed last.
        agents_suggest: what agents change in artifacts becomes suggestions.
    """

    context_id: ContextKey
    name: str | None
    request: str
    created_at: datetime
    changed_at: datetime
    tasks: int
    working: int
    waiting: int
    artifacts: Mapping[str, str]
    agents_suggest: bool = False

    @property
    def title(self) -> str:
        """What it is called."""
        return title_of(self.context_id, self.name, self.request)

    @property
    def position(self) -> ListPosition:
        return self.changed_at, self.context_id


@dataclass(frozen=True, slots=True)
class ContextPage:
    """A page of the result. `next`: the next page has what comes after this position; None if this is the last page."""

    contexts: tuple[ContextSummary, ...]
    next: ListPosition | None


class OwnedContexts(Protocol):
    """The contexts of all owners. Every method may raise `Unavailable`."""

    async def list(self, query: ContextQuery) -> ContextPage:
        """Owners' contexts, the newest first."""
        ...

    def texts(self, query: TextQuery) -> AsyncGenerator[StoredText, None]:
        """The texts to search for a page and the following ones (`text_search.py`, rule 2)."""
        ...

    async def get(self, context_id: ContextKey, owner: str) -> ContextSummary:
        """One of an owner's contexts.

        Raises:
            ContextNotFound: there is none.
        """
        ...

    async def rename(self, context_id: ContextKey, owner: str, name: str | None) -> ContextSummary:
        """Give a context a name of the owner's, or none; the context after that.

        Raises:
            ContextNotFound: there is none.
        """
        ...

    async def let_agents_suggest(self, context_id: ContextKey, owner: str, on: bool) -> ContextSummary:
        """Whether what agents change in artifacts becomes suggestions, for tasks that begin; the context after that.

        Raises:
            ContextNotFound: there is none.
        """
        ...

    async def agents_suggest(self, context_id: ContextKey, owner: str) -> bool:
        """Whether agents suggest; false if there is no such context."""
        ...

    async def remove(self, context_id: ContextKey, owner: str) -> None:
        """Remove a context with everything in it; subscribers get `StreamLost` (rule 4).

        Raises:
            ContextNotFound: there is none.
            ContextInUse: a task works in it.
        """
        ...


def check_removable(context_id: ContextKey, owner: str, tasks: Iterable[tuple[str, str, State]]) -> None:
    """Raises as `OwnedContexts.remove` does.

    Args:
        tasks: those of the context: id, owner and state.
    """
    found = [*tasks]
    if not any(task_owner == owner for _, task_owner, _ in found):
        raise ContextNotFound(context_id)
    for task_id, _, state in found:
        if not state.settled:
            raise ContextInUse(context_id, task_id)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a search."""
    return tuple(text.casefold().split())


def matches(words: Iterable[str], name: str | None, request: str, artifacts: Iterable[str]) -> bool:
    """Whether a context is found by `words` (rule 3)."""
    text = "\n".join(filter(None, (name, request, *artifacts))).casefold()
    return all(word in text for word in words)


def title_of(context_id: ContextKey, name: str | None, request: str) -> str:
    """What a context is called: its name, else the beginning of its request, else its id."""
    return name or " ".join(request.split())[:MAX_TITLE] or public_id(context_id)


def request_of(messages: Sequence[UserMessage | AgentMessage]) -> str:
    """The request shown for a context, from its first messages; for an upload, the name of its artifact."""
    first = messages[0] if messages else None
    if not isinstance(first, UserMessage):
        return ""
    named = first.intent.name if isinstance(first.intent, Put | Upload) else None
    return (named or instruction_of(first.parts))[:MAX_REQUEST]


class InMemoryContexts:
    """`OwnedContexts` of a journal and a store in memory."""

    def __init__(self, journal: InMemoryJournal, store: InMemoryArtifactStore, shares: InMemoryShares) -> None:
        self._journal = journal
        self._store = store
        self._shares = shares
        self._names: dict[tuple[ContextKey, str], str] = {}  # by context and owner
        self._suggesting: set[tuple[ContextKey, str]] = set()

    async def list(self, query: ContextQuery) -> ContextPage:
        listed = await self._newest(query.owners, query.shared)
        in_order = [each for each in listed if query.after is None or each.position < query.after]
        seen = in_order[:MAX_SEARCHED] if query.words else in_order
        found = [each for each in seen if matches(query.words, each.name, each.request, each.artifacts.values())]
        passed = seen[-1].position if len(seen) < len(in_order) else None
        page = found[: query.limit]
        return ContextPage(tuple(page), page[-1].position if len(found) > query.limit else passed)

    async def _newest(self, owners: Iterable[str], shared: Iterable[ContextKey]) -> Sequence[ContextSummary]:
        owned = [each for owner in owners for each in self._journal.contexts_of(owner)]
        others = [tasks for key in shared if (tasks := await self._journal.context(key))]
        listed = [self._summary(tasks[0].owner, tasks) for tasks in (*owned, *others)]
        return sorted(listed, key=lambda each: each.position, reverse=True)

    async def texts(self, query: TextQuery) -> AsyncGenerator[StoredText, None]:
        for context in await self._newest(query.owners, query.shared):
            key = context.context_id
            for artifact_id, (number, _) in sorted((await self._store.current_versions(key)).items()):
                position = context.changed_at, key, artifact_id
                if number and (query.after is None or is_after(position, query.after)):
                    try:
                        content = (await self._store.version(Ref(key, artifact_id, ""), number)).content
                    except (ArtifactNotFound, VersionNotFound):
                        continue  # removed since
                    # Read here: a rope that grows cannot be read in a thread.
                    read = partial(ReadText, content.name, content.text, content.size)
                    yield StoredText(position, key, context.title, number, read)

    async def get(self, context_id: ContextKey, owner: str) -> ContextSummary:
        tasks = [task for task in await self._journal.context(context_id) if task.owner == owner]
        if not tasks:
            raise ContextNotFound(context_id)
        return self._summary(owner, tasks)

    async def rename(self, context_id: ContextKey, owner: str, name: str | None) -> ContextSummary:
        await self.get(context_id, owner)
        self._names.pop((context_id, owner), None)
        if name is not None:
            self._names[context_id, owner] = name
        return await self.get(context_id, owner)

    async def let_agents_suggest(self, context_id: ContextKey, owner: str, on: bool) -> ContextSummary:
        await self.get(context_id, owner)
        self._suggesting.discard((context_id, owner))
        if on:
            self._suggesting.add((context_id, owner))
        return await self.get(context_id, owner)

    async def agents_suggest(self, context_id: ContextKey, owner: str) -> bool:
        return (context_id, owner) in self._suggesting

    async def remove(self, context_id: ContextKey, owner: str) -> None:
        tasks = await self._journal.context(context_id)
        check_removable(context_id, owner, ((task.task_id, task.owner, task.state) for task in tasks))
        self._names.pop((context_id, owner), None)
        self._suggesting.discard((context_id, owner))
        self._journal.remove(context_id)
        self._shares.remove(context_id)
        self._store.remove(context_id)

    def _summary(self, owner: str, tasks: Sequence[TaskRecord]) -> ContextSummary:
        context_id = tasks[0].context_id
        return ContextSummary(
            context_id,
            self._names.get((context_id, owner)),
            request_of(tasks[0].history),
            self._journal.created_at(tasks[0].task_id),
            changed_at=max(task.changed_at for task in tasks),
            tasks=len(tasks),
            working=sum(not task.state.settled for task in tasks),
            waiting=sum(task.state.paused for task in tasks),
            artifacts=self._journal.artifact_names(context_id),
            agents_suggest=(context_id, owner) in self._suggesting,
        )
