"""`GET /auth/session`: whom the server takes a browser for, so that the page knows whether to ask somebody to sign in.

Rule 1: it is answered without credentials, too, as `http_authentication.py` lets it pass; wrong ones are refused as
        everywhere.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_canvas.server.protocols.edge.availability import NO_STORE
from a2a_canvas.server.protocols.edge.http_requests import CALLER
from a2a_canvas.server.protocols.identity.http_authentication import SESSION
from a2a_canvas.server.tasks.access import ANONYMOUS, Caller


def session_route() -> Route:
    """The route."""
    return Route(SESSION, _session, methods=["GET"])


async def _session(request: Request) -> Response:
    return JSONResponse(session_json(request.scope.get(CALLER)), headers=dict(NO_STORE))


def session_json(caller: Caller | None) -> dict[str, str | bool]:
    """What the page is told of its user; None is nobody where somebody must sign in."""
    known = caller or ANONYMOUS
    return {"signedIn": known != ANONYMOUS, "required": caller is None, "user": known.name}
