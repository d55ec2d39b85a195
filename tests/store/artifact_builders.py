"""Parts, changes and references as tests make them, and a stock client that folds what it is told."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import strategies as st

from a2a_canvas.store.changes import AppendParts, Change, ReplaceParts, group
from a2a_canvas.store.edit_events import EditEvent
from a2a_canvas.store.models import AppliedChange, Content, DataPart, FilePart, Kind, Part, Ref, TextPart, text_part

T = TypeVar("T")

TEXTS = st.text("ab \né€😀", max_size=5)
MEDIA_TYPES = st.sampled_from(["", "", "", "text/plain", "text/markdown"])
METADATA = st.dictionaries(st.sampled_from(["partType", "lang"]), st.integers(0, 3), max_size=2)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)

TEXT_PARTS = st.builds(text_part, TEXTS, MEDIA_TYPES, METADATA)
FILE_PARTS = st.builds(
    FilePart, content=st.binary(max_size=3), name=TEXTS, media_type=MEDIA_TYPES, metadata=METADATA
) | st.builds(FilePart, url=st.just("https://example.org/"), name=TEXTS, metadata=METADATA)
DATA_PARTS = st.builds(DataPart, data=JSON, metadata=METADATA)
PARTS: st.SearchStrategy[Part] = TEXT_PARTS | FILE_PARTS | DATA_PARTS
PART_TUPLES = st.lists(PARTS, max_size=5).map(tuple)
KINDS = st.sampled_from([ReplaceParts, AppendParts])


def text(content: str, **rest: Any) -> TextPart:
    return text_part(content, **rest)


def replacing(content: str, **rest: Any) -> ReplaceParts:
    return ReplaceParts((text_part(content),), **rest)


def appending(content: str, **rest: Any) -> AppendParts:
    return AppendParts((text_part(content),), **rest)


def delta(change: Change) -> Change:
    """The change as one of a call that is still being written."""
    return type(change)(change.parts, change.name, change.description, change.last_chunk, done=False)


def by(task: str, artifact: str = "a", context: str = "c") -> Ref:
    return Ref(context, artifact, task)


def result(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that never waits: where a test has no event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        coroutine.close()
    raise AssertionError("it waited")


def kinds(parts: tuple[Part, ...]) -> list[Kind]:
    return [part.kind for part in parts]


class StockClient:
    """Folds artifact events as every stock A2A client does, and joins the texts to read.

    `append=False` replaces the whole artifact. `append=True` extends its list of parts, leaves its name, and is an
    error for an artifact that was never seen. Of edits on their way it knows nothing.

    Attributes:
        told: the changes.
        heard: everything, in order.
    """

    def __init__(self) -> None:
        self.told: list[AppliedChange] = []
        self.heard: list[AppliedChange | EditEvent] = []
        self._artifacts: dict[str, tuple[str, str, list[Part]]] = {}

    async def listen(self, applied: AppliedChange | EditEvent) -> None:
        self.heard.append(applied)
        if not isinstance(applied, AppliedChange):
            return
        self.told.append(applied)
        artifact = applied.artifact
        if applied.append:
            self._artifacts[artifact.artifact_id][2].extend(applied.parts)
        else:
            self._artifacts[artifact.artifact_id] = (artifact.name, artifact.description, list(applied.parts))

    def knows(self, artifact_id: str) -> bool:
        return artifact_id in self._artifacts

    def reads(self, artifact_id: str) -> Content:
        name, description, parts = self._artifacts[artifact_id]
        texts = [part for part in parts if isinstance(part, TextPart)]
        at = next((n for n, part in enumerate(parts) if isinstance(part, TextPart)), 0)
        others = [part for part in parts if not isinstance(part, TextPart)]
        return Content(name, description, (*others[:at], *group(texts), *others[at:]))
