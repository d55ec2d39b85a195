"""A task that is an operation: an edit of a selection, a step through the versions, a person's own edit.

Rule 1: what the sender can know to be wrong is refused before there is a task (`check_operation`).
Rule 2: what others have made impossible meanwhile is `rejected`, with a sentence, and with the current version in the
        metadata of the message, so that a client can look again.
Rule 3: an operation ends at once or when its one model call does. It takes no further messages.
Rule 4: nothing waits between the change, its being told, what is remembered of it, and the task's last status: whoever
        keeps these keeps all or nothing. So a cancel comes before the change or not at all; and an operation that a
        crash left unfinished has changed nothing, and simply runs anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import assert_never

from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.edit.locate import EditBase, locate
from a2a_canvas.server.agent.edit.rewrite import EditContext, rewrite
from a2a_canvas.server.agent.endings import INTERNAL_ERROR, Ending
from a2a_canvas.server.agent.events import AgentMessage, AssistantOutput, Emit, State, StatusChanged, TranscriptAppended
from a2a_canvas.server.agent.intent import InvalidOperation, Operation, Put, SelectionEdit, VersionStep
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.agent.model import LLM, ModelText
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.changes import Change, EditText, Redo, Restore, Undo
from a2a_canvas.store.errors import (
    ArtifactBusy,
    ArtifactNotFound,
    LimitReached,
    PassageLost,
    StoreError,
    Unavailable,
    VersionConflict,
    VersionPruned,
)
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import Applied, Artifact, JsonValue, Ref, text_of
from a2a_canvas.store.text.spans import difference
from a2a_canvas.tools.base import Workspace

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """One operation, and the message that asks for it.

    The same request is right for one that runs anew after a crash (rule 4), whichever it is: the versions are as it
    found them, or others have moved on, which it is told as if it had come late. An edit is asked for again, as another
    edit.

    Attributes:
        progress: where block indices and rounds stand: an edit that runs anew goes on with them.
    """

    operation: Operation
    message_id: str
    task_id: str
    context_id: str
    progress: Progress = field(default_factory=Progress)

    @property
    def ref(self) -> Ref:
        return Ref(self.context_id, self.operation.artifact_id, self.task_id, "user")


async def check_operation(operation: Operation, context_id: str, store: ArtifactStore) -> None:
    """Raises `InvalidOperation` if the operation could not be done even if nobody else changed the artifact."""
    ref = Ref(context_id, operation.artifact_id, "")
    try:
        artifact = await store.get(ref)
    except ArtifactNotFound:
        raise InvalidOperation("artifactId", f"is {ref.artifact_id!r}; this context has no such artifact") from None
    # The version that is being written is already told of: whoever names it is not wrong, but too early.
    _check_versions(operation, len(await store.versions(ref)) + artifact.open)
    if isinstance(operation, SelectionEdit) and not artifact.open:
        with suppress(PassageLost, VersionPruned):  # the task will say so
            locate(operation.selection, await _edit_base(operation, artifact, ref, store))


def _check_versions(operation: Operation, count: int) -> None:
    named = {"baseVersion": _base(operation)}
    if isinstance(operation, VersionStep) and isinstance(operation.change, Restore):
        named["version"] = operation.change.version
    for name, version in named.items():
        if version is not None and not 1 <= version <= count:
            raise InvalidOperation(name, f"is {version} and must be 1 to {count}")


def _base(operation: Operation) -> int | None:
    return operation.change.base if isinstance(operation, VersionStep) else operation.base_version


async def run_operation(
    request: OperationRequest,
    *,
    llm: LLM,
    store: ArtifactStore,
    emit: Emit,
    new_id: Callable[[], str],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Run an operation to its end; the last event is its status.

    Args:
        sleep: waits before the model is asked again.

    Raises:
        asyncio.CancelledError: it was cancelled; the artifact is as it was, the status is for the caller to give.
        Unavailable: `store` does not wait for its database (`RetryingStore` does); the artifact is as it was.
    """
    evented = EventedArtifactStore(store, listener(emit))
    run = _OperationRun(request, evented, llm, emit, new_id, sleep)
    ending = await _ending(run, request, store)
    await emit(TranscriptAppended((AssistantOutput(1, (ModelText(ending.text),)),)))
    await emit(ending.status(new_id))


