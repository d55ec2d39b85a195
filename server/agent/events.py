"""The events of a task, and `Emit`, which takes those of a turn.

The events of a model call and of an edit (`store/edit_events.py`) are specified in docs/turn.md and docs/canvas.md.
`is_durable` (`tasks/record.py`) says which must be committed before anyone sees them. The runtime itself appends
`MessageReceived` to the journal, and the events of a task that no turn runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, TypeGuard

from a2a_canvas.server.agent.intent import Intent, intent_of
from a2a_canvas.server.agent.model import ModelContent, ModelText, StopReason, Thinking, ToolResult, ToolUse, Usage
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.edit_events import EditEvent
from a2a_canvas.store.models import NO_METADATA, Author, Metadata, Parts, TextSplice
from a2a_canvas.tools.functions.recorded_call import StepKind


class State(StrEnum):
    """The states of a task that this server uses, by their A2A names."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"
    REJECTED = "rejected"

    @property
    def terminal(self) -> bool:
        return self in (State.COMPLETED, State.CANCELED, State.FAILED, State.REJECTED)

    @property
    def settled(self) -> bool:
        """Whether the task has ended or waits for the user."""
        return self.terminal or self.paused

    @property
    def paused(self) -> bool:
        """Whether the task waits for a message of the user."""
        return self in (State.INPUT_REQUIRED, State.AUTH_REQUIRED)


# ---------------------------------------------------------------------- messages


@dataclass(frozen=True)
class UserMessage:
    """A user's message. `parts` are not grouped: history shows them as they were sent.

    Attributes:
        sender: the user who sent it; empty if anonymous.
    """

    message_id: str
    parts: Parts
    metadata: Metadata = field(default_factory=dict)
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()
    sender: str = ""

    @cached_property
    def intent(self) -> Intent:
        """What the message requests. Its metadata is parsed once, for every layer.

        Raises:
            InvalidOperation: the metadata name an operation that cannot be read.
        """
        return intent_of(self.metadata, self.parts)


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """A message of the agent. A `label` describes the current activity and is not part of the history.

    Attributes:
        of_tool: a label that says what is being written, or how far a tool has come; other labels say only that the
            turn is running.
    """

    message_id: str
    text: str
    label: bool = False
    of_tool: bool = False
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)


# -------------------------------------------------------------------- transcripts


@dataclass(frozen=True, slots=True)
class UserInput:
    """A user's message, at the point of the conversation where the model received it."""

    message_id: str
    content: tuple[ModelContent, ...]


@dataclass(frozen=True, slots=True)
class AssistantOutput:
    """Finished blocks of the model call numbered `call` in the task."""

    call: int
    blocks: tuple[ModelText | Thinking | ToolUse, ...]


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A step recorded by a call of a function tool; the model does not see it (`turn/pending_calls.py`).

    Attributes:
        kind: `called`: the call is about to run, `value` is the index of its block, `name` the caller whose message the
            model read last (empty if unknown); `began`: it runs;
            `asked`: it waits for the user's next message, `value` is the question, `name` its number (empty: the next
            one); `authentication`: the same, and the message is not recorded; `changed`: `value` is a JSON object of
            the numbers of saved changes by artifact, made in the `once` called `name` (empty outside); `kept`: the
            JSON text `value` is stored as `name`; `set`: `value` is a JSON array of how often the step called `name`
            (empty: outside) has set the state, and the digest of what it set last (`loops/turn_values.py`);
            `answered`: of no call: `value` is the answer to a question in a thread (`edit/thread_question.py`).
    """

    tool_use_id: str
    kind: StepKind
    value: str = ""
    name: str = ""


TranscriptItem = UserInput | AssistantOutput | ToolResult | ToolStep
Transcript = tuple[TranscriptItem, ...]


# -------------------------------------------------------------- events of a model call


@dataclass(frozen=True, slots=True)
class BlockPosition:
    """The position of a block: `index` is unique in the turn, `llm_index` is the provider's number."""

    index: int
    round: int
    llm_index: int


@dataclass(frozen=True, slots=True)
class MessageStarted:
    round: int


