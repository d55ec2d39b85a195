"""The calls of function tools that have no result yet, by the transcript of their task. Pure.

A call waits because it asked the user, or it was interrupted by a crash. Either way it is run again, with what it has
recorded (`tools/functions/canvas.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from a2a_canvas.server.agent.events import AssistantOutput, ToolStep, Transcript, UserInput
from a2a_canvas.server.agent.model import ModelText, ToolResult, ToolUse
from a2a_canvas.tools.functions.canvas import CallRecord


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call that is to be run.

    Attributes:
        index: that of its block.
        record: what it recorded when it ran before.
        interrupted: it ran when a crash came; else it has not begun, or the user has answered what it asked.
    """

    id: str
    index: int
    name: str
    input: Mapping[str, Any]
    record: CallRecord = field(default_factory=CallRecord)
    interrupted: bool = False


@dataclass(slots=True)
class _Waiting:
    use: ToolUse
    index: int
    answers: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    changes: int = 0
    asks: bool = False
    runs: bool = False

    def take(self, step: ToolStep) -> None:
        match step.kind:
            case "called":
                self.index = int(step.value)
            case "began":
                self.runs = True
            case "asked":
                self.asks = True
            case "changed":
                self.changes = int(step.value)
            case "kept":
                self.kept[step.name] = step.value
            case _:
                assert_never(step.kind)

    def answer(self, text: str) -> None:
        if self.asks:
            self.answers.append(text)
            self.asks = self.runs = False

    def call(self) -> FunctionCall:
        record = CallRecord(tuple(self.answers), self.kept, self.changes)
        return FunctionCall(self.use.id, self.index, self.use.name, self.use.input, record, self.runs and not self.asks)


def pending_calls(transcript: Transcript) -> tuple[FunctionCall, ...]:
    """The calls without a result, in their order."""
    uses: dict[str, ToolUse] = {}
    waiting: dict[str, _Waiting] = {}
    for item in transcript:
        match item:
            case AssistantOutput(blocks=blocks):
                uses |= {block.id: block for block in blocks if isinstance(block, ToolUse)}
            case ToolStep(tool_use_id=use_id, kind="called"):  # an id may occur again in a later answer
                waiting[use_id] = _Waiting(uses[use_id], int(item.value))
            case ToolStep(tool_use_id=use_id):
                waiting[use_id].take(item)
            case ToolResult(tool_use_id=use_id):
                waiting.pop(use_id, None)
            case UserInput(message_id=message_id):
                if message_id:
                    for each in waiting.values():
                        each.answer(text_of_message(item))
            case _:
                assert_never(item)
    return tuple(each.call() for each in waiting.values())


def text_of_message(message: UserInput) -> str:
    """What the user has written, as the answer to a question."""
    return "\n".join(content.text for content in message.content if isinstance(content, ModelText))
