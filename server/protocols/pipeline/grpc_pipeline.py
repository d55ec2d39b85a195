"""Takes a gRPC call to its handler, as the only server interceptor.

Rules:
1. Every call is refused in the same way, even for a method that does not exist, and before its message is read.
2. The metadata `a2a-version` may be missing: each service speaks one version. If present it must be that version.
3. Requests are deserialized and answers serialized here: bytes that are not a message, and messages that cannot be
   written as JSON, are InvalidParams.
4. An error has the SDK's form: status and message, `ErrorInfo` and `BadRequest` in `grpc-status-details-bin`, for the
   0.3 service as well. There the name of the error comes before the message.
5. An exception is logged and becomes INTERNAL without text. Cancellation and the handler's aborts pass.
6. Retryable errors have the status of `availability.py`, and `RetryInfo`: the SDK has neither. Those without a reason
   of their own get none here: the SDK's client would take them for a failure of the server.
7. A message is parsed as over HTTP (`parsing.py`), and its fields are counted first (`proto_wire.py`).
8. Calls of other services are counted, and their callers identified; what they carry is not checked. The size of a
   message is the server's option `grpc.max_receive_message_length`; the budget of all bodies (`bodies.py`) counts
   complete messages, because gRPC reads them as a whole.
9. The extensions that a call activates are named in its initial metadata, as HTTP names them in a header.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import grpc.aio
from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from a2a.utils.error_handlers import A2A_DOMAIN
from a2a.utils.errors import A2A_ERROR_MAPPING, A2AError, InvalidParamsError
from a2a.utils.grpc_status import status_to_grpc
from a2a.utils.proto_utils import ValidationDetail, validation_errors_to_bad_request
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from starlette.datastructures import Headers

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.availability import UnavailableError, retry_after
from a2a_canvas.server.protocols.edge.error_tables import INTERNAL_REASON
from a2a_canvas.server.protocols.edge.origins import GrpcOrigins
from a2a_canvas.server.protocols.edge.request_metrics import AnswerCount
from a2a_canvas.server.protocols.guard.bodies import TOO_MANY_BODIES, BodyBudget, BodyReservation
from a2a_canvas.server.protocols.guard.calls import REQUESTS, SENDS, read_legacy_proto
from a2a_canvas.server.protocols.guard.checks import MAX_VALUES, BodyLimits, Refusal, check_version, too_many_values
from a2a_canvas.server.protocols.guard.error_forms import INTERNAL_REFUSAL
from a2a_canvas.server.protocols.guard.guests import RefuseMessage, refuse_none
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES, ParsingThread
from a2a_canvas.server.protocols.guard.proto_messages import check_message, check_required
from a2a_canvas.server.protocols.guard.proto_wire import has_more_fields
from a2a_canvas.server.protocols.identity.authenticator import Authenticator
from a2a_canvas.server.protocols.pipeline.entrance import identify, stream_check
from a2a_canvas.server.protocols.pipeline.extension_headers import SUPPORTED, activated_extensions
from a2a_canvas.server.protocols.pipeline.grpc_to_http_status import http_status_of
from a2a_canvas.server.tasks.journal.cursors import Check
from a2a_canvas.server.wire import VERSION_HEADER
from a2a_canvas.store.text.wording import choice, nearest

logger = logging.getLogger(__name__)

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_SERVICES: Final[Mapping[str, Any]] = {
    service.full_name: service
    for module in (a2a_pb2, a2a_v0_3_pb2)
    for service in (module.DESCRIPTOR.services_by_name["A2AService"],)
}
SERVICES: Final[Mapping[str, str]] = dict(zip(_SERVICES, ("1.0", "0.3"), strict=True))

MAX_FIELDS: Final = 10 * MAX_VALUES
"""Fields of a message: each of its values has some."""


@dataclass(frozen=True)
class GrpcPipeline(grpc.aio.ServerInterceptor):
    """Identifies the caller of each call, reads and checks its message, counts it, and sends refusals.

    Attributes:
        budget: of all request bodies, to be shared with HTTP; one of its own, for `limits`, if not given.
        parsing: where large messages are parsed, shared with HTTP.
        refuse_message: for callers who may send no message.
        authenticator: finds the callers; without one all callers are anonymous.
        extensions: URIs of those that calls may activate.
    """

    limits: BodyLimits = field(default_factory=BodyLimits)
    budget: BodyBudget | None = None
    parsing: ParsingThread = field(default_factory=ParsingThread)
    refuse_message: RefuseMessage = refuse_none
    authenticator: Authenticator | None = None
    origins: GrpcOrigins = field(default_factory=lambda: GrpcOrigins({}))
    metrics: Metrics = field(default_factory=Metrics)
    extensions: Set[str] = SUPPORTED

    @cached_property
    def bodies(self) -> BodyBudget:
        return self.budget or BodyBudget.for_limits(self.limits)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        method = handler_call_details.method
        headers = _headers(handler_call_details.invocation_metadata or ())
        service, _, name = method.strip("/").rpartition("/")
        version = SERVICES.get(service, "")
        wrong_version = _check_versions(headers.getlist(VERSION_HEADER), version) if version else None
        inner = await continuation(handler_call_details)
        return _GrpcCall(self, inner, service, name, version, headers, wrong_version).handler()


def _headers(metadata: Iterable[tuple[str, str | bytes]]) -> Headers:
    raw = ((key, value if isinstance(value, bytes) else value.encode("latin-1", "replace")) for key, value in metadata)
    return Headers(raw=[(key.lower().encode(), value) for key, value in raw])


def _check_versions(values: Iterable[str], version: str) -> Refusal | None:
    """If several values are sent, each of them has to be the service's version."""
    refusals = (check_version(value, version, "This service") for value in values if value)
    return next((refusal for refusal in refusals if refusal), None)


