"""What a crash may leave of a turn: a store that waits as a database does, and a cut at every turn of the loop."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    AssistantOutput,
    LlmCallCompleted,
    State,
    StatusChanged,
    ToolFailed,
    ToolSucceeded,
    Transcript,
    TranscriptAppended,
    TurnEvent,
    UserInput,
)
from a2a_canvas.server.agent.model import LLM, ModelEvent, ModelRequest, ToolResult, ToolUse
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Document, Limits
from tests.fakes import Clock, EventRecorder, FakeLLM
from tests.server.agent.edit.operation_harness import OperationHarness
from tests.server.agent.turn.turn_harness import TurnHarness
from tests.server.agent.turn.turn_scripts import START

Documents = Mapping[str, Document]


class WaitingStore(InMemoryArtifactStore):
    """Waits before it reads, and before it changes what it has not got hold of; never after a change."""

    def __init__(self, limits: Limits | None = None, documents: Documents | None = None) -> None:
        super().__init__(limits)
        self._contexts["context"] = dict(documents or {})
        self._held: set[str] = set()
        self._changed: set[str] = set()

    @property
    def documents(self) -> Documents:
        return dict(self._contexts["context"])

    def committed(self) -> None:
        """What has been changed is written: of an artifact without a draft, no hold is kept."""
        self._held -= {name for name in self._changed if not (one := self.documents.get(name)) or not one.draft}
        self._changed.clear()

    async def prepare(self, ref):
        if ref.artifact_id not in self._held:
            await asyncio.sleep(0)
            self._held.add(ref.artifact_id)

    async def get(self, ref):
        await asyncio.sleep(0)
        return await super().get(ref)

    async def list(self, context_id):
        await asyncio.sleep(0)
        return await super().list(context_id)

    async def versions(self, ref):
        await asyncio.sleep(0)
        return await super().versions(ref)

    async def version(self, ref, number):
        await asyncio.sleep(0)
        return await super().version(ref, number)

    async def apply(self, ref, change):
        return await self._change(ref, super().apply(ref, change))

    async def complete_call(self, ref):
        return await self._change(ref, super().complete_call(ref))

    async def close(self, ref):
        return await self._change(ref, super().close(ref))

    async def discard(self, ref):
        return await self._change(ref, super().discard(ref))

    async def _change(self, ref, change):
        try:
            await self.prepare(ref)
            self._changed.add(ref.artifact_id)
            return await change
        finally:
            change.close()


class YieldingModel:
    """A model that others may run between any two words of."""

    window = None

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self):
        return self._llm.name

    @property
    def thinking(self):
        return self._llm.thinking

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await asyncio.sleep(0)
        async with aclosing(self._llm.stream(request)) as events:
            async for event in events:
                yield event
                await asyncio.sleep(0)


@dataclass(frozen=True)
class Cut:
    """What one transaction would bring to disk: how many of the events, and the artifacts."""

    told: int
    documents: Documents


class Cuts:
    """Takes a cut at every turn of the event loop, as long as it is `taken`.

    Between two steps of a task there is always one: what was scheduled by a step runs in a later turn of the loop, and
    a callback that schedules itself anew runs once in each.
    """

    def __init__(self, told: EventRecorder, store: WaitingStore) -> None:
        self._told, self._store = told, store
        self.all: list[Cut] = []

    @contextmanager
    def taken(self) -> Iterator[None]:
        self._take()
        yield
        self._next.cancel()
        self._take()
        self._next.cancel()

    def _take(self) -> None:
        cut = Cut(len(self._told.events), self._store.documents)
        if not self.all or self.all[-1] != cut:
            self.all.append(cut)
        self._store.committed()
        self._next = asyncio.get_running_loop().call_soon(self._take)


def folded(record: TaskRecord, events: list[TurnEvent]) -> TaskRecord:
    """The task after these events."""
    for event in events:
        record = fold(record, Entry(1, record.generation + 1, Clock()(), event))
    return record


def items_of(events: list[TurnEvent]):
    return [item for event in events if isinstance(event, TranscriptAppended) for item in event.items]


def marks_in(document: Document | None) -> set[str]:
    """Which calls have written what stands in a version, or is kept: `T1;` is the mark of the call T1."""
    if document is None:
        return set()
    kept = [version.content for version in document.versions if not version.incomplete]
    if document.draft and document.draft.completed:
        kept.append(document.draft.completed)
    return {mark.strip() for content in kept for mark in content.text.split(";")[:-1]}


def check_told(events: list[TurnEvent], cut: Cut, base: TaskRecord) -> None:
    """The laws of every cut: what was done is what was said, and calls are remembered with their results."""
    told = events[: cut.told]
    items = items_of(told)
    results = {item.tool_use_id for item in items if isinstance(item, ToolResult)}
    acted = {event.tool_use_id for event in told if isinstance(event, ToolSucceeded | ToolFailed)}
    assert acted == set(calls_in(items))
    assert all(name in results or call.name == "ask_user" for name, call in calls_in(items).items())
    record = folded(base, told)
    for name, artifact in record.artifacts.items():
        assert artifact.content.text == cut.documents[name].artifact.text
    if not record.state.settled:
        check_goes_on(record.transcript)


def check_goes_on(transcript: Transcript) -> None:
    """What is remembered of a turn that goes on ends with the user's word, or with calls that have results."""
    if not isinstance(transcript[-1], UserInput):
        answers = [item.call for item in transcript if isinstance(item, AssistantOutput)]
        last = [item for item in transcript if isinstance(item, AssistantOutput) and item.call == answers[-1]]
        results = {item.tool_use_id for item in transcript if isinstance(item, ToolResult)}
        assert calls_in(last)
        assert set(calls_in(last)) <= results


