"""The operations of A2A as the pipeline passes them to the routes, and the conversion from 0.3 to 1.0. Pure.

Rules:
1. A request is parsed once. Whatever its binding and version, its operation and params are those of 1.0.
2. A request of 0.3 is read by the SDK's models and converters. Their errors become refusals, without their text.
3. In 0.3 an `authentication` with neither schemes nor credentials counts as absent: clients send it to mean none, and
   1.0 requires a scheme.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

# First: the SDK's modules import each other in a circle that opens only from here.
import a2a.server.routes  # noqa: F401
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as types03
from a2a.compat.v0_3.proto_utils import FromProto
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from google.protobuf.message import Message

from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, invalid
from a2a_canvas.server.protocols.guard.proto_messages import check_message, check_required

RequestId: TypeAlias = str | int | None

CALL: Final = "a2a_canvas.call"
"""The key of a `Call` in the scope."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that passed the checks.

    Attributes:
        operation: its name in A2A 1.0, which is its method in JSON-RPC.
        legacy: whether to answer as A2A 0.3.
        id: JSON-RPC's.
    """

    operation: str
    params: Message
    legacy: bool = False
    id: RequestId = None


SENDS: Final = ("SendMessage", "SendStreamingMessage")
"""The operations that send a message."""

REQUESTS: Mapping[str, type[Message]] = {
    "SendMessage": pb.SendMessageRequest,
    "SendStreamingMessage": pb.SendMessageRequest,
    "GetTask": pb.GetTaskRequest,
    "ListTasks": pb.ListTasksRequest,
    "CancelTask": pb.CancelTaskRequest,
    "SubscribeToTask": pb.SubscribeToTaskRequest,
    "CreateTaskPushNotificationConfig": pb.TaskPushNotificationConfig,
    "GetTaskPushNotificationConfig": pb.GetTaskPushNotificationConfigRequest,
    "ListTaskPushNotificationConfigs": pb.ListTaskPushNotificationConfigsRequest,
    "DeleteTaskPushNotificationConfig": pb.DeleteTaskPushNotificationConfigRequest,
    "GetExtendedAgentCard": pb.GetExtendedAgentCardRequest,
}
"""The operations of A2A 1.0 and the messages of their params."""

_PUSH: Final = "tasks/pushNotificationConfig"

LEGACY_METHODS: Mapping[str, tuple[str, Callable[[Any], Message]]] = {
    "message/send": ("SendMessage", conversions.to_core_send_message_request),
    "message/stream": ("SendStreamingMessage", conversions.to_core_send_message_request),
    "tasks/get": ("GetTask", conversions.to_core_get_task_request),
    "tasks/cancel": ("CancelTask", conversions.to_core_cancel_task_request),
    "tasks/resubscribe": ("SubscribeToTask", conversions.to_core_subscribe_to_task_request),
    f"{_PUSH}/set": (
        "CreateTaskPushNotificationConfig",
        conversions.to_core_create_task_push_notification_config_request,
    ),
    f"{_PUSH}/get": (
        "GetTaskPushNotificationConfig",
        lambda request: _with_config_id(conversions.to_core_get_task_push_notification_config_request(request)),
    ),
    f"{_PUSH}/list": (
        "ListTaskPushNotificationConfigs",
        conversions.to_core_list_task_push_notification_config_request,
    ),
    f"{_PUSH}/delete": (
        "DeleteTaskPushNotificationConfig",
        conversions.to_core_delete_task_push_notification_config_request,
    ),
    "agent/getAuthenticatedExtendedCard": (
        "GetExtendedAgentCard",
        conversions.to_core_get_extended_agent_card_request,
    ),
}
"""The methods of A2A 0.3 over JSON-RPC: the operation of each, and the converter of its request to params of 1.0."""


def _with_config_id(params: pb.GetTaskPushNotificationConfigRequest) -> Message:
    """In 0.3 a client may name only the task: a config without an id of its own has the task's."""
    params.id = params.id or params.task_id
    return params


_NO_NAME: Final = "is {!r} and must be tasks/ and the id of a task"


def convert_legacy(convert: Callable[[], Message], limits: BodyLimits) -> Message | Refusal:
    """A 0.3 request as the params of 1.0. `convert` fails on base64, 32-bit ranges and the like."""
    try:
        params = convert()
    # The SDK's converters raise what their calls raise: ValueError, KeyError, TypeError, protobuf's and pydantic's.
    except Exception:
        text = "The params cannot be read as A2A 0.3; check that file bytes are base64 and numbers fit 32 bits"
        return Refusal(InvalidParamsError, text)
    return check_message(params, limits, from_json=True) or check_required(params) or params


def read_legacy_proto(message: Message, limits: BodyLimits) -> Message | Refusal:
    """A protobuf message of A2A 0.3, as HTTP+JSON and gRPC carry it, as the params of 1.0.

    Messages that are not converted are checked, and returned as they are.
    """
    if refusal := check_message(message, limits):
        return refusal
    _drop_empty_authentication(message)
    match message:
        case pb03.SendMessageRequest() if message.HasField("request") and not message.request.content:
            return invalid([("message.content", "must not be empty")])
        case pb03.SendMessageRequest():
            return convert_legacy(lambda: _send_params(message), limits)
        case pb03.GetTaskRequest() | pb03.CancelTaskRequest() | pb03.TaskSubscriptionRequest():
            return message if re.match("tasks/.", message.name) else invalid([("name", _NO_NAME.format(message.name))])
        case pb03.CreateTaskPushNotificationConfigRequest() if not message.config.HasField("push_notification_config"):
            return invalid([("config.pushNotificationConfig", "must not be empty")])
        case pb03.CreateTaskPushNotificationConfigRequest():
            return convert_legacy(lambda: _push_params(message), limits)
        case _:
            return message


def _drop_empty_authentication(message: Message) -> None:
    """Rule 3. Changes the message itself, because the SDK's gRPC service reads it again."""
    match message:
        case pb03.SendMessageRequest():
            config = message.configuration.push_notification
        case pb03.CreateTaskPushNotificationConfigRequest():
            config = message.config.push_notification_config
        case _:
            return
    if config.HasField("authentication") and config.authentication == pb03.AuthenticationInfo():
        config.ClearField("authentication")


def _send_params(message: pb03.SendMessageRequest) -> Message:
    params = FromProto.message_send_params(message)
    return conversions.to_core_send_message_request(types03.SendMessageRequest(id="", params=params))


def _push_params(message: pb03.CreateTaskPushNotificationConfigRequest) -> Message:
    config = message.config.push_notification_config
    # The SDK drops both.
    config.id = config.id or message.config_id or message.config.name.partition("/pushNotificationConfigs/")[2]
    params = FromProto.task_push_notification_config_request(message)
    request = types03.SetTaskPushNotificationConfigRequest(id="", params=params)
    return conversions.to_core_create_task_push_notification_config_request(request)
