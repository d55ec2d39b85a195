"""What the server's own HTTP routes read of a request: the caller, a conditional header, the rest of a path.

Rules:
1. An anonymous caller has the empty name.
2. A body has a strong ETag, over its bytes and its media type; an ETag beats a date (RFC 9110, section 13.2.2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from a2a.auth.user import User
from a2a.server.routes.common import DefaultServerCallContextBuilder
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

_CONTEXTS = DefaultServerCallContextBuilder()


def owner_of(request: Request) -> str:
    """The caller's name (rule 1)."""
    return owner_of_user(_CONTEXTS.build_user(request))


def owner_of_user(user: User) -> str:
    """The same for a user as A2A's call contexts have it."""
    return user.user_name if user.is_authenticated else ""


def etag_of(body: bytes, media_type: str = "") -> str:
    """A strong tag. `media_type` tells two representations of the same bytes apart."""
    return f'"{hashlib.sha256(media_type.encode() + body).hexdigest()}"'


def is_not_modified(request: Request, etag: str, modified: datetime | None = None) -> bool:
    """Whether the client has the body already."""
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


ANYTHING = "anything"
"""`{name:anything}` in a route takes all the rest of a path: unlike Starlette's `path`, line breaks too."""


class _AnythingConvertor(Convertor[str]):
    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor(ANYTHING, _AnythingConvertor())
