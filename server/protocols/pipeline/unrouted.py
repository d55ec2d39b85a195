"""Requests without a route: an unknown path is 404, a wrong method 405; the message names those that exist."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from a2a_canvas.server.protocols.guard.error_forms import method_not_allowed, no_such_path, rest_response
from a2a_canvas.server.protocols.guard.rest_calls import REST_PATHS
from a2a_canvas.server.wire import AGUI_PATH, BELOW_REST

BINDINGS = {"/": " (JSON-RPC)", f"{BELOW_REST}…": " (HTTP+JSON)", AGUI_PATH: " (AG-UI)"}
"""What a message adds to a path."""


async def refuse_unrouted(request: Request, error: Exception) -> Response:
    """Starlette's exception handler for `HTTPException`. It answers in REST's form; the pipeline has JSON-RPC's."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        refusal = method_not_allowed(request.method, path, _allowed_methods(request))
        return Response(status_code=405, headers=refusal.headers) if path == "/" else rest_response(refusal)
    known = [re.sub("{.*}", "…", route.path) for route in request.app.routes]
    paths = {each: BINDINGS.get(each, "") for each in known if f"{each}/…" not in known}
    return rest_response(no_such_path(path, paths, more=[f"{BELOW_REST}{below}" for below in REST_PATHS]))


def _allowed_methods(request: Request) -> list[str]:
    """The methods of all routes of a path: the router names only those of the first."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
    return sorted({method for route in routes for method in route.methods})
