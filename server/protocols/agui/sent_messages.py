"""The messages of one run as its client has them, folded from the events sent to it. Pure.

Rule 1: an assistant message is a text, tool calls, or both. Reasoning and the result of a call are messages of their
        own.
Rule 2: a text that is taken back leaves its message's calls. A message of which nothing is left is taken back whole.
Rule 3: a call is taken back together with its result.
Rule 4: an activity of the agent's function is a message whose id the function chose.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ag_ui import core

from a2a_canvas.store.text.rope import Rope


@dataclass(slots=True)
class _SentCall:
    name: str
    arguments: Rope = field(default_factory=Rope)


@dataclass(slots=True)
class _SentMessage:
    role: Literal["assistant", "reasoning"]
    text: Rope = field(default_factory=Rope)
    calls: dict[str, _SentCall] = field(default_factory=dict)


class SentMessages:
    """The messages of a run, in the order in which they began."""

    def __init__(self) -> None:
        self._messages: dict[str, _SentMessage | core.ToolMessage | core.ActivityMessage] = {}
        self._calls: dict[str, _SentCall] = {}

    def record(self, events: Iterable[core.BaseEvent]) -> Iterator[core.BaseEvent]:
        """Pass events through and add them to the messages."""
        for event in events:
            self._add(event)
            yield event

    def record_activity(self, message: core.ActivityMessage) -> None:
        """Add an activity, or replace its content."""
        self._messages[f"activity {message.id}"] = message

    def without(self, texts: Container[str], calls: Container[str]) -> Iterator[core.Message]:
        """The messages without some texts, by message id, and without some calls, by call id."""
        for message_id, message in self._messages.items():
            match message:
                case core.ToolMessage():
                    left: core.Message | None = None if message.tool_call_id in calls else message
                case core.ActivityMessage():
                    left = message
                case _SentMessage(role="reasoning"):
                    left = core.ReasoningMessage(id=message_id, role="reasoning", content=str(message.text))
                case _:
                    left = _assistant(message_id, message, "" if message_id in texts else str(message.text), calls)
            if left:
                yield left

    def texts(self, wanted: Container[str]) -> Iterator[core.BaseEvent]:
        """Some texts, by message id, each sent as a whole message."""
        for message_id, message in self._messages.items():
            if message_id in wanted and isinstance(message, _SentMessage):
                yield core.TextMessageStartEvent(message_id=message_id, role="assistant")
                yield core.TextMessageContentEvent(message_id=message_id, delta=str(message.text))
                yield core.TextMessageEndEvent(message_id=message_id)

    def _add(self, event: core.BaseEvent) -> None:
        match event:
            case core.TextMessageContentEvent() | core.ReasoningMessageContentEvent():
                message = self._messages[event.message_id]
                assert isinstance(message, _SentMessage)
                message.text += Rope(event.delta)
            case core.ToolCallArgsEvent():
                self._calls[event.tool_call_id].arguments += Rope(event.delta)
            case core.TextMessageStartEvent():
                self._messages.setdefault(event.message_id, _SentMessage("assistant"))
            case core.ReasoningMessageStartEvent():
                self._messages.setdefault(event.message_id, _SentMessage("reasoning"))
            case core.ToolCallStartEvent():
                parent = self._messages.setdefault(event.parent_message_id or "", _SentMessage("assistant"))
                assert isinstance(parent, _SentMessage)
                self._calls[event.tool_call_id] = parent.calls[event.tool_call_id] = _SentCall(event.tool_call_name)
            case core.ToolCallResultEvent():
                self._messages[event.message_id] = core.ToolMessage(
                    id=event.message_id, role="tool", tool_call_id=event.tool_call_id, content=str(event.content)
                )
            case _:
                pass


def _assistant(
    message_id: str, message: _SentMessage, text: str, without: Container[str]
) -> core.AssistantMessage | None:
    calls = [
        core.ToolCall(
            id=call_id,
            type="function",
            function=core.FunctionCall(name=call.name, arguments=str(call.arguments)),
        )
        for call_id, call in message.calls.items()
        if call_id not in without
    ]
    given: dict[str, Any] = {"content": text} if text else {}
    if calls:
        given["tool_calls"] = calls
    return core.AssistantMessage(id=message_id, role="assistant", **given) if given else None
