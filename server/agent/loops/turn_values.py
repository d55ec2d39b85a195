"""What an agent's function keeps in a context: `turn.state`, one JSON value, and `turn.values`, bytes by name.

Rule 1: what is set is committed with the next step (`once`, `tool`), `ask`, or the end of the run, in one transaction;
        what is set in a step, with that step. Until then this run alone reads it. A run that fails drops it.
Rule 2: a state is set in place of the one that this run has read or set last. If it is another one by now, the set is
        a `StateConflict`. Only whole digests are compared, so the same value again is no conflict.
Rule 3: a run that begins again reads the state as its first run did: before its recorded sets, what the state was
        before them; after one outside of steps, what it passes to it. Recorded sets are not made again.
Rule 4: named values are not replayed: a run that begins again reads and replaces the newest. Their adapter names them
        so that writing one twice does no harm.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from a2a_canvas.store.errors import LimitReached
from a2a_canvas.store.models import JsonValue
from a2a_canvas.store.text.unicode import valid_id
from a2a_canvas.tools.json_values import json_text

M = TypeVar("M")

STATE = ""
"""The name of the state among the values."""
MAX_NAME = 200
"""Characters of a name."""


class StateConflict(Exception):
    """Another task of the conversation has set the state since this run read or set it. Nothing was changed.

    >>> async def remember(turn: Turn, message: str) -> None:
    ...     while True:
    ...         messages = await turn.state.get() or []
    ...         try:
    ...             return await turn.state.set([*messages, message])
    ...         except StateConflict:
    ...             pass
    """

    def __init__(self) -> None:
        super().__init__(
            "Another task of this conversation has set turn.state meanwhile. Read it again with turn.state.get(), "
            "append your new messages to that value, and set the result."
        )


class StateTooLarge(LimitReached):
    """The values of a context would have too many bytes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"The agent's state of this conversation would have {size:,} bytes, and the limit is {limit:,} "
            "(--max-state-bytes). Store less of it, for example only the newest messages."
        )
        self.size = size
        self.limit = limit


class StoredValue(NamedTuple):
    """A value as it is counted (`size_of`) and compared (`digest_of`)."""

    size: int
    digest: str


class RecordedSets(NamedTuple):
    """How often a run has set the state, outside of steps or in one, and the digest of what it set last."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True, eq=False)
class SavedValues:
    """What is committed together.

    Attributes:
        values: by name; None deletes one.
        first: the run sets the state for the first time.
        ends: the task's hold ends with it.
    """

    values: Mapping[str, bytes | None]
    first: bool = False
    ends: bool = True


class ValueStore(Protocol):
    """The values of one context, for one task."""

    async def get(self, name: str) -> bytes | None:
        """The newest value."""
        ...

    async def get_before(self) -> bytes | None:
        """What the state was before the task's run first set it."""
        ...

    async def digest(self) -> str:
        """The digest of the state."""
        ...

    async def list(self, prefix: str) -> Sequence[str]:
        """The names that begin with a prefix, sorted."""
        ...

    async def hold(self) -> Mapping[str, StoredValue]:
        """Keep other tasks from changing values until `stage` or `release`; what there is now, by name."""
        ...

    def stage(self, saved: SavedValues) -> None:
        """Write it with the events that are emitted in this event-loop step."""
        ...

    def release(self) -> None:
        """End the hold without a change."""
        ...


def digest_of(value: bytes | None) -> str:
    """Identifies a value; empty for none."""
    return "" if value is None else hashlib.sha256(value).hexdigest()[:32]


def stored_value(name: str, value: bytes) -> StoredValue:
    """How a value is counted, with its name, and compared."""
    return StoredValue(len(name.encode()) + len(value), digest_of(value))


