"""What a task is: the fold of its journal. Pure.

Rule 1: `record(n) = fold(record(n - 1), entry(n))`, and nothing else ever changes a record.
Rule 2: a fold costs what its entry brings, not what the task already has (texts are ropes).
Rule 3: history holds every message once: each of the user's, and each of the agent's that is not a label.
Rule 4: messages, state changes, completed calls and edits, closed versions and annotations are durable before anybody
        sees them. Everything else (text and drafts in progress, labels) is seen without a wait for its own commit; a
        crash may lose the end of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from a2a_canvas.server.agent.agui_log import NO_LOG, AguiLog
from a2a_canvas.server.agent.annotation_operations import is_annotation_operation
from a2a_canvas.server.agent.blocks import Blocks, Progress
from a2a_canvas.server.agent.events import (
    AgentMessage,
    AguiSent,
    ArtifactChanged,
    AssistantOutput,
    FinalMessageStarted,
    LlmCallCompleted,
    MessageReceived,
    MessageStarted,
    State,
    StatusChanged,
    TextAdded,
    TextBlockStarted,
    ThinkingAdded,
    ToolFailed,
    ToolInputAdded,
    ToolSucceeded,
    ToolUseStarted,
    Transcript,
    TranscriptAppended,
    TurnEvent,
    UserMessage,
)
from a2a_canvas.server.agent.intent import Converse, Intent, Operation
from a2a_canvas.server.agent.phases import Phase
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.changes import AppendParts, apply, compact
from a2a_canvas.store.edit_events import (
    EditAborted,
    EditChunk,
    EditCompleted,
    EditEvent,
    EditMode,
    EditStarted,
    EditSuggested,
    Selection,
    Strategy,
)
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Author, Content, Parts, text_part
from a2a_canvas.store.text.rope import Rope


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in a task's journal. `generation` counts 1, 2, 3…; (epoch, generation) is the order."""

    epoch: int
    generation: int
    at: datetime
    event: TurnEvent


@dataclass(frozen=True, slots=True)
class TaskArtifact:
    """An artifact as a task left it, or, while the task works, as it is now.

    Attributes:
        closed: the version that the task closed, or repeated, last; 0 while there is none.
        pruned: the content of the version was removed by the retention rules; `content` says so (`pruned_content`).
    """

    artifact_id: str
    content: Content
    version: int
    author: Author
    closed: int = 0
    pruned: bool = False


@dataclass(frozen=True, slots=True)
class OpenEdit:
    """An edit in progress. `selection` is a range of version `version`."""

    edit_id: str
    artifact_id: str
    selection: Selection
    strategy: Strategy
    version: int
    text: Rope = field(default_factory=Rope)
    mode: EditMode = "apply"


@dataclass(frozen=True)
class TaskRecord:
    """A task at one generation.

    Attributes:
        changed_at: when its status last changed.
        artifacts: those the task has changed, in the order in which it first did.
        transcript: what the model must be shown again.
        reply: the visible text of the round so far.
        call_open: a model call, not a tool call, has started and has not completed. The name is stored.
        open_edits: by their ids.
        agui: what the agent's function has sent to AG-UI clients.
    """

    task_id: str
    context_id: ContextKey
    owner: str
    changed_at: datetime
    state: State = State.SUBMITTED
    message: AgentMessage | None = None
    history: tuple[UserMessage | AgentMessage, ...] = ()
    artifacts: Mapping[str, TaskArtifact] = field(default_factory=dict)
    transcript: Transcript = ()
    progress: Progress = field(default_factory=Progress)
    reply: Rope = field(default_factory=Rope)
    call_open: bool = False
    open_edits: Mapping[str, OpenEdit] = field(default_factory=dict)
    agui: AguiLog = NO_LOG
    epoch: int = 1
    generation: int = 1

    @property
    def first_message(self) -> UserMessage:
        """The message that began the task."""
        message = self.history[0]
        assert isinstance(message, UserMessage)
        return message

    @property
    def sender(self) -> str:
        """Who sent the newest message of a user; empty if anonymous."""
        return next((each.sender for each in reversed(self.history) if isinstance(each, UserMessage)), self.owner)

    @property
    def intent(self) -> Intent:
        """What the first message asks for. A task that cannot be read has no message, and is taken for a conversation.

        Raises:
            InvalidOperation: the operation cannot be read.
        """
        return self.first_message.intent if self.history else Converse()

    @property
    def operation(self) -> Operation | None:
        """The operation that the task is; None for a conversation."""
        return None if isinstance(self.intent, Converse) else self.intent

    @property
    def asks_agent(self) -> bool:
        """Whether it is a comment or a reply that the agent answers: its message was accepted as one for the model."""
        return is_annotation_operation(self.operation) and bool(self.transcript)

    @property
    def is_conversation(self) -> bool:
        """Whether a turn of the agent answers it, not an operation alone."""
        return self.operation is None or self.asks_agent


