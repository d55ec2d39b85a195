"""Projects journal entries to the events of an AG-UI run, for one subscriber.

Rule 1: a run begins with RUN_STARTED and the state, and ends with RUN_FINISHED or RUN_ERROR; a pause of the task ends
        it with an interrupt. Everything that was started is ended first. Only a lost stream ends with RUN_ERROR
        alone, because its task has not ended.
Rule 2: messages, reasoning and tool calls are AG-UI's own events (messages.py); changes of the state are STATE_DELTA.
Rule 3: everything else is CUSTOM, with `event_type` as its name and `data` as its value: the events of the turn, those
        of edits (docs/canvas.md), and changes of annotations (docs/annotations.md). `assistant`, `completed` and
        `stream_end` are made here, because the journal keeps deltas; `stream_end` is the last of them.
        What the agent's function sends to AG-UI clients is passed on (agent_events.py).
Rule 4: thinking is sent only if it is exposed.
Rule 5: `assistant` is the whole reply, which cannot be appended to. While the reply grows it is sent again whenever it
        has grown by an eighth, and when a text ends: the deltas are also sent one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

from ag_ui import core

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.endings import approvals_of
from a2a_canvas.server.agent.phases import Phase
from a2a_canvas.server.protocols.a2a_v1.projection import turn_ext
from a2a_canvas.server.protocols.a2a_v1.projection.annotation_json import changes_json
from a2a_canvas.server.protocols.agui.agent_events import AgentEvents
from a2a_canvas.server.protocols.agui.messages import MessageEvents
from a2a_canvas.server.protocols.agui.state import RunState
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.edit_events import EditChunk, EditStarted
from a2a_canvas.store.text.rope import Rope

UNAVAILABLE = "unavailable"
"""The code of an error after which the same run can be sent again. All other codes are states of the task."""


Piece = tuple[Hashable | None, Callable[[], core.BaseEvent | None]]
"""A name, and how to make the event that has it. Of one entry it is the same for all runs with the same view; None if
there is none."""


class RunProjection:
    """Projects what one subscriber follows to one AG-UI run.

    Args:
        snapshot: the task where the subscriber's stream begins.
        state: of that snapshot.
        thread_id, run_id: the client's names.
        expose_thinking: send the model's thinking.
        history: the messages that the client sent with the run; None for a client that keeps them to itself.

    Attributes:
        ended: the last event has been made.
        view: what others have who see the same of the task.
    """

    def __init__(
        self,
        snapshot: TaskRecord,
        state: RunState,
        *,
        thread_id: str,
        run_id: str,
        expose_thinking: bool,
        history: Sequence[core.Message] | None = (),
    ) -> None:
        self.ended = False
        self.view: Hashable = ("agui", snapshot.task_id, expose_thinking)
        self._snapshot = snapshot
        self._state = state
        self._thread_id, self._run_id = thread_id, run_id
        self._filter = turn_ext.ThinkingFilter(expose_thinking, snapshot.progress.thinking)
        self._messages = MessageEvents(snapshot.task_id, history)
        self._agent = AgentEvents(snapshot.agui, self._messages.record_activity)
        self._reply = turn_ext.ReplySoFar(snapshot.reply)

    def begin(self) -> Iterator[core.BaseEvent]:
        """The state, and what has been written so far; the whole run if the task has ended or waits for input."""
        record = self._snapshot
        yield core.RunStartedEvent(
            thread_id=self._thread_id, run_id=self._run_id, protocol_version=core.PROTOCOL_VERSION
        )
        yield core.StateSnapshotEvent(snapshot=self._state.snapshot())
        yield from self._agent.begin()
        if record.state.settled:
            if record.message:
                yield from self._messages.project_message(record.message)
            yield from self._end(record.state, record.message)
        else:
            yield from self._catch_up(record)

    def _catch_up(self, record: TaskRecord) -> Iterator[core.BaseEvent]:
        if record.progress.phase is Phase.ASSISTANT:
            yield _custom(turn_ext.turn_event("final_message_start"))
        if record.reply:
            yield from self._messages.begin(record.progress.round, record.reply)
            yield from map(_assistant, self._reply.send())
        for edit in record.open_edits.values():
            of = (edit.edit_id, edit.artifact_id, edit.selection)
            yield _custom(turn_ext.edit_event(EditStarted(*of, edit.strategy, edit.version, edit.mode)))
            if edit.text:
                yield _custom(turn_ext.edit_event(EditChunk(*of, str(edit.text))))

    def project(self, entry: Entry, *, behind: bool = False) -> Iterator[core.BaseEvent]:
        """The events for an entry.

        Args:
            behind: the next entry exists already: the reply so far would be out of date.
        """
        made = (make() for _, make in self.pieces(entry, behind=behind))
        return (event for event in made if event is not None)

    def pieces(self, entry: Entry, *, behind: bool = False) -> Iterator[Piece]:
        """The events for an entry, not made yet. Those that depend on what this subscriber has have no name."""
        event = entry.event
        for text in self._reply.send_before(event):
            yield ("before", len(text)), partial(_assistant, text)
        if shown := self._filter.filter(event):
            yield from _own(self._messages.project(shown))
            yield "turn", partial(_turn_event, shown)
        for text in self._reply.follow(event, behind=behind):
            yield ("after", len(text)), partial(_assistant, text)
        if isinstance(event, AnnotationsChanged):
            yield "annotations", lambda: core.CustomEvent(name="annotations", value=changes_json(event))
        yield from _own(self._status(event) if isinstance(event, ev.StatusChanged) else self._delta(event))

    def _delta(self, event: ev.TurnEvent) -> Iterator[core.BaseEvent]:
        yield from self._agent.project(event)
        patch = self._state.apply(event)
        if patch:
            yield core.StateDeltaEvent(delta=patch)  # type: ignore[arg-type]  # pydantic makes operations of them

    def _status(self, event: ev.StatusChanged) -> Iterator[core.BaseEvent]:
        message, ends = event.message, event.state.settled
        if ends:
            yield from self._messages.end()
        if message and not message.label:
            yield from self._messages.project_message(message)
        yield from self._delta(event)
        if ends:
            yield from self._end(event.state, message)

    def _end(self, state: ev.State, message: ev.AgentMessage | None) -> Iterator[core.BaseEvent]:
        self.ended = True
        text = message.text if message else ""
        yield from self._messages.take_back(state)
        yield _custom(turn_ext.completed_event(text))
        yield _custom(turn_ext.STREAM_END)
        result = message.metadata.get(CANVAS) if message else None
        match state:
            case ev.State.COMPLETED:
                if result is not None:
                    yield core.CustomEvent(name="operation_result", value=result)
                yield self._finish(core.RunFinishedSuccessOutcome())
            case ev.State.CANCELED:
                yield self._finish(core.RunFinishedCancelledOutcome())
            case ev.State.INPUT_REQUIRED | ev.State.AUTH_REQUIRED:
                reason = state.value.replace("-", "_")
                interrupt = core.Interrupt(
                    id=self._snapshot.task_id, reason=reason, message=text, **_approvals(message)
                )
                yield self._finish(core.RunFinishedInterruptOutcome(interrupts=[interrupt]))
            case _:
                if result is not None:
                    yield core.CustomEvent(name="rejected", value=result)
                yield core.RunErrorEvent(message=text or f"The task is {state.value}.", code=state.value)

    def _finish(self, outcome: core.RunFinishedOutcome) -> core.BaseEvent:
        return core.RunFinishedEvent(thread_id=self._thread_id, run_id=self._run_id, outcome=outcome)


def unavailable(message: str) -> core.BaseEvent:
    """The last event of a stream that is lost while its task is still running. `message` says how to rejoin."""
    return core.RunErrorEvent(message=message, code=UNAVAILABLE)


def refusal(message: str) -> core.BaseEvent:
    """The only event of a run that is refused after its stream has begun."""
    return core.RunErrorEvent(message=message, code=ev.State.REJECTED.value)


def _custom(wire: turn_ext.TurnEventJson) -> core.BaseEvent:
    return core.CustomEvent(name=wire["event_type"], value=wire["data"])


def _assistant(content: Rope) -> core.BaseEvent:
    return _custom(turn_ext.assistant_event(content))


def _turn_event(event: ev.TurnEvent) -> core.BaseEvent | None:
    wire = turn_ext.to_turn_event(event)
    return None if wire is None else _custom(wire)


def _own(events: Iterator[core.BaseEvent]) -> Iterator[Piece]:
    return ((None, partial(_itself, event)) for event in events)


def _itself(event: core.BaseEvent) -> core.BaseEvent:
    return event


def _approvals(message: ev.AgentMessage | None) -> dict[str, Any]:
    """The fields of an interrupt for the calls that the user is asked to approve."""
    approvals: Any = approvals_of(message)
    if not (message and approvals):
        return {}
    return {"metadata": message.metadata[CANVAS]} | (
        {"tool_call_id": approvals[0]["toolCallId"]} if len(approvals) == 1 else {}
    )
