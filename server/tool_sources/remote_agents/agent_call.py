"""A call of another agent's tool: what it is sent, and its result for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.tool_sources.remote_agents.remote_agent import RemoteAgent
from a2a_canvas.server.tool_sources.remote_agents.remote_artifacts import RemoteArtifacts
from a2a_canvas.server.tool_sources.remote_agents.remote_task import RemoteEnd, RemoteTask
from a2a_canvas.server.tool_sources.remote_agents.task_parts import line, to_wire
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.results import Result, ToolError


@dataclass(slots=True)
class AgentCall:
    """One call.

    Attributes:
        shared: ids of our artifacts that the agent receives and may change.
    """

    agent: RemoteAgent
    canvas: Canvas
    shared: Sequence[str] = ()
    _artifacts: RemoteArtifacts = field(init=False)

    def __post_init__(self) -> None:
        self._artifacts = RemoteArtifacts(self.agent, self.canvas, self.shared)

    async def run(self, text: str, context_id: str = "") -> Result:
        """The result of the call.

        Raises:
            ToolError: it has none; the text says why.
        """

        async def message() -> pb.Message:
            return pb.Message(parts=[pb.Part(text=text), *await self._shared_parts()])

        conversation = self._find_conversation(context_id)
        end = await RemoteTask(self.agent, self.canvas, self._artifacts).run(message, conversation)
        if end.context_id and end.context_id not in self._conversations():
            await self.canvas.remember("conversation", {"agent": self.agent.url, "context": end.context_id})
        if end.failure:
            raise ToolError(self._with_notes(f"The task of {self.agent.title} {end.failure}", end))
        return [self._with_notes(end.text or "It said nothing.", end), *end.files]

    async def _shared_parts(self) -> list[pb.Part]:
        parts: list[pb.Part] = []
        for artifact_id in self.shared:
            artifact = await self.canvas.read(artifact_id)
            if artifact is None:
                raise ToolError(f"There is no artifact {artifact_id!r}.")
            parts.extend(to_wire(artifact))
        return parts

    def _find_conversation(self, context_id: str) -> str:
        """The agent's conversation with this id, as the model knows it."""
        found = ["", *self._conversations()]
        if (known := next((each for each in found if line(each) == context_id), None)) is None:
            raise ToolError(
                f"{line(context_id)!r} is no context_id that {self.agent.title} has given in this conversation. "
                "Leave it out to begin a new one with it."
            )
        return known

    def _conversations(self) -> list[str]:
        """The agent's conversations with ours."""
        kept = self.canvas.recall_all("task", "conversation")
        return [str(each["context"]) for each in kept if isinstance(each, dict) and each.get("agent") == self.agent.url]

    def _with_notes(self, text: str, end: RemoteEnd) -> str:
        notes = [text]
        if self._artifacts.ids:
            notes.append(f"[Its artifacts here: {', '.join(map(repr, self._artifacts.ids.values()))}]")
        refused = self._artifacts.refused.items()
        notes += [f"[Artifact {line(each)!r} is not complete: {reason}]" for each, reason in refused]
        if end.context_id:
            notes.append(f"[To continue this conversation: context_id {line(end.context_id)!r}]")
        return "\n".join(notes)
