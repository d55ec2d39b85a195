"""How changes are reported: what was saved, why one was rejected, and how others have changed an artifact."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_canvas.store.errors import ArtifactNotFound, PassageLost, StoreError, VersionConflict
from a2a_canvas.store.models import AppliedChange
from a2a_canvas.store.text.spans import Span, difference
from a2a_canvas.store.text.wording import choice, nearest
from a2a_canvas.tools.tool import Workspace, to_json

EXCERPT = 600
"""The most characters shown of a passage changed by others, of the old and of the new text each."""


def describe_suggestions(numbers: Sequence[int]) -> str:
    """Suggestions by their numbers: `suggestion 4`, `suggestions 4 and 5`."""
    return f"{'suggestion' if len(numbers) == 1 else 'suggestions'} {choice(map(str, numbers), 'and')}"


def describe_outcome(applied: AppliedChange) -> str:
    """For the model: suggestions were made in place of a change."""
    numbers, artifact_id = applied.suggestions, applied.artifact.artifact_id
    if not numbers:
        return f"The text of {artifact_id} says that already. Nothing was changed."
    are = "is" if len(numbers) == 1 else "are"
    return (
        f"Suggested; {describe_suggestions(numbers)} of {artifact_id} {are} open. "
        "The text stays as it is until people accept."
    )


async def refusal_of(error: StoreError, workspace: Workspace) -> str:
    """Why a change was rejected, for the model: after a version conflict, with the changes since."""
    match error:
        case VersionConflict(artifact_id=artifact_id):
            changed = await describe_changes(workspace, artifact_id)
            return f"{changed} Read it first, and keep that change. Nothing was changed."
        case PassageLost():
            return str(error)
        case _:
            return f"{await explain_error(error, workspace)} Nothing was changed."


async def explain_error(error: StoreError, workspace: Workspace) -> str:
    """The error for the model; for an unknown artifact with the nearest ids."""
    if not isinstance(error, ArtifactNotFound):
        return str(error)
    known = [artifact.artifact_id for artifact in await workspace.store.list(workspace.context_id)]
    near = choice(map(to_json, nearest(error.artifact_id, known)), "and")
    return (
        f"There is no artifact {to_json(error.artifact_id)} in this context; there is {near}." if near else str(error)
    )


async def describe_changes(workspace: Workspace, artifact_id: str) -> str:
    """Describe to the model how others have changed an artifact since it last read or wrote it."""
    store, ref = workspace.store, workspace.ref(artifact_id)
    artifact, known = await store.get(ref), store.known_version(artifact_id) or 0
    moved = (
        f"Artifact {to_json(artifact_id)} has been changed by somebody else since you last read or wrote it: "
        f"version {artifact.version} is current, it was version {known}."
    )
    try:
        before = (await store.version(ref, known)).content.text
    except StoreError:  # pruned
        return moved
    span, new = difference(before, artifact.text)
    if span.extract(before) == new:
        return moved
    start, end = before.rfind("\n", 0, span.start) + 1, before.find("\n", span.end)
    lines = Span(start, len(before) if end < 0 else end)
    old, now = lines.extract(before), before[start : span.start] + new + before[span.end : lines.end]
    first = before.count("\n", 0, start) + 1
    last = first + old.count("\n")
    return f"{moved} In its lines {first} to {last}, {_excerpt(old)} has become {_excerpt(now)}."


def _excerpt(text: str) -> str:
    if not text:
        return "nothing"
    return to_json(text if len(text) <= EXCERPT else f"{text[: EXCERPT // 2]} […] {text[-EXCERPT // 2 :]}")
