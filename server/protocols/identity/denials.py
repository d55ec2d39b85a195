"""How a request without a valid credential is answered, in the form of its binding. Pure.

Rule 1: HTTP 401 with `WWW-Authenticate` (RFC 6750) in every binding of HTTP, JSON-RPC included; gRPC UNAUTHENTICATED.
        Too many attempts, or requests, are 429 with `Retry-After`; gRPC RESOURCE_EXHAUSTED.
Rule 2: the body is not read, so an error of JSON-RPC has no id.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import assert_never

from a2a.utils.errors import A2A_ERROR_MAPPING, A2AError
from starlette.responses import JSONResponse

from a2a_canvas.server.protocols.edge.availability import (
    NO_STORE,
    TooManyRequestsError,
    UnavailableError,
    retry_header,
    unavailable_error,
)
from a2a_canvas.server.protocols.edge.error_tables import enter
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.guard.error_forms import ErrorForm
from a2a_canvas.server.protocols.identity.authenticator import (
    Denial,
    Invalid,
    IssuerUnavailable,
    Missing,
    OverQuota,
    TooManyAttempts,
)
from a2a_canvas.server.protocols.identity.credentials import HEADER, SCHEME
from a2a_canvas.server.wire import REALM
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)


class UnauthenticatedError(A2AError):
    """The caller is not known. A2A leaves it to the transport."""


enter(UnauthenticatedError, 401, "UNAUTHENTICATED", "UNAUTHENTICATED", -32000)

CHALLENGE = f"{SCHEME} {REALM}"


def refusal_of(denial: Denial) -> Refusal:
    """What a caller is told; it does not tell what was wrong with a credential."""
    match denial:
        case Missing():
            text = f"This agent needs credentials: send {HEADER}: {SCHEME} and a key or token. Its card says which."
            return Refusal(UnauthenticatedError, text)
        case Invalid():
            return Refusal(UnauthenticatedError, "These credentials are not valid. Use a valid key or token.")
        case TooManyAttempts():
            text = f"Too many wrong credentials came from your address. Try again in {denial.seconds} seconds."
            return Refusal(TooManyRequestsError, text, retry_after=denial.seconds)
        case OverQuota():
            return Refusal(TooManyRequestsError, denial.reason, retry_after=denial.seconds)
        case _:
            assert_never(denial)


def unavailable(error: Unavailable | IssuerUnavailable) -> Refusal:
    """The refusal of a request whose caller cannot be found out just now; the reason is logged."""
    if isinstance(error, Unavailable):
        return Refusal(UnavailableError, unavailable_error(error).message)
    logger.warning("A request could not be answered. %s", error)
    return Refusal(UnavailableError, "The issuer of your token cannot be asked just now. Try again in a moment.")


def headers_of(denial: Denial) -> Mapping[str, str]:
    """The headers of the answer over HTTP (rule 1)."""
    match denial:
        case Missing():
            return {"WWW-Authenticate": CHALLENGE, **NO_STORE}
        case Invalid():
            return {"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"', **NO_STORE}
        case TooManyAttempts() | OverQuota():
            return {**retry_header(refusal_of(denial).error()), **NO_STORE}
        case _:
            assert_never(denial)


def denied_response(denial: Denial, form: ErrorForm) -> JSONResponse:
    """The answer over HTTP."""
    refusal = refusal_of(denial)
    return JSONResponse(form.payload(refusal), A2A_ERROR_MAPPING[refusal.kind].http_code, dict(headers_of(denial)))
