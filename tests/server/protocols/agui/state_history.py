"""Tasks that change a store, step by step, and what stood there after each step."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.protocols.agui.state import CanvasState, VersionsByArtifact
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.edit_events import Selection
from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, Content, DataPart, FilePart, Ref, Version, text_part
from a2a_canvas.store.text.spans import Span
from tests.server.protocols.agui.state_patches import AT

NEW = TaskRecord("t", "c", "", AT)


NAMES = ["a", "b/~1"]


PLACE = Selection(0, 1)


@dataclass(frozen=True)
class Moment:
    """A task and the store, as they stood together."""

    record: TaskRecord
    artifacts: tuple[Artifact, ...]
    versions: VersionsByArtifact

    def state(self, store: "Moment | None" = None) -> CanvasState:
        store = store or self
        return CanvasState(self.record, store.artifacts, store.versions)

    def closed(self, after: "Moment", event: ev.ArtifactChanged) -> "Moment":
        """This moment with the draft closed: a change that closes a draft first makes two events in one step."""
        made = after.versions[event.artifact_id][event.version - 1]
        shown = Artifact(event.artifact_id, made.content, made.number, False, after.record.task_id)
        others = (artifact for artifact in self.artifacts if artifact.artifact_id != event.artifact_id)
        versions = after.versions[event.artifact_id][: made.number]
        return Moment(after.record, (*others, shown), {**self.versions, event.artifact_id: versions})


@dataclass
class StoreHistory:
    """A store with the tasks that change it."""

    store: InMemoryArtifactStore = field(default_factory=InMemoryArtifactStore)

    async def task(self, steps: Iterable["Step"], task_id: str = "t") -> tuple[list[Moment], list[ev.TurnEvent]]:
        """The moments of a task that takes these steps, one more than there are events."""
        record = TaskRecord(task_id, "c", "", AT)
        moments, events = [await self.moment(record)], []

        async def emit(event: ev.TurnEvent) -> None:
            nonlocal record
            record = fold(record, Entry(1, record.generation + 1, AT, event))
            events.append(event)
            moments.append(await self.moment(record))

        evented = EventedArtifactStore(self.store, listener(emit))
        for step in steps:
            begun = len(events)
            try:
                await (step.take(self.store, "other") if step.foreign else step.take(evented, task_id))
            except StoreError:
                continue
            moments[-1] = await self.moment(record)
            if len(events) > begun + 1:
                moments[begun + 1] = moments[begun].closed(moments[begun + 1], events[begun])
        await evented.close_all()
        return moments, events

    async def moment(self, record: TaskRecord) -> Moment:
        artifacts = await self.store.list("c")
        refs = [Ref("c", artifact.artifact_id, "") for artifact in artifacts]
        return Moment(record, artifacts, {ref.artifact_id: await self.store.versions(ref) for ref in refs})


@dataclass(frozen=True)
class Step:
    """A change, or what ends a call: `complete_call`, `close`, `discard`. A `foreign` one is taken by another task."""

    artifact_id: str
    what: Change | str
    foreign: bool = False

    async def take(self, store: EventedArtifactStore | InMemoryArtifactStore, task_id: str) -> None:
        ref = Ref("c", self.artifact_id, task_id)
        if isinstance(self.what, str):
            await getattr(store, self.what)(ref)
            return
        if isinstance(self.what, Undo | Redo):
            await store.close(ref)
        await store.apply(ref, self.what)


metadata = st.dictionaries(
    st.sampled_from(["language", "type", "k"]), st.sampled_from(["code", "text", "x"]), max_size=2
)


some_parts = st.lists(
    st.builds(text_part, st.text("ab\n", max_size=20), st.sampled_from(["", "text/x-python"]), metadata)
    | st.builds(DataPart, st.sampled_from([None, 1, {"a": [1]}]))
    | st.builds(FilePart, st.binary(max_size=3), name=st.just("f")),
    min_size=1,
    max_size=3,
).map(tuple)


updates = st.sampled_from([ReplaceParts, AppendParts, AppendParts]).flatmap(
    lambda kind: st.builds(
        kind,
        some_parts,
        name=st.sampled_from([None, None, "n", "n.py"]),
        last_chunk=st.booleans(),
        done=st.booleans(),
    )
)


numbers = st.integers(1, 4)


hops = st.one_of(
    st.builds(
        lambda start, size, text, base: EditText(Span(start, start + size), text, base),
        st.integers(0, 3),
        st.integers(0, 2),
        st.text("xyz", max_size=4),
        numbers,
    ),
    st.builds(Restore, numbers),
    st.builds(Undo),
    st.builds(Redo),
)


whats = updates | updates | hops | st.sampled_from(["complete_call", "close", "discard"])


steps = st.builds(Step, st.sampled_from(NAMES), whats)


whole = st.builds(ReplaceParts, some_parts, last_chunk=st.just(True)) | hops


mixed_steps = st.builds(Step, st.just("a"), updates) | st.builds(Step, st.just("a"), whole, st.booleans()) | steps


def json_of(state: Any) -> Any:
    """As it goes over the wire."""
    return json.loads(json.dumps(state))


def version(number: int, text: str, name: str = "", **metadata: Any) -> Version:
    return Version(number, Content(name, "", (text_part(text, "", metadata),)), "agent", "t0", number - 1)


def change(
    text: str,
    number: int,
    *,
    append: bool = False,
    last_chunk: bool = False,
    name: str = "",
    parent: int | None = None,
) -> ev.ArtifactChanged:
    parent = number - 1 if parent is None else parent
    return ev.ArtifactChanged("doc", name, "", append, (text_part(text),), last_chunk, number, "agent", parent)


def overtaken(changed_by: str = "other") -> Moment:
    """The task has written "mine", which became version 1; the user has made it "theirs"."""
    record = fold(NEW, Entry(1, 2, AT, change("mine", 1)))
    theirs = Version(2, Content("", "", (text_part("theirs"),)), "user", "other", 1)
    stored = Artifact("doc", theirs.content, 2, open=False, changed_by=changed_by)
    return Moment(record, (stored,), {"doc": [version(1, "mine too!"), theirs]})