@dataclass(frozen=True, slots=True)
class _GrpcCall:
    """One call.

    Attributes:
        inner: the handler of its method; None if there is none.
        version: of its service; empty for another service than A2A's.
    """

    pipeline: GrpcPipeline
    inner: Any
    service: str
    name: str
    version: str
    headers: Headers
    wrong_version: Refusal | None

    def handler(self) -> grpc.RpcMethodHandler[Any, Any]:
        """A handler that reads the message once the caller may enter: until then gRPC holds no more of a message than
        its window. The handler takes and returns bytes: gRPC itself gets no serializer that could fail."""
        other = self.inner if not self.version else None
        form = (other.request_deserializer, other.response_serializer) if other else ()
        if self.inner and self.inner.response_streaming:
            return grpc.stream_stream_rpc_method_handler(self._stream, *form)
        return grpc.stream_unary_rpc_method_handler(self._unary, *form)

    async def _unary(self, requests: AsyncIterator[Any], context: Context) -> Any:
        async with self._admit(requests, context) as call:
            return self._write(await self.inner.unary_unary(call.request, call.context))

    async def _stream(self, requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
        async with self._admit(requests, context) as call:
            async for response in self.inner.unary_stream(call.request, call.context):
                call.reservation.release()
                call.count.begin(200, streams=True)
                yield self._write(response)

    @asynccontextmanager
    async def _admit(self, requests: AsyncIterator[Any], context: Context) -> AsyncIterator[_AdmittedCall]:
        """A call that passes every step; any other call ends here."""
        with AnswerCount(self.pipeline.metrics, "GRPC", partial(http_status_of, context)) as count:
            try:
                identified = await self._identify(context)
                data = await self._only(requests, context)
                with self.pipeline.bodies.reserve(identified.caller.account) as reservation:
                    request = await self._read(data, identified, reservation)
                    if echo := activated_extensions(self.headers, self.version, self.pipeline.extensions):
                        await context.send_initial_metadata([(name.lower(), uris) for name, uris in echo.items()])
                    yield _AdmittedCall(request, identified, reservation, count)
            except grpc.aio.AbortError:
                raise
            except Exception as error:
                logger.error("Unhandled error in /%s/%s", self.service, self.name, exc_info=error)
                await self._abort(INTERNAL_REFUSAL, context)

    async def _identify(self, context: Context) -> _IdentifiedContext:
        authenticator = self.pipeline.authenticator
        if authenticator is None:
            return _IdentifiedContext(context)
        origin = self.pipeline.origins.origin_of(context.peer() or "", self.headers.items())
        found = await identify(authenticator, self.headers, origin)
        if isinstance(found, Refusal):
            await self._abort(found, context)
        return _IdentifiedContext(context, found.caller, stream_check(authenticator, found))

    async def _only(self, requests: AsyncIterator[Any], context: Context) -> Any:
        data = await anext(aiter(requests), None)
        if data is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call has no message; send one")
        if self.inner is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, _no_such_method(self.service, self.name))
        return data

    async def _read(self, data: Any, context: _IdentifiedContext, reservation: BodyReservation) -> Any:
        if not self.version:
            return data
        caller = context.caller
        refusal = self.wrong_version or (None if reservation.grow(len(data)) else TOO_MANY_BODIES)
        if refusal is None and (self.name in SENDS or len(data) > SMALL_BODY_BYTES):
            refusal = await self.pipeline.refuse_message(caller)
        if refusal is not None:
            await self._abort(refusal, context.inner)
        read = await self.pipeline.parsing.run(caller.account, len(data), partial(self._parse, data))
        if isinstance(read, Refusal):
            await self._abort(read, context.inner)
        return read

    def _parse(self, data: bytes) -> Message | Refusal:
        if has_more_fields(data, _SERVICES[self.service].methods_by_name[self.name].input_type, MAX_FIELDS):
            return too_many_values()
        try:
            request: Message = self.inner.request_deserializer(data)
        except DecodeError:
            return Refusal(InvalidParamsError, f"The request is not a protobuf message of /{self.service}/{self.name}")
        refusal = self._check(request)
        return refusal if isinstance(refusal, Refusal) else request

    def _check(self, request: Message) -> Message | Refusal | None:
        limits = self.pipeline.limits
        if self.version == "0.3":
            return read_legacy_proto(request, limits)
        return check_message(request, limits) or check_required(request)

    def _write(self, response: Any) -> Any:
        is_written = isinstance(response, bytes) or not self.version
        return response if is_written else bytes(self.inner.response_serializer(response))

    async def _abort(self, refusal: Refusal, context: Context) -> NoReturn:
        # The SDK's client of 0.3 knows the kind of an error by this name only, and its service writes it, too.
        name = f"{refusal.kind.__name__}: " if self.version == "0.3" else ""
        await abort_call(refusal, context, name)


