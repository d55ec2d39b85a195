"""One operation on one artifact with everything it needs, and the laws that every edit obeys."""

from collections.abc import Awaitable, Callable, Iterable

from a2a_canvas.server.agent.edit.run import OperationRequest, run_operation
from a2a_canvas.server.agent.events import ArtifactChanged, Emit, LlmCallCompleted, StatusChanged, TurnEvent
from a2a_canvas.server.agent.intent import Operation, Put, SelectionEdit, VersionStep
from a2a_canvas.server.agent.operation_forms import SelectionRequest
from a2a_canvas.store.annotations.annotation import AGENT, Annotation, AnnotationsChanged, Writer
from a2a_canvas.store.annotations.annotation_store import InMemoryAnnotations
from a2a_canvas.store.annotations.review import Report, Review
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.edit_events import (
    EditAborted,
    EditChunk,
    EditCompleted,
    EditEvent,
    EditMode,
    EditStarted,
    EditSuggested,
    Strategy,
)
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, Author, DataPart, Limits, Ref, Version, text_part
from a2a_canvas.store.text.spans import Span, difference, splice, to_codepoints
from tests.fakes import Clock, EventRecorder, FakeLLM, Step, ids, no_time

TEXT = "# Notes\n\nOne.\nTwo.\nThree.\n"
TWO = Span(14, 18)
"""`Two.`"""

OTHER = Ref("context", "doc", "another-task")


def edit(
    span: Span = TWO,
    strategy: Strategy = "replace",
    *,
    instruction: str = "Louder",
    base: int | None = 1,
    mode: EditMode = "apply",
    **selection,
) -> SelectionEdit:
    return SelectionEdit("doc", SelectionRequest(span.start, span.end, **selection), strategy, instruction, base, mode)


class OperationHarness:
    """Operations over the scripted `calls` of a model, on the artifact `doc`: text and data, at version 1."""

    max_calls = 3

    def __init__(
        self,
        *calls: Iterable[Step],
        text: str = TEXT,
        name: str = "notes.md",
        media_type: str = "text/markdown",
        limits: Limits | None = None,
        store: InMemoryArtifactStore | None = None,
    ) -> None:
        self.llm = FakeLLM(calls)
        self.told = EventRecorder()
        self.annotations = InMemoryAnnotations()
        self.store = store or InMemoryArtifactStore(limits)
        self.text = text
        self._name, self._media_type = name, media_type
        self._new_id = ids()
        self.sleep: Callable[[float], Awaitable[object]] = no_time

    async def ready(self) -> "OperationHarness":
        parts = (text_part(self.text, self._media_type, {"k": "v"}), DataPart({"a": 1}))
        await self.apply(ReplaceParts(parts, self._name, "Notes", last_chunk=True))
        return self

    async def apply(self, change: Change) -> None:
        """A change by another task."""
        await self.store.apply(OTHER, change)

    async def put(self, text: str) -> None:
        """Another task makes `text` of the artifact's."""
        artifact = await self.doc()
        await self.apply(EditText(*difference(artifact.text, text), artifact.version, passage=False))

    async def run(
        self, operation: Operation, *, emit: Emit | None = None, store: ArtifactStore | None = None
    ) -> EventRecorder:
        await run_operation(
            OperationRequest(operation, "m-1", "task", "context"),
            llm=self.llm,
            store=store or self.store,
            emit=emit or self.told,
            new_id=self._new_id,
            sleep=self.sleep,
            make_review=self.make_review,
        )
        assert isinstance(self.told.events[-1], StatusChanged)
        check_edits(self.told.events, self.max_calls)
        return self.told

    def make_review(self, author: Author, store: EventedArtifactStore, report: Report) -> Review:
        async def write(change: AnnotationsChanged) -> None:
            await report(change)
            self.annotations.write("context", "task", change)

        writer = AGENT if author == "agent" else Writer("user", "ann", "ann")
        return Review(store, self.annotations, write, "context", "task", writer, Clock(), self._new_id)

    async def suggestions(self) -> tuple[Annotation, ...]:
        return await self.annotations.list("context", "doc")

    async def doc(self) -> Artifact:
        return await self.store.get(OTHER)

    async def versions(self) -> list[Version]:
        return list(await self.store.versions(OTHER))

    @property
    def end(self) -> StatusChanged:
        end = self.told.events[-1]
        assert isinstance(end, StatusChanged)
        assert end.message
        return end


def edits_of(events: Iterable[TurnEvent]) -> list[EditEvent]:
    return [event for event in events if isinstance(event, EditEvent)]


def phases(events: Iterable[TurnEvent]) -> list[str]:
    """The edits' phases and the artifact's changes; chunks in a row count as one."""
    names: dict[type, str] = {
        EditStarted: "start",
        EditChunk: "chunk",
        EditCompleted: "complete",
        EditSuggested: "suggested",
        AnnotationsChanged: "annotations",
        EditAborted: "abort",
        ArtifactChanged: "artifact",
    }
    told = [names[type(event)] for event in events if type(event) in names]
    return [name for n, name in enumerate(told) if not (name == "chunk" and told[n - 1] == "chunk")]


def check_edits(events: list[TurnEvent], max_calls: int = 3) -> None:
    """What holds for the edits of every turn (store/edit_events.py)."""
    open_edits: dict[str, list[str]] = {}
    started: dict[str, EditStarted] = {}
    for n, event in enumerate(events):
        match event:
            case EditStarted():
                assert event.edit_id not in started
                started[event.edit_id] = event
                open_edits[event.edit_id] = []
            case EditChunk():
                assert event.chunk
                open_edits[event.edit_id].append(event.chunk)
            case EditCompleted():
                written = "".join(open_edits.pop(event.edit_id))
                assert written in event.updated_content
                assert event.strategy != "replace" or written == event.updated_content
                changed = next(each for each in events[n:] if not isinstance(each, EditCompleted))
                assert isinstance(changed, ArtifactChanged)
                assert not changed.append
            case EditSuggested():
                told = next(each for each in reversed(events[:n]) if not isinstance(each, EditSuggested))
                (made,) = (each for each in told.changed if each.annotation_id == event.annotation_id)
                assert made.replacement == "".join(open_edits.pop(event.edit_id))
            case EditAborted():
                del open_edits[event.edit_id]
                assert event.selection == started[event.edit_id].selection
            case _:
                pass
    assert not open_edits
    assert sum(isinstance(event, LlmCallCompleted) for event in events) <= max_calls


def landed(old: str, completed: EditCompleted) -> str:
    """The new text, as a client makes it of the old one."""
    start, end = (
        to_codepoints(old, offset, completed.selection.unit)
        for offset in (completed.selection.start, completed.selection.end)
    )
    return splice(old, Span(start, end), completed.updated_content)


def go(change: Undo | Redo | Restore) -> VersionStep:
    return VersionStep("doc", change)


def put(words: str, base: int | None = None) -> Put:
    return Put("doc", words, base)
