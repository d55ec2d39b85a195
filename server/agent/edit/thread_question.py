"""A comment or a reply that asks the agent: its thread, quoted for the turn that answers, and the answer to it.

Rule 1: the comment is emitted in one event-loop step with the quoted thread, the second item of the task's transcript.
        So a crash leaves both or neither, and the comment is not made twice.
Rule 2: what others wrote is material: JSON, with authors and levels. The words of the one who asks are the message.
Rule 3: the answer is recorded in one step with the last output of the turn, then added to the thread in one step with
        the final status. So it is added once, and after a crash the model is not asked again.
Rule 4: nothing is added to a thread in which the agent has replied itself in this task, or has suggested a change of
        the passage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from a2a_canvas.server.agent.annotation_operations import Annotate, Reply
from a2a_canvas.server.agent.events import (
    Emit,
    State,
    StatusChanged,
    ToolStep,
    Transcript,
    TranscriptAppended,
    TurnEvent,
    UserInput,
)
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.annotations.annotation import (
    AGENT,
    MAX_REMARK_BYTES,
    Annotation,
    PlacedAnnotation,
    Remark,
    Writer,
)
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.errors import AnnotationNotFound, StoreError
from a2a_canvas.store.models import JsonValue, Ref
from a2a_canvas.store.text.spans import Span
from a2a_canvas.tools.annotations.listed_annotation import to_listed
from a2a_canvas.tools.edit_stream import EditTarget
from a2a_canvas.tools.tool import to_json

MAX_QUOTE = 10_000
"""Characters of a passage and of a suggested text that are quoted; the tools read the rest."""
MAX_THREAD = 50_000
"""Characters of a thread that are quoted: the newest remarks."""
CUT = "…"
ANSWER = "answer"
"""Stands for the call in the step that records an answer, which belongs to none."""

LevelOf = Callable[[str], Awaitable[str]]
"""What the sender of a message, by its account, may do in the context now: the word of its level."""


async def make_remark(
    operation: Annotate | Reply,
    ref: Ref,
    target: EditTarget | None,
    review: Review,
    store: ArtifactStore,
    level_of: LevelOf,
) -> UserInput:
    """Comment or reply; the thread for the model. Nothing waits after that, so the caller can record both (rule 1).

    Args:
        target: the passage of an `Annotate`.
        review: of the sender.

    Raises:
        StoreError: nothing has changed.
    """
    artifact_id = operation.artifact_id
    if isinstance(operation, Annotate):
        assert target
        levels = await _levels((review.writer,), level_of)
        words = operation.text, operation.replacement
        made = await review.annotate(artifact_id, target.version, target.span, *words)
        return _quote(PlacedAnnotation(made, target.span, "open"), target.text, levels)
    current = (await store.get(ref)).version
    text = (await store.version(ref, current)).content.text
    asked = await review.find(artifact_id, operation.annotation_id)
    if asked is None:
        raise AnnotationNotFound(artifact_id, operation.annotation_id)
    writers = asked.annotation.writer, *(remark.writer for remark in asked.annotation.thread)
    levels = await _levels(writers, level_of)
    answered = await review.reply(artifact_id, operation.annotation_id, operation.text)
    return _quote(replace(asked, annotation=answered), text, levels)


async def _levels(writers: Iterable[Writer], level_of: LevelOf) -> Mapping[str, str]:
    accounts = {each.account for each in writers if each.author == "user"}
    return {account: await level_of(account) for account in sorted(accounts)}


def _quote(placed: PlacedAnnotation, text: str, levels: Mapping[str, str]) -> UserInput:
    """The thread without its newest remark, which is the message of the one who asks."""
    annotation = placed.annotation
    earlier = replace(placed, annotation=replace(annotation, thread=annotation.thread[:-1]))
    written: dict[str, JsonValue] = {"artifact_id": annotation.artifact_id, **to_listed(earlier, text).to_json()}
    written |= _level(annotation.writer, levels)
    for name in ("quote", "replacement"):
        if isinstance(given := written.get(name), str) and len(given) > MAX_QUOTE:
            written[name] = given[:MAX_QUOTE] + CUT
    written["thread"] = _thread(earlier.annotation.thread, levels)
    return UserInput("", (ModelText(to_json(written), note=True),))


def _thread(remarks: Sequence[Remark], levels: Mapping[str, str]) -> list[JsonValue]:
    quoted: list[JsonValue] = []
    left = MAX_THREAD
    for each in reversed(remarks):
        left -= len(each.text)
        if left < 0:
            quoted.append({"note": "Older ones are left out."})
            break
        by: dict[str, JsonValue] = {"by": each.writer.name} if each.writer.name else {}
        quoted.append({"author": each.writer.author, **by, **_level(each.writer, levels), "text": each.text})
    return quoted[::-1]


def _level(writer: Writer, levels: Mapping[str, str]) -> dict[str, JsonValue]:
    return {"level": levels[writer.account]} if writer.author == "user" and writer.account in levels else {}


# ---------------------------------------------------------------------------------------------------- in a transcript


def quoted_thread(transcript: Transcript) -> str:
    """The thread as JSON text, in the transcript of a task that asks the agent; empty before it was made (rule 1)."""
    quoted = transcript[1] if len(transcript) > 1 else None
    [content] = quoted.content if isinstance(quoted, UserInput) else (ModelText(""),)
    return content.text if isinstance(content, ModelText) else ""


def recorded_answer(transcript: Transcript) -> str | None:
    """The answer that the turn has ended with, if that was recorded (rule 3)."""
    return next((item.value for item in transcript if isinstance(item, ToolStep) and item.kind == "answered"), None)


# --------------------------------------------------------------------------------------------------------- the answer


@dataclass(slots=True)
class AnswerListener:
    """Takes the events of a turn. That it has completed, with which answer, is recorded, and kept back (rule 3).

    Attributes:
        completed: its last status; None while it runs, and if it has ended otherwise.
    """

    emit: Emit
    completed: StatusChanged | None = None

    async def take(self, event: TurnEvent) -> None:
        if isinstance(event, StatusChanged) and event.state is State.COMPLETED:
            self.completed = event
            text = event.message.text if event.message else ""
            event = TranscriptAppended((ToolStep(ANSWER, "answered", text),))
        await self.emit(event)


async def add_answer(operation: Annotate | Reply, task_id: str, review: Review, answer: str) -> Annotation | None:
    """Add the agent's answer to the thread, unless it is there (rule 4). Nothing waits after that.

    Args:
        review: the agent's.

    Returns:
        The annotation; None if it no longer exists.
    """
    try:
        placed = await review.list(operation.artifact_id)
        asked = _find_asked(operation, task_id, placed)
        if asked is None:
            return None
        if not answer.strip() or _is_answered(asked, task_id, placed):
            return asked.annotation
        return await review.reply(operation.artifact_id, asked.annotation.annotation_id, _shorten(answer))
    except StoreError:  # it was withdrawn meanwhile, or the artifact removed
        return None


def with_annotation(completed: StatusChanged, annotation: Annotation | None) -> StatusChanged:
    """The status, whose message names the annotation as that of other operations on annotations does."""
    message = completed.message
    if message is None or annotation is None:
        return completed
    named: JsonValue = {"artifactId": annotation.artifact_id, "annotationIds": [annotation.annotation_id]}
    return replace(completed, message=replace(message, metadata={**message.metadata, CANVAS: named}))


def _find_asked(
    operation: Annotate | Reply, task_id: str, placed: Iterable[PlacedAnnotation]
) -> PlacedAnnotation | None:
    for each in placed:
        made = each.annotation
        if isinstance(operation, Reply):
            if made.annotation_id == operation.annotation_id:
                return each
        elif made.task_id == task_id and made.writer.author == "user":
            return each
    return None


def _is_answered(asked: PlacedAnnotation, task_id: str, placed: Iterable[PlacedAnnotation]) -> bool:
    """Whether the agent has replied itself, or made a suggestion that touches the passage."""
    if any(each.task_id == task_id and each.writer == AGENT for each in asked.annotation.thread):
        return True
    suggested = [each for each in placed if each.annotation.task_id == task_id and each.annotation.writer == AGENT]
    return any(each.annotation.kind == "suggestion" and _touch(each.span, asked.span) for each in suggested)


def _touch(one: Span | None, other: Span | None) -> bool:
    return one is not None and other is not None and one.start <= other.end and other.start <= one.end


def _shorten(answer: str) -> str:
    """The answer in the bytes of a remark; the status of the task has all of it."""
    written = answer.encode()
    if len(written) <= MAX_REMARK_BYTES:
        return answer
    return written[: MAX_REMARK_BYTES - len(CUT.encode())].decode(errors="ignore") + CUT
