"""Projects journal entries to the A2A events of one subscriber.

Rule 1: a client that activates no extension gets statuses and artifacts, and misses nothing that is stored.
Rule 2: with `urn:a2a-canvas:turn:v1` it also gets every turn event, in order, and with every event the `epoch` and
        `generation` of its entry.
Rule 3: with `urn:a2a-canvas:canvas:v1` it gets edits while they are written, and the versions of artifacts; without
        it an edit is one replacement of the artifact.
Rule 4: a client without turn events cannot tell a label from what the agent says. It gets the labels of tools only, at
        most one a second; all others become statuses without a message.
Rule 5: `assistant`, `completed` and `stream_end` are made here: the journal keeps deltas. Every end of a turn has
        one `completed`; `stream_end` is the last turn event of a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.events import (
    AgentMessage,
    ArtifactChanged,
    State,
    StatusChanged,
)
from a2a_canvas.server.agent.phases import Phase
from a2a_canvas.server.protocols.a2a_v1.projection import canvas_ext, turn_ext
from a2a_canvas.server.protocols.a2a_v1.projection.annotation_json import changes_json
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.parts import to_artifact, to_message, to_update
from a2a_canvas.server.protocols.a2a_v1.projection.update_json import JsonUpdate, artifact_update_json, working_json
from a2a_canvas.server.protocols.edge.wire_times import cut_to_milliseconds
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.wire import CANVAS, TURN
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested
from a2a_canvas.store.ids import public_id

LABEL_INTERVAL = timedelta(seconds=1)
"""The least time between two labels for a client without turn events."""

A2AEvent = pb.Task | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent | JsonUpdate
"""What a subscriber is sent; a `JsonUpdate` only if it reads A2A's JSON."""

Piece = tuple[Hashable, Callable[[], A2AEvent | None]]
"""A name, and how to make the event that has it. Of one entry, all subscribers with the same view for whom a name comes
up get the same event by it; None if there is none."""

STATES = {
    State.SUBMITTED: pb.TASK_STATE_SUBMITTED,
    State.WORKING: pb.TASK_STATE_WORKING,
    State.INPUT_REQUIRED: pb.TASK_STATE_INPUT_REQUIRED,
    State.AUTH_REQUIRED: pb.TASK_STATE_AUTH_REQUIRED,
    State.COMPLETED: pb.TASK_STATE_COMPLETED,
    State.CANCELED: pb.TASK_STATE_CANCELED,
    State.FAILED: pb.TASK_STATE_FAILED,
    State.REJECTED: pb.TASK_STATE_REJECTED,
}


def to_task(record: TaskRecord, activated: ActivatedExtensions | None = None, *, artifacts: bool = True) -> pb.Task:
    """The task in its current state."""
    ids = (record.task_id, public_id(record.context_id))
    task = pb.Task(id=ids[0], context_id=ids[1])
    turn = activated is not None and activated.turn
    task.status.CopyFrom(_status(record.state, _visible_message(record.message, turn=turn), ids, record.changed_at))
    task.history.extend(to_message(message, *ids) for message in record.history)
    if artifacts:
        task.artifacts.extend(
            to_artifact(artifact.artifact_id, artifact.content) for artifact in record.artifacts.values()
        )
    if activated:
        task.metadata.update(_snapshot_metadata(activated, record))
    return task


def _snapshot_metadata(activated: ActivatedExtensions, record: TaskRecord) -> dict[str, Any]:
    # Turn events include the chunks of edits, so a subscriber to them needs the edits in progress.
    edits = canvas_ext.open_edits(record) if activated.turn else []
    turn = {"openEdits": edits} if edits else {}
    canvas = canvas_ext.snapshot_metadata(record) if activated.canvas else {}
    return _metadata(activated, record, turn=turn, canvas=canvas)


def _visible_message(message: AgentMessage | None, *, turn: bool) -> AgentMessage | None:
    """The message of a status as a client sees it (rule 4)."""
    return message if message and (turn or message.of_tool or not message.label) else None


def _status(state: State, message: AgentMessage | None, ids: tuple[str, str], at: datetime | None) -> pb.TaskStatus:
    status = pb.TaskStatus(state=STATES[state])
    if at:
        status.timestamp.FromDatetime(cut_to_milliseconds(at))
    if message:
        status.message.CopyFrom(to_message(message, *ids))
    return status


