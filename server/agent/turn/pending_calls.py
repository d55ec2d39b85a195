"""The calls of function tools without a result yet, from the transcript of their task. Pure.

A call waits because it asked the user, or because a crash interrupted it. Either way it is run again, with its record
(`tools/functions/canvas.py`). The run of an agent's function (`loops/run_record.py`) is a call without a tool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from a2a_canvas.server.agent.events import AssistantOutput, ToolStep, Transcript, UserInput
from a2a_canvas.server.agent.model import ModelText, ToolResult, ToolUse
from a2a_canvas.server.log_output import MASK
from a2a_canvas.tools.functions.recorded_call import CallRecord
from a2a_canvas.tools.functions.repeated_changes import ChangeKey, SavedChanges, with_saved

FUNCTION = ""
"""The id of the call that is the run of an agent's function."""
SECRET_LENGTH = 8
"""The minimum length of an answer that counts as a secret: “done” does not."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call to run.

    Attributes:
        index: of its block.
        caller: the user whose message the model had read last when it made the call; empty if anonymous.
        record: of its previous run.
        interrupted: a crash interrupted it; else it has not begun, or the user has answered its question.
        withheld: the numbers of its questions whose answer, the newest message, is not recorded.
        credentials: that answer, if available.
        approved: the user has approved it elsewhere, so it needs no approval here.
    """

    id: str
    index: int
    name: str
    input: Mapping[str, Any]
    caller: str = ""
    record: CallRecord = field(default_factory=CallRecord)
    interrupted: bool = False
    withheld: frozenset[int] = frozenset()
    credentials: str = field(default="", repr=False)
    approved: bool = False

    def with_credentials(self, credentials: str | None) -> FunctionCall:
        """The call with the unrecorded answer; `credentials` is None if it is lost."""
        if not self.withheld or credentials is None:
            return self
        answers = tuple(
            credentials if number in self.withheld else answer for number, answer in enumerate(self.record.answers)
        )
        return replace(self, record=replace(self.record, answers=answers), credentials=credentials)

    def hide_credentials(self, text: str) -> str:
        """A text from the call, with its credentials masked."""
        return text.replace(self.credentials, MASK) if len(self.credentials) >= SECRET_LENGTH else text


def kept_values(transcripts: Iterable[Transcript], names: Collection[str]) -> list[str]:
    """The JSON texts that calls, and runs of an agent's function, have kept under these names, oldest first."""
    steps = (item for transcript in transcripts for item in transcript if isinstance(item, ToolStep))
    return [step.value for step in steps if step.kind == "kept" and step.name in names]


@dataclass(slots=True)
class _WaitingCall:
    use: ToolUse
    index: int
    caller: str
    answers: list[str | None] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    changes: dict[ChangeKey, SavedChanges] = field(default_factory=dict)
    asks: set[int] = field(default_factory=set)
    credentials: bool = False
    withheld: frozenset[int] = frozenset()
    runs: bool = False

    def take(self, step: ToolStep) -> None:
        match step.kind:
            case "called":
                self.index = int(step.value)
            case "began":
                self.runs, self.credentials = True, False
                self.asks.clear()
            case "asked" | "authentication":
                self.asks.add(int(step.name) if step.name else len(self.answers))
                self.credentials |= step.kind == "authentication"
            case "changed":
                self.changes = with_saved(self.changes, step.name, step.value)
            case "kept":
                self.kept[step.name] = step.value
            case "paused":
                self.runs = False
            case "shown" | "took" | "set" | "answered":
                pass
            case _:
                assert_never(step.kind)

    def answer(self, text: str | None) -> None:
        """Take a message; None for one that is not recorded."""
        if not self.asks:
            return
        self.answers += [None] * (max(self.asks) + 1 - len(self.answers))
        for number in self.asks:
            self.answers[number] = text
        self.withheld = frozenset(self.asks if text is None else ())
        self.credentials = self.runs = False
        self.asks.clear()

    def call(self) -> FunctionCall:
        record, use = CallRecord(tuple(self.answers), self.kept, self.changes), self.use
        interrupted = self.runs and not self.asks
        return FunctionCall(use.id, self.index, use.name, use.input, self.caller, record, interrupted, self.withheld)


def pending_calls(transcript: Transcript) -> tuple[FunctionCall, ...]:
    """The calls of tools without a result, in their order."""
    return tuple(each.call() for each in _waiting_calls(transcript) if each.use.id != FUNCTION)


def function_call(transcript: Transcript) -> FunctionCall | None:
    """The newest run of an agent's function; None if there was none."""
    return next((each.call() for each in _waiting_calls(transcript) if each.use.id == FUNCTION), None)


def asks_for_credentials(transcript: Transcript) -> bool:
    """Whether a call waits for an answer that must not be recorded; if one does, none of the answers is."""
    return any(each.credentials for each in _waiting_calls(transcript))


def callers_to_log_in(transcript: Transcript) -> frozenset[str]:
    """The callers of the calls that wait for a login."""
    return frozenset(each.caller for each in _waiting_calls(transcript) if each.credentials)


def _waiting_calls(transcript: Transcript) -> Collection[_WaitingCall]:
    uses: dict[str, ToolUse] = {}
    waiting: dict[str, _WaitingCall] = {}
    for item in transcript:
        match item:
            case AssistantOutput(blocks=blocks):
                uses |= {block.id: block for block in blocks if isinstance(block, ToolUse)}
            case UserInput(message_id="") | ToolStep(kind="answered"):
                pass
            case ToolStep(tool_use_id="", kind="called"):
                waiting[FUNCTION] = _WaitingCall(ToolUse(FUNCTION, "", {}), -1, item.name)
            case ToolStep(tool_use_id=use_id, kind="called"):  # an id may occur again in a later answer
                waiting[use_id] = _WaitingCall(uses[use_id], int(item.value), item.name)
            case ToolStep(tool_use_id=use_id):
                waiting[use_id].take(item)
            case ToolResult(tool_use_id=use_id):
                waiting.pop(use_id, None)
            case UserInput():
                withheld = any(each.credentials for each in waiting.values())
                for each in waiting.values():
                    each.answer(None if withheld else text_of_message(item))
            case _:
                assert_never(item)
    return waiting.values()


def text_of_message(message: UserInput) -> str:
    """The user's text, as the answer to a question."""
    return "\n".join(content.text for content in message.content if isinstance(content, ModelText))
