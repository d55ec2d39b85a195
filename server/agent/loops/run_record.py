"""What the run of an agent's function has recorded, from the transcript of its task. Pure.

The run is a call without a tool: its steps (`ToolStep`) have an empty id. What it records:

| kind | value | name |
|---|---|---|
| `called` | the number of the message that it answers, among those of the transcript | the caller |
| `began` | | |
| `paused` | its calls of tools have asked the user, and it has not | |
| `kept` | what `once` or a tool returned, as JSON | of the step |
| `shown` | the reply since the last record, a JSON array (empty text: a block ends) | `settled`: the round has ended |
| `changed`, `asked`, `authentication` | as for a tool | |
| `set` | how often the state was set, and the digest of its value, as JSON | of the step; empty: outside |
| `took` | how many messages `messages` returned | of the call: 1, 2… |

Calls of `turn.tools` are recorded as those of a model: the call (`AssistantOutput`), its own steps, its `ToolResult`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from a2a_canvas.server.agent.events import AssistantOutput, ToolStep, Transcript, UserInput
from a2a_canvas.server.agent.loops.turn_values import RecordedSets
from a2a_canvas.server.agent.model import ToolResult, ToolUse
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall, function_call, pending_calls
from a2a_canvas.tools.functions.recorded_call import CallRecord

SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of the run that answers the newest message.

    Attributes:
        message: the number of the message that it answers, among those of the transcript.
        call: what it has asked, kept and changed.
        shown: the text of the current round, in pieces; an empty piece ends a block.
        points: how many records it consists of.
        sets: how often the run has set the state, by step.
        taken: numbers of the messages that were taken meanwhile, by the call of `messages` that returned them.
        results: of its calls of tools, by their ids.
        pending: its calls of tools without a result, by their ids.
        tool_names: of all its calls of tools.
        runs: how often it has begun since the last record.
        interrupted: a crash has cut it off; else it has not begun, or the user has answered its question.
    """

    message: int = 0
    call: CallRecord = field(default_factory=CallRecord)
    shown: tuple[str, ...] = ()
    points: int = 0
    taken: dict[int, range] = field(default_factory=dict)
    results: dict[str, ToolResult] = field(default_factory=dict)
    pending: dict[str, FunctionCall] = field(default_factory=dict)
    tool_names: frozenset[str] = frozenset()
    runs: int = 0
    interrupted: bool = False
    sets: dict[str, RecordedSets] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    message: int = 0
    shown: list[str] = field(default_factory=list)
    taken: dict[int, range] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    results: dict[str, ToolResult] = field(default_factory=dict)
    runs: int = 0
    sets: dict[str, RecordedSets] = field(default_factory=dict)

    def take(self, step: ToolStep, messages: int) -> None:
        match step.kind:
            case "began":
                self.runs += 1
                return
            case "shown" if step.name == SETTLED:
                self.shown = []
                return  # a step may end rounds, and is not recorded by that
            case "shown":
                self.shown += json.loads(step.value)
            case "took":
                self.taken[int(step.name)] = range(messages - int(step.value), messages)
            case "set":
                self.sets[step.name] = RecordedSets(*json.loads(step.value))
            case _:  # see `pending_calls`
                pass
        self.runs = 0

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
        self.runs = 0


def run_record(transcript: Transcript, credentials: str | None = None) -> RunRecord | None:
    """The record of the newest run; None if there was none.

    Args:
        credentials: the user's answer that is not recorded; None without one.
    """
    run: _Run | None = None
    messages = 0
    names: dict[str, str] = {}
    for item in transcript:
        match item:
            case AssistantOutput(blocks=blocks):
                names |= {block.id: block.name for block in blocks if isinstance(block, ToolUse)}
            case UserInput(message_id=message_id) if message_id:
                messages += 1
            case ToolStep(tool_use_id="", kind="called"):
                run = _Run(int(item.value))
            case ToolStep(tool_use_id="") if run:
                run.take(item, messages)
            case ToolStep() | ToolResult() if run:
                run.take_of_tool(item)
            case _:
                pass
    call = function_call(transcript)
    if run is None or call is None:
        return None
    record = call.with_credentials(credentials).record
    points = len(record.kept) + sum(answer is not None for answer in record.answers) + len(run.results)
    pending = {
        each.id: each.with_credentials(credentials) for each in pending_calls(transcript) if each.id in run.calls
    }
    return RunRecord(
        run.message,
        record,
        tuple(run.shown),
        points,
        run.taken,
        run.results,
        pending,
        frozenset(names[call_id] for call_id in run.calls),
        run.runs,
        call.interrupted,
        run.sets,
    )