class TaskProjection:
    """Projects the entries of one task for one subscriber.

    Args:
        snapshot: the task at the beginning of the subscriber's stream.
        activated: the extensions that the subscriber has activated.
        ends_at_pause: its stream ends when the task asks for input.
        expose_thinking: turn events include thinking.
        as_json: the subscriber reads A2A's JSON: frequent updates are written as JSON directly (update_json.py).

    Attributes:
        view: what others have who see the same of the task.
    """

    def __init__(
        self,
        snapshot: TaskRecord,
        activated: ActivatedExtensions,
        *,
        ends_at_pause: bool,
        expose_thinking: bool = True,
        as_json: bool = False,
    ) -> None:
        self._snapshot = snapshot
        self._as_json = as_json
        self._ids = (snapshot.task_id, public_id(snapshot.context_id))
        self._activated = activated
        self.view: Hashable = (snapshot.task_id, activated.turn, activated.canvas, expose_thinking)
        self._ends_at_pause = ends_at_pause
        self._filter = turn_ext.ThinkingFilter(expose_thinking, snapshot.progress.thinking)
        self._reply = turn_ext.ReplySoFar(snapshot.reply)
        labelled = snapshot.message is not None and snapshot.message.of_tool
        self._labelled_at = snapshot.changed_at if labelled else None

    def begin(self) -> Iterator[A2AEvent]:
        """The snapshot; with turn events also the reply so far.

        That includes a task that is `submitted` again after an answer: it continues where it paused.
        """
        record = self._snapshot
        yield to_task(record, self._activated)
        if self._activated.turn and not record.state.settled and record.progress.phase is Phase.ASSISTANT:
            yield self._event(record, turn=turn_ext.turn_event("final_message_start"))
            for text in self._reply.send():
                yield self._event(record, turn=turn_ext.assistant_event(text))

    def ends(self, state: State) -> bool:
        """Whether the stream ends with a status of `state`."""
        return state.terminal or (self._ends_at_pause and state.paused)

    def project(self, entry: Entry, *, behind: bool = False) -> Iterator[A2AEvent]:
        """The events of an entry.

        Args:
            behind: the next entry exists already: the reply so far would be out of date.
        """
        made = (make() for _, make in self.pieces(entry, behind=behind))
        return (event for event in made if event is not None)

    def pieces(self, entry: Entry, *, behind: bool = False) -> Iterator[Piece]:
        """The events of an entry, not made yet. Each is made at any time, or never."""
        if self._activated.turn:
            for name, wire in self._turn_wires(entry, behind):
                yield name, partial(self._turn_event, entry, wire)
        event = entry.event
        match event:
            case ArtifactChanged():
                yield "artifact", partial(self._artifact_update, event, entry)
            case StatusChanged():
                message = self._status_message(event.message, entry.at)
                name = "status" if message is event.message else "status without its message"
                yield name, partial(self._status_update, event.state, message, entry)
            case EditStarted() | EditChunk() | EditCompleted() | EditSuggested() | EditAborted() if (
                self._activated.canvas
            ):
                yield "edit", lambda: self._event(entry, canvas=canvas_ext.edit_metadata(event))
            case AnnotationsChanged() if self._activated.canvas:
                yield "annotations", lambda: self._event(entry, canvas={"annotations": changes_json(event)})
            case _:
                pass

    def _artifact_update(self, event: ArtifactChanged, entry: Entry) -> A2AEvent:
        canvas = canvas_ext.change_metadata(event) if self._activated.canvas else {}
        metadata = _metadata(self._activated, entry, canvas=canvas)
        if self._as_json and (written := artifact_update_json(event, *self._ids, metadata)):
            return written
        update = to_update(event, *self._ids)
        update.metadata.update(metadata)
        return update

    def _status_message(self, message: AgentMessage | None, at: datetime) -> AgentMessage | None:
        """The message of a status; None if the client does not see it (rule 4)."""
        message = _visible_message(message, turn=self._activated.turn)
        if self._activated.turn or message is None or not message.label:
            return message
        if self._labelled_at and abs(at - self._labelled_at) < LABEL_INTERVAL:
            return None
        self._labelled_at = at
        return message

    def _status_update(self, state: State, message: AgentMessage | None, entry: Entry) -> pb.TaskStatusUpdateEvent:
        update = pb.TaskStatusUpdateEvent(task_id=self._ids[0], context_id=self._ids[1])
        update.status.CopyFrom(_status(state, message, self._ids, entry.at))
        label = {"label": True} if message and message.label else {}
        rejection = message.metadata.get(CANVAS) if message else None
        canvas = rejection if isinstance(rejection, dict) else {}
        update.metadata.update(_metadata(self._activated, entry, turn=label, canvas=canvas))
        return update

    def _event(
        self,
        at: Entry | TaskRecord,
        *,
        turn: turn_ext.TurnEventJson | None = None,
        canvas: dict[str, Any] | None = None,
    ) -> A2AEvent:
        """An event of one of the extensions: only its metadata, in a `working` status without a message."""
        time = None if turn is None else at.at if isinstance(at, Entry) else at.changed_at
        metadata = _metadata(ActivatedExtensions(turn is not None, canvas is not None), at, turn=turn, canvas=canvas)
        if self._as_json:
            return working_json(*self._ids, time, metadata)
        update = pb.TaskStatusUpdateEvent(task_id=self._ids[0], context_id=self._ids[1])
        update.status.CopyFrom(_status(State.WORKING, None, self._ids, time))
        update.metadata.update(metadata)
        return update

    def _turn_event(self, entry: Entry, wire: _Wire) -> A2AEvent | None:
        turn = wire()
        return None if turn is None else self._event(entry, turn=turn)

    def _turn_wires(self, entry: Entry, behind: bool) -> Iterator[tuple[Hashable, _Wire]]:
        event = entry.event
        for text in self._reply.send_before(event):
            yield ("before", len(text)), partial(turn_ext.assistant_event, text)
        if shown := self._filter.filter(event):
            yield "turn", partial(turn_ext.to_turn_event, shown)
        for text in self._reply.follow(event, behind=behind):
            yield ("after", len(text)), partial(turn_ext.assistant_event, text)
        if isinstance(event, StatusChanged) and event.state.settled:
            text_of_end = event.message.text if event.message else ""
            yield "completed", partial(turn_ext.completed_event, text_of_end)
            if self.ends(event.state):
                yield "end", lambda: turn_ext.STREAM_END


_Wire = Callable[[], turn_ext.TurnEventJson | None]


def _metadata(
    activated: ActivatedExtensions,
    at: Entry | TaskRecord,
    *,
    turn: Mapping[str, Any] | None = None,
    canvas: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The metadata of the activated extensions: their own fields, and the order."""
    order = {"epoch": at.epoch, "generation": at.generation}
    metadata = {}
    if activated.turn:
        metadata[TURN] = {**(turn or {}), **order}
    if activated.canvas:
        metadata[CANVAS] = {**(canvas or {}), **order}
    return metadata