async def apply_user_changes(
    changes: Iterable[tuple[str, Change]], context_id: str, task_id: str, store: ArtifactStore, emit: Emit
) -> Ending | None:
    """Store what the user has changed outside of the house; how the task ends if that is not possible.

    Whatever has to wait does so before the first change: they are made, and told, all in one step.
    """
    evented = EventedArtifactStore(store, listener(emit))
    wanted = [(Ref(context_id, artifact_id, task_id, "user"), change) for artifact_id, change in changes]
    for ref, _ in wanted:
        try:
            await store.prepare(ref)
        except StoreError as error:
            return await _rejection(error, ref, store)
    for ref, change in wanted:
        try:
            await evented.apply(ref, change)
        except StoreError as error:
            return await _rejection(error, ref, store)
    return None


async def _ending(run: _OperationRun, request: OperationRequest, store: ArtifactStore) -> Ending:
    try:
        return await run.operate()
    except (StoreError, InvalidOperation) as error:
        return await _rejection(error, request.ref, store)
    except Unavailable:
        raise
    except Exception:
        logger.exception("Operation of task %s failed", request.task_id)
        return Ending(State.FAILED, INTERNAL_ERROR)


async def _rejection(error: StoreError | InvalidOperation, ref: Ref, store: ArtifactStore) -> Ending:
    """The ending of what others, or a limit, made impossible."""
    if isinstance(error, LimitReached):
        return Ending(State.FAILED, str(error))
    now: dict[str, JsonValue] = {"artifactId": ref.artifact_id}
    with suppress(ArtifactNotFound):
        now["artifactVersion"] = (await store.get(ref)).version
    if isinstance(error, ArtifactBusy):
        now["busy"] = True
    return Ending(State.REJECTED, str(error), {CANVAS: now})


class _OperationRun:
    def __init__(
        self,
        request: OperationRequest,
        store: EventedArtifactStore,
        llm: LLM,
        emit: Emit,
        new_id: Callable[[], str],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._sleep = sleep
        self._request = request
        self._ref = request.ref
        self._store = store
        self._llm = llm
        self._emit = emit
        self._new_id = new_id

    async def operate(self) -> Ending:
        operation = self._request.operation
        match operation:
            case SelectionEdit():
                return await self._edit(operation)
            case VersionStep():
                return _step_ending(operation, await self._store.apply(self._ref, operation.change))
            case Put():
                applied = await self._put(operation)
                return Ending(State.COMPLETED, f"Saved {applied.artifact.title} as version {applied.version}.")
            case _:
                assert_never(operation)

    async def _edit(self, edit: SelectionEdit) -> Ending:
        artifact = await self._without_draft()
        target = locate(edit.selection, await _edit_base(edit, artifact, self._ref, self._store))
        label = AgentMessage(self._new_id(), f"Editing {artifact.title}…", label=True)
        await self._emit(StatusChanged(State.WORKING, label))
        workspace = Workspace(self._store, self._request.context_id, self._request.task_id)
        writer = EditContext(self._llm, workspace, self._emit, self._sleep)
        return await rewrite(edit, artifact, target, self._request.message_id, writer, self._request.progress)

    async def _without_draft(self) -> Artifact:
        artifact = await self._store.get(self._ref)
        if artifact.open:
            raise ArtifactBusy(artifact.artifact_id, "")
        return artifact

    async def _put(self, put: Put) -> Applied:
        """Only what differs is changed, so that versions share what they have in common."""
        while True:
            artifact = await self._without_draft()
            if put.base_version not in (None, artifact.version):
                raise VersionConflict(artifact.artifact_id, put.base_version, artifact.version)
            span, text = difference(artifact.text, put.text)
            try:
                return await self._store.apply(self._ref, EditText(span, text, artifact.version, passage=False))
            except VersionConflict:
                if put.base_version is not None:
                    raise


async def _edit_base(edit: SelectionEdit, artifact: Artifact, ref: Ref, store: ArtifactStore) -> EditBase:
    if text_of(artifact.parts) is None:
        raise InvalidOperation("artifactId", "names an artifact without text: there is nothing to select in it")
    base = edit.base_version
    seen = await store.version(ref, base or artifact.version)
    versions = await store.versions(ref)
    return EditBase(artifact.artifact_id, artifact.version, artifact.text, base, seen.content.text, versions)


def _step_ending(go: VersionStep, applied: Applied) -> Ending:
    name, version = applied.artifact.title, applied.version
    match go.change:
        case Undo():
            said = f"Undone: {name} is at version {version} again."
        case Redo():
            said = f"Redone: {name} is at version {version} again."
        case Restore():
            said = f"Restored version {go.change.version} of {name} as version {version}."
        case _:
            assert_never(go.change)
    return Ending(State.COMPLETED, said)
