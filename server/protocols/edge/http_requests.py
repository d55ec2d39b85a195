"""What the server's own HTTP routes read from a request: the caller, conditional headers, the rest of a path.

Rules:
1. Authentication, if configured, puts the caller into the scope; without it all callers are anonymous. It also puts the
   check there that ends a stream when the credential that opened it ends.
2. What takes long ends with its client (`while_connected`); a stream has `sse_response.py` for that.
3. A body has a strong ETag, over its bytes and its media type; an ETag beats a date (RFC 9110, section 13.2.2).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

from a2a.server.context import ServerCallContext
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.tasks.journal.context_log import ContextSubscription
from a2a_canvas.server.tasks.journal.journal import TaskSubscription

R = TypeVar("R")

_QUALITY = re.compile(r"\s*q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*", re.IGNORECASE)
CALLER = "a2a_canvas.caller"
"""Key of the `Caller` in the scope of a request, and in the state of A2A's call contexts."""

STREAM_CHECK: Final = "a2a_canvas.stream_check"
"""Key of the `Check` in the same two places; it is missing if the credential cannot end."""


def caller_of(request: Request) -> Caller:
    """The caller of a request (rule 1)."""
    return caller_in(request.scope)


def caller_in(state: Mapping[str, Any]) -> Caller:
    """The caller in the scope of a request."""
    caller: Caller = state.get(CALLER, ANONYMOUS)
    return caller


def caller_of_call(context: ServerCallContext) -> Caller:
    """The caller of an A2A operation."""
    return caller_in(context.state)


def end_with_credential(following: TaskSubscription | ContextSubscription, state: Mapping[str, Any]) -> None:
    """End a stream when the credential of its request expires or is revoked.

    Args:
        state: the scope of the request, or the state of the call context.
    """
    if check := state.get(STREAM_CHECK):
        following.guard(check)


async def while_connected(request: Request, answer: Coroutine[Any, Any, R]) -> R | None:
    """What `answer` returns; None if the client has left before, which cancels it.

    Args:
        request: its body has been read, or is of no interest.
    """
    answering, leaving = asyncio.create_task(answer), asyncio.create_task(wait_for_disconnect(request.receive))
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()
        await asyncio.wait((answering, leaving))


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has left. It takes what is left of the body."""
    while (await receive())["type"] != "http.disconnect":
        pass


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


def negotiate(accept: str, offers: Sequence[str]) -> str | None:
    """The media type among `offers` that an Accept header prefers, the first of equals; None if it accepts none."""
    best = max(offers, key=lambda offer: _quality(accept, offer))
    return best if _quality(accept, best) > 0 else None


def _quality(accept: str, offer: str) -> float:
    """The quality of the most specific range that includes `offer`; an empty header accepts everything."""
    if not accept.strip():
        return 1.0
    wanted = offer.partition(";")[0].strip().lower()
    ranges = (wanted, wanted.partition("/")[0] + "/*", "*/*")
    found: dict[str, float] = {}
    for entry in accept.split(","):
        name, *parameters = entry.split(";")
        qualities = [float(match[1]) for each in parameters if (match := _QUALITY.fullmatch(each))]
        found[name.strip().lower()] = qualities[0] if qualities else 1.0
    return next((found[name] for name in ranges if name in found), 0.0)


ANYTHING = "anything"
"""`{name:anything}` in a route takes all the rest of a path: unlike Starlette's `path`, line breaks too."""


class _AnythingConvertor(Convertor[str]):
    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor(ANYTHING, _AnythingConvertor())
