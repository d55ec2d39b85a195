"""Runs operations on annotations, through the `Review` of their sender.

Rule 1: what the sender can know to be wrong is rejected before there is a task (`check_annotation_operation`); what
        others have changed meanwhile rejects the task, as with other operations.
Rule 2: a caller may withdraw its own annotations; the owner of the context any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from a2a_canvas.server.agent.annotation_operations import AcceptAll, Annotate, AnnotationOperation, Decide, Reply
from a2a_canvas.server.agent.edit.put import MAX_PLACES, MAX_TEXTS
from a2a_canvas.server.agent.endings import Ending
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.annotations.merging import ConflictingSuggestion
from a2a_canvas.store.annotations.review import Acceptance, Review
from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.edit_stream import EditTarget

MAX_NAMES: Final = 10
"""The most annotations that a message lists."""


async def run_annotation_operation(
    operation: AnnotationOperation, review: Review, target: EditTarget | None, *, owner: bool
) -> Ending:
    """Do what it asks for.

    Args:
        target: the passage of an `Annotate`.
        owner: the sender owns the context (rule 2).

    Raises:
        StoreError: nothing has changed.
    """
    artifact_id = operation.artifact_id
    match operation:
        case Annotate():
            assert target
            words = operation.text, operation.replacement
            made = await review.annotate(artifact_id, target.version, target.span, *words)
            return _ending(f"Added {made.kind} {made.number}.", artifact_id, [made])
        case Reply():
            answered = await review.reply(artifact_id, operation.annotation_id, operation.text)
            return _ending(f"Replied to {answered.kind} {answered.number}.", artifact_id, [answered])
        case Decide():
            return await _decide(operation, review, owner=owner)
        case AcceptAll():
            name = operation.by
            accepted = await review.accept_all(
                artifact_id, lambda each: name is None or each.annotation.writer.is_called(name)
            )
            return _accepted_ending(artifact_id, accepted)
        case _:
            assert_never(operation)


def check_annotation_operation(operation: Reply | Decide, found: Annotation | None) -> None:
    """Raises `InvalidOperation` if it names an annotation that the artifact does not have (rule 1)."""
    if found is None:
        reason = f"is {operation.annotation_id!r}, which artifact {operation.artifact_id!r} does not have"
        raise InvalidOperation("annotationId", reason)


async def _decide(operation: Decide, review: Review, *, owner: bool) -> Ending:
    artifact_id, annotation_id = operation.artifact_id, operation.annotation_id
    match operation.verb:
        case "resolve":
            decided, done = await review.resolve(artifact_id, annotation_id), "Resolved"
        case "reject":
            decided, done = await review.reject(artifact_id, annotation_id), "Rejected"
        case "withdraw":
            decided, done = await review.withdraw(artifact_id, annotation_id, others=owner), "Withdrew"
        case "accept":
            return _accepted_ending(artifact_id, await review.accept(artifact_id, annotation_id))
        case _:
            assert_never(operation.verb)
    return _ending(f"{done} {decided.kind} {decided.number}.", artifact_id, [decided])


def _accepted_ending(artifact_id: str, accepted: Acceptance) -> Ending:
    count = len(accepted.accepted)
    said = [f"Accepted suggestion {accepted.accepted[0].number}." if count == 1 else f"Accepted {count} suggestions."]
    if accepted.applied:
        said[0] = f"{said[0][:-1]}: version {accepted.applied.version} is saved."
    if accepted.conflicts:
        which = _enumerate(str(each.annotation.number) for each in accepted.conflicts)
        said.append(f"In conflict with later changes, and still open: {which}.")
    if accepted.stale:
        said.append(f"Their passage is gone: {_enumerate(str(each.number) for each in accepted.stale)}.")
    now: dict[str, JsonValue] = {"artifactId": artifact_id}
    if accepted.applied:
        now["artifactVersion"] = accepted.applied.version
    now["accepted"] = [each.annotation_id for each in accepted.accepted]
    now["stale"] = [each.annotation_id for each in accepted.stale]
    now["conflicts"] = [*_conflicts_json(accepted.conflicts[:MAX_PLACES])]
    return Ending(State.COMPLETED, " ".join(said), {CANVAS: now})


def add_annotations(ending: Ending, artifact_id: str, changed: Sequence[Annotation]) -> Ending:
    """The ending of a put that came with suggestions and comments."""
    names = _enumerate(f"{each.kind} {each.number}" for each in changed)
    said = f"{ending.text} Added {names}." if changed else ending.text
    ids: list[JsonValue] = [each.annotation_id for each in changed]
    known = ending.metadata.get(CANVAS)
    data = {"artifactId": artifact_id, **(known if isinstance(known, dict) else {}), "annotationIds": ids}
    return replace(ending, text=said, metadata={**ending.metadata, CANVAS: data})


def _enumerate(names: Iterable[str]) -> str:
    """`1, 2, 3`, or the first few and how many more there are."""
    known = [*names]
    more = f" and {len(known) - MAX_NAMES} more" if len(known) > MAX_NAMES else ""
    return ", ".join(known[:MAX_NAMES]) + more


def _conflicts_json(conflicts: Iterable[ConflictingSuggestion]) -> Iterator[JsonValue]:
    """The conflicts, as those of a put: beyond `MAX_TEXTS` characters without their texts."""
    left = MAX_TEXTS
    for each in conflicts:
        texts: dict[str, JsonValue] = {
            "base": each.annotation.quote.exact,
            "current": each.current,
            "suggested": each.annotation.replacement or "",
        }
        left -= sum(len(str(text)) for text in texts.values())
        yield {"annotationId": each.annotation.annotation_id, **(texts if left >= 0 else {})}


def _ending(said: str, artifact_id: str, annotations: Sequence[Annotation]) -> Ending:
    ids: list[JsonValue] = [each.annotation_id for each in annotations]
    return Ending(State.COMPLETED, said, {CANVAS: {"artifactId": artifact_id, "annotationIds": ids}})
