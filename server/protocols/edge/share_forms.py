"""Shares as JSON, for HTTP and for the operations of `canvas:v1`: requests to share, and answers about shares. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from a2a_canvas.server.accounts.access import Level, Share, is_user_name
from a2a_canvas.server.accounts.sharing import NewShare, ShareRequest, Sharing
from a2a_canvas.server.agent.operation_forms import InvalidOperation, OperationForm, read_form
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.store.ids import public_id
from a2a_canvas.store.models import JsonValue
from a2a_canvas.store.text.wording import format_value

Json = dict[str, Any]

MAX_USER = 256
"""Characters of a user's name."""
MAX_SECONDS = 100 * 366 * 24 * 3600
"""The longest that a share with an end may last."""


def _user_name(name: str) -> str:
    if not is_user_name(name):
        raise ValueError(
            "is no user's name: it has leading or trailing spaces, unprintable characters, or the prefix of links"
        )
    return name


class _ShareForm(OperationForm):
    user: Annotated[str, Field(min_length=1, max_length=MAX_USER), AfterValidator(_user_name)] | None = None
    link: bool = False
    level: Literal["read", "comment", "edit", "approve"] = "read"
    expires: Any = None


def share_request(given: Mapping[str, JsonValue], now: datetime) -> ShareRequest:
    """The share that an owner requests.

    Raises:
        InvalidOperation: a field is unknown or invalid, or there is not exactly one of `user` and `link`.
    """
    form = read_form(_ShareForm, given)
    if form.link == (form.user is not None):
        raise InvalidOperation("user", "or link must be given, and not both: a user's name, or true for a link")
    expires_at = None if form.expires is None else _expiry(form.expires, now)
    return ShareRequest(Level.from_word(form.level), form.user or "", expires_at)


def share_json(share: Share) -> Json:
    """A share, without its context."""
    return {
        "shareId": share.share_id,
        **({"user": share.user} if share.user else {"link": True}),
        "level": share.level.word,
        "createdAt": timestamp(share.made_at),
        **({"expires": timestamp(share.expires_at)} if share.expires_at else {}),
    }


def new_share_json(new: NewShare, sharing: Sharing) -> Json:
    """A share that was just made; a link with its token, and the address of the page with that token."""
    url = sharing.url_of(new.token) if new.token else ""
    link = {"token": new.token, "url": url}
    return share_json(new.share) | {name: value for name, value in link.items() if value}


def shared_json(owner: str, level: Level) -> Json:
    """The fields of a context for callers with a share of it."""
    return {"shared": {"owner": owner, "level": level.word}}


def shares_json(context_id: str, shares: tuple[Share, ...]) -> Json:
    """All shares of a context."""
    return {"contextId": public_id(context_id), "shares": [share_json(each) for each in shares]}


def _expiry(given: JsonValue, now: datetime) -> datetime:
    if isinstance(given, int) and not isinstance(given, bool):
        if 0 < given <= MAX_SECONDS:
            return now + timedelta(seconds=given)
        raise InvalidOperation("expires", f"is {given} and must be 1 to {MAX_SECONDS} seconds")
    at = _time(given)
    if at is None or at.tzinfo is None:
        reason = f"is {format_value(given)} and must be a time with its zone, such as 2030-12-01T00:00:00Z, or seconds"
        raise InvalidOperation("expires", reason)
    if at <= now:
        raise InvalidOperation("expires", f"is {format_value(given)}, which is in the past")
    if at > now + timedelta(seconds=MAX_SECONDS):
        reason = f"is {format_value(given)}, more than 100 years away: omit it for a share that does not expire"
        raise InvalidOperation("expires", reason)
    return at.astimezone(UTC)


def _time(given: JsonValue) -> datetime | None:
    try:
        return datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        return None
