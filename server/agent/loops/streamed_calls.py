"""Calls of tools that stream while the agent's own model writes them.

Rule 1: a call of a tool of ours (`artifact_update`, …) acts on its input at once, as a preview. Its change is complete,
        and kept after a crash, when the call is run, in the step that records its result.
Rule 2: a call without a preview gets its whole input when it is run, which leaves the same (`tools/streaming.py`).
Rule 3: one preview writes an artifact at a time, so that none completes or discards the text of another.
Rule 4: a preview whose call is not run before the next answer begins is undone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from a2a_canvas.server.agent.endings import visible_outcome
from a2a_canvas.tools.artifact_edit import artifact_edit
from a2a_canvas.tools.artifact_read import artifact_list, artifact_read
from a2a_canvas.tools.artifact_update import artifact_update
from a2a_canvas.tools.json_stream import JsonError, JsonStream, Value
from a2a_canvas.tools.tool import Outcome, Tool, ToolStream, Workspace, to_json

ARTIFACT_TOOLS: Mapping[str, Tool] = {
    tool.name: tool for tool in (artifact_update, artifact_edit, artifact_read, artifact_list)
}
"""The tools of ours that an agent's own loop can offer to its model, by name."""

_ID_PATHS = (("artifact", "artifact_id"), ("artifact_id",))


@dataclass(slots=True)
class _Preview:
    """A call whose input streams.

    Attributes:
        runs: the call is run, and completes it.
        pieces: of the input that the tool has not read: all of them until its artifact is known.
    """

    tool: Tool
    stream: ToolStream | None = None
    artifact_id: str = ""
    runs: bool = False
    pieces: list[str] = field(default_factory=list)
    _head: JsonStream | None = field(default_factory=JsonStream)

    def find_artifact(self, piece: str) -> str:
        """The id of the artifact if this piece of the input completes it."""
        if self._head is None:
            return ""
        try:
            events = self._head.feed(piece)
        except JsonError:
            self._head = None
            return ""
        for event in events:
            if isinstance(event, Value) and event.path in _ID_PATHS and isinstance(event.value, str):
                self._head = None
                return event.value
        return ""


class StreamedCalls:
    """The previews of one run of an agent's function.

    Args:
        writers: ids of artifacts being written, with the ids of the calls that write them.
    """

    def __init__(self, workspace: Workspace, writers: MutableMapping[str, str]) -> None:
        self._workspace = workspace
        self._writers = writers
        self._previews: dict[str, _Preview] = {}

    def begin(self, call_id: str, name: str) -> None:
        """The model begins to write a call."""
        if tool := ARTIFACT_TOOLS.get(name):
            self._previews[call_id] = _Preview(tool)

    async def feed(self, call_id: str, piece: str) -> str:
        """A piece of the call's input. Returns the progress to show, or an empty text."""
        preview = self._previews.get(call_id)
        if preview is None:
            return ""
        if preview.stream is None:
            preview.pieces.append(piece)
            if not self._claim(call_id, preview.find_artifact(piece)):
                return ""
            piece = "".join(preview.pieces)
            preview.pieces.clear()
            preview.stream = preview.tool.open(self._workspace)
        await preview.stream.feed(piece)
        return preview.stream.label

    def _claim(self, call_id: str, artifact_id: str) -> bool:
        if not artifact_id or self._writers.setdefault(artifact_id, call_id) != call_id:
            return False
        self._previews[call_id].artifact_id = artifact_id
        return True

    async def run(
        self, call_id: str, name: str, given: Mapping[str, Any], prepare: Callable[[], Awaitable[None]]
    ) -> Outcome:
        """Run a call of one of `ARTIFACT_TOOLS`: nothing waits after its change is made.

        Args:
            prepare: prepares the record of the call, so that it does not wait.

        Raises:
            LimitReached: the turn must end.
        """
        preview = self._previews.setdefault(call_id, _Preview(ARTIFACT_TOOLS[name]))
        preview.runs = True
        if (stream := preview.stream) is None:
            preview.stream = stream = ARTIFACT_TOOLS[name].open(self._workspace)
            await stream.feed(to_json(given))
        await prepare()
        outcome = await stream.finish()
        self._release(call_id)
        return visible_outcome(outcome)

    async def abort(self, call_id: str) -> None:
        """The call is not run: undo its preview."""
        preview = self._previews.get(call_id)
        if preview and preview.stream:
            await preview.stream.abort()
        self._release(call_id)

    async def abort_all(self, *, running: bool = False) -> None:
        """Undo all previews (rule 4).

        Args:
            running: those of calls that are run, too.
        """
        for call_id, preview in tuple(self._previews.items()):
            if running or not preview.runs:
                await self.abort(call_id)

    def _release(self, call_id: str) -> None:
        preview = self._previews.pop(call_id, None)
        if preview and self._writers.get(preview.artifact_id) == call_id:
            del self._writers[preview.artifact_id]
