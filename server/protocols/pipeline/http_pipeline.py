"""Takes an HTTP request to its route, as ASGI middleware.

Rules:
1. Host and origin are checked first, then whether the server has started, then the caller (`entrance.py`). After that
   the body is read (`bodies.py`), unless its sender may send none (`guests.py`), and replayed; then the app's `receive`
   is the server's, so a disconnect still reaches the app. No answer is buffered: streams pass through unchanged.
2. JSON-RPC is `POST /`; REST is every path below its prefix. On all other paths only the size of the body is checked.
3. A refusal has the binding's form: JSON-RPC an error object with HTTP 200, REST a `google.rpc.Status` with its HTTP
   status. A 0.3 call over JSON-RPC is answered in its own form.
4. An error that is not JSON (the router's 404 and 405) is replaced by the binding's, `Allow` included.
5. An exception of the app is logged and becomes InternalError without text, or the last event of a stream that has
   begun.
6. A 503 has `Retry-After`.
7. The scope has the caller, its credential, and the parsed request, a `Call` (`calls.py`).
8. The query parameter `A2A-Version` counts where the header is missing or empty (A2A 1.0, section 3.6.1): a browser's
   `EventSource` can set no header. It is copied to the header here. Several headers with different versions become one
   that lists them all, which is not a valid version.
9. `%2F` is part of a name, and only names below `/artifacts/` may contain it. Elsewhere such a path is not found: if it
   were decoded, a proxy that allows or forbids paths would see a different path than this server.
10. The extensions that a request activates are named in the header of the app's answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from a2a.utils.errors import A2AError, InvalidRequestError, MethodNotFoundError
from pydantic_core import to_json
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.availability import RETRY_AFTER
from a2a_canvas.server.protocols.edge.http_requests import caller_in
from a2a_canvas.server.protocols.edge.request_metrics import note_refusal
from a2a_canvas.server.protocols.edge.sse_response import sse_event
from a2a_canvas.server.protocols.guard.bodies import (
    TOO_MANY_BODIES,
    BodyBudget,
    BodyReservation,
    read_body,
    replay_body,
    takes_messages,
)
from a2a_canvas.server.protocols.guard.calls import CALL, SENDS, Call
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_content_type
from a2a_canvas.server.protocols.guard.error_forms import (
    INTERNAL_REFUSAL,
    ErrorForm,
    JsonRpcForm,
    RestForm,
    method_not_allowed,
    refusal_response,
)
from a2a_canvas.server.protocols.guard.guests import RefuseMessage, refuse_none
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES, ParsingThread
from a2a_canvas.server.protocols.guard.rest_calls import check_encoding, check_rest, find_rest_route
from a2a_canvas.server.protocols.guard.rpc_calls import RejectedCall, check_jsonrpc
from a2a_canvas.server.protocols.pipeline.entrance import HttpEntrance
from a2a_canvas.server.protocols.pipeline.extension_headers import SUPPORTED, activated_extensions
from a2a_canvas.server.wire import BELOW_REST, VERSION_HEADER

logger = logging.getLogger(__name__)


def sends_message(method: str, path: str) -> bool:
    """Whether the path alone says that the body is a message."""
    found = find_rest_route(method, path.removeprefix(BELOW_REST)) if path.startswith(BELOW_REST) else None
    return found is not None and found[0].operation in SENDS


class HttpPipeline:
    """ASGI middleware, around the app or among its middleware.

    Args:
        budget: of all request bodies, to be shared with gRPC; one of its own, for `limits`, if not given.
        parsing: where large ones are parsed, to be shared with gRPC and AG-UI.
        refuse_message: for callers who may send none; their messages are not parsed.
        entrance: authenticates requests; all may enter, anonymously, if not given.
        extensions: URIs of those that requests may activate.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: BodyLimits,
        budget: BodyBudget | None = None,
        parsing: ParsingThread | None = None,
        refuse_message: RefuseMessage = refuse_none,
        entrance: HttpEntrance | None = None,
        extensions: Set[str] = SUPPORTED,
    ) -> None:
        self._app = app
        self._limits = limits
        self._budget = budget or BodyBudget.for_limits(limits)
        self._parsing = parsing or ParsingThread()
        self._one_per_step = asyncio.Lock()
        self._refuse_message = refuse_message
        self._entrance = entrance
        self._extensions = extensions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        refused = None
        if self._entrance:
            refused = await self._entrance.check(scope, path)
            send = with_headers(send, await self._entrance.renew(scope))
        if refused is None and encodes_slash(scope):
            refused = RestForm(), _ENCODED_SLASH
        if refused:
            await _HttpExchange(scope, receive, send).refuse(*refused)
        else:
            await self._read_and_serve(scope, receive, send, path)

    async def _read_and_serve(self, scope: Scope, receive: Receive, send: Send, path: str) -> None:
        with self._budget.reserve(caller_in(scope).account) as reservation:
            body = await self._read(scope, receive, path, reservation)
            if body is None:
                return
            await self._next_step()
            connection = _HttpExchange(scope, replay_body(body, receive), reservation.release_when_answered(send))
            await self._serve(scope, path, body, connection)

    async def _read(
        self, scope: Scope, receive: Receive, path: str, reservation: BodyReservation
    ) -> bytes | Refusal | None:
        """The body, or a refusal because of its size or its sender."""
        method, large = scope["method"], self._limits.max_body_bytes
        small = min(SMALL_BODY_BYTES, large)
        if not takes_messages(method, path):
            return await read_body(scope, receive, small, reservation)
        refusal = await self._refuse_message(caller_in(scope))
        if refusal and sends_message(method, path):
            return refusal
        body = await read_body(scope, receive, small if refusal else large, reservation)
        return refusal if refusal and isinstance(body, Refusal) and body.http_status == 413 else body

    async def _next_step(self) -> None:
        """Lets one request pass in each step of the event loop, so that a burst does not delay the running turns."""
        waited = self._one_per_step.locked()
        async with self._one_per_step:
            if not waited:  # a waiter wakes in a step of its own
                await asyncio.sleep(0)

    async def _serve(self, scope: Scope, path: str, body: bytes | Refusal, connection: _HttpExchange) -> None:
        binding = _binding(scope["method"], path)
        if isinstance(body, Refusal):
            headers = {} if body is TOO_MANY_BODIES else {"connection": "close"}
            await connection.refuse(binding or RestForm(), body, headers)
        elif binding is None:
            await self._app(scope, connection.receive, with_headers(connection.send, self._echo(scope)))
        else:
            _read_version(scope)
            check = partial(_check, binding, scope, path, body, self._limits)
            form, call = await self._parsing.run(caller_in(scope).account, len(body), check)
            if isinstance(call, Refusal):
                await connection.refuse(form, call)
            else:
                if call is not None:
                    scope[CALL] = call
                await _BindingAnswer(connection, form, self._echo(scope)).run(self._app)

    def _echo(self, scope: Scope) -> Mapping[str, str]:
        headers = Headers(scope=scope)
        return activated_extensions(headers, headers.get(VERSION_HEADER, ""), self._extensions)


