"""Messages of A2A 0.3, as HTTP+JSON and gRPC carry them, as params of 1.0."""

from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError

from a2a_canvas.server.protocols.guard.calls import read_legacy_proto
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal

LIMITS = BodyLimits()


def test_a_legacy_message_becomes_one_of_10_or_is_refused() -> None:
    message = pb03.Message(message_id="m", role=pb03.ROLE_USER, content=[pb03.Part(text="x")])
    core = pb.Message(message_id="m", role=pb.ROLE_USER, parts=[pb.Part(text="x")])
    assert read_legacy_proto(pb03.SendMessageRequest(request=message), LIMITS) == pb.SendMessageRequest(message=core)
    message.content[0].file.file_with_bytes = b"\xff"
    refusal = read_legacy_proto(pb03.SendMessageRequest(request=message), LIMITS)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is InvalidParamsError


def test_credentials_without_a_scheme_are_refused() -> None:
    config = pb03.PushNotificationConfig(url="https://a.example/", authentication=pb03.AuthenticationInfo())
    asked = pb03.CreateTaskPushNotificationConfigRequest(
        parent="tasks/t", config=pb03.TaskPushNotificationConfig(push_notification_config=config)
    )
    assert read_legacy_proto(asked, LIMITS) == pb.TaskPushNotificationConfig(task_id="t", url="https://a.example/")
    asked.config.push_notification_config.authentication.credentials = "secret"
    refusal = read_legacy_proto(asked, LIMITS)
    assert isinstance(refusal, Refusal)
    assert refusal.fields[0][0] == "authentication.scheme"
