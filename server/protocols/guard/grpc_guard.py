"""The guard in front of the SDK's gRPC services, as a server interceptor.

Rules:
1. The metadata `a2a-version` may be missing: each service speaks one version. If present it must be that version.
2. Requests are deserialized and answers serialized here: bytes that are no message, and messages that cannot be
   written as JSON, are InvalidParams.
3. An error has the SDK's form: status and message, `ErrorInfo` and `BadRequest` in `grpc-status-details-bin`, for the
   0.3 service as well. There the name of the error comes before the message.
4. An exception of a handler is logged and becomes INTERNAL without text. Cancellation and the handler's aborts pass.
5. Retryable errors have the status of `availability.py`, and `RetryInfo`: the SDK has neither. Those that have no
   reason of their own have none here: the SDK's client would take them for a failure of the server.
6. A message is parsed as over HTTP (`parsing.py`), and its fields are counted first (`proto_wire.py`).
7. Other services are not guarded. The size of a message is the server's option `grpc.max_receive_message_length`; the
   budget of all bodies (`bodies.py`) counts complete messages, because gRPC reads them before an interceptor runs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
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

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.protocols.edge.availability import UnavailableError, retry_after
from a2a_canvas.server.protocols.edge.error_tables import INTERNAL_REASON
from a2a_canvas.server.protocols.guard.bodies import TOO_MANY_BODIES, BodyBudget, BodyReservation
from a2a_canvas.server.protocols.guard.calls import REQUESTS, SENDS, read_legacy_proto
from a2a_canvas.server.protocols.guard.checks import MAX_VALUES, BodyLimits, Refusal, check_version, too_many_values
from a2a_canvas.server.protocols.guard.error_forms import INTERNAL_REFUSAL
from a2a_canvas.server.protocols.guard.guests import RefuseMessage, refuse_none
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES, ParsingThread
from a2a_canvas.server.protocols.guard.proto_messages import check_message, check_required
from a2a_canvas.server.protocols.guard.proto_wire import has_more_fields
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


class GuardInterceptor(grpc.aio.ServerInterceptor):
    """Refuses what the A2A services behind it cannot answer, and lets no exception's text out."""

    def __init__(
        self,
        limits: BodyLimits | None = None,
        budget: BodyBudget | None = None,
        parsing: ParsingThread | None = None,
        refuse_message: RefuseMessage = refuse_none,
    ) -> None:
        self._limits = limits or BodyLimits()
        self._budget = budget or BodyBudget(self._limits.max_bodies_bytes)
        self._parsing = parsing or ParsingThread()
        self._refuse_message = refuse_message

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = await continuation(handler_call_details)
        service = handler_call_details.method.rpartition("/")[0].lstrip("/")
        version = SERVICES.get(service)
        if handler is None:
            return _no_such_method(handler_call_details.method)
        if version is None:
            return handler
        refusal = _check_versions(handler_call_details.invocation_metadata, version)
        return _GuardedCall(
            handler,
            handler_call_details.method,
            version,
            refusal,
            self._limits,
            self._budget,
            self._parsing,
            self._refuse_message,
        ).handler()


def _no_such_method(method: str) -> grpc.RpcMethodHandler[Any, Any]:
    """Answers any call with the methods that may be meant, else with the services."""
    service, _, name = method.strip("/").rpartition("/")
    near = nearest(name, REQUESTS) if service in SERVICES else ()
    services = choice((f"{service} (A2A {version})" for service, version in SERVICES.items()), "and")
    these = f"Did you mean {choice(near)}?" if near else f"The services are {services}."

    async def abort(request: bytes, context: Context) -> NoReturn:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"There is no method {method}. {these}")

    return grpc.unary_unary_rpc_method_handler(abort)


def _check_versions(metadata: Iterable[tuple[str, str | bytes]] | None, version: str) -> Refusal | None:
    """If several values are sent, each of them has to be the service's version."""
    values = (value for key, value in metadata or () if key.lower() == "a2a-version")
    texts = (value if isinstance(value, str) else value.decode("latin-1") for value in values)
    refusals = (check_version(text, version, "This service") for text in texts if text)
    return next((refusal for refusal in refusals if refusal), None)


