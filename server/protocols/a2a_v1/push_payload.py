"""The bodies of push notifications, in the form of the version of A2A that registered the config.

Rule 1: in 1.0 a body is a `StreamResponse` with the update that a stream would have, but for a version: it is whole.
Rule 2: in 0.3 it is the `Task` as it is now, with the status that the notification tells of.
Rule 3: extensions are activated for a request; a notification has none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from a2a.types import a2a_pb2 as pb
from pydantic_core import to_json

from a2a_canvas.server.protocols.a2a_v1.dispatch import event_json, to_legacy
from a2a_canvas.server.protocols.a2a_v1.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection import A2AEvent, TaskProjection, to_task
from a2a_canvas.server.tasks.push import Delivery
from a2a_canvas.server.tasks.record import TaskRecord

GetTask = Callable[[str], Awaitable[TaskRecord]]


class PushPayloads:
    """Writes bodies.

    Args:
        get: a task by its id.
    """

    def __init__(self, get: GetTask) -> None:
        self._get = get

    async def __call__(self, delivery: Delivery) -> bytes:
        """The body of a notification.

        Raises:
            TaskError: the task cannot be read.
        """
        update = update_of(delivery)
        if delivery.config.version != "0.3":
            return to_json(event_json(update))
        task = to_task(await self._get(delivery.config.key.task_id))
        if isinstance(update, pb.TaskStatusUpdateEvent):
            task.status.CopyFrom(update.status)
        return to_json(to_legacy(task).model_dump(mode="json", by_alias=True, exclude_none=True))


def update_of(delivery: Delivery) -> A2AEvent:
    """The update that a notification tells of."""
    key, entry = delivery.config.key, delivery.entry
    snapshot = TaskRecord(key.task_id, key.context_id, "", entry.at)
    projection = TaskProjection(snapshot, ActivatedExtensions(turn=False, canvas=False), ends_at_pause=False)
    [update] = projection.project(entry)
    return update