def fit_turns(turns: Sequence[M], limit: int) -> Sequence[M]:
    """The newest turns that fit into `limit` bytes, as a JSON array; the oldest are dropped.

    Args:
        turns: a JSON value each, such as the list of its messages, oldest first.
    """
    left = limit - len("[]") + len(",")  # the first turn has no comma
    for number in range(len(turns), 0, -1):
        left -= len(json_text(turns[number - 1], f"turns[{number - 1}]").encode()) + len(",")
        if left < 0:
            return turns[number:]
    return turns


@dataclass(frozen=True, slots=True)
class _Write:
    step: str
    name: str
    value: bytes | None


class TurnValues:
    """Bytes by name, for adapters of frameworks: a name has 1 to 200 characters.

    Args:
        limit: bytes of all values of the context together, with their names.
        step: the name of the step that is running; empty outside of any.
        check: raises if the run has ended.
        check_set: raises if a value of this name may not be set.
    """

    def __init__(
        self,
        store: ValueStore,
        limit: int,
        step: Callable[[], str],
        check: Callable[[], None],
        check_set: Callable[[str], None],
    ) -> None:
        self.limit = limit
        self.step = step
        self.store = store
        self._check = check
        self._check_set = check_set
        self._unsaved: list[_Write] = []
        self._held: Mapping[str, StoredValue] | None = None
        self._writing = asyncio.Lock()

    async def get(self, name: str) -> bytes | None:
        """A value; None if there is none."""
        return await self.read(_valid_name(name))

    async def list(self, prefix: str = "") -> Sequence[str]:
        """The names that begin with a prefix, sorted."""
        self._check()
        names = {*await self.store.list(prefix)}
        for write in self._unsaved:
            if write.name != STATE and write.name.startswith(prefix):
                (names.discard if write.value is None else names.add)(write.name)
        return sorted(names)

    async def set(self, name: str, value: bytes) -> None:
        """Set a value. It waits while another task of the context has set one that is not committed yet.

        Raises:
            ValueError: the name is empty, too long, or has control characters.
            StateTooLarge: the values of the context would have too many bytes.
        """
        await self.write(_valid_name(name), bytes(value))

    async def delete(self, name: str) -> None:
        """Delete a value, if there is one. It waits as `set`."""
        await self.write(_valid_name(name), None)

    # ---------------------------------------------------------------------- for the state, and for the engine

    async def read(self, name: str) -> bytes | None:
        """A value, or the state."""
        self._check()
        for write in reversed(self._unsaved):
            if write.name == name:
                return write.value
        return await self.store.get(name)

    async def write(self, name: str, value: bytes | None, compare: Callable[[str], None] = lambda digest: None) -> None:
        """Set or delete a value.

        Args:
            compare: called with the digest of the present value; what it raises keeps the value as it is.
        """
        self._check_set(name)
        async with self._writing:
            self._check()
            if self._held is None:
                self._held = await self.store.hold()
            try:
                self._check()
                now = _after(self._held, self._unsaved)
                compare(now[name].digest if name in now else digest_of(None))
                write = _Write(self.step(), name, value)
                size = sum(each.size for each in _after(now, [write]).values())
                if value is not None and size > self.limit:
                    raise StateTooLarge(size, self.limit)
            except BaseException:
                self._release_unused()
                raise
            self._unsaved.append(write)

    def save(self, step: str, *, first: bool = False) -> None:
        """Stage what was set outside of steps and in this one.

        Args:
            first: the run has not saved a state before.
        """
        saved = [write for write in self._unsaved if write.step in ("", step)]
        if not saved or self._held is None:
            return
        self._unsaved = [write for write in self._unsaved if write.step not in ("", step)]
        values = {write.name: write.value for write in saved}
        self.store.stage(SavedValues(values, first and STATE in values, ends=not self._unsaved))
        self._held = _after(self._held, saved) if self._unsaved else None

    def drop(self, step: str | None = None) -> None:
        """Drop what was set in a step that failed, or everything that is not saved (None)."""
        self._unsaved = [write for write in self._unsaved if step is not None and write.step != step]
        self._release_unused()

    def _release_unused(self) -> None:
        if self._held is not None and not self._unsaved:
            self._held = None
            self.store.release()