def _binding(method: str, path: str) -> ErrorForm | None:
    """The form of errors on A2A's paths; None elsewhere."""
    if f"{path}/".startswith(BELOW_REST):
        return RestForm()
    return JsonRpcForm() if path == "/" and method not in ("GET", "HEAD") else None


def _check(
    binding: ErrorForm, scope: Scope, path: str, body: bytes, limits: BodyLimits
) -> tuple[ErrorForm, Call | Refusal | None]:
    """The form of the call's errors, with the call or its refusal; None for what the router refuses."""
    headers = Headers(scope=scope)
    version = headers.get(VERSION_HEADER)
    posted = scope["method"] == "POST"
    not_json = check_content_type(headers.get("content-type")) if posted and body else None
    if isinstance(binding, RestForm):
        query = scope["query_string"]
        found = find_rest_route(scope["method"], path.removeprefix(BELOW_REST))
        if found is None:
            return binding, None
        refusal = not_json or check_encoding(scope.get("raw_path") or b"", query)
        return binding, refusal or check_rest(*found, QueryParams(query), body, version, limits)
    if not posted:
        return binding, None
    call = RejectedCall(not_json) if not_json else check_jsonrpc(body, version, limits)
    return JsonRpcForm(call.id, call.legacy), call.refusal if isinstance(call, RejectedCall) else call


_ENCODED_SLASH = Refusal(
    MethodNotFoundError,
    "There is nothing at this path: %2F is part of a name, and only names below /artifacts/ have one.",
    http_status=404,
)


def encodes_slash(scope: Scope) -> bool:
    """Whether a path has a slash that a proxy does not see as one (rule 9)."""
    raw: bytes = scope.get("raw_path") or b""
    before, encoded, _ = raw.removeprefix(scope.get("root_path", "").encode()).lower().partition(b"%2f")
    return bool(encoded) and not before.startswith(b"/artifacts/")


