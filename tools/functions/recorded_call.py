"""A call of a function that is run again from its start: what it may do, and the record of what it has done.

Rule 1: a call that runs again, after an answer of the user or a crash, receives its record: the answers, in the order
        of its questions, the values of `once`, and the saved changes, which are not made again but compared
        (`repeated_changes.py`). A function must therefore ask, and change each artifact, in the same order each time.
Rule 2: a record is committed together with the changes before it. A call, or a step, that fails is undone back to that
        point. A step (`once`) counts and saves its own changes: neither what is skipped with it nor what another one
        has not finished counts as made. So an artifact with unsaved changes of a step is changed by that step alone.
Rule 3: `ask` leaves the function by an exception that no `except Exception` catches.
Rule 4: a function may say and change much without ever waiting. So others may run after `LONGEST_RUN` seconds, and it
        waits for the database after `MAX_AHEAD` characters (`pace`).
Rule 5: an answer to a question for authentication is not recorded: only the next run of the call has it. A later run
        asks again, unless the result of using the answer is recorded.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, NoReturn, TypeVar

from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.errors import ArtifactNotFound
from a2a_canvas.store.ids import public_id
from a2a_canvas.store.models import Artifact, JsonValue, Ref
from a2a_canvas.tools.functions.artifact_changes import ArtifactChanges
from a2a_canvas.tools.functions.canvas_artifact import CanvasArtifact, CanvasVersion, ListedArtifact
from a2a_canvas.tools.functions.repeated_changes import ChangeKey, ChangesDiffer, SavedChanges, content_of
from a2a_canvas.tools.functions.results import EditError, ToolError
from a2a_canvas.tools.json_values import json_text
from a2a_canvas.tools.tool import Workspace

T = TypeVar("T")
StepKind = Literal[
    "called", "began", "asked", "authentication", "paused", "changed", "kept", "shown", "took", "set", "answered"
]
"""The kinds of steps that a call records, as explained in `ToolStep`."""


async def do_nothing() -> None:
    pass


LONGEST_RUN = 0.01
"""Seconds that a function may occupy the event loop with what it says and changes."""
MAX_KEPT = 4_000_000
"""Characters of JSON that a step may return: each later task of the conversation reads them."""
ENTRY = 200
"""Characters of an entry besides what it says or changes."""
MAX_AHEAD = 200_000
"""Characters that it may be ahead of the database."""

_STEPS: ContextVar[tuple[tuple[RecordedCall, str], ...]] = ContextVar("steps", default=())
"""The steps in which the code runs, with their calls. A task that is started in a step inherits them."""


class CallPaused(BaseException):
    """The call waits for an answer of the user."""

    def __init__(self, question: str, authentication: bool) -> None:
        super().__init__(question)
        self.question = question
        self.authentication = authentication


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The record of a call's previous run; empty for a new call.

    Attributes:
        answers: the user's, in the order of the questions; None for an unrecorded one (rule 5).
        kept: JSON texts by name.
        changes: its saved changes.
    """

    answers: tuple[str | None, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[ChangeKey, SavedChanges] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallServices:
    """What a call needs from the turn.

    Attributes:
        record: records a step: its kind, name and value.
        flushed: waits until everything recorded is durable.
        label: shows the task's progress.
        caller: the user whose message the model had read last when it made the call; empty for an anonymous caller.
        writers: ids of artifacts changed by running calls, with the ids of these calls.
        kept: the JSON texts stored under names by the calls of this conversation.
    """

    record: Callable[[StepKind, str, str], Awaitable[None]]
    flushed: Callable[[], Awaitable[None]]
    label: Callable[[str], Awaitable[None]]
    caller: str
    writers: dict[str, str]
    kept: Callable[[Collection[str]], Iterable[str]]


class RecordedCall:
    """A call of the operator's code, with its record: a tool's (`Canvas`), or an agent's own loop (`Turn`).

    Attributes:
        context_id: the conversation, `contextId` in A2A.
        task_id: the task, `taskId` in A2A.
        caller: the user for whom it runs; empty for an anonymous caller.
    """

    def __init__(self, call_id: str, workspace: Workspace, services: CallServices, record: CallRecord) -> None:
        self.context_id = public_id(workspace.context_id)
        self.task_id = workspace.task_id
        self.caller = services.caller
        self._call_id = call_id
        self._workspace = workspace
        self._services = services
        self._record = record
        self._kept = dict(record.kept)
        self._questions = 0
        self._changes = ArtifactChanges(
            call_id, workspace, services.writers, record.changes, lambda: self._step, self._record_changes
        )
        self._running: Counter[str] = Counter()
        self._ended_steps: set[str] = set()
        self._step_ended = asyncio.Event()
        self._ended = False
        self._ahead = 0
        self._paused_at = time.monotonic()

    async def progress(self, label: str) -> None:
        """Show what the tool is doing, as one line of text; clients show it until the next one."""
        await self.pace(len(require_text(label)))
        if line := " ".join(label.split())[:200]:
            await self._services.label(line)

    def artifact(self, artifact_id: str, name: str | None = None) -> CanvasArtifact:
        """An artifact of the conversation, which need not exist yet.

        Args:
            name: that its changes give it, for example `report.md`, unless they name another.
        """
        return CanvasArtifact(self, artifact_id, name)

    async def artifacts(self) -> list[ListedArtifact]:
        """The ids of the conversation's artifacts, with names and versions, the one changed last at the end."""
        self._check_open()
        listed = await self._workspace.store.list(self._workspace.context_id)
        return [ListedArtifact(each.artifact_id, each.name, each.version) for each in listed]

    async def ask(self, question: str, *, authentication: bool = False) -> str:
        """Ask the user. The task waits, also across a restart of the server; nothing runs in the meantime.

        The call ends here. When the user has answered, the tool is run again from its start, and `ask` returns the
        answer. Do in `once` whatever must not be done twice.

        Args:
            authentication: the user has to log in somewhere, or to give credentials, before the task can continue
                (`auth-required` in A2A). Only this call gets the answer, once: neither the model nor the conversation
                has it, and it is not stored. A call that is run again, after another question or a crash, asks again:
                so ask for it last, and do what needs it in `once`.
        """
        answer = self._next_answer()
        if answer is None:
            raise CallPaused(question, authentication)
        return answer

    def _next_answer(self) -> str | None:
        """The answer to the next question; None if the user has to be asked."""
        self._check_open()
        number, self._questions = self._questions, self._questions + 1
        return self._record.answers[number] if number < len(self._record.answers) else None

    async def once(self, name: str, fn: Callable[[], Awaitable[T]]) -> T:
        """The result of `fn`, which runs once per call, even if the call runs again.

        Args:
            name: unique in the tool.
            fn: returns a JSON value. A crash while it runs, or before its result is stored, runs it again.
        """
        if name not in self._kept:
            await self._run_step(name, fn, do_nothing)
        value: T = json.loads(self._kept[name])
        return value

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """What is said and changed here belongs to a step, which is recorded later."""
        outer = _STEPS.set((*_STEPS.get(), (self, name)))
        self._running[name] += 1
        try:
            yield
        finally:
            self._running -= Counter((name,))
            self._step_ended.set()
            _STEPS.reset(outer)

    def enter(self, name: str) -> None:
        """As `within`, for what is left of this context."""
        _STEPS.set((*_STEPS.get(), (self, name)))

    async def _run_step(self, name: str, fn: Callable[[], Awaitable[T]], recorded: Callable[[], Awaitable[None]]) -> T:
        """Run `fn` and record its result; `recorded` runs in the same event-loop step."""
        self._check_open()
        if name in self._running:
            raise RuntimeError(f"{name!r} is running already. Give each step that runs at the same time its own name.")
        with self.within(name):
            try:
                value = await call_async(fn, name)
                await self._keep(name, value, recorded)
            except BaseException:
                await self._undo_step(name)
                raise
            finally:
                self._ended_steps.add(name)
        return value

    async def _undo_step(self, name: str) -> None:
        """A step has failed: what it has changed and not saved is undone (rule 2)."""
        if not self._ended:
            await self._changes.undo_step(name)

    async def _keep(self, name: str, value: object, recorded: Callable[[], Awaitable[None]]) -> None:
        self._check_open()
        if len(kept := json_text(value, name)) > MAX_KEPT:
            raise ToolError(
                f"{name!r} returned {len(kept):,} characters of JSON, and {MAX_KEPT:,} can be kept. "
                "Write long results to an artifact."
            )
        await self.save()
        self._kept[name] = kept
        await self._services.record("kept", name, kept)
        await recorded()
        await self._services.flushed()

    # ------------------------------------------------------------- for calls that find out themselves what remains

    def recall(self, name: str) -> JsonValue:
        """The value stored by `remember` in this call; None if there is none."""
        value: JsonValue = json.loads(self._kept.get(name, "null"))
        return value

    async def remember(self, name: str, value: JsonValue) -> None:
        """Store a JSON value for this call, also across a crash. It is durable when this returns.

        Raises:
            ValueError: it is not a JSON value; the message names the key.
            ToolError: it is too long.
        """
        await self._keep(name, value, do_nothing)

    def skip_question(self) -> None:
        """Count the next question as asked: the result of its answer is recorded (rule 5)."""
        self._questions += 1

    def skip_saved_changes(self) -> None:
        """Count the saved changes as made, for a tool that determines itself what remains to be changed."""
        self._changes.skip()

    # ------------------------------------------------------------- for the turn, and for `CanvasArtifact`

    @property
    def question_count(self) -> int:
        """The number of questions asked."""
        return self._questions

    async def save(self) -> None:
        """Record the changes made so far, except those of another step that is running (rule 2)."""
        await self._changes.save()

    async def _record_changes(self, step: str, value: str) -> None:
        await self._services.record("changed", step, value)

    async def pace(self, size: int) -> None:
        """Called before something of this size is said or changed (rule 4)."""
        self._check_open()
        self._ahead += size + ENTRY
        if self._ahead > MAX_AHEAD:
            self._ahead = 0
            await self._services.flushed()
        if time.monotonic() - self._paused_at > LONGEST_RUN:
            await asyncio.sleep(0)
            self._paused_at = time.monotonic()
        self._check_open()

    async def prepare(self) -> None:
        """Prepare `close`, so that it does not wait."""
        await self._changes.prepare()

    async def wait_for_steps(self) -> None:
        """Wait until no step runs."""
        while self._running:
            self._step_ended.clear()
            await self._step_ended.wait()

    async def close(self) -> None:
        """The call has succeeded: make a version of each artifact that it has changed."""
        await self._changes.close()
        self.release()

    async def undo(self) -> None:
        """The call has failed: undo its unrecorded changes."""
        await self._changes.undo()
        self.release()

    def release(self) -> None:
        """The call ends, or waits for the user: its changes stay as they are."""
        self._ended = True
        self._changes.release()

    @property
    def _step(self) -> str:
        """The name of the step in which the code runs; empty outside of any."""
        name = next((name for call, name in reversed(_STEPS.get()) if call is self), "")
        if name in self._ended_steps and name not in self._running:
            raise RuntimeError(f"{name!r} has ended. What it starts must end before it returns.")
        return name

    def _check_open(self) -> None:
        if self._ended:
            raise RuntimeError("This call has ended, or was cancelled: nothing can be done in it.")

    async def change(self, artifact_id: str, content: Iterator[bytes], make: Callable[[Ref], Awaitable[None]]) -> None:
        """Make a change, unless it was made before (rule 1); see `ArtifactChanges.change`."""
        self._check_open()
        try:
            await self._changes.change(artifact_id, content, make)
        except ChangesDiffer:
            self._refuse(artifact_id)

    def _refuse(self, artifact_id: str) -> NoReturn:
        """A change differs from the saved one."""
        raise ToolError(differs_message(artifact_id)) from None

    async def apply(self, artifact_id: str, change: AppendParts | ReplaceParts) -> None:
        """Change the parts of an artifact; errors as in `CanvasArtifact.append`."""

        async def make(ref: Ref) -> None:
            await self._workspace.store.apply(ref, change)
            self._changes.mark(ref)

        await self.pace(sum(part.size for part in change.parts))
        await self.change(artifact_id, content_of(change), make)

    async def edit_passage(self, artifact_id: str, old: str, new: str) -> None:
        """Edit a passage; see `CanvasArtifact.edit`."""
        self._check_open()
        await self._changes.save_one(artifact_id)  # the edit closes the draft
        content = iter((b"edit", old.encode(errors="replace"), new.encode(errors="replace")))
        try:
            await self.change(artifact_id, content, lambda ref: self._changes.edit(ref, old, new))
        except ToolError as error:
            raise EditError(artifact_id, str(error)) from None

    async def read(self, artifact_id: str) -> Artifact | None:
        """An artifact with its draft; None if there is none."""
        self._check_open()
        try:
            return await self._workspace.store.get(self._workspace.ref(artifact_id))
        except ArtifactNotFound:
            return None

    async def read_versions(self, artifact_id: str) -> list[CanvasVersion]:
        """See `CanvasArtifact.versions`."""
        artifact = await self.read(artifact_id)
        if artifact is None:
            return []
        versions = await self._workspace.store.versions(self._workspace.ref(artifact_id))
        return [
            CanvasVersion(each.number, each.content.text, each.author, each.number == artifact.version, each.pruned)
            for each in versions
        ]


async def call_async(fn: Callable[[], Awaitable[T]], name: str) -> T:
    """What the function of a step returns. Raises `TypeError` if it is not an async function."""
    if inspect.isawaitable(fn):
        if inspect.iscoroutine(fn):
            fn.close()  # it is never awaited
        raise TypeError(f"{name!r} got a call's coroutine, not a function. Write lambda: in front of the call.")
    made = fn()
    if not inspect.isawaitable(made):
        raise TypeError(
            f"The function of {name!r} is not async. Write async def, or lambda: asyncio.to_thread(…) if it blocks."
        )
    return await made


def require_text(value: str) -> str:
    """A text to show. Raises `TypeError` if it is another value."""
    if not isinstance(value, str):
        raise TypeError(
            f"A text to show must be a str, not {type(value).__name__}. Use str(…), or an artifact for JSON and files."
        )
    return value


def differs_message(artifact_id: str) -> str:
    """Why a call fails whose changes are not those that it had made."""
    return (
        f"The agent's code ran again and changed the artifact {artifact_id!r} in another way than before. "
        "What may differ must be done once: put it into `once`."
    )
