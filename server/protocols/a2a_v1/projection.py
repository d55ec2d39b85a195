"""From journal entries to A2A's events: what one subscriber is sent.

Rule 1: a client that activates nothing sees statuses and artifacts, and misses nothing that lasts.
Rule 2: with `urn:a2a-canvas:turn:v1` it gets, in order and in between, every turn event, and with every event the
        `epoch` and `generation` of the entry that it came from.
Rule 3: with `urn:a2a-canvas:canvas:v1` it sees edits while they are written, and the versions of artifacts; without it
        an edit is one replacement of the artifact.
Rule 4: `assistant`, `completed` and `stream_end` are made here: the journal keeps deltas. Every end of a turn has
        one `completed`; `stream_end` is the last turn event of a stream.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.events import (
    AgentMessage,
    ArtifactChanged,
    MessageStarted,
    State,
    StatusChanged,
    TextAdded,
)
from a2a_canvas.server.agent.phases import Phase
from a2a_canvas.server.protocols.a2a_v1 import canvas_ext, turn_ext
from a2a_canvas.server.protocols.a2a_v1.parts import to_artifact, to_message, to_update
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.store.edits import EditAborted, EditChunk, EditCompleted, EditStarted
from a2a_canvas.store.text.rope import Rope

StreamEvent = pb.Task | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

STATES = {
    State.SUBMITTED: pb.TASK_STATE_SUBMITTED,
    State.WORKING: pb.TASK_STATE_WORKING,
    State.INPUT_REQUIRED: pb.TASK_STATE_INPUT_REQUIRED,
    State.COMPLETED: pb.TASK_STATE_COMPLETED,
    State.CANCELED: pb.TASK_STATE_CANCELED,
    State.FAILED: pb.TASK_STATE_FAILED,
    State.REJECTED: pb.TASK_STATE_REJECTED,
}


@dataclass(frozen=True, slots=True)
class ActivatedExtensions:
    """Which of our extensions a client has activated."""

    turn: bool = False
    canvas: bool = False

    @classmethod
    def of(cls, uris: Container[str]) -> ActivatedExtensions:
        return cls(turn_ext.URI in uris, canvas_ext.URI in uris)


def to_task(record: TaskRecord, activated: ActivatedExtensions | None = None, *, artifacts: bool = True) -> pb.Task:
    """A task as it stands."""
    ids = (record.task_id, record.context_id)
    task = pb.Task(id=record.task_id, context_id=record.context_id)
    task.status.CopyFrom(_status(record.state, record.message, ids))
    task.status.timestamp.FromDatetime(record.changed_at)
    task.history.extend(to_message(message, *ids) for message in record.history)
    if artifacts:
        task.artifacts.extend(
            to_artifact(artifact.artifact_id, artifact.content) for artifact in record.artifacts.values()
        )
    if activated:
        task.metadata.update(_of_snapshot(activated, record))
    return task


def _of_snapshot(activated: ActivatedExtensions, record: TaskRecord) -> dict[str, Any]:
    # The turn events tell of edits, too, and so of how one goes on that has begun before.
    edits = canvas_ext.open_edits(record) if activated.turn else []
    turn = {"openEdits": edits} if edits else {}
    return _metadata(
        activated, record, turn=turn, canvas=canvas_ext.snapshot_metadata(record) if activated.canvas else {}
    )


def _status(state: State, message: AgentMessage | None, ids: tuple[str, str]) -> pb.TaskStatus:
    status = pb.TaskStatus(state=STATES[state])
    if message:
        status.message.CopyFrom(to_message(message, *ids))
    return status


class TaskProjection:
    """Turns what one subscriber follows into A2A events.

    Args:
        snapshot: where the subscriber's stream begins.
        activated: the extensions that it has activated.
        ends_at_pause: its stream ends when the task asks for input.
    """

    def __init__(self, snapshot: TaskRecord, activated: ActivatedExtensions, *, ends_at_pause: bool) -> None:
        self._snapshot = snapshot
        self._ids = (snapshot.task_id, snapshot.context_id)
        self._activated = activated
        self._ends_at_pause = ends_at_pause
        self._reply = snapshot.reply
        self._owes_reply = False

    def begin(self) -> Iterator[StreamEvent]:
        """The snapshot; with turn events also what a reply that is being written says so far.

        An answered task that waits for its turn as `submitted` goes on where it paused.
        """
        record = self._snapshot
        yield to_task(record, self._activated)
        if self._activated.turn and not record.state.settled and record.progress.phase is Phase.ASSISTANT:
            yield self._event(record, turn=turn_ext.turn_event("final_message_start"))
            if self._reply:
                yield self._event(record, turn=turn_ext.assistant(str(self._reply)))

    def ends(self, state: State) -> bool:
        """Whether the stream ends with a status of `state`."""
        return state.terminal or (self._ends_at_pause and state is State.INPUT_REQUIRED)

    def project(self, entry: Entry, *, behind: bool = False) -> Iterator[StreamEvent]:
        """What the subscriber is sent for an entry.

        Args:
            behind: the next entry is there already, so that a reply as it stands now would be stale at once.
        """
        if self._activated.turn:
            yield from (self._event(entry, turn=wire) for wire in self._turn_wires(entry, behind))
        event = entry.event
        match event:
            case ArtifactChanged():
                yield self._changed(event, entry)
            case StatusChanged():
                yield self._status_update(event.state, event.message, entry)
            case EditStarted() | EditChunk() | EditCompleted() | EditAborted() if self._activated.canvas:
                yield self._event(entry, canvas=canvas_ext.edit_metadata(event))
            case _:
                pass

    # -------------------------------------------------------------- standard events

    def _changed(self, event: ArtifactChanged, entry: Entry) -> pb.TaskArtifactUpdateEvent:
        update = to_update(event, *self._ids)
        update.metadata.update(_metadata(self._activated, entry, canvas=canvas_ext.change_metadata(event)))
        return update

    def _status_update(self, state: State, message: AgentMessage | None, entry: Entry) -> pb.TaskStatusUpdateEvent:
        update = pb.TaskStatusUpdateEvent(task_id=self._ids[0], context_id=self._ids[1])
        update.status.CopyFrom(_status(state, message, self._ids))
        update.status.timestamp.FromDatetime(entry.at)
        label = {"label": True} if message and message.label else {}
        told = message.metadata.get(canvas_ext.URI) if message else None
        update.metadata.update(
            _metadata(self._activated, entry, turn=label, canvas=told if isinstance(told, dict) else {})
        )
        return update

    # ------------------------------------------------------------ events of extensions

    def _event(
        self,
        at: Entry | TaskRecord,
        *,
        turn: turn_ext.TurnEventJson | None = None,
        canvas: dict[str, Any] | None = None,
    ) -> pb.TaskStatusUpdateEvent:
        """An event of one of the extensions: only that one's metadata, in a status that says nothing else."""
        update = pb.TaskStatusUpdateEvent(task_id=self._ids[0], context_id=self._ids[1])
        update.status.state = pb.TASK_STATE_WORKING
        if turn is not None:
            update.status.timestamp.FromDatetime(at.at if isinstance(at, Entry) else at.changed_at)
        of = ActivatedExtensions(turn is not None, canvas is not None)
        update.metadata.update(_metadata(of, at, turn=turn, canvas=canvas))
        return update

    def _turn_wires(self, entry: Entry, behind: bool) -> Iterator[turn_ext.TurnEventJson]:
        event = entry.event
        if self._owes_reply and not isinstance(event, TextAdded | MessageStarted):
            self._owes_reply = False
            yield turn_ext.assistant(str(self._reply))
        own = turn_ext.to_turn_event(event)
        if own:
            yield own
        match event:
            case MessageStarted():
                self._reply, self._owes_reply = Rope(), False
            case TextAdded():
                self._reply += Rope(event.text)
                self._owes_reply = behind
                if not behind:
                    yield turn_ext.assistant(str(self._reply))
            case StatusChanged() if event.state.settled:
                yield turn_ext.completed(event.message.text if event.message else "")
                if self.ends(event.state):
                    yield turn_ext.STREAM_END
            case _:
                pass


def _metadata(
    activated: ActivatedExtensions,
    at: Entry | TaskRecord,
    *,
    turn: Mapping[str, Any] | None = None,
    canvas: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What the activated extensions are told: what is theirs, and the order."""
    order = {"epoch": at.epoch, "generation": at.generation}
    metadata = {}
    if activated.turn:
        metadata[turn_ext.URI] = {**(turn or {}), **order}
    if activated.canvas:
        metadata[canvas_ext.URI] = {**(canvas or {}), **order}
    return metadata
