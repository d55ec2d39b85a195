"""Runs the operation of a `Call`, whatever its binding and version, and writes its answer as A2A's JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3.context_builders import V03ServerCallContextBuilder
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from pydantic_core import to_json
from starlette.requests import Request

from a2a_canvas.server.protocols.a2a_v1.projection.encoding import EVENT_FORM, EventForm
from a2a_canvas.server.protocols.a2a_v1.projection.update_json import LEGACY, JsonUpdate
from a2a_canvas.server.protocols.edge.http_requests import CALLER, STREAM_CHECK, caller_of
from a2a_canvas.server.protocols.edge.sse_response import sse_event, wait_for_start
from a2a_canvas.server.protocols.guard.calls import Call
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES
from a2a_canvas.server.tasks.journal.round_robin import round_robin

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventStream:
    """The events of a streaming operation.

    Attributes:
        first: may be pending (`wait_for_start`); None if there is no event.
        rest: as the first, an event, or several that are encoded already.
        form: that of the encoded ones.
    """

    first: asyncio.Future[Any]
    rest: AsyncIterator[Any]
    form: EventForm

    def encode(self, before: bytes = b"", after: bytes = b"") -> AsyncGenerator[bytes, None]:
        """The events of an `SseResponse`, with what is put around the data of each."""
        return _encode(self.first, self.rest, self.form, before, after)


async def _encode(
    first: asyncio.Future[Any], rest: AsyncIterator[Any], form: EventForm, before: bytes, after: bytes
) -> AsyncGenerator[bytes, None]:
    event = await first
    del first  # a stream that waits does not hold what it has sent
    while event is not None:
        together = event if isinstance(event, tuple) else (form.write(event),)
        yield b"".join(sse_event(b"%b%b%b" % (before, each, after)) for each in together)
        del event, together
        event = await anext(rest, None)


class Operations:
    """The eleven operations of a handler, by name."""

    def __init__(self, handler: RequestHandler) -> None:
        default = DefaultServerCallContextBuilder()
        self._context, self._legacy_context = default.build, V03ServerCallContextBuilder(default).build
        self._streaming: Mapping[str, Callable[..., AsyncIterator[Any]]] = {
            "SendStreamingMessage": handler.on_message_send_stream,
            "SubscribeToTask": handler.on_subscribe_to_task,
        }
        self._unary: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "SendMessage": handler.on_message_send,
            "GetTask": handler.on_get_task,
            "ListTasks": handler.on_list_tasks,
            "CancelTask": handler.on_cancel_task,
            "CreateTaskPushNotificationConfig": handler.on_create_task_push_notification_config,
            "GetTaskPushNotificationConfig": handler.on_get_task_push_notification_config,
            "ListTaskPushNotificationConfigs": handler.on_list_task_push_notification_configs,
            "DeleteTaskPushNotificationConfig": handler.on_delete_task_push_notification_config,
            "GetExtendedAgentCard": handler.on_get_extended_agent_card,
        }

    def streams(self, call: Call) -> bool:
        return call.operation in self._streaming

    async def run(self, call: Call, request: Request, form: EventForm) -> Message | EventStream | None:
        """The answer of the operation. Failures before a stream begins are raised here.

        Args:
            form: of the events, if it streams.
        """
        context = (self._legacy_context if call.legacy else self._context)(request)
        context.state[EVENT_FORM], context.state[CALLER] = form, caller_of(request)
        context.state[STREAM_CHECK] = request.scope.get(STREAM_CHECK)
        context.state[LEGACY] = call.legacy
        if self.streams(call):
            events = self._streaming[call.operation](call.params, context)
            return EventStream(await wait_for_start(anext(events, None)), events, form)
        answer: Message | None = await self._unary[call.operation](call.params, context)
        if answer and answer.ByteSize() > SMALL_BODY_BYTES:
            await round_robin().long_step()
        return answer


# ------------------------------------------------------------------------- writing

_ALTERNATIVES: Mapping[type[Message], str] = {
    pb.Task: "task",
    pb.Message: "message",
    pb.TaskStatusUpdateEvent: "statusUpdate",
    pb.TaskArtifactUpdateEvent: "artifactUpdate",
}
"""The members of `SendMessageResponse` and `StreamResponse`."""

EMPTY_PAGE_JSON: Json = {"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0}
"""The members of `ListTasksResponse`. A2A requires all of them, even if they are empty."""


def _legacy_card(card: pb.AgentCard) -> Any:
    """A card in 0.3, even if it does not advertise this version: the client that asks speaks it."""
    legacy = pb.AgentCard()
    legacy.CopyFrom(card)
    if not any(each.protocol_version.startswith("0.3") for each in legacy.supported_interfaces):
        for each in legacy.supported_interfaces:
            each.protocol_version = "0.3"
    return conversions.to_compat_agent_card(legacy)


_LEGACY: Mapping[type[Message], Callable[[Any], Any]] = {
    pb.Task: conversions.to_compat_task,
    pb.Message: conversions.to_compat_message,
    pb.TaskStatusUpdateEvent: conversions.to_compat_task_status_update_event,
    pb.TaskArtifactUpdateEvent: conversions.to_compat_task_artifact_update_event,
    pb.TaskPushNotificationConfig: conversions.to_compat_task_push_notification_config,
    pb.AgentCard: _legacy_card,
}


def event_json(event: Message | JsonUpdate) -> Json:
    """An event of a stream, or the answer to `SendMessage`, in 1.0."""
    if isinstance(event, JsonUpdate):
        return {event.member: event.fields}
    return {_ALTERNATIVES[type(event)]: MessageToDict(event)}


EVENT_JSON: Final = EventForm(lambda event: to_json(event_json(event)), as_json=True)
"""1.0 over JSON-RPC and HTTP+JSON."""


def answer_json(call: Call, answer: Message) -> Json:
    """The answer of an operation that does not stream, in 1.0."""
    match call.params, answer:
        case pb.SendMessageRequest(), _:
            return event_json(answer)
        case pb.ListTasksRequest(), _:
            return {**EMPTY_PAGE_JSON, **MessageToDict(answer)}
        case _:
            return MessageToDict(answer)


def to_legacy(answer: Message) -> Any:
    """An event or an answer as the SDK's model of it in 0.3."""
    return _LEGACY[type(answer)](answer)
