"""Finds the caller of HTTP requests, as ASGI middleware before the guard.

The caller is left in the scope; `caller_of` reads it. Starlette's `user` is there for what the SDK builds.
"""

from __future__ import annotations

from functools import partial

from starlette.authentication import SimpleUser
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.http_requests import CALLER, STREAM_CHECK
from a2a_canvas.server.protocols.edge.origins import origin_of
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.guard.error_forms import form_of, refusal_response
from a2a_canvas.server.protocols.identity.authenticator import AUTHENTICATED, Authenticated, Authenticator
from a2a_canvas.server.protocols.identity.browser_sessions import BrowserSessions
from a2a_canvas.server.protocols.pipeline.entrance import NO_CREDENTIAL, SESSION, identify, is_open, stream_check


class Authentication:
    """ASGI middleware that lets in callers whom `authenticator` knows."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator, sessions: BrowserSessions) -> None:
        self._app = app
        self._authenticator = authenticator
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            if refusal := await self._enter(scope, path):
                app = refusal_response(form_of(scope["method"], path), refusal)
            send = await self._renewing(scope, send)
        await app(scope, receive, send)

    async def _enter(self, scope: Scope, path: str) -> Refusal | None:
        """Why a request may not enter; the caller of any other is left in the scope, if it needs one."""
        if is_open(scope["method"], path):
            return None
        find_session = partial(self._sessions.find, scope)
        found = await identify(self._authenticator, Headers(scope=scope), origin_of(scope), find_session)
        if isinstance(found, Refusal):
            return None if found is NO_CREDENTIAL and (scope["method"], path) == ("GET", SESSION) else found
        scope[CALLER], scope[AUTHENTICATED] = found.caller, found
        scope[STREAM_CHECK] = stream_check(self._authenticator, found)
        if found.caller.name:
            scope["user"] = SimpleUser(found.caller.name)
        return None

    async def _renewing(self, scope: Scope, send: Send) -> Send:
        """`send`, with the cookie of a session that the request renews."""
        found: Authenticated | None = scope.get(AUTHENTICATED)
        cookie = await self._sessions.renewed(found, scope) if found else ""
        if not cookie:
            return send

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        return send_with_cookie
