"""The conversation, as an agent's function reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from a2a_canvas.server.agent.events import AssistantOutput, ToolStep, Transcript, UserInput, UserMessage
from a2a_canvas.server.agent.model import Attachment, ModelText
from a2a_canvas.server.agent.text.visible import visible
from a2a_canvas.store.models import DataPart, FilePart, JsonValue, TextPart
from a2a_canvas.tools.functions.results import File


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the conversation.

    Attributes:
        text: its text parts, joined by line breaks.
        files: with content or a URL each.
        data: its other parts, JSON values.
        caller: who sent it; empty for an anonymous caller and for the agent.
    """

    role: Literal["user", "agent"]
    text: str
    files: tuple[File, ...] = ()
    data: tuple[JsonValue, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    message_id: str = ""
    caller: str = ""


def to_message(message: UserMessage) -> Message:
    """A user's message, for the function."""
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    files = [
        File(part.name, part.media_type, part.content, part.url) for part in message.parts if isinstance(part, FilePart)
    ]
    data = tuple(part.data for part in message.parts if isinstance(part, DataPart))
    return Message("user", "\n".join(texts), tuple(files), data, message.metadata, message.message_id, message.sender)


def to_history(transcripts: Iterable[Transcript]) -> tuple[Message, ...]:
    """The messages of earlier tasks, oldest first: the user's, and the agent's visible texts.

    The rounds that a step of an agent's function had ended before a crash cut it off are left out: it ran again.
    """
    return tuple(message for transcript in transcripts for message in _messages(transcript))


_RECORDS = ("called", "kept", "asked", "authentication", "paused")


def _messages(transcript: Transcript) -> list[Message]:
    messages: list[Message] = []
    recorded = 0
    for item in transcript:
        match item:
            case ToolStep(tool_use_id="", kind="began"):
                messages[recorded:] = [each for each in messages[recorded:] if each.role == "user"]
            case ToolStep(kind=kind) if kind in _RECORDS:
                recorded = len(messages)
            case UserInput() | AssistantOutput():
                messages += _message_of(item)
            case _:
                pass
    return messages


def _message_of(item: UserInput | AssistantOutput) -> Iterator[Message]:
    match item:
        case UserInput(message_id=message_id) if message_id:
            texts = [each.text for each in item.content if isinstance(each, ModelText)]
            files = [
                File(each.name, each.media_type, each.content, each.url)
                for each in item.content
                if isinstance(each, Attachment)
            ]
            yield Message("user", "\n".join(texts), tuple(files), message_id=message_id)
        case AssistantOutput():
            text = "\n\n".join(visible(each.text) for each in item.blocks if isinstance(each, ModelText)).strip()
            if text:
                yield Message("agent", text)
        case _:
            pass
