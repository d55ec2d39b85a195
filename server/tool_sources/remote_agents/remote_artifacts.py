"""The artifacts of another agent's task, as they are written here.

Rule 1: an artifact keeps the agent's id. If another artifact here has it, the agent's name is prepended.
Rule 2: one without a name is named when its first heading can be read, or it turns out to have none (`title_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import RemoteAgent
from a2a_canvas.server.tool_sources.remote_agents.task_parts import (
    MAX_BEGINNING,
    Origin,
    awaits_heading,
    candidates,
    catch_up_change,
    fingerprint,
    is_from,
    line,
    markdown_of,
    origin,
    parts_of,
    title_of,
)
from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.models import Parts
from a2a_canvas.tools.functions.recorded_call import RecordedCall
from a2a_canvas.tools.functions.results import ToolError

MAX_ARTIFACTS = 100
"""Artifacts of one call."""


@dataclass(slots=True)
class RemoteArtifacts:
    """The artifacts of one task.

    Attributes:
        shared: ids of our artifacts that the agent receives and may change.
        context_id: the conversation with the agent.
        ids: our ids, by the agent's.
        refused: why an artifact is not complete, by the agent's id.
        seen: hashes of the contents that are written, by the agent's id.
        _unnamed: beginnings of artifacts without a name, by the agent's id.
    """

    agent: RemoteAgent
    call: RecordedCall
    shared: Sequence[str] = ()
    context_id: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    _unnamed: dict[str, str] = field(default_factory=dict)
    _called: int = 0

    async def take_update(self, update: pb.TaskArtifactUpdateEvent) -> None:
        """Write what an event brings."""
        artifact = update.artifact
        append = update.append and artifact.artifact_id in self.ids
        self.seen.pop(artifact.artifact_id, None)
        if (parts := self._parts(artifact, append)) and (own := await self._own_id(artifact.artifact_id)):
            kind = AppendParts if append else ReplaceParts
            name = self._name(artifact, append=append, complete=update.last_chunk)
            await self._write(artifact.artifact_id, own, kind(parts, name, artifact.description or None, done=False))

    async def take_snapshot(self, artifacts: Sequence[pb.Artifact], *, complete: bool = False) -> None:
        """Write what differs.

        Args:
            complete: the task has ended.
        """
        for artifact in artifacts:
            own, seen = await self._own_id(artifact.artifact_id), fingerprint(artifact)
            if own and self.seen.get(artifact.artifact_id) != seen:
                await self._catch_up(artifact, own, complete)
                if artifact.artifact_id not in self._unnamed:
                    self.seen[artifact.artifact_id] = seen

    async def _catch_up(self, artifact: pb.Artifact, own: str, complete: bool) -> None:
        current = await self.call.read(own)
        # The remains of an interrupted call are shown, but no change builds on them.
        ours = current.parts if current and not current.never_completed else ()
        change = catch_up_change(ours, parts := self._parts(artifact))
        name = self._name(artifact, complete=complete) if change or artifact.artifact_id in self._unnamed else None
        if change or (name and parts):
            change = change or ReplaceParts(parts)
            about = artifact.description or None
            await self._write(artifact.artifact_id, own, type(change)(change.parts, name, about, done=False))

    def _origin(self) -> Origin:
        return origin(self.agent.url, self.context_id)

    def _parts(self, artifact: pb.Artifact, append: bool = False) -> Parts:
        try:
            return parts_of(artifact.parts, {**self._origin(), "artifactId": artifact.artifact_id}, append=append)
        except ValueError:
            self.refused[artifact.artifact_id] = "its data is not plain JSON"
            return ()

    async def _own_id(self, artifact_id: str) -> str:
        """Our id of one of the agent's artifacts; empty if it cannot be stored."""
        if artifact_id in self.refused:
            return ""
        if artifact_id not in self.ids:
            if len(self.ids) >= MAX_ARTIFACTS:
                self.refused.setdefault("more", f"there are more than {MAX_ARTIFACTS}")
                return ""
            self.ids[artifact_id] = await self._free_id(artifact_id)
        return self.ids[artifact_id]

    def _name(self, artifact: pb.Artifact, *, append: bool = False, complete: bool) -> str | None:
        """Its name; a new artifact without one gets a name, and keeps it (rule 2).

        Args:
            append: these parts are appended.
            complete: nothing follows.
        """
        begun = self._unnamed.get(artifact.artifact_id)
        if artifact.name or begun is None:
            self._unnamed.pop(artifact.artifact_id, None)
            return line(artifact.name) or None
        text = ((begun if append else "") + markdown_of(artifact))[:MAX_BEGINNING]
        if awaits_heading(text) and not complete:
            self._unnamed[artifact.artifact_id] = text
            return None
        del self._unnamed[artifact.artifact_id]
        name = title_of(artifact, text)
        if name is None:
            self._called += 1
            name = self.agent.title if self._called == 1 else f"{self.agent.title} {self._called}"
        return name or None

    async def _free_id(self, artifact_id: str) -> str:
        used = self.ids.values()
        for each in candidates(artifact_id, self.agent.name):
            artifact = None if each in used else await self.call.read(each)
            mine = artifact is None or each in self.shared or is_from(artifact, self._origin())
            if each not in used and mine:
                if artifact is None or not artifact.name:
                    self._unnamed[artifact_id] = ""
                return each
        raise AgentFault(f"there are too many artifacts {line(artifact_id)!r}")

    async def _write(self, artifact_id: str, own: str, change: AppendParts | ReplaceParts) -> None:
        try:
            await self.call.apply(own, change)
        except ToolError as error:
            self.refused[artifact_id] = str(error)