def _after(values: Mapping[str, StoredValue], writes: Iterable[_Write]) -> dict[str, StoredValue]:
    after = dict(values)
    for write in writes:
        after.pop(write.name, None)
        if write.value is not None:
            after[write.name] = stored_value(write.name, write.value)
    return after


def _valid_name(name: str) -> str:
    if not 1 <= len(name) <= MAX_NAME:
        raise ValueError(f"The name of a value has 1 to {MAX_NAME} characters, not {len(name)}.")
    try:
        return valid_id(name)
    except ValueError as error:
        raise ValueError(f"The name of a value {error}.") from None


class TurnState:
    """One JSON value for each context: message histories, sessions. No client sees it.

    Args:
        recorded: the sets that earlier runs have recorded, by step; those outside of steps under the empty name.
    """

    def __init__(self, values: TurnValues, recorded: Mapping[str, RecordedSets]) -> None:
        self._values = values
        self._recorded = recorded
        self._left = recorded[""].number if "" in recorded else 0
        self._steps_left = {step for step in recorded if step}
        self._passed: bytes | None = None
        self._any_passed = False
        self._seen = digest_of(None)
        self._sets = dict(recorded)
        self._saved = dict(recorded)

    @property
    def max_bytes(self) -> int:
        """Bytes that all values of the context may have together; a state is counted as JSON in UTF-8."""
        return self._values.limit

    async def get(self) -> JsonValue:
        """The value; None if none was set."""
        raw = await self._read()
        self._seen = digest_of(raw)
        value: JsonValue = None if raw is None else json.loads(raw)
        return value

    async def set(self, value: JsonValue) -> None:
        """Set the value. It is committed with the next step, `ask`, or the end of the function.

        It waits while another task of the conversation has set one that is not committed yet: set last, or in a step.

        Raises:
            StateConflict: another task of the conversation has set it meanwhile.
            StateTooLarge: it would have too many bytes.
            ValueError: it is not a JSON value; the message names the key.
        """
        data = json_text(value, "state").encode()
        step = self._values.step()
        if not step and self._left:
            self._left -= 1
            self._pass(data, digest_of(data) if self._left else self._recorded[""].digest)
            return
        await self._values.write(STATE, data, self._compare)
        self._seen = digest_of(data)
        self._sets[step] = RecordedSets(self._sets[step].number + 1 if step in self._sets else 1, self._seen)

    # ---------------------------------------------------------------------- for the engine

    async def begin(self) -> None:
        """Compare the first set, too, with what there is now (rule 2)."""
        if not self._recorded:
            self._seen = await self._values.store.digest()

    def pass_step(self, step: str) -> None:
        """A recorded step is skipped, with what it has set."""
        if step in self._steps_left:
            self._steps_left.discard(step)
            self._pass(None, self._recorded[step].digest)

    def drop_step(self, step: str) -> None:
        """A step has failed."""
        self._sets.pop(step, None)
        self._values.drop(step)

    def save(self, step: str = "") -> dict[str, RecordedSets]:
        """Stage the values of a step, and those set outside of steps; what has to be recorded with it, by step."""
        self._values.save(step, first=not self._saved)
        new = {each: self._sets[each] for each in {"", step} & self._sets.keys()}
        new = {each: sets for each, sets in sorted(new.items()) if sets != self._saved.get(each)}
        self._saved |= new
        return new

    async def _read(self) -> bytes | None:
        if self._left or self._steps_left:
            if not self._any_passed:
                return await self._values.store.get_before()
            if self._passed is not None:
                return self._passed
        return await self._values.read(STATE)

    def _pass(self, value: bytes | None, digest: str) -> None:
        self._any_passed, self._passed, self._seen = True, value, digest

    def _compare(self, digest: str) -> None:
        if digest != self._seen:
            raise StateConflict
