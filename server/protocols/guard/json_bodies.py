"""The JSON body of a request to one of our own routes; the pipeline has read it, and it is small (`bodies.py`)."""

from __future__ import annotations

from starlette.requests import Request

from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_content_type, check_json
from a2a_canvas.store.models import JsonValue


async def json_body(request: Request, limits: BodyLimits) -> JsonValue | Refusal:
    """The value of a body, or why it has none."""
    return check_content_type(request.headers.get("content-type")) or check_json(await request.body(), limits)