@dataclass(frozen=True, slots=True)
class MessageDelta:
    round: int


@dataclass(frozen=True, slots=True)
class TextBlockStarted:
    place: BlockPosition
    kind: Literal["text", "thinking"]


@dataclass(frozen=True, slots=True)
class TextAdded:
    """Visible text, thinking and tags removed."""

    place: BlockPosition
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingAdded:
    """The newest piece of thinking."""

    place: BlockPosition
    content: str


@dataclass(frozen=True, slots=True)
class ToolUseStarted:
    place: BlockPosition
    tool_use_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolInputAdded:
    place: BlockPosition
    tool_use_id: str
    partial_json: str


@dataclass(frozen=True, slots=True)
class BlockStopped:
    place: BlockPosition


@dataclass(frozen=True, slots=True)
class ToolInputCompleted:
    """The call's input is complete and valid JSON."""

    index: int
    tool_use_id: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSucceeded:
    index: int
    tool_use_id: str
    content: str


@dataclass(frozen=True, slots=True)
class ToolFailed:
    index: int
    tool_use_id: str
    error: str


@dataclass(frozen=True, slots=True)
class LlmCallCompleted:
    """Exactly one per model call, however its stream ended."""

    round: int
    stop_reason: StopReason
    usage: Usage


@dataclass(frozen=True, slots=True)
class FinalMessageStarted:
    """Once per turn, before its first visible text."""


# ---------------------------------------------------------------- events of the task


@dataclass(frozen=True, slots=True)
class ArtifactChanged:
    """An artifact changed: `parts` are the new ones (`append`) or all of them.

    Attributes:
        version: the number of the version this is part of, closed (`last_chunk`) or still a draft.
        parent: the number of the version that it is made from; 0 for none.
        resent: nothing has changed; the task's subscribers get the artifact again after an edit that was aborted.
        splice, rolled_back: as in `AppliedChange`.
    """

    artifact_id: str
    name: str
    description: str
    append: bool
    parts: Parts
    last_chunk: bool
    version: int
    author: Author
    parent: int
    resent: bool = False
    splice: TextSplice | None = None
    rolled_back: bool = False


@dataclass(frozen=True, slots=True)
class StatusChanged:
    state: State
    message: AgentMessage | None = None


@dataclass(frozen=True, slots=True)
class TranscriptAppended:
    """Completed output of the model and new input for it: later model requests contain it."""

    items: Transcript


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A further message of the user was accepted into the task."""

    message: UserMessage


@dataclass(frozen=True, slots=True)
class AguiSent:
    """An agent's function has sent an event to AG-UI clients; no other client sees it (`agui_log.py`).

    Attributes:
        event: an event of AG-UI, checked.
        step: the `once` that sent it; empty outside of any.
        number: of the events sent since the last record in this step; None if a rerun restores what it found.
    """

    event: Mapping[str, Any]
    step: str = ""
    number: int | None = None


StreamEvent = (
    MessageStarted
    | MessageDelta
    | TextBlockStarted
    | TextAdded
    | ThinkingAdded
    | ToolUseStarted
    | ToolInputAdded
    | BlockStopped
    | ToolInputCompleted
    | ToolSucceeded
    | ToolFailed
    | LlmCallCompleted
    | FinalMessageStarted
)
ContextChange = ArtifactChanged | AnnotationsChanged
"""What takes a position in the log of a context (`tasks/journal/context_log.py`), unless it is sent again."""

TurnEvent = StreamEvent | EditEvent | ContextChange | StatusChanged | TranscriptAppended | MessageReceived | AguiSent


def changes_context(event: TurnEvent) -> TypeGuard[ContextChange]:
    """Whether it takes a position in the log of its context."""
    return isinstance(event, ContextChange) and not (isinstance(event, ArtifactChanged) and event.resent)


Emit = Callable[[TurnEvent], Awaitable[None]]
"""Appends an event to the task's journal. It never suspends: events emitted in one event-loop step are committed
together or not at all.

Once this process has lost the task it raises `asyncio.CancelledError`, on every call. The turn must then stop without
another change: its events are discarded.
"""
