"""The guard in front of the SDK's gRPC services, 1.0 and 0.3 on one server."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc as grpc03
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc as grpc10
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP, VersionNotSupportedError
from a2a.utils.grpc_status import status_from_call
from google.protobuf import struct_pb2
from google.rpc import error_details_pb2

from a2a_canvas.server.protocols.guard.bodies import BodyBudget
from a2a_canvas.server.protocols.guard.checks import MAX_ITEMS, MAX_JSON_DEPTH, MAX_VALUES, BodyLimits
from a2a_canvas.server.protocols.pipeline.grpc_pipeline import MAX_FIELDS, GrpcPipeline
from tests.server.protocols.echo_handler import Echo

SEND_10 = "/lf.a2a.v1.A2AService/SendMessage"
SEND_03 = "/a2a.v1.A2AService/SendMessage"


class Hanging(Echo):
    """A stream that stays open until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def on_subscribe_to_task(self, params: pb.SubscribeToTaskRequest, context: Any) -> AsyncIterator[pb.Task]:
        yield pb.Task(id=params.id)
        try:
            self.waiting.set()
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


@dataclass
class Served:
    channel: grpc.aio.Channel
    handler: Hanging
    new: Any
    old: Any


async def other_service(request: bytes, context: Any) -> bytes:
    return request


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    handler = Hanging()
    server = grpc.aio.server(interceptors=[GrpcPipeline()], options=[("grpc.so_reuseport", 0)])
    grpc10.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    grpc03.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
    other = {"Echo": grpc.unary_unary_rpc_method_handler(other_service)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("other.Service", other),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Served(channel, handler, grpc10.A2AServiceStub(channel), grpc03.A2AServiceStub(channel))
    await server.stop(None)


ERROR_NAMES = {kind.__name__ for kind in JSON_RPC_ERROR_CODE_MAP}


def new_request(message_id: str = "m", **part: Any) -> pb.SendMessageRequest:
    parts = [pb.Part(**(part or {"text": "x"}))]
    return pb.SendMessageRequest(message=pb.Message(message_id=message_id, role=pb.Role.ROLE_USER, parts=parts))


def old_request(message_id: str = "m", **part: Any) -> pb03.SendMessageRequest:
    content = [pb03.Part(**(part or {"text": "x"}))]
    return pb03.SendMessageRequest(request=pb03.Message(message_id=message_id, role=pb03.ROLE_USER, content=content))


async def refused(call: Any) -> tuple[grpc.aio.AioRpcError, str]:
    """The error of a call, unary or streaming, and the reason in its ErrorInfo."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (call.read() if hasattr(call, "read") else call)
    error = caught.value
    _, _, said = says_in_03(error)
    assert not any(word in said for word in ("Traceback", "<class", "Unexpected", "secret", "Error:"))
    status = status_from_call(error)
    info = error_details_pb2.ErrorInfo()
    assert status is not None
    assert status.details[0].Unpack(info)
    assert info.domain == "a2a-protocol.org"
    return error, info.reason


def says_in_03(error: grpc.aio.AioRpcError) -> tuple[str, str, str]:
    """The name of the error, which the SDK's client of 0.3 reads, and the message, which is all there is in 1.0."""
    details = error.details() or ""
    name, colon, message = details.partition(": ")
    return (name, colon, message) if name in ERROR_NAMES else ("", "", details)


def meta(*values: str) -> Iterable[tuple[str, str]]:
    return tuple(("a2a-version", value) for value in values)


@pytest.mark.parametrize("values", [(), ("",), ("1.0",), ("1.0.4",), ("1.0", "1.0.1")])
async def test_the_10_service_takes_its_version_or_none(served: Served, values: tuple[str, ...]) -> None:
    assert (await served.new.SendMessage(new_request(), metadata=meta(*values))).task.id == "t"
    answers = [answer async for answer in served.new.SendStreamingMessage(new_request(), metadata=meta(*values))]
    assert [answer.task.id for answer in answers] == ["t"]


@pytest.mark.parametrize("values", [(), ("",), ("0.3",), ("0.3.1",)])
async def test_the_03_service_takes_its_version_or_none(served: Served, values: tuple[str, ...]) -> None:
    assert (await served.old.SendMessage(old_request(), metadata=meta(*values))).task.id == "t"
    answers = [answer async for answer in served.old.SendStreamingMessage(old_request(), metadata=meta(*values))]
    assert [answer.task.id for answer in answers] == ["t"]


@pytest.mark.parametrize("values", [("0.3",), ("1",), ("1.1",), ("9.9",), ("garbage",), ("1.0", "0.3"), ("1.0, 0.3",)])
async def test_the_10_service_refuses_other_versions(served: Served, values: tuple[str, ...]) -> None:
    for method in (served.new.SendMessage, served.new.SendStreamingMessage):
        error, reason = await refused(method(new_request(), metadata=meta(*values)))
        assert (error.code(), reason) == (grpc.StatusCode.FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED")
        assert "a2a-version: 1.0" in (error.details() or "").lower()
    assert served.handler.calls == []


@pytest.mark.parametrize("values", [("1.0",), ("0.2",), ("0.4",), ("garbage",)])
async def test_the_03_service_refuses_other_versions(served: Served, values: tuple[str, ...]) -> None:
    for method in (served.old.SendMessage, served.old.SendStreamingMessage):
        error, reason = await refused(method(old_request(), metadata=meta(*values)))
        assert (error.code(), reason) == (grpc.StatusCode.FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED")
    assert served.handler.calls == []


async def test_a_refusal_has_the_form_of_the_sdks_own(served: Served) -> None:
    class Refusing(Echo):
        async def on_message_send(self, params: Any, context: Any) -> Any:
            raise VersionNotSupportedError("other text")

    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    grpc10.add_A2AServiceServicer_to_server(GrpcHandler(Refusing()), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        theirs, _ = await refused(grpc10.A2AServiceStub(channel).SendMessage(new_request()))
    await server.stop(None)
    ours, _ = await refused(served.new.SendMessage(new_request(), metadata=meta("9.9")))
    assert ours.code() == theirs.code()
    left, right = status_from_call(ours), status_from_call(theirs)
    assert left is not None
    assert right is not None
    assert (left.code, list(left.details)) == (right.code, list(right.details))


def with_number(number: float) -> pb.SendMessageRequest:
    request = new_request()
    request.message.parts[0].data.list_value.values.add().number_value = number
    return request


def with_depth() -> pb.SendMessageRequest:
    request = new_request()
    value = request.message.parts[0].data
    for _ in range(MAX_JSON_DEPTH):
        value = value.list_value.values.add()
    value.null_value = 0  # type: ignore[assignment]
    return request


BAD_10: list[Callable[[], pb.SendMessageRequest]] = [
    lambda: with_number(math.nan),
    lambda: with_number(math.inf),
    lambda: pb.SendMessageRequest(message=pb.Message(parts=[pb.Part()])),
    with_depth,
]


@pytest.mark.parametrize("request_of", BAD_10)
async def test_what_json_cannot_say_is_invalid(served: Served, request_of: Callable[[], pb.SendMessageRequest]) -> None:
    for method in (served.new.SendMessage, served.new.SendStreamingMessage):
        error, reason = await refused(method(request_of()))
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert reason in ("INVALID_PARAMS", "INVALID_REQUEST")
    assert served.handler.calls == []


async def test_a_field_at_fault_is_named_in_a_bad_request(served: Served) -> None:
    error, _ = await refused(served.new.SendMessage(with_number(math.nan)))
    status = status_from_call(error)
    bad = error_details_pb2.BadRequest()
    assert status is not None
    assert status.details[1].Unpack(bad)
    assert bad.field_violations[0].field == "message.parts[0].data.listValue.values[0]"


async def test_an_impossible_time_is_invalid(served: Served) -> None:
    request = pb.ListTasksRequest()
    request.status_timestamp_after.seconds = 2**60
    error, reason = await refused(served.new.ListTasks(request))
    assert (error.code(), reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMS")


@pytest.mark.parametrize("part", [pb03.Part(), pb03.Part(file=pb03.FilePart(file_with_bytes=b"\xff"))])
async def test_a_legacy_message_that_cannot_be_read_is_invalid(served: Served, part: pb03.Part) -> None:
    request = old_request()
    request.request.content[0].CopyFrom(part)
    for method in (served.old.SendMessage, served.old.SendStreamingMessage):
        error, reason = await refused(method(request))
        assert (error.code(), reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMS")
        assert says_in_03(error)[0] == "InvalidParamsError"


@pytest.mark.parametrize("method", [SEND_10, SEND_03])
@pytest.mark.parametrize("data", [b"\xff", b"\x0a\xff", b"\x0a\x05\x0a\x03\xff\xff\xff", b"\x0a" * 1000])
async def test_bytes_that_are_no_message_are_invalid(served: Served, method: str, data: bytes) -> None:
    error, reason = await refused(served.channel.unary_unary(method)(data))
    assert (error.code(), reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMS")
    streaming = method.replace("SendMessage", "SendStreamingMessage")
    error, _ = await refused(served.channel.unary_stream(streaming)(data))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(("method", "begin"), [(SEND_10, b"\x12"), (SEND_03, b"\x0a")])
@pytest.mark.parametrize("values", [MAX_VALUES, MAX_FIELDS])
async def test_a_message_with_too_many_values_is_invalid(
    served: Served, method: str, begin: bytes, values: int
) -> None:
    data = struct_pb2.ListValue(values=[struct_pb2.Value(bool_value=True)] * values)
    metadata = struct_pb2.Struct(fields={"list": struct_pb2.Value(list_value=data)})
    message = pb.Message(message_id="m", metadata=metadata).SerializeToString()
    error, _ = await refused(served.channel.unary_unary(method)(begin + varint(len(message)) + message))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert f"More than {MAX_VALUES} values in one request" in (error.details() or "")


@pytest.mark.parametrize(("method", "begin"), [(SEND_10, b"\x12"), (SEND_03, b"\x0a")])
async def test_a_list_with_too_many_messages_is_invalid(served: Served, method: str, begin: bytes) -> None:
    message = b"\x0a\x01m" + b"\x2a\x03\x0a\x01x" * (MAX_ITEMS + 1)
    error, _ = await refused(served.channel.unary_unary(method)(begin + varint(len(message)) + message))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert f"has {MAX_ITEMS + 1} items and may have {MAX_ITEMS}; send them in several messages" in str(error.details())


async def test_a_message_may_have_as_many_parts_as_the_limit(served: Served) -> None:
    message = pb.Message(message_id="m", role="ROLE_USER", parts=[pb.Part(text="x")] * MAX_ITEMS)
    request = pb.SendMessageRequest(message=message).SerializeToString()
    assert await served.channel.unary_unary(SEND_10)(request)


def varint(number: int) -> bytes:
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


async def test_what_a_handler_raises_is_logged_and_reaches_nobody(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    calls = [
        served.new.SendMessage(new_request("boom")),
        served.new.SendStreamingMessage(new_request("boom")),
        served.old.SendMessage(old_request("boom")),
        served.old.SendStreamingMessage(old_request("boom")),
    ]
    for call, says in zip(calls, ("", "", "InternalError: ", "InternalError: "), strict=True):
        error, reason = await refused(call)
        assert (error.code(), error.details(), reason) == (
            grpc.StatusCode.INTERNAL,
            f"{says}Internal error",
            "INTERNAL_ERROR",
        )
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.name for record in logged] == ["a2a_canvas.server.protocols.pipeline.grpc_pipeline"] * 4
    assert all(record.exc_info for record in logged)


async def test_an_error_of_a2a_passes_as_the_sdk_sends_it(served: Served) -> None:
    error, reason = await refused(served.new.GetTask(pb.GetTaskRequest(id="none")))
    assert (error.code(), error.details(), reason) == (grpc.StatusCode.NOT_FOUND, "Task not found", "TASK_NOT_FOUND")


async def test_cancelling_a_stream_reaches_the_handler_and_is_no_error(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    call = served.new.SubscribeToTask(pb.SubscribeToTaskRequest(id="t"))
    assert (await call.read()).task.id == "t"
    await served.handler.waiting.wait()
    call.cancel()
    await served.handler.cancelled.wait()
    assert [record for record in caplog.records if record.name.startswith("a2a_canvas")] == []


async def test_odd_metadata_does_no_harm(served: Served) -> None:
    metadata = (("a2a-version-bin", b"\xff\x00"), ("a2a-extensions", ",,"), ("x-odd", "\x7e" * 500))
    assert (await served.new.SendMessage(new_request(), metadata=metadata)).task.id == "t"


def test_the_budget_of_a_pipeline_follows_its_limits_unless_it_is_given() -> None:
    assert GrpcPipeline(BodyLimits(max_body_bytes=10, max_bodies_bytes=30)).bodies.limit == 30
    assert GrpcPipeline(BodyLimits(max_body_bytes=20, max_bodies_bytes=10)).bodies.limit == 20  # one body must fit
    shared = BodyBudget(5)
    assert GrpcPipeline(BodyLimits(), shared).bodies is shared


async def test_a_version_in_bytes_is_read_as_text() -> None:
    async def handler(details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(other_service)

    details: Any = SimpleNamespace(method=SEND_10, invocation_metadata=(("A2A-Version", b"\xff"),))
    guarded = await GrpcPipeline().intercept_service(handler, details)
    assert guarded is not None
    assert guarded.request_deserializer is None


async def test_unknown_methods_and_other_services_are_left_alone(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.channel.unary_unary("/lf.a2a.v1.A2AService/Nope")(b"")
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert await served.channel.unary_unary("/other.Service/Echo")(b"\xff", metadata=meta("9.9")) == b"\xff"