def check_marks(events: list[TurnEvent], cut: Cut) -> None:
    """What is kept was written by calls that are remembered, and all of them."""
    items = items_of(events[: cut.told])
    done = {item.tool_use_id for item in items if isinstance(item, ToolResult) and not item.is_error}
    marks = set().union(*map(marks_in, cut.documents.values()))
    assert marks <= done
    writing = ("artifact_update", "artifact_edit")
    assert {name for name, call in calls_in(items).items() if call.name in writing} & done <= marks


def calls_in(items) -> dict[str, ToolUse]:
    said = [block for item in items if isinstance(item, AssistantOutput) for block in item.blocks]
    return {block.id: block for block in said if isinstance(block, ToolUse)}


def last_step(events: list[TurnEvent]) -> int:
    """Where the events begin that come after the last model call."""
    return max((n + 1 for n, event in enumerate(events) if isinstance(event, LlmCallCompleted)), default=0)


def check_cuts(events: list[TurnEvent], cuts: list[Cut], base: TaskRecord) -> None:
    """The laws of all cuts of a turn, whose last event is its status."""
    assert isinstance(events[-1], StatusChanged)
    assert events[-1].state.settled
    for cut in cuts:
        check_told(events, cut, base)
    inside = range(last_step(events) + 1, len(events))
    assert not [cut for cut in cuts if cut.told in inside]


def closings(events: list[TurnEvent]) -> list[ArtifactChanged]:
    return [event for event in events if isinstance(event, ArtifactChanged) and event.last_chunk]


class Observed(TurnHarness):
    """A turn of which cuts are taken."""

    def __init__(self, *calls, **options) -> None:
        super().__init__(*calls, store=WaitingStore(options.pop("artifact_limits", None)), **options)
        self.llm = YieldingModel(FakeLLM(calls))
        self.cuts = Cuts(self.told, self.store)

    async def run_to_the_end(self) -> None:
        with self.cuts.taken():
            try:
                await self._run()
            except asyncio.CancelledError:
                await self.told(StatusChanged(State.CANCELED))  # as the runtime does, at once
        check_cuts(self.told.events, self.cuts.all, START)
        for cut in self.cuts.all:
            check_marks(self.told.events, cut)


class ObservedOperation(OperationHarness):
    def __init__(self, *calls) -> None:
        super().__init__(*calls, store=WaitingStore())
        self.llm = YieldingModel(FakeLLM(calls))
        self.cuts = Cuts(self.told, self.store)

    async def ready(self) -> "ObservedOperation":
        await super().ready()
        await self.put(self.text + "More\n")
        return self

    async def run_to_the_end(self, operation) -> None:
        with self.cuts.taken():
            try:
                await self.run(operation)
            except asyncio.CancelledError:
                await self.told(StatusChanged(State.CANCELED))
