"""`/auth/…`: the user of a browser's session, signing in and out, and signed addresses.

Rule 1: `GET /auth/session` is also answered without credentials (`entrance.py`); wrong ones are refused as everywhere.
Rule 2: the cookie of a sign-in is deleted when the sign-in ends, successful or not.
Rule 3: a browser that cannot be signed in is shown a page that says why and links to another try. The page contains
        nothing from the request or the provider.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from a2a.utils.errors import InvalidParamsError
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.log_output import about
from a2a_canvas.server.protocols.edge.availability import NO_STORE
from a2a_canvas.server.protocols.edge.http_requests import CALLER
from a2a_canvas.server.protocols.edge.origins import origin_of
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal
from a2a_canvas.server.protocols.guard.error_forms import rest_response
from a2a_canvas.server.protocols.guard.json_bodies import json_body
from a2a_canvas.server.protocols.identity.attempts import FailedAttempts
from a2a_canvas.server.protocols.identity.authenticator import AUTHENTICATED, IssuerUnavailable
from a2a_canvas.server.protocols.identity.browser_sessions import (
    COOKIE,
    SIGNED_SECONDS,
    BrowserSessions,
)
from a2a_canvas.server.protocols.pipeline.entrance import CALLBACK, SESSION, SIGN_IN, SIGN_OUT
from a2a_canvas.server.protocols.sign_in.open_id_sign_in import OpenIdClient, SignInRefused, new_flow
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

SIGNED_URLS = "/auth/signed-urls"
FLOW_COOKIE = "a2a-canvas-sign-in"
FLOW_SECONDS = 600
_FLOW = "sign-in"


@dataclass(frozen=True, slots=True)
class SessionRoutes:
    """The routes.

    Attributes:
        url: the address of this server, without a slash at its end.
        attempts: counts failed sign-ins as wrong credentials: each of them costs the issuer a request.
        open_id: None if there is no sign-in with an issuer.
        limits: of the JSON in bodies.
    """

    sessions: BrowserSessions
    url: str
    attempts: FailedAttempts
    open_id: OpenIdClient | None = None
    limits: BodyLimits = field(default_factory=BodyLimits)

    def routes(self) -> list[Route]:
        """All routes; those for signing in only with an issuer."""
        always = [
            Route(SESSION, self._session, methods=["GET"]),
            Route(SIGNED_URLS, self._signed_url, methods=["POST"]),
        ]
        if self.open_id is None:
            return always
        return [
            *always,
            Route(SIGN_IN, _or_failure_page(self._sign_in), methods=["GET"]),
            Route(CALLBACK, self._callback, methods=["GET"]),
            Route(SIGN_OUT, self._sign_out, methods=["POST"]),
        ]

    @property
    def _start(self) -> str:
        """The path of the page, for browsers."""
        return f"{urlsplit(self.url).path}/"

    async def _session(self, request: Request) -> Response:
        sign_in = {"signIn": SIGN_IN.lstrip("/")} if self.open_id else {}
        return JSONResponse(session_json(request.scope.get(CALLER)) | sign_in, headers=dict(NO_STORE))

    async def _signed_url(self, request: Request) -> Response:
        body = await json_body(request, self.limits)
        if isinstance(body, Refusal):
            return rest_response(body, NO_STORE)
        path = path_to_sign(body)
        if path is None:
            text = (
                'The body must be {"path": …}, a path of this server with its query, such as "/artifacts/notes/events".'
            )
            return rest_response(Refusal(InvalidParamsError, text), NO_STORE)
        address = await self.sessions.signed_address(request.scope[AUTHENTICATED], path)
        return JSONResponse({"url": self.url + address, "seconds": SIGNED_SECONDS}, headers=dict(NO_STORE))

    async def _sign_in(self, request: Request) -> Response:
        assert self.open_id
        flow = new_flow(request.query_params.get("return", ""), self._start)
        response = RedirectResponse(await self.open_id.address_for(flow), 303, NO_STORE)
        signed = await self.sessions.sign(_FLOW, flow, FLOW_SECONDS)
        response.headers.append("set-cookie", self.sessions.cookie(FLOW_COOKIE, signed, FLOW_SECONDS, request.scope))
        return response

    async def _callback(self, request: Request) -> Response:
        response = await _or_failure_page(self._complete_sign_in)(request)
        response.headers.append("set-cookie", self.sessions.cookie(FLOW_COOKIE, "", 0, request.scope))
        return response

    async def _complete_sign_in(self, request: Request) -> Response:
        assert self.open_id
        query = request.query_params
        flow = await self.sessions.read(_FLOW, self.sessions.value_of(FLOW_COOKIE, request.scope))
        if not flow or not hmac.compare_digest(query.get("state", "").encode(), flow["state"].encode()):
            return _failure_page(400, "This sign-in was started in another browser, or took too long.")
        if not query.get("code"):
            return _failure_page(403, "The provider did not sign you in.")
        origin = origin_of(request.scope)
        if seconds := self.attempts.begin(origin, query["code"]):
            return _failure_page(429, f"Too many sign-ins have failed. Try again in {seconds} seconds.")
        user = await self.open_id.user_of(query["code"], flow)
        self.attempts.cancel(origin, query["code"])
        response = RedirectResponse(flow["return"], 303, NO_STORE)
        response.headers.append("set-cookie", await self.sessions.begin(user, request.scope))
        logger.info("A user signed in", extra=about(user=user))
        return response

    async def _sign_out(self, request: Request) -> Response:
        if not self.sessions.may_use_cookie(request.method, request.headers):
            return PlainTextResponse("Only the page itself can sign out.", 403, NO_STORE)
        response = Response(status_code=204, headers=NO_STORE)
        try:
            await self.sessions.end(request.scope)
        except Unavailable as error:
            text = (
                "You are signed out here, but a copy of your session is still valid: the database cannot be used now."
            )
            logger.warning("A session could not be ended. %s", error)
            response = PlainTextResponse(text, 503, NO_STORE)
        response.headers.append("set-cookie", self.sessions.cookie(COOKIE, "", 0, request.scope))
        return response


_PAGE_HEADERS: Final = {
    **NO_STORE,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
# Its links are relative to /auth/, so that they lead to this server also below a path of a proxy.
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Not signed in</title>
<style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto; padding: 0 1rem }}</style>
</head>
<body>
<main>
<h1>Not signed in</h1>
<p>{text}</p>
<p><a href="sign-in">Sign in again</a> or go <a href="../">back to the page</a>.</p>
</main>
</body>
</html>
"""


