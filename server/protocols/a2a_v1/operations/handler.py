"""The operations of A2A on the runtime, as the routes call them. Every error leaves here as an `A2AError`.

Rule 1: the card binds the server: the extensions that it requires are required, and streams and push configs that it
        does not offer are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import wraps
from itertools import chain
from typing import Any, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from a2a.utils.task import apply_history_length
from google.protobuf.message import Message

from a2a_canvas.server.accounts.access import ANONYMOUS, Level
from a2a_canvas.server.accounts.sharing import Sharing
from a2a_canvas.server.agent.events import StatusChanged
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.a2a_v1.card.card_file import is_off
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field, to_a2a_error
from a2a_canvas.server.protocols.a2a_v1.operations.list_tasks import list_tasks
from a2a_canvas.server.protocols.a2a_v1.operations.push_operations import PushOperations
from a2a_canvas.server.protocols.a2a_v1.operations.share_operations import answer_share_operation, share_operation
from a2a_canvas.server.protocols.a2a_v1.projection.encoding import (
    EVENT_FORM,
    EventForm,
    TaskEncoder,
)
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions, check_required
from a2a_canvas.server.protocols.a2a_v1.projection.parts import check_ids, check_tenant, check_text, user_message
from a2a_canvas.server.protocols.a2a_v1.projection.projection import A2AEvent, TaskProjection, to_task
from a2a_canvas.server.protocols.a2a_v1.projection.update_json import LEGACY
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.protocols.edge.error_tables import PermissionDeniedError
from a2a_canvas.server.protocols.edge.http_requests import caller_of_call, end_with_credential
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError
from a2a_canvas.server.tasks.errors import TaskFinished
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.journal.round_robin import round_robin
from a2a_canvas.server.tasks.push_configs import PushConfig
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.runtime import Runtime

Streamed = A2AEvent | pb.Message | tuple[bytes, ...]
"""What a handler streams: an event or a message; or several events that are ready together, encoded (`EVENT_FORM`)."""

T = TypeVar("T")
M = TypeVar("M", bound=Message)


def _check(params: Message, card: pb.AgentCard, context: ServerCallContext) -> None:
    check_required(card, context.requested_extensions)
    check_ids(params)
    check_tenant(params)


def _unary(method: Callable[[A2AHandler, M, ServerCallContext], Awaitable[T]]) -> Callable[..., Any]:
    @wraps(method)
    async def wrapper(self: A2AHandler, params: M, context: ServerCallContext, /) -> T:
        _check(params, self.card, context)
        try:
            return await method(self, params, context)
        except Exception as error:
            raise to_a2a_error(error) from error

    return wrapper


def _stream(
    method: Callable[[A2AHandler, M, ServerCallContext], AsyncGenerator[Streamed, None]],
) -> Callable[..., Any]:
    @wraps(method)
    async def wrapper(self: A2AHandler, params: M, context: ServerCallContext, /) -> AsyncGenerator[Streamed, None]:
        _check(params, self.card, context)
        if is_off(self.card, "streaming"):
            raise UnsupportedOperationError("This agent does not stream. Use SendMessage, then GetTask.")
        try:
            await round_robin().next_slice()
            async with aclosing(method(self, params, context)) as events:
                async for event in events:
                    yield event
                    del event  # a stream that waits does not hold what it has sent
        except Exception as error:
            raise to_a2a_error(error) from error

    return wrapper


class A2AHandler(RequestHandler):
    """The eleven operations of A2A.

    Args:
        card: its input modes, extensions and capabilities are checked.
        push: the push configs of tasks.
        limits: the sizes that a message may have.
        sharing: None if nothing can be shared.
        expose_thinking: clients of turn:v1 may see the model's thinking.
        metrics: measure how late entries are sent.
        encoded: where events are kept that others get, too.
        current_card: the current card, served to authenticated callers as the extended one; None if there is none.
    """

    def __init__(
        self,
        runtime: Runtime,
        card: pb.AgentCard,
        push: PushOperations,
        limits: BodyLimits | None = None,
        *,
        sharing: Sharing | None = None,
        expose_thinking: bool = True,
        metrics: Metrics | None = None,
        encoded: EncodedEvents | None = None,
        current_card: Callable[[], Awaitable[pb.AgentCard]] | None = None,
    ) -> None:
        self._runtime = runtime
        self._meter = runtime.meter
        self._push = push
        self._sharing = sharing
        self.card = card
        self._limits = limits or BodyLimits()
        self._expose_thinking = expose_thinking
        self._metrics = metrics or Metrics()
        self._encoded = encoded or EncodedEvents()
        self._current_card = current_card

    @_unary
    async def on_message_send(self, params: pb.SendMessageRequest, context: ServerCallContext) -> pb.Task | pb.Message:
        _check_history_length(params.configuration, "configuration.")
        following = await self._send(params, context)
        if isinstance(following, pb.Message):
            return following
        record = following.snapshot
        if not params.configuration.return_immediately:
            record = await following.wait_until_settled()
        if params.ByteSize() > SMALL_BODY_BYTES:
            await round_robin().long_step()
        return apply_history_length(to_task(record, _activated_extensions(context)), params.configuration)

    @_stream
    async def on_message_send_stream(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Streamed, None]:
        _check_history_length(params.configuration, "configuration.")
        with self._meter.stream(caller_of_call(context).account):
            following = await self._send(params, context)
            if isinstance(following, pb.Message):
                yield following
                return
            async for event in self._events(following, context, ends_at_pause=True):
                yield apply_history_length(event, params.configuration) if isinstance(event, pb.Task) else event
                del event

    @_stream
    async def on_subscribe_to_task(
        self, params: pb.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Streamed, None]:
        with self._meter.stream(caller_of_call(context).account):
            following = await self._runtime.follow(params.id, caller_of_call(context))
            if following.snapshot.state.terminal:
                raise TaskFinished(params.id, following.snapshot.state)
            async for event in self._events(following, context, ends_at_pause=False):
                yield event
                del event

    async def _send(self, params: pb.SendMessageRequest, context: ServerCallContext) -> TaskSubscription | pb.Message:
        """The task that takes the message; a message if the operation is about shares."""
        message = params.message
        self._check_media_types(message)
        parsed = user_message(message, params.metadata)
        check_text(parsed, self._limits.max_text_bytes, "message.parts")
        if self._sharing and (operation := share_operation(parsed.metadata)):
            return await answer_share_operation(operation, message, caller_of_call(context), self._sharing)
        push = await self._push_config(params.configuration, context)
        incoming = Incoming(parsed, context_id=message.context_id, task_id=message.task_id, push=push)
        return await self._runtime.send(incoming, caller_of_call(context))

    async def _push_config(
        self, configuration: pb.SendMessageConfiguration, context: ServerCallContext
    ) -> PushConfig | None:
        """The push config that comes with a message."""
        if not configuration.HasField("task_push_notification_config"):
            return None
        self._check_push()
        given = configuration.task_push_notification_config
        within = "configuration.taskPushNotificationConfig."
        return await self._push.read(given, caller_of_call(context), _version(context), within)

    def _check_media_types(self, message: pb.Message) -> None:
        """Raises `ContentTypeNotSupportedError`.

        If the card accepts plain text, any text is accepted; if it accepts JSON, any data part is, because it is JSON.
        """
        accepted = set(self.card.default_input_modes)
        for part in message.parts:
            bare = part.media_type.partition(";")[0].strip().lower()
            is_text = bare.startswith("text/") and "text/plain" in accepted
            is_json = part.HasField("data") and "application/json" in accepted
            if bare and bare not in accepted and not (is_text or is_json):
                raise ContentTypeNotSupportedError(
                    f"Media type {bare} is not supported. Send text, or one of {', '.join(sorted(accepted))}."
                )

    async def _events(
        self, following: TaskSubscription, context: ServerCallContext, *, ends_at_pause: bool
    ) -> AsyncGenerator[Streamed, None]:
        """The events of a stream; with a form, those that are ready together are encoded, all but the first ones."""
        form: EventForm | None = context.state.get(EVENT_FORM)
        end_with_credential(following, context.state)
        projection = TaskProjection(
            following.snapshot,
            _activated_extensions(context),
            ends_at_pause=ends_at_pause,
            expose_thinking=self._expose_thinking,
            as_json=form is not None and form.as_json,
        )
        await round_robin().next_slice()
        for event in projection.begin():
            yield event
            del event
        if projection.ends(following.snapshot.state):
            return
        project = TaskEncoder(self._encoded, projection, form).encode if form else projection.project
        async for first in following:
            ready: list[Any] = []
            for entry in chain((first,), following.ready()):
                ready += project(entry, behind=following.has_next)
                ended = isinstance(entry.event, StatusChanged) and projection.ends(entry.event.state)
                if ended:
                    break
            if ready:
                for each in (tuple(ready),) if form else ready:
                    yield each
                    del each
                self._metrics.record_sent(first.at)
            if ended:
                return
            del first, entry, ready

    @_unary
    async def on_get_task(self, params: pb.GetTaskRequest, context: ServerCallContext) -> pb.Task:
        _check_history_length(params)
        record = await self._runtime.get(params.id, caller_of_call(context))
        return apply_history_length(to_task(record, _activated_extensions(context)), params)

    @_unary
    async def on_list_tasks(self, params: pb.ListTasksRequest, context: ServerCallContext) -> pb.ListTasksResponse:
        _check_history_length(params)
        return await list_tasks(params, caller_of_call(context), self._runtime.contexts)

    @_unary
    async def on_cancel_task(self, params: pb.CancelTaskRequest, context: ServerCallContext) -> pb.Task:
        # A cancellation is completed even if the caller disconnects.
        cancelled = await asyncio.shield(self._runtime.cancel(params.id, caller_of_call(context)))
        return to_task(cancelled, _activated_extensions(context))

    @_unary
    async def on_create_task_push_notification_config(
        self, params: pb.TaskPushNotificationConfig, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        self._check_push()
        if not params.task_id:  # A2A requires it here, and not in the config of a message
            raise invalid_field("taskId", "must not be empty")
        record, caller = await self._task_of_push(params.task_id, context), caller_of_call(context)
        await self._runtime.meter.check_bytes(record.owner, caller.author)
        return await self._push.create(record, params, caller, _version(context))

    @_unary
    async def on_get_task_push_notification_config(
        self, params: pb.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        return await self._push.get(
            await self._task_of_push(params.task_id, context), params.id, caller_of_call(context)
        )

    @_unary
    async def on_list_task_push_notification_configs(
        self, params: pb.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> pb.ListTaskPushNotificationConfigsResponse:
        return await self._push.list(await self._task_of_push(params.task_id, context), params, caller_of_call(context))

    @_unary
    async def on_delete_task_push_notification_config(
        self, params: pb.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        record = await self._task_of_push(params.task_id, context)
        await self._push.delete(record, params.id, caller_of_call(context))

    async def _task_of_push(self, task_id: str, context: ServerCallContext) -> TaskRecord:
        """The task whose push configs the caller may read and write."""
        self._check_push()
        return await self._runtime.get(task_id, caller_of_call(context), Level.EDIT)

    def _check_push(self) -> None:
        if is_off(self.card, "push_notifications"):
            raise PushNotificationNotSupportedError("This agent does not send push notifications.")

    @_unary
    async def on_get_extended_agent_card(
        self, params: pb.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> pb.AgentCard:
        card = await self._current_card() if self._current_card else self.card
        if not card.capabilities.extended_agent_card:
            raise UnsupportedOperationError(f"This agent's only card is {AGENT_CARD_WELL_KNOWN_PATH}.")
        caller = caller_of_call(context)
        if caller == ANONYMOUS:
            raise UnauthenticatedError("The extended card is for callers with credentials.")
        if caller.link:
            raise PermissionDeniedError("The extended card is for users: a link opens one context, and nothing else.")
        return card


def _check_history_length(given: Any, within: str = "") -> None:
    """Raises `InvalidParamsError` for a negative one."""
    if given.HasField("history_length") and given.history_length < 0:
        raise invalid_field(f"{within}historyLength", f"is {given.history_length} and must be 0 or more")


def _version(context: ServerCallContext) -> str:
    """The version of A2A that the caller speaks."""
    return "0.3" if context.state.get(LEGACY) else "1.0"


def _activated_extensions(context: ServerCallContext) -> ActivatedExtensions:
    return ActivatedExtensions.from_uris(context.requested_extensions)
