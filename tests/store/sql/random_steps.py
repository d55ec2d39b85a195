"""Whatever can be done to an artifact, in any order: for documents and for stores alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from a2a_canvas.store import mutation
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, Restore, Undo
from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.models import Document, Limits, Ref
from a2a_canvas.store.text.spans import Span
from tests.store.artifact_builders import KINDS, PARTS, TEXT_PARTS, TEXTS, by

LIMITS = Limits()


@dataclass(frozen=True)
class Step:
    """`change` is made for the document as it stands, because an edit's range must be one of its text."""

    task: str
    what: str
    change: Callable[[Document], Change] | None = None


def _edit(start: int, length: int, text: str) -> Callable[[Document], Change]:
    def change(document: Document) -> Change:
        last = len(document.current_content.text)
        begin = start % (last + 1)
        return EditText(Span(begin, min(begin + length, last)), text, document.current)

    return change


def _update(kind: Any, parts: Any, **rest: Any) -> Callable[[Document], Change]:
    return lambda document: kind(tuple(parts), **rest)


def _restore(number: int) -> Callable[[Document], Change]:
    return lambda document: Restore(number % (len(document.versions) + 1))


NAMES = st.sampled_from([None, None, None, "n", ""])
UPDATES = st.builds(
    _update,
    KINDS,
    st.lists(PARTS, min_size=1, max_size=3),
    name=NAMES,
    last_chunk=st.sampled_from([False, False, True]),
    done=st.booleans(),
)
TOKENS = st.builds(_update, st.just(AppendParts), st.lists(TEXT_PARTS, min_size=1, max_size=1), done=st.booleans())
EDITS = st.builds(_edit, st.integers(0, 50), st.integers(0, 3), TEXTS)
MOVES = st.sampled_from(
    [
        lambda document: Undo(),
        lambda document: Redo(),
        lambda document: Undo(group=True),
        lambda document: Redo(group=True),
    ]
)
CHANGES = TOKENS | TOKENS | UPDATES | EDITS | EDITS | MOVES | st.builds(_restore, st.integers(0, 9))
TASKS = st.sampled_from(["t1", "t1", "t1", "t2"])
STEPS = st.builds(Step, TASKS, st.just("apply"), CHANGES) | st.builds(
    Step, TASKS, st.sampled_from(["complete_call", "close", "discard", "read"])
)


def done(document: Document, step: Step) -> Document:
    """The document after a step; what is refused changes nothing."""
    ref = by(step.task)
    try:
        match step.what:
            case "apply":
                assert step.change
                return mutation.apply_change(document, ref, step.change(document), LIMITS)[0]
            case "complete_call":
                return mutation.complete_call(document, ref)
            case "close":
                return mutation.close_draft(document, ref)[0]
            case "discard":
                return mutation.discard_call(document, ref)[0]
            case _:
                assert document.artifact.text is not None  # reading joins the pieces of a text
                return document
    except StoreError:
        return document


async def do(store: ArtifactStore, document: Document, step: Step, artifact_id: str = "a") -> None:
    """The same to a store whose artifact is as `document` says."""
    ref = Ref("c", artifact_id, step.task)
    try:
        if step.change:
            await store.apply(ref, step.change(document))
        else:
            await getattr(store, {"read": "get"}.get(step.what, step.what))(ref)
    except StoreError:
        pass
