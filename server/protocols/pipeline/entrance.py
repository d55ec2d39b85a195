"""Who may enter: the first step of every request, over HTTP and gRPC. Its body is not read before.

Rule 1: without credentials a request gets the agent card and the key of its signature, the health of the server, the
        page's files, which are the same for everybody, and what signs people in. All other paths, known or not, are
        refused in the same way. `/auth/session` passes without credentials, but not with wrong ones.
Rule 2: a refusal does not say what is wrong with a credential. It is HTTP 401 with `WWW-Authenticate` (RFC 6750) in
        every binding, JSON-RPC included, and UNAUTHENTICATED in gRPC. Too many attempts or requests are 429 with
        `Retry-After`, and RESOURCE_EXHAUSTED.
Rule 3: a stream ends when the credential ends that opened it, because a key is revoked, or a token or session expires.
        Its last event is an `UnauthenticatedError`, at most CHECK_SECONDS of a cursor after requests are refused. While
        the database cannot be read, credentials stay valid. Only streams end: an answer without one was let in.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, assert_never

from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import A2AError
from starlette.datastructures import Headers

from a2a_canvas.server.protocols.edge.availability import TooManyRequestsError, UnavailableError, unavailable_error
from a2a_canvas.server.protocols.edge.error_tables import enter
from a2a_canvas.server.protocols.edge.origins import Origin
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.identity.authenticator import (
    Authenticated,
    Authenticator,
    Denial,
    Invalid,
    IssuerUnavailable,
    Missing,
    OverQuota,
    TooManyAttempts,
)
from a2a_canvas.server.protocols.identity.credentials import HEADER, SCHEME
from a2a_canvas.server.tasks.journal.cursors import Check
from a2a_canvas.server.wire import KEYS_PATH, REALM
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

OPEN_PATHS: Final = ("/", AGENT_CARD_WELL_KNOWN_PATH, KEYS_PATH, "/healthz", "/readyz")
PAGE_FILES: Final = "/page/"
SIGN_IN: Final = "/auth/sign-in"
CALLBACK: Final = "/auth/callback"
SIGN_OUT: Final = "/auth/sign-out"
SESSION: Final = "/auth/session"

ENDED = "These credentials are not valid any more, so this stream ends. Its task goes on: come back with new ones."


class UnauthenticatedError(A2AError):
    """The caller is not known. A2A leaves it to the transport."""


enter(UnauthenticatedError, 401, "UNAUTHENTICATED", "UNAUTHENTICATED", -32000)


def _unauthenticated(text: str, challenge: str = f"{SCHEME} {REALM}") -> Refusal:
    return Refusal(UnauthenticatedError, text, http_status=401, headers=(("WWW-Authenticate", challenge),))


NO_CREDENTIAL: Final = _unauthenticated(
    f"This agent needs credentials: send {HEADER}: {SCHEME} and a key or token. Its card says which."
)
WRONG_CREDENTIAL: Final = _unauthenticated(
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
    otherwise: Callable[[], Awaitable[Authenticated | None]] | None = None,
) -> Authenticated | Refusal:
    """The caller of a request that may enter, or why it may not (rule 2). The arguments are those of `authenticate`."""
    try:
        found = await authenticator.authenticate(headers, origin, otherwise)
    except Unavailable as error:
        return Refusal(UnavailableError, unavailable_error(error).message)
    except IssuerUnavailable as error:
        logger.warning("A request could not be answered. %s", error)
        return Refusal(UnavailableError, "The issuer of your token cannot be asked just now. Try again in a moment.")
    return found if isinstance(found, Authenticated) else _refusal(found)


def _refusal(denial: Denial) -> Refusal:
    match denial:
        case Missing():
            return NO_CREDENTIAL
        case Invalid():
            return WRONG_CREDENTIAL
        case TooManyAttempts(seconds):
            text = f"Too many wrong credentials came from your address. Try again in {seconds} seconds."
            return Refusal(TooManyRequestsError, text, http_status=429, retry_after=seconds)
        case OverQuota(reason, seconds):
            return Refusal(TooManyRequestsError, reason, http_status=429, retry_after=seconds)
        case _:
            assert_never(denial)


def stream_check(authenticator: Authenticator, found: Authenticated) -> Check | None:
    """What ends the streams of a request (rule 3); None if its credential stays valid."""

    async def check() -> None:
        try:
            valid = await authenticator.in_force(found)
        except Unavailable:
            valid = True
        if not valid:
            raise UnauthenticatedError(ENDED)

    return check if found.ends else None
