"""The bodies of push notifications, in the version of A2A that registered the config.

Rule 1: in 1.0 a body is a `StreamResponse` with the update that a stream would have, except that a version is sent
        whole.
Rule 2: in 0.3 it is the `Task` as it is now, with the status that it had at the event: statuses come in their order,
        however late they are delivered. A version is closed while its task works.
Rule 3: extensions are activated for a request; a notification has none.
"""

from __future__ import annotations

from a2a.types import a2a_pb2 as pb
from pydantic_core import to_json

from a2a_canvas.server.protocols.a2a_v1.operations.dispatch import event_json, to_legacy
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.projection import A2AEvent, TaskProjection, to_task
from a2a_canvas.server.protocols.edge.wire_times import cut_to_milliseconds
from a2a_canvas.server.push.outbox import Delivery
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.tasks.runtime.runtime import Runtime


class PushPayloads:
    """Writes bodies."""

    def __init__(self, tasks: Runtime) -> None:
        self._tasks = tasks

    async def __call__(self, delivery: Delivery) -> bytes:
        """The body of a notification.

        Raises:
            TaskNotFound: the caller who registered the config can no longer read the task.
            TaskError: the task cannot be read.
        """
        update, whose = update_of(delivery), (delivery.config.key.task_id, delivery.config.registrant)
        if delivery.config.version != "0.3":
            await self._tasks.check_readable(*whose)
            return to_json(event_json(update))
        task = to_task(await self._tasks.get(*whose))
        task.status.CopyFrom(_status_at(delivery.entry, update))
        return to_json(to_legacy(task).model_dump(mode="json", by_alias=True, exclude_none=True))


def _status_at(entry: Entry, update: A2AEvent) -> pb.TaskStatus:
    """The status that the task had when an entry was written."""
    if isinstance(update, pb.TaskStatusUpdateEvent):
        return update.status
    status = pb.TaskStatus(state=pb.TASK_STATE_WORKING)
    status.timestamp.FromDatetime(cut_to_milliseconds(entry.at))
    return status


def update_of(delivery: Delivery) -> A2AEvent:
    """The update that a notification reports."""
    key, entry = delivery.config.key, delivery.entry
    snapshot = TaskRecord(key.task_id, key.context_id, "", entry.at)
    projection = TaskProjection(snapshot, ActivatedExtensions(turn=False, canvas=False), ends_at_pause=False)
    [update] = projection.project(entry)
    return update
