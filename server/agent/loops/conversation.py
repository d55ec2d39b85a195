"""The conversation, as an agent's function reads it. Pure.

Rule 1: the history of earlier tasks is what was said in them, by models, operations and functions alike. That of the
        task itself ends where the function was called, so it is the same when the function runs again.
Rule 2: the rounds that a step of a function had ended before a crash cut it off are left out: it ran again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from typing import Any, Literal, assert_never

from a2a_canvas.server.agent.annotation_operations import is_annotation_operation
from a2a_canvas.server.agent.events import AgentMessage, AssistantOutput, ToolStep, Transcript, UserInput, UserMessage
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.server.agent.text.visible import visible
from a2a_canvas.server.agent.turn.history import note_of
from a2a_canvas.store.models import DataPart, FilePart, JsonValue, TextPart
from a2a_canvas.tools.functions.results import File
from a2a_canvas.tools.tool import to_json

Role = Literal["user", "agent"]
Said = Sequence[UserMessage | AgentMessage]
"""The messages of a task."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the conversation, as in A2A.

    Attributes:
        text: its text parts, joined by line breaks.
        files: with content or a URL each.
        data: its other parts, JSON values.
        message_id: in A2A; empty for what the agent has said earlier in this task.
        caller: who sent it; empty for an anonymous caller and for the agent.
        note: what the user has selected, or has done to an artifact, in square brackets; empty for nothing.
    """

    role: Role
    text: str
    files: tuple[File, ...] = ()
    data: tuple[JsonValue, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    message_id: str = ""
    caller: str = ""
    note: str = ""

    @property
    def content(self) -> str:
        """All of it as text: the note, the text, the data as JSON, the names of the files."""
        files = (f"[File {to_json(each.name)}, {each.media_type}]" for each in self.files)
        return "\n".join(filter(None, (self.note, self.text, *map(to_json, self.data), *files)))


class History(tuple[Message, ...]):
    """Messages, oldest first."""

    __slots__ = ()

    def pairs(self, *following: Message) -> list[dict[str, str]]:
        """The messages for a model: `{"role": "user" or "assistant", "content": …}`, the roles alternating.

        Args:
            following: further messages: `turn.history.pairs(turn.message)` ends with the message to answer.
        """
        said = [(each.role, each.content) for each in (*self, *following) if each.content]
        grouped = groupby(said, key=lambda each: each[0])
        return [
            {"role": "user" if role == "user" else "assistant", "content": "\n\n".join(text for _, text in several)}
            for role, several in grouped
        ]


def to_message(message: UserMessage | AgentMessage) -> Message:
    """A message, for the function."""
    match message:
        case AgentMessage(message_id=message_id, text=text, metadata=metadata):
            return Message("agent", text, metadata=metadata, message_id=message_id)
        case UserMessage(parts=parts):
            texts = [part.text for part in parts if isinstance(part, TextPart)]
            files = tuple(
                File(part.name, part.media_type, part.content, part.url) for part in parts if isinstance(part, FilePart)
            )
            data = tuple(part.data for part in parts if isinstance(part, DataPart))
            given = message.metadata, message.message_id, message.sender, note_of(message.intent)
            return Message("user", "\n".join(texts), files, data, *given)
        case _:
            assert_never(message)


def to_history(
    earlier: Iterable[Said], transcripts: Iterable[Transcript], transcript: Transcript, messages: Sequence[UserMessage]
) -> History:
    """What was said before the function was called (rule 1).

    Args:
        earlier: what was said in each of the earlier tasks, oldest first.
        transcripts: of earlier tasks.
        transcript: of this task.
        messages: of the user, those in it.
    """
    by_message = {_first_id(each): each for each in transcripts}
    shown = (each for each in earlier if each and _is_shown(each[0], by_message))
    said = (_without_repeated(each, by_message.get(each[0].message_id, ())) for each in shown)
    return History((*map(to_message, chain.from_iterable(said)), *_RunFold().fold(transcript, messages).before))


def _is_shown(first: UserMessage | AgentMessage, transcripts: Container[str]) -> bool:
    """Whether a task is part of what was said: an operation on annotations only if it asks the agent.

    Args:
        transcripts: the first messages of those that there are.
    """
    is_about_annotations = isinstance(first, UserMessage) and is_annotation_operation(first.intent)
    return not is_about_annotations or first.message_id in transcripts


def _first_id(transcript: Transcript) -> str:
    return next((item.message_id for item in transcript if isinstance(item, UserInput) and item.message_id), "")


def _without_repeated(said: Said, transcript: Transcript) -> Iterator[UserMessage | AgentMessage]:
    """What was said in a task, without what a function said again after a crash (rule 2)."""
    repeated = Counter(each.text for each in _RunFold().fold(transcript).repeated)
    for message in said:
        if isinstance(message, AgentMessage) and repeated[message.text] > 0:
            repeated[message.text] -= 1
        else:
            yield message


_RECORDS = ("called", "kept", "asked", "authentication", "paused")


@dataclass(slots=True)
class _RunFold:
    """The transcript of a task of a function, read.

    Attributes:
        before: what was said before the newest call of the function.
        repeated: what the agent has said again after a crash.
    """

    before: list[Message] = field(default_factory=list)
    repeated: list[Message] = field(default_factory=list)
    _said: list[tuple[int, Message]] = field(default_factory=list)
    _recorded: int = 0

    def fold(self, transcript: Transcript, messages: Sequence[UserMessage] = ()) -> _RunFold:
        unread = enumerate(messages, 1)
        for item in transcript:
            match item:
                case UserInput(message_id=message_id) if message_id:
                    self._said += [(number, to_message(message)) for number, message in islice(unread, 1)]
                case AssistantOutput(blocks=blocks):
                    self._say("\n\n".join(visible(each.text) for each in blocks if isinstance(each, ModelText)).strip())
                case ToolStep():
                    self._take(item)
                case _:
                    pass
        return self

    def _say(self, text: str) -> None:
        self._said += [(0, Message("agent", text))] if text else []

    def _take(self, step: ToolStep) -> None:
        match step.kind:
            case "began" if not step.tool_use_id:
                since, self._said[self._recorded :] = self._said[self._recorded :], []
                self._said += [(number, message) for number, message in since if number]
                self.repeated += [message for number, message in since if not number]
                return
            case "asked" | "authentication":
                self._say(step.value)
            case "called" if not step.tool_use_id:
                self.before = [message for number, message in self._said if number < int(step.value)]
        if step.kind in _RECORDS:
            self._recorded = len(self._said)
