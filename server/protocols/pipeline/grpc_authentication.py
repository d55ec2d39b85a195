"""Finds the caller of gRPC calls by their metadata, as the first server interceptor.

Rule 1: every call is refused in the same way, also that of a method which is not there, and before its message is read.
Rule 2: the caller is an attribute of the context that handlers get; `caller_in` reads it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from starlette.datastructures import Headers

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.protocols.edge.grpc_methods import wrapped_unread
from a2a_canvas.server.protocols.edge.origins import GrpcOrigins
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.guard.grpc_guard import SERVICES, Context, abort_call
from a2a_canvas.server.protocols.identity.authenticator import Authenticator
from a2a_canvas.server.protocols.pipeline.entrance import identify, stream_check
from a2a_canvas.server.tasks.journal.cursors import Check


class GrpcAuthentication(grpc.aio.ServerInterceptor):
    """Lets in callers whom `authenticator` knows; `origins` tells where calls come from."""

    def __init__(self, authenticator: Authenticator, origins: GrpcOrigins) -> None:
        self._authenticator = authenticator
        self._origins = origins

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)
        if handler is None:
            return None
        name_of_error = SERVICES.get(handler_call_details.method.rpartition("/")[0].lstrip("/")) == "0.3"

        async def authenticated(context: Context) -> Any:
            return await self._authenticated(context, name_of_error)

        return wrapped_unread(handler, authenticated)

    async def _authenticated(self, context: Context, name_of_error: bool) -> Any:
        """The context of a call whose caller is known; any other call ends here."""
        metadata = context.invocation_metadata() or ()
        origin = self._origins.origin_of(context.peer() or "", metadata)
        headers = Headers(raw=[(key.lower().encode(), _bytes(value)) for key, value in metadata])
        found = await identify(self._authenticator, headers, origin)
        if isinstance(found, Refusal):
            await abort_call(found, context, f"{found.kind.__name__}: " if name_of_error else "")
        return _IdentifiedContext(context, found.caller, stream_check(self._authenticator, found))


class _IdentifiedContext:
    """A call's context, with its caller, and what ends its stream."""

    def __init__(self, inner: Context, caller: Caller, check: Check | None) -> None:
        self._inner = inner
        self.caller = caller
        self.stream_check = check

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def caller_in(context: Any) -> Caller:
    """The caller of a gRPC call."""
    caller: Caller = getattr(context, "caller", ANONYMOUS)
    return caller


def stream_check_in(context: Any) -> Check | None:
    """What ends the stream of a gRPC call; None for nothing."""
    check: Check | None = getattr(context, "stream_check", None)
    return check


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")