def fold(record: TaskRecord, entry: Entry) -> TaskRecord:
    """`record` after `entry`, which must be the next one."""
    # `dataclasses.replace` would set every field one by one, for every token.
    successor = object.__new__(TaskRecord)
    vars(successor).update(vars(record), epoch=entry.epoch, generation=entry.generation)
    vars(successor).update(_changes(record, entry.event, entry.at))
    return successor


def pruned_content(name: str, version: int) -> Content:
    """What is shown in place of a version that was pruned: its name, and an empty text, which nobody takes for it."""
    return Content(name, f"The content of version {version} is no longer stored.", (text_part(""),))


def is_durable(state: State, event: TurnEvent) -> bool:
    """Whether an entry must be durable before it is seen (rule 4).

    Args:
        state: the task's before the entry.
    """
    match event:
        case StatusChanged(message=message):
            return event.state is not state or (message is not None and not message.label)
        case ArtifactChanged():
            return event.last_chunk
        case (
            MessageReceived()
            | TranscriptAppended()
            | ToolSucceeded()
            | ToolFailed()
            | EditCompleted()
            | EditSuggested()
            | AnnotationsChanged()
        ):
            return True
        case _:
            return False


def _changes(record: TaskRecord, event: TurnEvent, at: datetime) -> dict[str, Any]:
    progress = record.progress
    match event:
        case ToolInputAdded() | ThinkingAdded():  # first, because they are many
            return {}
        case TextAdded():
            return {"reply": record.reply + Rope(event.text)}
        case EditStarted() | EditChunk() | EditCompleted() | EditSuggested() | EditAborted():
            return {"open_edits": _edits(record, event)}
        case ArtifactChanged():
            return {"artifacts": {**record.artifacts, event.artifact_id: _artifact(record, event)}}
        case StatusChanged():
            return _status(record, event, at)
        case MessageReceived():
            return {"history": (*record.history, event.message)}
        case TranscriptAppended():
            calls = [item.call for item in event.items if isinstance(item, AssistantOutput)]
            return {
                "transcript": record.transcript + event.items,
                "progress": replace(progress, call=max((progress.call, *calls))),
                "agui": record.agui.fold(event),
            }
        case AguiSent():
            return {"agui": record.agui.fold(event)}
        case _:
            return _call_changes(progress, event)


def _call_changes(progress: Progress, event: TurnEvent) -> dict[str, Any]:
    """What an event of a model call changes."""
    match event:
        case MessageStarted():
            return {"progress": replace(progress, round=event.round), "reply": Rope(), "call_open": True}
        case TextBlockStarted(place=place, kind="thinking"):
            thinking = (*progress.thinking, place.index)
            return {
                "progress": replace(progress, blocks=Blocks(place.index + 1), thinking=thinking),
                "call_open": True,
            }
        case TextBlockStarted(place=place) | ToolUseStarted(place=place):
            return {"progress": replace(progress, blocks=Blocks(place.index + 1)), "call_open": True}
        case FinalMessageStarted():
            return {"progress": replace(progress, phase=Phase.ASSISTANT)}
        case LlmCallCompleted():
            return {"call_open": False}
        case _:
            return {}


def _status(record: TaskRecord, event: StatusChanged, at: datetime) -> dict[str, Any]:
    message = event.message
    added = (message,) if message and not message.label else ()
    changes: dict[str, Any] = {"state": event.state, "message": message, "changed_at": at}
    changes["history"] = record.history + added
    if record.state.paused and not event.state.paused:
        changes["agui"] = record.agui.forget_customs()
    # A message in the history is not streamed any more; neither is anything at a pause.
    return changes | {"reply": Rope()} if added or event.state.paused else changes


def _artifact(record: TaskRecord, event: ArtifactChanged) -> TaskArtifact:
    before = record.artifacts.get(event.artifact_id)
    parts: Parts = event.parts
    if event.append and before:
        parts = apply(before.content.parts, AppendParts(event.parts))
    closed = before.closed if before else 0
    if event.last_chunk:
        parts, closed = compact(parts), event.version
    content = Content(event.name, event.description, parts)
    return TaskArtifact(event.artifact_id, content, event.version, event.author, closed)


def _edits(record: TaskRecord, event: EditEvent) -> Mapping[str, OpenEdit]:
    edits = dict(record.open_edits)
    match event:
        case EditStarted():
            edits[event.edit_id] = OpenEdit(
                event.edit_id, event.artifact_id, event.selection, event.strategy, event.version, mode=event.mode
            )
        case EditChunk():
            edit = edits[event.edit_id]
            edits[event.edit_id] = replace(edit, text=edit.text + Rope(event.chunk))
        case EditCompleted() | EditSuggested() | EditAborted():
            edits.pop(event.edit_id, None)  # an edit whose abort was cut off is aborted again
        case _:
            assert_never(event)
    return edits
