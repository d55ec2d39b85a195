"""Authentication: the first step of every request, over HTTP and gRPC, before its body is read.

Rule 1: without credentials a request can read the agent card and the key of its signature, what MCP hosts look for
        before they sign in, the server's health and the page's files, which are the same for all users, and can sign
        in. All other paths, known or not, are refused in the same way. `/auth/session` is answered without
        credentials, but not with wrong ones.
Rule 2: a refusal does not say what is wrong with a credential. It is HTTP 401 with `WWW-Authenticate` (RFC 6750) in
        every binding, JSON-RPC included, and UNAUTHENTICATED in gRPC. Too many attempts or requests are 429 with
        `Retry-After`, and RESOURCE_EXHAUSTED.
Rule 3: a stream ends when the credential that opened it ends, because a key is revoked, or a token or session expires.
        Its last event is an `UnauthenticatedError`, at most `cursors.CHECK_SECONDS` after the first refused request.
        While the database cannot be read, credentials stay valid. Only streams are cut off; other answers complete.
Rule 4: a page of another origin is refused, unless the operator allows it, or its request has a signed address: a view
        in an MCP host, whose origin is unknown in advance, follows a context at such an address.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, assert_never

from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import A2AError
from starlette.authentication import SimpleUser
from starlette.datastructures import Headers
from starlette.types import Scope

from a2a_canvas.server.protocols.edge.availability import TooManyRequestsError, UnavailableError, unavailable_error
from a2a_canvas.server.protocols.edge.error_tables import register_error
from a2a_canvas.server.protocols.edge.http_requests import CALLER, STREAM_CHECK
from a2a_canvas.server.protocols.edge.origins import Origin, origin_of
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.guard.error_forms import ErrorForm, RestForm, form_of
from a2a_canvas.server.protocols.guard.hosts import Hosts
from a2a_canvas.server.protocols.guard.startup import Startup
from a2a_canvas.server.protocols.identity.authenticator import (
    AUTHENTICATED,
    AuthenticatedCaller,
    Authenticator,
    Denial,
    InvalidCredential,
    IssuerUnavailable,
    MissingCredential,
    OverQuota,
    TooManyAttempts,
)
from a2a_canvas.server.protocols.identity.browser_sessions import BrowserSessions
from a2a_canvas.server.protocols.identity.credentials import HEADER, SCHEME
from a2a_canvas.server.tasks.journal.cursors import Check
from a2a_canvas.server.wire import CATALOG_PATH, KEYS_PATH, MCP_PATH, REALM, RESOURCE_PATH
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

RESOURCE_PATHS: Final = (RESOURCE_PATH, RESOURCE_PATH + MCP_PATH)
OPEN_PATHS: Final = (
    *("/", "/embed", "/healthz", "/readyz"),
    *(AGENT_CARD_WELL_KNOWN_PATH, KEYS_PATH, CATALOG_PATH, *RESOURCE_PATHS),
)
PAGE_FILES: Final = "/page/"
SIGN_IN: Final = "/auth/sign-in"
CALLBACK: Final = "/auth/callback"
SIGN_OUT: Final = "/auth/sign-out"
SESSION: Final = "/auth/session"
SET_COOKIE: Final = "set-cookie"
ANY_ORIGIN: Final = "a2a_canvas.any_origin"
"""Key of a request's scope, whose answer every page may read."""

ENDED = "The credentials have expired or been revoked. The task is still running; reconnect with valid credentials."


class UnauthenticatedError(A2AError):
    """The caller is not authenticated. A2A leaves this error to the transport."""


register_error(UnauthenticatedError, 401, "UNAUTHENTICATED", "UNAUTHENTICATED", -32000)


def _credential_refusal(text: str, challenge: str = f"{SCHEME} {REALM}") -> Refusal:
    return Refusal(UnauthenticatedError, text, http_status=401, headers={"WWW-Authenticate": challenge})


NO_CREDENTIAL: Final = _credential_refusal(
    f"This agent needs credentials: send {HEADER}: {SCHEME} and a key or token. Its card says which."
)
WRONG_CREDENTIAL: Final = _credential_refusal(
    "These credentials are not valid. Use a valid key or token.", f'{SCHEME} {REALM}, error="invalid_token"'
)


def is_open(method: str, path: str) -> bool:
    """Whether an HTTP request needs no credentials (rule 1). `POST /` is JSON-RPC."""
    if path in (SIGN_IN, CALLBACK, SIGN_OUT):
        return True
    return method in ("GET", "HEAD") and (path in OPEN_PATHS or path.startswith(PAGE_FILES))


