"""What the run of an agent's function has recorded, from the transcript of its task. Pure.

The run is a call without a tool: its steps (`ToolStep`) have an empty id. What it records:

| kind | value | name |
|---|---|---|
| `called` | the number of the message that it answers, among those of the transcript, from 1 | the caller |
| `began` | how often the task was taken over after a crash | |
| `paused` | its calls of tools have asked the user, and it has not | |
| `kept` | what `once` or a tool returned, as JSON | of the step |
| `shown` | what was shown since the last record (`ShownText`) | `settled`: the round has ended |
| `changed`, `asked`, `authentication` | as for a tool | |
| `set` | how often the state was set, and the digest of its value, as JSON | of the step; empty: outside |
| `took` | how many of the unread messages `messages` returned | of the call: 1, 2… |

Calls of `turn.tools` are recorded as those of a model: the call (`AssistantOutput`), its own steps, its `ToolResult`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from a2a_canvas.server.agent.events import AssistantOutput, ToolStep, Transcript, UserInput
from a2a_canvas.server.agent.loops.reply_pieces import ShownText
from a2a_canvas.server.agent.loops.turn_values import RecordedSets
from a2a_canvas.server.agent.model import ToolResult, ToolUse
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall, function_call, pending_calls
from a2a_canvas.tools.functions.recorded_call import CallRecord

SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of the run that answers the newest message.

    Attributes:
        message: the number of the message that it answers, among those of the transcript, from 1.
        before: how many items of the transcript precede it.
        call: what it has asked, kept and changed.
        shown: of the current round.
        points: what it has recorded: names of steps, numbers of answered questions, and `result_point` of calls.
        sets: how often the run has set the state, by step.
        taken: numbers of the messages that were taken meanwhile, by the call of `messages` that returned them.
        unread: numbers of the messages that the function has not taken.
        results: of its calls of tools, by their ids.
        pending: its calls of tools without a result, by their ids.
        tool_names: of all its calls of tools.
        crashes: how many crashes the task had had when the last record was made.
        interrupted: a crash has cut it off; else it has not begun, or the user has answered its question.
    """

    message: int = 0
    before: int = 0
    call: CallRecord = field(default_factory=CallRecord)
    shown: ShownText = field(default_factory=ShownText)
    points: frozenset[str | int] = frozenset()
    taken: dict[int, tuple[int, ...]] = field(default_factory=dict)
    unread: tuple[int, ...] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)
    pending: dict[str, FunctionCall] = field(default_factory=dict)
    tool_names: frozenset[str] = frozenset()
    crashes: int = 0
    interrupted: bool = False
    sets: dict[str, RecordedSets] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    message: int = 0
    before: int = 0
    shown: ShownText = field(default_factory=ShownText)
    taken: dict[int, tuple[int, ...]] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    results: dict[str, ToolResult] = field(default_factory=dict)
    paused: bool = False
    crashes: int = 0
    crashes_now: int = 0
    sets: dict[str, RecordedSets] = field(default_factory=dict)

    def take(self, step: ToolStep, unread: list[int]) -> None:
        match step.kind:
            case "began":
                self.crashes_now = int(step.value)
                return
            case "shown" if step.name == SETTLED:
                self.shown = ShownText()
                return  # a step may end rounds, and is not recorded by that
            case "shown":
                self.shown = self.shown.followed_by(step.value)
            case "set":
                self.sets[step.name] = RecordedSets(*json.loads(step.value))
            case "took":
                self.taken[int(step.name)] = tuple(unread[: int(step.value)])
                del unread[: int(step.value)]
            case "paused":
                self.paused, self.crashes_now = True, 0  # the count of the task begins again
            case _:  # see `pending_calls`
                pass
        self.crashes = self.crashes_now

    def take_of_tool(self, item: ToolStep | ToolResult) -> None:
        match item:
            case ToolResult(tool_use_id=use_id):
                if use_id not in self.calls:  # of `Turn.tool`
                    return
                self.results[use_id] = item
            case ToolStep(tool_use_id=use_id, kind="called"):
                self.calls.add(use_id)
                self.results.pop(use_id, None)
            case ToolStep(kind="began"):
                return
        self.crashes = self.crashes_now


def result_point(call_id: str) -> str:
    """The result of a call of a tool, among the points of a record."""
    return f"the result of {call_id}"


def run_record(transcript: Transcript, credentials: str | None = None) -> RunRecord:
    """The record of the newest run; without a message if there was none.

    Args:
        credentials: the user's answer that is not recorded; None without one.
    """
    run = _Run()
    messages = 0
    unread: list[int] = []
    names: dict[str, str] = {}
    for number, item in enumerate(transcript):
        match item:
            case AssistantOutput(blocks=blocks):
                names |= {block.id: block.name for block in blocks if isinstance(block, ToolUse)}
            case UserInput(message_id=message_id) if message_id:
                messages += 1
                if run.paused:
                    run.paused = False  # it is the answer
                else:
                    unread.append(messages)
            case ToolStep(tool_use_id="", kind="called"):
                run = _Run(int(item.value), number, crashes=run.crashes_now, crashes_now=run.crashes_now)
                unread.remove(run.message)
            case ToolStep(tool_use_id=""):
                run.take(item, unread)
            case ToolStep() | ToolResult():
                run.take_of_tool(item)
            case _:
                pass
    call = function_call(transcript)
    if call is None:
        return RunRecord(unread=tuple(unread))
    record = call.with_credentials(credentials).record
    answered = (number for number, answer in enumerate(record.answers) if answer is not None)
    points: frozenset[str | int] = frozenset((*record.kept, *answered, *map(result_point, run.results)))
    pending = {
        each.id: each.with_credentials(credentials) for each in pending_calls(transcript) if each.id in run.calls
    }
    return RunRecord(
        run.message,
        run.before,
        record,
        run.shown,
        points,
        run.taken,
        tuple(unread),
        run.results,
        pending,
        frozenset(names[call_id] for call_id in run.calls),
        run.crashes,
        call.interrupted,
        run.sets,
    )
