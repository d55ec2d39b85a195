"""Calls of a tool as a model makes them: input cut into fragments, fed, finished."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditEvent, EditStarted, EditSuggested
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import AppliedChange, Content
from a2a_canvas.tools.tool import Outcome, Tool, Workspace
from tests.fakes import ids
from tests.store.artifact_builders import StockClient


class RecordingListener:
    """Remembers everything an evented store tells, and reads it: as every client does, and the edits on their way.

    Attributes:
        told: changes and edit events, in order.
        open: the edits that were announced and have not ended, with the text that has come.
    """

    def __init__(self) -> None:
        self.told: list[AppliedChange | EditEvent] = []
        self.open: dict[str, str] = {}
        self._client = StockClient()

    async def listen(self, told: AppliedChange | EditEvent) -> None:
        self.told.append(told)
        match told:
            case AppliedChange():
                await self._client.listen(told)
            case EditStarted():
                assert told.edit_id not in self.open
                self.open[told.edit_id] = ""
            case EditChunk():
                self.open[told.edit_id] += told.chunk
            case EditCompleted() | EditSuggested() | EditAborted():
                del self.open[told.edit_id]

    @property
    def kinds(self) -> list[str]:
        return [type(told).__name__ for told in self.told]

    def edits(self, kind: Any = EditEvent) -> list[Any]:
        return [told for told in self.told if isinstance(told, kind)]

    def changes(self) -> list[AppliedChange]:
        return [told for told in self.told if isinstance(told, AppliedChange)]

    def reads(self, artifact_id: str = "a") -> Content:
        """The artifact as a client that knows of no extension has it."""
        return self._client.reads(artifact_id)


def workspace(
    store: ArtifactStore | None = None, task: str = "t1", watcher: RecordingListener | None = None
) -> Workspace:
    """A place to work in, on `store`; an evented store is taken as it is, any other one tells `watcher`."""
    if not isinstance(store, EventedArtifactStore):
        store = EventedArtifactStore(store or InMemoryArtifactStore(), (watcher or RecordingListener()).listen)
    return Workspace(store, "c", task, ids("edit"))


async def call(tool: Tool, fragments: Iterable[str], place: Workspace | None = None) -> Outcome:
    stream = tool.open(place or workspace())
    for fragment in fragments:
        await stream.feed(fragment)
    return await stream.finish()


def cut(text: str, *places: int) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *sorted(places), len(text)])]


@st.composite
def fragments(draw: st.DrawFn, text: str) -> list[str]:
    """`text` in one piece, character by character, or cut anywhere."""
    places = st.lists(st.integers(0, len(text)), max_size=12).map(lambda at: cut(text, *at))
    return draw(st.sampled_from([[text], list(text)]) | places)


@st.composite
def shuffled(draw: st.DrawFn, value: Any) -> Any:
    """The same value with the properties of all objects in another order."""
    match value:
        case dict():
            names = draw(st.permutations(list(value)))
            return {name: draw(shuffled(value[name])) for name in names}
        case list():
            return [draw(shuffled(item)) for item in value]
        case _:
            return value


@st.composite
def dumped(draw: st.DrawFn, value: Any) -> str:
    ascii_only, indent = draw(st.booleans()), draw(st.sampled_from([None, None, 1]))
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent)
