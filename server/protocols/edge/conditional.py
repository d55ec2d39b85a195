"""Conditional answers (RFC 9110, section 13): whoever has the body already is told so, and not sent it again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from starlette.requests import Request
from starlette.responses import Response


def etag_of(body: bytes, media_type: str = "") -> str:
    """A strong tag. With `media_type` it tells two representations of the same bytes apart."""
    return f'"{hashlib.sha256(media_type.encode() + body).hexdigest()}"'


def is_not_modified(request: Request, etag: str, modified: datetime | None = None) -> bool:
    """Whether the client has the body already (section 13.2.2: an ETag beats a date)."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        return any(tag.strip().removeprefix("W/") in (etag, "*") for tag in tags.split(","))
    since = request.headers.get("if-modified-since")
    try:
        return since is not None and modified is not None and parsedate_to_datetime(since) >= modified
    except (ValueError, TypeError):
        return False


def conditional_response(request: Request, body: bytes, media_type: str, headers: Mapping[str, str]) -> Response:
    """`body` with its ETag, or 304. `media_type` is the whole header Content-Type."""
    tagged = {**headers, "ETag": etag_of(body, media_type)}
    if is_not_modified(request, tagged["ETag"]):
        return Response(status_code=304, headers=tagged)
    return Response(body, headers={**tagged, "Content-Type": media_type})