def _failure_page(status: int, text: str) -> Response:
    """The page that says why a sign-in failed (rule 3)."""
    return HTMLResponse(_PAGE.format(text=escape(text)), status, _PAGE_HEADERS)


def _or_failure_page(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The answer to a step of a sign-in, or the page that says why it failed."""

    async def respond(request: Request) -> Response:
        try:
            return await answer(request)
        except SignInRefused as error:
            logger.warning("A sign-in failed. %s", error)
            return _failure_page(403, str(error))
        except IssuerUnavailable:  # logged where the issuer was called
            return _failure_page(503, "The provider cannot be reached now. Try again in a moment.")
        except Unavailable as error:
            logger.warning("A sign-in failed. %s", error)
            return _failure_page(503, "The server cannot sign you in now. Try again in a moment.")

    return respond


def session_json(caller: Caller | None) -> dict[str, str | bool]:
    """The session as JSON for the page; a caller of None has to sign in."""
    known = caller or ANONYMOUS
    return {"signedIn": known != ANONYMOUS, "required": caller is None, "user": known.name}


def path_to_sign(body: Any) -> str | None:
    """The path that a body names; None if it names none."""
    path = body.get("path") if isinstance(body, Mapping) and set(body) == {"path"} else None
    if not isinstance(path, str) or not path.startswith("/") or unquote(path).startswith(("//", "/auth/")):
        return None
    printable = path.isascii() and path.isprintable() and not set(path) & set(" #\\")
    return path if printable and "signature=" not in path else None