def with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """`send` that adds headers to the answer."""
    if not headers:
        return send

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            for name, value in headers.items():
                MutableHeaders(scope=message).append(name, value)
        await send(message)

    return send_with_headers


def _read_version(scope: Scope) -> None:
    """Rule 8. Parameter names are compared case-insensitively, as header names are."""
    headers = MutableHeaders(scope=scope)
    if versions := dict.fromkeys(filter(None, headers.getlist(VERSION_HEADER))):
        headers[VERSION_HEADER] = ", ".join(versions)
        return
    parameters = QueryParams(scope["query_string"]).multi_items()
    given = next((value for name, value in parameters if name.lower() == VERSION_HEADER.lower() and value), "")
    if given:
        headers[VERSION_HEADER] = given.encode("ascii", "replace").decode()


@dataclass(frozen=True, slots=True)
class _HttpExchange:
    scope: Scope
    receive: Receive
    send: Send

    async def refuse(self, binding: ErrorForm, refusal: Refusal, headers: dict[str, str] | None = None) -> None:
        if isinstance(binding, JsonRpcForm):
            note_refusal(self.scope, refusal.kind)
        await refusal_response(binding, refusal, headers)(self.scope, self.receive, self.send)

    async def answer(self, status: int, payload: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        await JSONResponse(payload, status, headers)(self.scope, self.receive, self.send)


class _BindingAnswer:
    """One run of the app behind a binding. Its answer passes unchanged, unless it is an error that is not JSON."""

    __slots__ = ("_begun", "_binding", "_connection", "_headers", "_replaced")

    def __init__(self, connection: _HttpExchange, binding: ErrorForm, headers: Mapping[str, str]) -> None:
        self._connection = connection
        self._headers = headers
        self._binding = binding
        self._begun: Headers | None = None
        self._replaced: Message | None = None

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self._connection.scope, self._connection.receive, with_headers(self._send, self._headers))
        except Exception as error:
            await self._catch(error)
        else:
            if self._replaced is not None:
                await self._replace(self._replaced)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=message["headers"])
            if message["status"] >= 400 and "json" not in headers.get("content-type", ""):
                self._replaced = message
            else:
                self._begun = headers
            if message["status"] == 503:
                MutableHeaders(scope=message).update(RETRY_AFTER)
        if self._replaced is None:
            await self._connection.send(message)

    async def _replace(self, start: Message) -> None:
        status, allow = start["status"], Headers(raw=start["headers"]).get("allow")
        refusal = _router_error(status, self._connection.scope, allow)
        # JSON-RPC answers a failure with HTTP 200; a 405 keeps its status, without which Allow has no meaning.
        status = status if status < 500 else self._binding.status(refusal)
        headers = {"allow": allow} if allow is not None else None
        await self._connection.answer(status, self._binding.payload(refusal), headers)

    async def _catch(self, error: Exception) -> None:
        cause = _unwrap_group(error)
        scope = self._connection.scope
        if not isinstance(cause, A2AError):
            logger.error("Unhandled error in %s %r", scope["method"], scope["path"], exc_info=error)
        if self._begun is None:
            await self._connection.refuse(self._binding, INTERNAL_REFUSAL)
        elif self._begun.get("content-type", "").startswith("text/event-stream"):
            await self._last_event(cause)
        else:
            raise error

    async def _last_event(self, cause: BaseException) -> None:
        """An error event: the client can tell that the stream broke."""
        refusal = Refusal.from_error(cause) if isinstance(cause, A2AError) else INTERNAL_REFUSAL
        body = sse_event(to_json(self._binding.payload(refusal)), name="error")
        with suppress(OSError):
            await self._connection.send({"type": "http.response.body", "body": body, "more_body": False})


def _router_error(status: int, scope: Scope, allow: str | None) -> Refusal:
    """The refusal in place of a router's answer without JSON."""
    match status:
        case 404:
            return Refusal(MethodNotFoundError, f"There is nothing at {scope['path']}", http_status=404)
        case 405:
            return method_not_allowed(scope["method"], scope["path"], (allow or "other methods").split(", "))
        case _ if status >= 500:
            return INTERNAL_REFUSAL
        case _:
            return Refusal(InvalidRequestError, "The request was refused", http_status=status)


def _unwrap_group(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
