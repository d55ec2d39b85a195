"""What the run of an agent's function has recorded, from the transcript of its task. Pure.

The run is a call without a tool: its steps (`ToolStep`) have an empty id. What it records:

| kind | value | name |
|---|---|---|
| `called` | the number of the message that it answers, among those of the transcript | the caller |
| `began` | | |
| `kept` | what `once` or a tool returned, as JSON | of the step |
| `shown` | the reply since the last record, a JSON array (empty text: a block ends) | `settled`: the round has ended |
| `changed`, `asked`, `authentication` | as for a tool | |
| `took` | how many messages `messages` returned | of the call: 1, 2… |
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from a2a_canvas.server.agent.events import ToolStep, Transcript, UserInput
from a2a_canvas.server.agent.turn.pending_calls import text_of_message
from a2a_canvas.tools.functions.recorded_call import CallRecord, ChangeKey

FUNCTION = ""
"""The id of the call that is the agent's function."""
SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of the run that answers the newest message.

    Attributes:
        message: the number of the message that it answers, among those of the transcript.
        call: what it has asked, kept and changed.
        shown: the text of the current round, in pieces; an empty piece ends a block.
        points: how many records it consists of.
        taken: numbers of the messages that were taken meanwhile, by the call of `messages` that returned them.
        runs: how often it has begun since the last record.
        interrupted: a crash has cut it off; else it has not begun, or the user has answered its question.
    """

    message: int = 0
    call: CallRecord = field(default_factory=CallRecord)
    shown: tuple[str, ...] = ()
    points: int = 0
    taken: dict[int, range] = field(default_factory=dict)
    runs: int = 0
    interrupted: bool = False


@dataclass(slots=True)
class _Run:
    message: int = 0
    answers: list[str | None] = field(default_factory=list)
    asks: list[int] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    changes: dict[ChangeKey, int] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    taken: dict[int, range] = field(default_factory=dict)
    runs: int = 0
    interrupted: bool = False

    def take(self, step: ToolStep, messages: int) -> None:
        match step.kind:
            case "began":
                self.runs, self.interrupted = self.runs + 1, True
                return
            case "changed":
                self.changes |= {(step.name, artifact): count for artifact, count in json.loads(step.value).items()}
            case "kept":
                self.kept[step.name] = step.value
            case "shown":
                self.shown = [] if step.name == SETTLED else [*self.shown, *json.loads(step.value)]
            case "asked" | "authentication":
                self.asks.append(int(step.name))
                self.interrupted = False
            case "took":
                self.taken[int(step.name)] = range(messages - int(step.value), messages)
            case "called":
                pass
        self.runs = 0

    def answer(self, text: str) -> None:
        """The user has answered what was asked."""
        for number in self.asks:
            self.answers += [None] * (number + 1 - len(self.answers))
            self.answers[number] = text
        self.asks.clear()


def run_record(transcript: Transcript) -> RunRecord | None:
    """The record of the newest run; None if there was none."""
    run: _Run | None = None
    messages = 0
    for item in transcript:
        match item:
            case UserInput(message_id=message_id) if message_id:
                messages += 1
                if run:
                    run.answer(text_of_message(item))
            case ToolStep(tool_use_id="", kind="called"):
                run = _Run(int(item.value))
            case ToolStep(tool_use_id="") if run:
                run.take(item, messages)
            case _:
                pass
    if run is None:
        return None
    record = CallRecord(tuple(run.answers), run.kept, run.changes)
    points = len(run.kept) + sum(answer is not None for answer in run.answers)
    return RunRecord(run.message, record, tuple(run.shown), points, run.taken, run.runs, run.interrupted)
