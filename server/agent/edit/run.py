"""Runs a task that is an operation: an edit of a selection, a version step, a user's own edit, or an annotation.

Rule 1: an operation that the sender can know to be invalid is rejected before a task is created (`check_operation`).
Rule 2: an operation that a concurrent change made impossible is `rejected`. The message's metadata has the current
        version, so that a client can read again, and for a merge the conflicting places.
Rule 3: an operation ends immediately, or with its one model call. It accepts no further messages.
Rule 4: the change, its event, the transcript and the final status are emitted in one event-loop step, so that a journal
        commits all of them or none. So a cancellation precedes the change or has no effect, and an operation that
        a crash interrupted has changed nothing and runs again.
Rule 5: a selection is located twice, by the same function: before the task is accepted, to reject an invalid range with
        an error response, and when the task runs, because the artifact may have changed in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from a2a_canvas.server.agent.annotation_operations import (
    AcceptAll,
    Annotate,
    AnnotationOperation,
    Decide,
    Reply,
    is_annotation_operation,
)
from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.edit.annotate import add_annotations, check_annotation_operation, run_annotation_operation
from a2a_canvas.server.agent.edit.locate import EditBase, check_apart, locate
from a2a_canvas.server.agent.edit.put import NoChange, conflicts_json, describe_put, put, version_of
from a2a_canvas.server.agent.edit.rewrite import EditContext, rewrite
from a2a_canvas.server.agent.edit.rewrite_passages import rewrite_passages
from a2a_canvas.server.agent.edit.thread_question import LevelOf, make_remark
from a2a_canvas.server.agent.endings import INTERNAL_ERROR, Ending
from a2a_canvas.server.agent.events import (
    AgentMessage,
    AssistantOutput,
    Emit,
    State,
    StatusChanged,
    TranscriptAppended,
    UserInput,
)
from a2a_canvas.server.agent.intent import Operation, Put, SelectionEdit, Upload, VersionStep
from a2a_canvas.server.agent.listener import listener, open_workspace
from a2a_canvas.server.agent.model import LLM, ModelText
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.annotations.annotation_store import AnnotationStore
from a2a_canvas.store.annotations.review import MakeReview
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import Change, Redo, Restore, Undo
from a2a_canvas.store.errors import (
    ArtifactBusy,
    ArtifactNotFound,
    ArtifactUnreadable,
    LimitReached,
    MergeConflict,
    PassageLost,
    StoreError,
    Unavailable,
    VersionPruned,
)
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import AppliedChange, Artifact, JsonValue, Ref, text_of
from a2a_canvas.store.text.wording import choice, numbers
from a2a_canvas.tools.edit_stream import EditTarget

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """One operation and its message.

    After a crash the same request runs again (rule 4). If the artifact has changed since, the operation is rejected as
    a late one would be; an edit is announced as a new edit.

    Attributes:
        progress: block indices and rounds so far; an edit that runs again continues from them.
        owner: the sender owns the context.
        suggests: what the model writes becomes suggestions, whatever the operation says.
        separately: several passages of an edit are written by one call each.
    """

    operation: Operation
    message_id: str
    task_id: str
    context_id: ContextKey
    progress: Progress = field(default_factory=Progress)
    owner: bool = False
    suggests: bool = False
    separately: bool = False

    @property
    def suggests_edit(self) -> bool:
        """Whether it is an edit that becomes a suggestion."""
        return _suggests(self.operation) or (self.suggests and isinstance(self.operation, SelectionEdit))

    @property
    def ref(self) -> Ref:
        return Ref(self.context_id, self.operation.artifact_id, self.task_id, "user")


async def check_operation(
    operation: Operation, context_id: ContextKey, store: ArtifactStore, annotations: AnnotationStore
) -> None:
    """Raises `InvalidOperation` if the operation is invalid for the artifact as it is now (rule 1)."""
    ref = Ref(context_id, operation.artifact_id, "")
    try:
        artifact = await store.get(ref)
    except ArtifactNotFound:
        if isinstance(operation, Put | Upload) and operation.name is not None:
            return
        known = choice((repr(each.artifact_id) for each in await store.list(context_id)), "and")
        reason = f"is {ref.artifact_id!r}, which this context does not have; it has {known or 'no artifact'}"
        raise InvalidOperation("artifactId", reason) from None
    # Subscribers know the number of the draft's version already: naming it is not invalid, but too early.
    _check_versions(operation, len(await store.versions(ref)) + artifact.open)
    if isinstance(operation, Reply | Decide):
        named = operation.artifact_id, operation.annotation_id
        check_annotation_operation(operation, await annotations.find(context_id, *named))
    if isinstance(operation, Annotate) or (
        isinstance(operation, SelectionEdit) and (_suggests(operation) or not artifact.open)
    ):
        with suppress(PassageLost, VersionPruned):  # the task will be rejected
            await _targets(operation, artifact, ref, store)


def _check_versions(operation: Operation, count: int) -> None:
    named = {"baseVersion": _base_version(operation)}
    if isinstance(operation, VersionStep) and isinstance(operation.change, Restore):
        named["version"] = operation.change.version
    for name, version in named.items():
        if version is not None and not 1 <= version <= count:
            raise InvalidOperation(name, f"is {version} and must be {numbers(count)}")


def _base_version(operation: Operation) -> int | None:
    match operation:
        case VersionStep():
            return operation.change.base
        case SelectionEdit() | Put() | Upload() | Annotate():
            return operation.base_version
        case Reply() | Decide() | AcceptAll():
            return None
        case _:
            assert_never(operation)


async def run_operation(
    request: OperationRequest,
    *,
    llm: LLM,
    store: ArtifactStore,
    emit: Emit,
    new_id: Callable[[], str],
    instructions: str = "",
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    make_review: MakeReview | None = None,
) -> None:
    """Run an operation to its end; the last event is its status.

    Args:
        instructions: see `edit_prompt.edit_system_prompt`.
        make_review: needed for suggestions, and operations on annotations.

    Raises:
        asyncio.CancelledError: the artifact is unchanged; the caller emits the status.
        Unavailable: `store` does not retry (`RetryingStore` does); the artifact is unchanged.
    """
    ids = request.context_id, request.task_id
    workspace = open_workspace(store, emit, *ids, make_review, suggests=request.suggests_edit)
    context = EditContext(llm, workspace, emit, sleep, instructions)
    ending = await _OperationRun(request, workspace.store, context, new_id, make_review).ending()
    if not is_annotation_operation(request.operation):
        await emit(TranscriptAppended((AssistantOutput(1, (ModelText(ending.text),)),)))
    await emit(ending.status(new_id))


async def add_question(
    request: OperationRequest,
    *,
    store: ArtifactStore,
    emit: Emit,
    new_id: Callable[[], str],
    make_review: MakeReview,
    level_of: LevelOf,
) -> UserInput | None:
    """Make a comment or a reply that asks the agent, and record its thread for the turn that answers.

    Returns:
        The thread; None if it was refused: then the last event is the status.
    """
    operation = request.operation
    assert isinstance(operation, Annotate | Reply)
    evented = EventedArtifactStore(store, listener(emit))
    review = make_review("user", evented, emit)
    try:
        target = None
        if isinstance(operation, Annotate):
            (target,) = await _targets(operation, await evented.get(request.ref), request.ref, evented)
        quoted = await make_remark(operation, request.ref, target, review, evented, level_of)
    except (StoreError, InvalidOperation) as error:
        await emit((await _rejection(error, request.ref, evented)).status(new_id))
        return None
    await emit(TranscriptAppended((quoted,)))
    return quoted


async def apply_user_changes(
    changes: Iterable[tuple[str, Change]], context_id: ContextKey, task_id: str, store: ArtifactStore, emit: Emit
) -> Ending | None:
    """Store the user's changes from an AG-UI client; the task's ending if that is impossible.

    All waiting precedes the first change: the changes are applied and emitted in one event-loop step.
    """
    evented = EventedArtifactStore(store, listener(emit))
    wanted = [(Ref(context_id, artifact_id, task_id, "user"), change) for artifact_id, change in changes]
    try:
        for ref, _ in wanted:
            await store.prepare(ref)
        for ref, change in wanted:
            await evented.apply(ref, change)
    except StoreError as error:
        return await _rejection(error, ref, store)
    return None


async def _rejection(error: StoreError | InvalidOperation, ref: Ref, store: ArtifactStore) -> Ending:
    """The ending of an operation that a concurrent change or a limit made impossible (rule 2)."""
    if isinstance(error, LimitReached):
        return Ending(State.FAILED, str(error))
    now: dict[str, JsonValue] = {"artifactId": ref.artifact_id}
    with suppress(ArtifactNotFound, ArtifactUnreadable):
        now["artifactVersion"] = (await store.get(ref)).version
    if isinstance(error, ArtifactBusy):
        now["busy"] = True
    if isinstance(error, MergeConflict):
        now |= {"artifactVersion": error.current, "conflicts": conflicts_json(error.text, error.places)}
    return Ending(State.REJECTED, str(error), {CANVAS: now})


@dataclass(frozen=True, slots=True)
class _OperationRun:
    request: OperationRequest
    store: EventedArtifactStore
    context: EditContext
    new_id: Callable[[], str]
    make_review: MakeReview | None

    async def ending(self) -> Ending:
        try:
            return await self._operate()
        except (StoreError, InvalidOperation) as error:
            return await _rejection(error, self.request.ref, self.store)
        except Unavailable:
            raise
        except Exception:
            logger.exception("The operation failed")
            return Ending(State.FAILED, INTERNAL_ERROR)

    async def _operate(self) -> Ending:
        operation = self.request.operation
        match operation:
            case SelectionEdit():
                return await self._edit(operation)
            case VersionStep():
                return _step_ending(operation, await self.store.apply(self.request.ref, operation.change))
            case Put() if operation.marks:
                return await self._put_marked(operation)
            case Put() | Upload():
                return _put_ending(operation, await put(operation, self.request.ref, self.store))
            case Annotate() | Reply() | Decide() | AcceptAll():
                return await self._annotate(operation)
            case _:
                assert_never(operation)

    async def _put_marked(self, operation: Put) -> Ending:
        assert self.make_review
        review = self.make_review("user", self.store, self.context.emit)
        save = partial(put, operation, self.request.ref, self.store)
        given = operation.artifact_id, operation.text, operation.marks
        saved, changed = await review.save_marked(*given, save, version_of)
        return add_annotations(_put_ending(operation, saved), operation.artifact_id, changed)

    async def _annotate(self, operation: AnnotationOperation) -> Ending:
        assert self.make_review
        target = None
        if isinstance(operation, Annotate):
            artifact = await self.store.get(self.request.ref)
            (target,) = await _targets(operation, artifact, self.request.ref, self.store)
        review = self.make_review("user", self.store, self.context.emit)
        return await run_annotation_operation(operation, review, target, owner=self.request.owner)

    async def _edit(self, edit: SelectionEdit) -> Ending:
        verb = "Suggesting a change to" if self.request.suggests_edit else "Editing"
        artifact = await self.store.at_version(self.request.ref)
        targets = await _targets(edit, artifact, self.request.ref, self.store)
        label = AgentMessage(self.new_id(), f"{verb} {artifact.title}…", label=True, of_tool=True)
        await self.context.emit(StatusChanged(State.WORKING, label))
        asked = self.request.message_id, self.context, self.request.progress
        if len(targets) == 1:
            return await rewrite(edit, artifact, targets[0], *asked)
        return await rewrite_passages(edit, artifact, targets, *asked, separately=self.request.separately)


def _suggests(operation: Operation) -> bool:
    return isinstance(operation, SelectionEdit) and operation.mode == "suggest"


async def _targets(
    edit: SelectionEdit | Annotate, artifact: Artifact, ref: Ref, store: ArtifactStore
) -> tuple[EditTarget, ...]:
    """Where the selections are in the current version (rule 5)."""
    if text_of(artifact.parts) is None:
        raise InvalidOperation("artifactId", "names an artifact without text: there is nothing to select in it")
    base = edit.base_version
    seen = await store.version(ref, base or artifact.version)
    versions = await store.versions(ref)
    text = versions[artifact.version - 1].content.text if artifact.open else artifact.text
    edit_base = EditBase(artifact.artifact_id, artifact.version, text, base, seen.content.text, versions)
    selections = edit.selections if isinstance(edit, SelectionEdit) else (edit.selection,)
    targets = tuple([await locate(each, edit_base) for each in selections])
    check_apart(selections, targets)
    return targets


def _put_ending(operation: Put | Upload, done: AppliedChange | NoChange) -> Ending:
    """The ending. Without a new version there is no artifact event, so the message names the current one."""
    said = describe_put(operation, done)
    if isinstance(done, NoChange):
        now: dict[str, JsonValue] = {"artifactId": done.artifact.artifact_id, "artifactVersion": done.artifact.version}
        return Ending(State.COMPLETED, said, {CANVAS: now})
    return Ending(State.COMPLETED, said)


def _step_ending(step: VersionStep, applied: AppliedChange) -> Ending:
    name, version = applied.artifact.title, applied.version
    match step.change:
        case Undo():
            text = f"Undone: {name} is at version {version} again."
        case Redo():
            text = f"Redone: {name} is at version {version} again."
        case Restore():
            text = f"Restored version {step.change.version} of {name} as version {version}."
        case _:
            assert_never(step.change)
    return Ending(State.COMPLETED, text)