@dataclass(frozen=True, slots=True)
class _GuardedCall:
    """One call of the SDK's handler: deserialize, run and serialize, with every exception caught."""

    inner: Any
    method: str
    version: str
    refusal: Refusal | None
    limits: BodyLimits
    budget: BodyBudget
    parsing: ParsingThread
    refuse_message: RefuseMessage

    def handler(self) -> grpc.RpcMethodHandler[Any, Any]:
        """A handler of bytes: gRPC itself has no serializer that could fail."""
        if self.inner.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._unary)

    async def _unary(self, data: bytes, context: Context) -> bytes:
        async with self._reserved(context) as reservation:
            request = await self._read(data, context, reservation)
            answer = await self.inner.unary_unary(request, _RetryingContext(context))
            return self._write(answer)

    async def _stream(self, data: bytes, context: Context) -> AsyncIterator[bytes]:
        async with self._reserved(context) as reservation:
            request = await self._read(data, context, reservation)
            async for response in self.inner.unary_stream(request, _RetryingContext(context)):
                reservation.release()
                yield self._write(response)

    @asynccontextmanager
    async def _reserved(self, context: Context) -> AsyncIterator[BodyReservation]:
        try:
            with self.budget.reserve(_caller(context).account) as reservation:
                yield reservation
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            logger.error("Unhandled error in %s", self.method, exc_info=error)
            await self._abort(INTERNAL_REFUSAL, context)

    async def _read(self, data: bytes, context: Context, reservation: BodyReservation) -> Message:
        caller = _caller(context)
        refusal = self.refusal or (None if reservation.grow(len(data)) else TOO_MANY_BODIES)
        if refusal is None and (self._sends or len(data) > SMALL_BODY_BYTES):
            refusal = await self.refuse_message(caller)
        if refusal is not None:
            await self._abort(refusal, context)
        checked = await self.parsing.run(caller.account, len(data), partial(self._parsed, data))
        if isinstance(checked, Refusal):
            await self._abort(checked, context)
        return checked

    @property
    def _sends(self) -> bool:
        return self.method.rpartition("/")[2] in SENDS

    def _parsed(self, data: bytes) -> Message | Refusal:
        service, _, name = self.method.strip("/").rpartition("/")
        if has_more_fields(data, _SERVICES[service].methods_by_name[name].input_type, MAX_FIELDS):
            return too_many_values()
        try:
            request: Message = self.inner.request_deserializer(data)
        except DecodeError:
            return Refusal(InvalidParamsError, f"The request is no protobuf message of {self.method}")
        refusal = self._check(request)
        return refusal if isinstance(refusal, Refusal) else request

    async def _abort(self, refusal: Refusal, context: Context) -> NoReturn:
        # The SDK's client of 0.3 knows the kind of an error by this name only, and its service writes it, too.
        name = f"{refusal.kind.__name__}: " if self.version == "0.3" else ""
        await abort_call(refusal, context, name)

    def _check(self, request: Message) -> Message | Refusal | None:
        if self.version == "0.3":
            return read_legacy_proto(request, self.limits)
        return check_message(request, self.limits) or check_required(request)

    def _write(self, response: Message) -> bytes:
        return bytes(self.inner.response_serializer(response))


def _caller(context: Context) -> Caller:
    caller: Caller = getattr(context, "caller", ANONYMOUS)
    return caller


class _RetryingContext:
    """A call's context for the SDK's handlers, with rule 5 for the errors that they abort with.

    So have errors that A2A lacks, and the SDK therefore calls UNKNOWN.
    """

    def __init__(self, inner: Context) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> NoReturn:
        error = sys.exception()  # the SDK aborts in the except block of the error
        if isinstance(error, UnavailableError) or (isinstance(error, A2AError) and code is grpc.StatusCode.UNKNOWN):
            await abort_call(Refusal.of(error), self._inner)
        await self._inner.abort(code, details, trailing_metadata)


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
