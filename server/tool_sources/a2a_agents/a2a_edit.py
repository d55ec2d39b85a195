"""An edit of a selection by an agent that speaks A2A: it is sent the passage, and answers with the new one.

Rule 1: an agent whose card declares canvas:v1, and that has written the document in this conversation, is sent the edit
        as an operation on its own artifact. If that does not give a new passage, the edit is sent as any other.
Rule 2: any other is sent the prompt that models get. Its answer is an artifact of the task, or its last message.
Rule 3: the answer may be the whole document: then the passage is what stands between the unchanged parts.
Rule 4: the user is not asked: a question declines the edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.a2a_client.follower import WAITS
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.passage_edit import Edit
from a2a_canvas.server.outbound.answers import MAX_MESSAGE
from a2a_canvas.server.tool_sources.a2a_agents.agent_conversation import kept_conversation
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import RemoteAgent
from a2a_canvas.server.tool_sources.remote_agents.remote_artifacts import MAX_ARTIFACTS
from a2a_canvas.server.tool_sources.remote_agents.remote_task import (
    MAX_QUESTION,
    RemoteEnd,
    RemoteTask,
)
from a2a_canvas.server.tool_sources.remote_agents.task_parts import Origin, artifact_text, origins
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.text.spans import Span
from a2a_canvas.tools.functions.results import ToolError


@dataclass(slots=True)
class EditedTexts:
    """The texts of a task's artifacts, which are not written here (`TaskArtifacts`)."""

    context_id: str = ""
    seen: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    async def take_update(self, update: pb.TaskArtifactUpdateEvent) -> None:
        before = self.texts.get(update.artifact.artifact_id, "") if update.append else ""
        self._keep(update.artifact, before)

    async def take_snapshot(self, artifacts: Sequence[pb.Artifact], *, complete: bool = False) -> None:
        for artifact in artifacts:
            self._keep(artifact)

    def _keep(self, artifact: pb.Artifact, before: str = "") -> None:
        self.texts[artifact.artifact_id] = before + artifact_text(artifact)
        if len(self.texts) > MAX_ARTIFACTS or sum(map(len, self.texts.values())) > MAX_MESSAGE:
            raise AgentFault("its answer is too large")

    @property
    def newest(self) -> str:
        """The text of the last artifact that has one."""
        return next((text for text in reversed(self.texts.values()) if text.strip()), "")


async def edit_passage(agent: RemoteAgent, card: pb.AgentCard, turn: Turn) -> None:
    """Have the agent answer the turn's edit."""
    edit = turn.edit
    assert edit
    document = await edit.artifact.read()
    span = selected_span(document, edit)
    passage = ""
    if span and declares_canvas(card):
        passage = await _by_operation(agent, turn, edit, document, span)
    await turn.stream(passage or await _by_message(agent, turn, edit, document, span))


async def _by_operation(agent: RemoteAgent, turn: Turn, edit: Edit, document: str, span: Span) -> str:
    """The new passage by canvas:v1; empty if the agent has not given one (rule 1)."""
    artifact = await turn.read(edit.artifact.artifact_id)
    context_id = await kept_conversation(turn, agent.url)
    artifact_id = remote_artifact(origins(artifact), agent.url, context_id) if artifact and context_id else ""
    if not artifact_id:
        return ""
    message = pb.Message(parts=[pb.Part(text=edit.instruction)], extensions=[CANVAS])
    message.metadata.update({CANVAS: operation(artifact_id, edit, span)})
    end, answer = await _ask(agent, turn, message, context_id, step="operation ")
    if end.state is None and end.context_id:
        raise ToolError(f"The agent's task {end.failure}")
    return passage_in(answer, document, edit, span) if end.state == pb.TASK_STATE_COMPLETED else ""


async def _by_message(agent: RemoteAgent, turn: Turn, edit: Edit, document: str, span: Span | None) -> str:
    """The new passage by a message with the prompt (rule 2)."""
    message = pb.Message(parts=[pb.Part(text=edit.prompt)])
    end, answer = await _ask(agent, turn, message, await kept_conversation(turn, agent.url))
    if end.state in (*WAITS, pb.TASK_STATE_REJECTED):  # rule 4
        await turn.decline(end.text[:MAX_QUESTION] or "The agent declined this edit.")
    if end.failure:
        raise ToolError(f"The agent's task {end.failure[:MAX_QUESTION]}")
    return (span and passage_in(answer, document, edit, span)) or answer or end.text


async def _ask(
    agent: RemoteAgent, turn: Turn, message: pb.Message, context_id: str, step: str = ""
) -> tuple[RemoteEnd, str]:
    """How the task ended, and the text of its artifact, if any."""

    async def make_message() -> pb.Message:
        return message

    edited = EditedTexts()
    end = await RemoteTask(agent, turn, edited, asks=False, step=step).run(make_message, context_id)
    return end, edited.newest


# ---------------------------------------------------------------------- pure


def declares_canvas(card: pb.AgentCard) -> bool:
    """Whether an agent understands operations on documents."""
    return any(each.uri == CANVAS for each in card.capabilities.extensions)


def selected_span(document: str, edit: Edit) -> Span | None:
    """Where the passage is; None if that is ambiguous, or it has changed."""
    around = edit.before + edit.passage + edit.after
    start = document.find(around)
    if start < 0 or document.find(around, start + 1) >= 0:
        return None
    begin = start + len(edit.before)
    return Span(begin, begin + len(edit.passage))


def remote_artifact(marks: Iterable[Origin], url: str, context_id: str) -> str:
    """The agent's id of an artifact that it has written in our conversation; empty if it has not."""
    for mark in marks:
        match mark:
            case {"url": found, "contextId": there, "artifactId": str(artifact_id)}:
                if (found, there) == (url, context_id):
                    return artifact_id
    return ""


def operation(artifact_id: str, edit: Edit, span: Span) -> Mapping[str, Any]:
    """The edit as an operation of canvas:v1."""
    selection = {"start": span.start, "end": span.end, "unit": "codepoint", "text": edit.passage}
    return {"op": "edit", "artifactId": artifact_id, "selection": selection, "strategy": edit.strategy}


def passage_in(answer: str, document: str, edit: Edit, span: Span) -> str:
    """The new text in an answer that is the whole document (rule 3); empty if it is not."""
    begin, end = {
        "replace": (span.start, span.end),
        "insert_before": (span.start, span.start),
        "insert_after": (span.end, span.end),
    }[edit.strategy]
    before, after = document[:begin], document[end:]
    if not before + after or len(answer) < len(before + after):
        return ""
    if not (answer.startswith(before) and answer.endswith(after)):
        return ""
    return answer[begin : len(answer) - len(after)] or edit.deletion_mark
