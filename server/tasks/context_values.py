"""The values that agents with a loop of their own keep in a context: the state, which has no name, and named ones.

Rule 1: a set is staged with the entries that the task appends in the same step of the event loop, and committed in
        their transaction. It is in no entry: no client of any protocol sees it, and no page or record repeats it.
Rule 2: a task that is about to set holds the context's values until the commit, and other tasks wait for it, on every
        replica. So what a task compares under its hold is what its commit replaces: a conflict is known when a value is
        set, and never when it is committed.
Rule 3: a hold ends with the commit that it was staged with, with its task, and with the lease of its replica.
Rule 4: what the state was before a run first set it is stored until the task ends: the run may begin again, and reads
        it then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from a2a_canvas.server.agent.loops.turn_values import STATE, SavedValues, StoredValue, digest_of, stored_value
from a2a_canvas.server.tasks.errors import TaskDetached
from a2a_canvas.store.holds import Holds
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.retrying import retry_while_unavailable

T = TypeVar("T")


class ContextValues(Protocol):
    """The values of all contexts. Reads and holds raise `Unavailable` if the database cannot be used."""

    async def get(self, context_id: ContextKey, name: str) -> bytes | None:
        """A value; None if there is none."""
        ...

    async def get_before(self, context_id: ContextKey, task_id: str) -> bytes | None:
        """What the state was before the run of this task first set it (rule 4); None for nothing."""
        ...

    async def digest(self, context_id: ContextKey) -> str:
        """The digest of the state (`digest_of`)."""
        ...

    async def list(self, context_id: ContextKey, prefix: str) -> Sequence[str]:
        """The names that begin with a prefix, sorted; the state has none."""
        ...

    async def hold(self, context_id: ContextKey, task_id: str) -> Mapping[str, StoredValue]:
        """Wait until no other task holds the values of the context, and hold them (rule 2); what there is, by name."""
        ...

    def stage(self, context_id: ContextKey, task_id: str, saved: SavedValues) -> None:
        """Write values with the task's entries of this step (rule 1).

        Raises:
            TaskDetached: the task belongs to another replica.
        """
        ...

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        """The task no longer runs here: end a hold that was not staged."""
        ...


Held = Mapping[str, StoredValue]
Hold = Callable[[], Awaitable[Held]]
GiveWay = Callable[[Hold], Awaitable[Held]]


async def hold_at_once(hold: Hold) -> Held:
    """No other task waits for the place of this one."""
    return await hold()


@dataclass(frozen=True, slots=True)
class TaskValues:
    """The `ValueStore` of one run of a task.

    Args:
        check: raises `TaskDetached` if the task no longer runs here.
        pause: waits for a moment while the database is unavailable.
        give_way: awaits a hold; other tasks may run in the place of this one meanwhile.
    """

    values: ContextValues
    context_id: ContextKey
    task_id: str
    check: Callable[[], None]
    pause: Callable[[], Awaitable[None]]
    give_way: GiveWay = hold_at_once

    async def get(self, name: str) -> bytes | None:
        return await self._call(partial(self.values.get, self.context_id, name))

    async def get_before(self) -> bytes | None:
        return await self._call(partial(self.values.get_before, self.context_id, self.task_id))

    async def digest(self) -> str:
        return await self._call(partial(self.values.digest, self.context_id))

    async def list(self, prefix: str) -> Sequence[str]:
        return await self._call(partial(self.values.list, self.context_id, prefix))

    async def hold(self) -> Mapping[str, StoredValue]:
        return await self.give_way(partial(self._call, partial(self.values.hold, self.context_id, self.task_id)))

    def stage(self, saved: SavedValues) -> None:
        self.check()
        self.values.stage(self.context_id, self.task_id, saved)

    def release(self) -> None:
        with suppress(TaskDetached):
            self.stage(SavedValues({}))
        self.values.abandon(self.context_id, self.task_id)

    async def _call(self, step: Callable[[], Awaitable[T]]) -> T:
        return await retry_while_unavailable(step, self.pause, self.check)


class InMemoryContextValues:
    """`ContextValues` in dictionaries: what is staged is there at once."""

    def __init__(self) -> None:
        self._values: dict[ContextKey, dict[str, bytes]] = {}
        self._before: dict[ContextKey, dict[str, bytes | None]] = {}
        self._holds = Holds()

    async def get(self, context_id: ContextKey, name: str) -> bytes | None:
        return self._values.get(context_id, {}).get(name)

    async def get_before(self, context_id: ContextKey, task_id: str) -> bytes | None:
        return self._before.get(context_id, {}).get(task_id)

    async def digest(self, context_id: ContextKey) -> str:
        return digest_of(await self.get(context_id, STATE))

    async def list(self, context_id: ContextKey, prefix: str) -> Sequence[str]:
        names = self._values.get(context_id, {})
        return sorted(name for name in names if name != STATE and name.startswith(prefix))

    async def hold(self, context_id: ContextKey, task_id: str) -> Mapping[str, StoredValue]:
        await self._holds.take(context_id, task_id)
        return {name: stored_value(name, value) for name, value in self._values.get(context_id, {}).items()}

    def stage(self, context_id: ContextKey, task_id: str, saved: SavedValues) -> None:
        values = self._values.setdefault(context_id, {})
        if saved.first:
            self._before.setdefault(context_id, {})[task_id] = values.get(STATE)
        for name, value in saved.values.items():
            values.pop(name, None)
            if value is not None:
                values[name] = value
        if saved.ends:
            self.abandon(context_id, task_id)

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        self._holds.release(context_id, task_id)

    def end(self, context_id: ContextKey, task_id: str) -> None:
        """The task has ended."""
        self._before.get(context_id, {}).pop(task_id, None)

    def remove(self, context_id: ContextKey) -> None:
        """Remove all values of a context."""
        self._values.pop(context_id, None)
        self._before.pop(context_id, None)