def _no_such_method(service: str, name: str) -> str:
    """Names the methods that may be meant, else the services."""
    near = nearest(name, REQUESTS) if service in SERVICES else ()
    services = choice((f"{service} (A2A {version})" for service, version in SERVICES.items()), "and")
    these = f"Did you mean {choice(near)}?" if near else f"The services are {services}."
    return f"There is no method /{service}/{name}. {these}"


class _IdentifiedContext:
    """A call's context for the SDK's handlers, with its caller and the check that ends its stream.

    Rule 6 applies to the errors that the handlers abort with, and to errors that A2A lacks, which the SDK maps to
    UNKNOWN.
    """

    def __init__(self, inner: Context, caller: Caller = ANONYMOUS, check: Check | None = None) -> None:
        self.inner = inner
        self.caller = caller
        self.stream_check = check

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> NoReturn:
        error = sys.exception()  # the SDK aborts in the except block of the error
        if isinstance(error, UnavailableError) or (isinstance(error, A2AError) and code is grpc.StatusCode.UNKNOWN):
            await abort_call(Refusal.from_error(error), self.inner)
        await self.inner.abort(code, details, trailing_metadata)


@dataclass(frozen=True, slots=True)
class _AdmittedCall:
    """A call that passed every step: its handler may run."""

    request: Any
    context: _IdentifiedContext
    reservation: BodyReservation
    count: AnswerCount


async def abort_call(refusal: Refusal, context: Context, name: str = "") -> NoReturn:
    """End a call with the status of a refusal; `name` comes before its message."""
    mapping = A2A_ERROR_MAPPING[refusal.kind]
    code = grpc.StatusCode[mapping.grpc_status]
    status = status_pb2.Status(code=code.value[0], message=f"{name}{refusal.message}")
    if issubclass(refusal.kind, UnavailableError):
        delay = Duration(seconds=retry_after(refusal.error()))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    if mapping.reason != INTERNAL_REASON or not issubclass(refusal.kind, UnavailableError):
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason=mapping.reason, domain=A2A_DOMAIN))
    if refusal.fields:
        errors = [ValidationDetail(field=path, message=f"{reason}.") for path, reason in refusal.fields]
        status.details.add().Pack(validation_errors_to_bad_request(errors))
    rich = status_to_grpc(status)
    context.set_trailing_metadata((*(context.trailing_metadata() or ()), *rich.trailing_metadata))
    await context.abort(rich.code, rich.details)
