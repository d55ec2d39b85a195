"""What an agent does with annotations, in its tools and in its own loop: it names passages by quotes, and numbers.

Nothing waits once an annotation has been changed, so its caller can record that in the same event-loop step.
"""

from __future__ import annotations

from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.annotations.suggesting_store import SuggestingStore
from a2a_canvas.store.models import Artifact, text_of
from a2a_canvas.store.text.spans import Span
from a2a_canvas.store.text.wording import numbers
from a2a_canvas.tools.annotations.listed_annotation import ListedAnnotation, to_listed
from a2a_canvas.tools.find_quote import find_once
from a2a_canvas.tools.streaming import CallRefused
from a2a_canvas.tools.tool import Workspace, to_json


def review_of(workspace: Workspace) -> Review:
    """The agent's review.

    Raises:
        CallRefused: there is none where an edit of a selection is answered.
    """
    if workspace.review is None:
        raise CallRefused("Comments and suggestions cannot be changed during an edit of a selection.")
    return workspace.review


async def list_annotations(workspace: Workspace, artifact_id: str) -> list[ListedAnnotation]:
    """The comments and suggestions of an artifact, oldest first.

    Raises:
        ArtifactNotFound: there is no such artifact.
    """
    review, ref = review_of(workspace), workspace.ref(artifact_id)
    current = (await workspace.store.get(ref)).version
    text = (await workspace.store.version(ref, current)).content.text if current else ""
    return [to_listed(each, text) for each in await review.list(artifact_id)]


async def add_comment(workspace: Workspace, artifact_id: str, quote: str, text: str) -> Annotation:
    """Comment on the passage that `quote` names. Raises `CallRefused`, `StoreError`: nothing was changed."""
    review = review_of(workspace)
    artifact, span = await _find_passage(workspace, artifact_id, quote, tool="comment", field="quote")
    return await review.annotate(artifact_id, artifact.version, span, text)


async def add_suggestion(workspace: Workspace, artifact_id: str, old: str, new: str, text: str = "") -> Annotation:
    """Suggest to replace the passage `old`. Raises as `add_comment`.

    Args:
        text: a comment on it.
    """
    review = review_of(workspace)
    artifact, span = await _find_passage(workspace, artifact_id, old, tool="suggest", field="old_text")
    return await review.annotate(artifact_id, artifact.version, span, text, new)


async def add_reply(workspace: Workspace, artifact_id: str, number: int, text: str) -> Annotation:
    """Add to a thread. Raises as `add_comment`."""
    found = await _find_annotation(workspace, artifact_id, number)
    return await review_of(workspace).reply(artifact_id, found.annotation_id, text)


async def resolve_comment(workspace: Workspace, artifact_id: str, number: int) -> Annotation:
    """Resolve a comment. Raises as `add_comment`."""
    found = await _find_annotation(workspace, artifact_id, number)
    return await review_of(workspace).resolve(artifact_id, found.annotation_id)


async def _find_annotation(workspace: Workspace, artifact_id: str, number: int) -> Annotation:
    """The comment or suggestion with a number.

    Raises:
        CallRefused: the artifact has no such number.
        ArtifactNotFound: there is no such artifact.
    """
    found = [each.annotation for each in await review_of(workspace).list(artifact_id)]
    for each in found:
        if each.number == number:
            return each
    known = f"must be {numbers(found[-1].number)}" if found else "the artifact has no comments and no suggestions"
    raise CallRefused(f"number is {number}, but {known}. Nothing was changed.")


async def _find_passage(
    workspace: Workspace, artifact_id: str, quote: str, *, tool: str, field: str
) -> tuple[Artifact, Span]:
    """The newest version of an artifact, and the place of a quote in it, which occurs once.

    Args:
        tool, field: the call that a refusal speaks of.

    Raises:
        CallRefused: it does not occur once, or the artifact has no text.
        ArtifactNotFound, ArtifactBusy: there is no artifact; another task writes its first version.
    """
    store = SuggestingStore(workspace.store, review_of(workspace))  # which does not wait for others
    artifact = await store.at_version(workspace.ref(artifact_id))
    if text_of(artifact.parts) is None:
        raise CallRefused(f"Artifact {to_json(artifact_id)} has no text. Nothing was changed.")
    found = find_once(artifact.text, quote, tool=tool, field=field)
    if isinstance(found, str):
        raise CallRefused(found)
    return artifact, found