async def identify(
    authenticator: Authenticator,
    headers: Headers,
    origin: Origin,
    fallback: Callable[[], Awaitable[AuthenticatedCaller | None]] | None = None,
) -> AuthenticatedCaller | Refusal:
    """The caller of a request that may enter, or why it may not (rule 2). The arguments are those of `authenticate`."""
    try:
        found = await authenticator.authenticate(headers, origin, fallback)
    except Unavailable as error:
        return Refusal(UnavailableError, unavailable_error(error).message)
    except IssuerUnavailable as error:
        logger.warning("A request could not be answered. %s", error)
        return Refusal(UnavailableError, "The issuer of your token cannot be reached now. Try again in a moment.")
    return found if isinstance(found, AuthenticatedCaller) else _refusal(found)


def _refusal(denial: Denial) -> Refusal:
    match denial:
        case MissingCredential():
            return NO_CREDENTIAL
        case InvalidCredential():
            return WRONG_CREDENTIAL
        case TooManyAttempts(seconds):
            text = f"Too many wrong credentials came from your address. Try again in {seconds} seconds."
            return Refusal(TooManyRequestsError, text, http_status=429, retry_after=seconds)
        case OverQuota(reason, seconds):
            return Refusal(TooManyRequestsError, reason, http_status=429, retry_after=seconds)
        case _:
            assert_never(denial)


def stream_check(authenticator: Authenticator, found: AuthenticatedCaller) -> Check | None:
    """The check that ends the streams of a request (rule 3); None if its credential stays valid."""

    async def check() -> None:
        try:
            valid = await authenticator.in_force(found)
        except Unavailable:
            valid = True
        if not valid:
            raise UnauthenticatedError(ENDED)

    return check if found.ends else None


@dataclass(frozen=True, slots=True)
class HttpEntrance:
    """Authenticates HTTP requests, after checking their host and that the server has started.

    Attributes:
        resource: the address where an MCP host learns who issues tokens (RFC 9728); empty if nobody does.
    """

    hosts: Hosts
    startup: Startup
    authenticator: Authenticator
    sessions: BrowserSessions
    resource: str = ""

    async def check(self, scope: Scope, path: str) -> tuple[ErrorForm, Refusal] | None:
        """Why a request may not enter; None if it may, with its caller in the scope."""
        method, headers = scope["method"], Headers(scope=scope)
        if refusal := await self._check_origin(scope, headers):
            return RestForm(), refusal
        refusal = self.startup.check(method, path) or await self._identify(scope, path, headers)
        if refusal and path == MCP_PATH and self.resource and refusal.kind is UnauthenticatedError:
            where = f', resource_metadata="{self.resource}"'
            refusal = replace(refusal, headers={name: value + where for name, value in refusal.headers.items()})
        return (form_of(method, path), refusal) if refusal else None

    async def _check_origin(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Pages of any origin may read a signed address: who has it may read what it is for (rule 4)."""
        host, origin = headers.get("host"), headers.get("origin")
        refusal = self.hosts.check(host, origin)
        if refusal is None or self.hosts.check(host, None):
            return refusal
        with suppress(Unavailable):
            if await self.sessions.is_signed(scope):
                scope[ANY_ORIGIN] = True
                return None
        return refusal

    async def _identify(self, scope: Scope, path: str, headers: Headers) -> Refusal | None:
        if is_open(scope["method"], path):
            return None
        found = await identify(self.authenticator, headers, origin_of(scope), partial(self.sessions.find, scope))
        if isinstance(found, Refusal):
            return None if found is NO_CREDENTIAL and (scope["method"], path) == ("GET", SESSION) else found
        scope[CALLER], scope[AUTHENTICATED] = found.caller, found
        scope[STREAM_CHECK] = stream_check(self.authenticator, found)
        if found.caller.name:
            scope["user"] = SimpleUser(found.caller.name)  # for what the SDK builds
        return None

    async def renew(self, scope: Scope) -> Mapping[str, str]:
        """The header that renews a browser's session, if the request renews it, or lets its page read the answer."""
        if scope.get(ANY_ORIGIN):
            return {"access-control-allow-origin": "*"}
        found: AuthenticatedCaller | None = scope.get(AUTHENTICATED)
        cookie = await self.sessions.renewal_cookie(found, scope) if found else ""
        return {SET_COOKIE: cookie} if cookie else {}
