"""From journal entries to A2A's events: what one subscriber is sent.

Rule 1: a client that activates nothing sees statuses and artifacts, and misses nothing that lasts.
Rule 2: with `urn:a2a-canvas:turn:v1` it gets, in order and in between, every turn event, and with every event the
        `epoch` and `generation` of the entry that it came from.
Rule 3: `assistant`, `completed` and `stream_end` are made here: the journal keeps deltas. Every end of a turn has
        one `completed`; `stream_end` is the last turn event of a stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a.types import a2a_pb2 as pb

from server.agent.events import (
    AgentMessage,
    ArtifactChanged,
    MessageStarted,
    State,
    StatusChanged,
    TextAdded,
)
from server.agent.phases import Phase
from server.protocols import a2a_turn
from server.protocols.a2a_parts import to_message, to_part
from server.tasks.record import Entry, TaskArtifact, TaskRecord
from store.rope import Rope

Event = pb.Task | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

STATES = {
    State.SUBMITTED: pb.TASK_STATE_SUBMITTED,
    State.WORKING: pb.TASK_STATE_WORKING,
    State.INPUT_REQUIRED: pb.TASK_STATE_INPUT_REQUIRED,
    State.COMPLETED: pb.TASK_STATE_COMPLETED,
    State.CANCELED: pb.TASK_STATE_CANCELED,
    State.FAILED: pb.TASK_STATE_FAILED,
    State.REJECTED: pb.TASK_STATE_REJECTED,
}


def to_task(record: TaskRecord, *, artifacts: bool = True) -> pb.Task:
    """A task as it stands."""
    ids = (record.task_id, record.context_id)
    task = pb.Task(id=record.task_id, context_id=record.context_id)
    task.status.CopyFrom(_status(record.state, record.message, ids))
    task.status.timestamp.FromDatetime(record.changed_at)
    task.history.extend(to_message(message, *ids) for message in record.history)
    if artifacts:
        task.artifacts.extend(_artifact(artifact) for artifact in record.artifacts.values())
    return task


def _artifact(artifact: TaskArtifact) -> pb.Artifact:
    content = artifact.content
    wire = pb.Artifact(artifact_id=artifact.artifact_id, name=content.name, description=content.description)
    wire.parts.extend(to_part(part) for part in content.parts)
    return wire


def _status(state: State, message: AgentMessage | None, ids: tuple[str, str]) -> pb.TaskStatus:
    status = pb.TaskStatus(state=STATES[state])
    if message:
        status.message.CopyFrom(to_message(message, *ids))
    return status


class Projection:
    """Turns what one subscriber follows into A2A events.

    Args:
        snapshot: where the subscriber's stream begins.
        turn_events: it has activated `urn:a2a-canvas:turn:v1`.
        ends_at_pause: its stream ends when the task asks for input.
    """

    def __init__(self, snapshot: TaskRecord, *, turn_events: bool, ends_at_pause: bool) -> None:
        self._snapshot = snapshot
        self._ids = (snapshot.task_id, snapshot.context_id)
        self._turn_events = turn_events
        self._ends_at_pause = ends_at_pause
        self._reply = snapshot.reply
        self._owes_reply = False

    def begin(self) -> Iterator[Event]:
        """The snapshot; with turn events also what a reply that is being written says so far."""
        record = self._snapshot
        task = to_task(record)
        if self._turn_events:
            task.metadata.update({a2a_turn.URI: _order(record.epoch, record.generation)})
        yield task
        if self._turn_events and record.state is State.WORKING and record.progress.phase is Phase.ASSISTANT:
            order = _order(record.epoch, record.generation)
            yield self._turn_event(a2a_turn.wire("final_message_start"), order)
            if self._reply:
                yield self._turn_event(a2a_turn.assistant(str(self._reply)), order)

    def ends(self, state: State) -> bool:
        """Whether the stream ends with a status of `state`."""
        return state.terminal or (self._ends_at_pause and state is State.INPUT_REQUIRED)

    def project(self, entry: Entry, *, behind: bool = False) -> Iterator[Event]:
        """What the subscriber is sent for an entry.

        Args:
            behind: the next entry is there already, so that a reply as it stands now would be stale at once.
        """
        if self._turn_events:
            yield from self._turn(entry, behind)
        event = entry.event
        match event:
            case ArtifactChanged():
                yield self._changed(event, entry)
            case StatusChanged():
                yield self._status_update(event.state, event.message, entry)
            case _:
                pass

    # -------------------------------------------------------------- standard events

    def _changed(self, event: ArtifactChanged, entry: Entry) -> pb.TaskArtifactUpdateEvent:
        update = pb.TaskArtifactUpdateEvent(
            task_id=self._ids[0], context_id=self._ids[1], append=event.append, last_chunk=event.last_chunk
        )
        artifact = update.artifact
        artifact.artifact_id = event.artifact_id
        if not event.append:
            artifact.name, artifact.description = event.name, event.description
        artifact.parts.extend(to_part(part) for part in event.parts)
        self._number(update, entry)
        return update

    def _status_update(self, state: State, message: AgentMessage | None, entry: Entry) -> pb.TaskStatusUpdateEvent:
        update = pb.TaskStatusUpdateEvent(task_id=self._ids[0], context_id=self._ids[1])
        update.status.CopyFrom(_status(state, message, self._ids))
        update.status.timestamp.FromDatetime(entry.at)
        self._number(update, entry)
        return update

    def _number(self, update: pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent, entry: Entry) -> None:
        if self._turn_events:
            label = isinstance(entry.event, StatusChanged) and entry.event.message and entry.event.message.label
            mark = {"label": True} if label else {}
            update.metadata.update({a2a_turn.URI: {**_order(entry.epoch, entry.generation), **mark}})

    # ------------------------------------------------------------------ turn events

    def _turn(self, entry: Entry, behind: bool) -> Iterator[Event]:
        order = _order(entry.epoch, entry.generation)
        for wire in self._turn_wires(entry, behind):
            yield self._turn_event(wire, order, entry)

    def _turn_wires(self, entry: Entry, behind: bool) -> Iterator[a2a_turn.Wire]:
        event = entry.event
        if self._owes_reply and not isinstance(event, TextAdded | MessageStarted):
            self._owes_reply = False
            yield a2a_turn.assistant(str(self._reply))
        own = a2a_turn.to_wire(event)
        if own:
            yield own
        match event:
            case MessageStarted():
                self._reply, self._owes_reply = Rope(), False
            case TextAdded():
                self._reply += Rope(event.text)
                self._owes_reply = behind
                if not behind:
                    yield a2a_turn.assistant(str(self._reply))
            case StatusChanged() if event.state.terminal or event.state is State.INPUT_REQUIRED:
                yield a2a_turn.completed(event.message.text if event.message else "")
                if self.ends(event.state):
                    yield a2a_turn.STREAM_END
            case _:
                pass

    def _turn_event(
        self, wire: a2a_turn.Wire, order: dict[str, int], entry: Entry | None = None
    ) -> pb.TaskStatusUpdateEvent:
        update = pb.TaskStatusUpdateEvent(task_id=self._ids[0], context_id=self._ids[1])
        update.status.state = pb.TASK_STATE_WORKING
        update.status.timestamp.FromDatetime(entry.at if entry else self._snapshot.changed_at)
        update.metadata.update({a2a_turn.URI: {**wire, **order}})
        return update


def _order(epoch: int, generation: int) -> dict[str, Any]:
    return {"epoch": epoch, "generation": generation}
