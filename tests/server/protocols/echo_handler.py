"""A RequestHandler that answers everything, for tests of what stands in front of it."""

from collections.abc import AsyncIterator
from typing import Any

from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import PushNotificationNotSupportedError, TaskNotFoundError, UnsupportedOperationError


class Echo(RequestHandler):
    """Puts the message into a task's history and status, as deep as a real server would.

    `message_id="boom"` raises what no handler should; `id="none"` is a task that does not exist.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []

    def _task(self, message: pb.Message) -> pb.Task:
        self.calls.append(message.message_id)
        if message.message_id == "boom":
            raise RuntimeError("secret text")
        status = pb.TaskStatus(state=pb.TaskState.TASK_STATE_COMPLETED, message=message)
        return pb.Task(id="t", context_id="c", status=status, history=[message])

    async def on_message_send(self, params: pb.SendMessageRequest, context: Any) -> pb.Task:
        return self._task(params.message)

    async def on_message_send_stream(self, params: pb.SendMessageRequest, context: Any) -> AsyncIterator[pb.Task]:
        yield self._task(params.message)

    async def on_get_task(self, params: pb.GetTaskRequest, context: Any) -> pb.Task:
        if params.id == "none":
            raise TaskNotFoundError
        return pb.Task(id=params.id, context_id="c", status=pb.TaskStatus(state=pb.TaskState.TASK_STATE_WORKING))

    async def on_cancel_task(self, params: pb.CancelTaskRequest, context: Any) -> pb.Task:
        return await self.on_get_task(pb.GetTaskRequest(id=params.id), context)

    async def on_subscribe_to_task(self, params: pb.SubscribeToTaskRequest, context: Any) -> AsyncIterator[pb.Task]:
        yield await self.on_get_task(pb.GetTaskRequest(id=params.id), context)

    async def on_list_tasks(self, params: pb.ListTasksRequest, context: Any) -> pb.ListTasksResponse:
        return pb.ListTasksResponse(page_size=params.page_size)

    async def on_create_task_push_notification_config(self, params: Any, context: Any) -> Any:
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(self, params: Any, context: Any) -> Any:
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(self, params: Any, context: Any) -> Any:
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(self, params: Any, context: Any) -> None:
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(self, params: Any, context: Any) -> pb.AgentCard:
        raise UnsupportedOperationError


class Failing(Echo):
    """Streams `events` tasks, then raises."""

    def __init__(self, events: int, error: Exception) -> None:
        super().__init__()
        self.events, self.error = events, error

    async def on_subscribe_to_task(self, params: pb.SubscribeToTaskRequest, context: Any) -> AsyncIterator[pb.Task]:
        for _ in range(self.events):
            yield await self.on_get_task(pb.GetTaskRequest(id=params.id), context)
        raise self.error
