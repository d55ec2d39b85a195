"""Authentication of HTTP requests, as ASGI middleware before the guard: nothing is read for who is not known.

Rule 1: without credentials there are the agent card and the key of its signature, the health of the server, the page's
        files, which are the same for everybody, and what signs people in. Everything else, known path or not, is
        refused in the same way.
        `/auth/session` says whom the server takes a caller for: it passes without credentials, not with wrong ones.
Rule 2: the caller is left in the scope; `caller_of` reads it. Starlette's `user` is there for what the SDK builds.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from starlette.authentication import SimpleUser
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.availability import RETRY_AFTER
from a2a_canvas.server.protocols.edge.http_requests import CALLER, STREAM_CHECK
from a2a_canvas.server.protocols.edge.origins import origin_of
from a2a_canvas.server.protocols.guard.error_forms import form_of
from a2a_canvas.server.protocols.identity.authenticator import (
    AUTHENTICATED,
    Authenticated,
    Authenticator,
    IssuerUnavailable,
    Missing,
)
from a2a_canvas.server.protocols.identity.browser_sessions import BrowserSessions
from a2a_canvas.server.protocols.identity.denials import denied_response, unavailable
from a2a_canvas.server.protocols.identity.stream_end import stream_check
from a2a_canvas.server.wire import KEYS_PATH
from a2a_canvas.store.errors import Unavailable

OPEN_PATHS: Final = ("/", AGENT_CARD_WELL_KNOWN_PATH, KEYS_PATH, "/healthz", "/readyz")
PAGE_FILES: Final = "/page/"
SIGN_IN: Final = "/auth/sign-in"
CALLBACK: Final = "/auth/callback"
SIGN_OUT: Final = "/auth/sign-out"
SESSION: Final = "/auth/session"


def is_open(method: str, path: str) -> bool:
    """Whether a request needs no credentials (rule 1). `POST /` is JSON-RPC."""
    if path in (SIGN_IN, CALLBACK, SIGN_OUT):
        return True
    return method in ("GET", "HEAD") and (path in OPEN_PATHS or path.startswith(PAGE_FILES))


class Authentication:
    """ASGI middleware that lets in whom `authenticator` knows."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator, sessions: BrowserSessions) -> None:
        self._app = app
        self._authenticator = authenticator
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if is_open(scope["method"], path):
            await self._app(scope, receive, send)
            return
        answer = await self._authenticated(scope, path)
        await answer(scope, receive, await self._renewing(scope, send))

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

    async def _authenticated(self, scope: Scope, path: str) -> ASGIApp:
        """The application, for a caller that is known; what refuses it, for any other."""
        form = form_of(scope["method"], path)
        try:
            verdict = await self._authenticator.authenticate(
                Headers(scope=scope), origin_of(scope), partial(self._sessions.find, scope)
            )
        except (Unavailable, IssuerUnavailable) as error:
            refusal = unavailable(error)
            return JSONResponse(form.payload(refusal), form.status(refusal), dict(RETRY_AFTER))
        if isinstance(verdict, Missing) and (scope["method"], path) == ("GET", SESSION):
            return self._app
        if not isinstance(verdict, Authenticated):
            return denied_response(verdict, form)
        scope[CALLER], scope[AUTHENTICATED] = verdict.caller, verdict
        scope[STREAM_CHECK] = stream_check(self._authenticator, verdict)
        if verdict.caller.name:
            scope["user"] = SimpleUser(verdict.caller.name)
        return self._app
