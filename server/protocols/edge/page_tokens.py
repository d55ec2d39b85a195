"""Tokens of pages: a token encodes the position of the last item of its page, so it stays valid while items change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from a2a.utils.task import ListTasksCursor, decode_list_tasks_cursor, encode_list_tasks_cursor

from a2a_canvas.server.tasks.journal.listing import ListPosition
from a2a_canvas.server.tasks.journal.text_search import TextPosition
from a2a_canvas.store.ids import SEPARATOR, shard_of
from a2a_canvas.store.text.unicode import valid_id

FOREIGN_TOKEN = "is not one of this server's; leave it out for the first page"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def page_token(last: ListPosition) -> str:
    """The token of the page after a task."""
    return _encode(*last)


def position_of(token: str) -> ListPosition | None:
    """The position that it encodes; None if it is not one of ours."""
    match _decode(token):
        case at, task_id:
            return at, task_id
    return None


def context_page_token(last: ListPosition) -> str:
    """The token of the page after a context, which its key identifies."""
    at, key = last
    return _encode(at, *_parts(key))


def context_position_of(token: str) -> ListPosition | None:
    """The same for `context_page_token`."""
    match _decode(token):
        case at, _, context_id, digest:
            return at, _key(context_id, digest)
    return None


def text_page_token(last: TextPosition) -> str:
    """The token of the page after an artifact of a context, which its key identifies."""
    at, key, artifact_id = last
    return _encode(at, *_parts(key), artifact_id)


def text_position_of(token: str) -> TextPosition | None:
    """The same for `text_page_token`."""
    match _decode(token):
        case at, _, context_id, digest, artifact_id:
            return at, _key(context_id, digest), artifact_id
    return None


def _parts(key: str) -> tuple[str, str, str]:
    """The shard of a context, its id, and the digest of its owner."""
    context_id, _, digest = key.partition(SEPARATOR)
    return f"{shard_of(key):03x}", context_id, digest


def _key(context_id: str, digest: str) -> str:
    return f"{context_id}{SEPARATOR}{digest}" if digest else context_id


def _encode(at: datetime, *ids: str) -> str:
    return encode_list_tasks_cursor(ListTasksCursor((at - _EPOCH) // _TICK * 1000, SEPARATOR.join(ids)))


def _decode(token: str) -> tuple[Any, ...] | None:
    try:
        cursor = decode_list_tasks_cursor(token)
        nanoseconds = cursor.timestamp_ns if cursor else None
        if cursor and nanoseconds is not None and nanoseconds % 1000 == 0:
            at = _EPOCH + nanoseconds // 1000 * _TICK
            return at, *(valid_id(each) for each in cursor.task_id.split(SEPARATOR))
    except (RecursionError, OverflowError, ValueError):  # deep nesting; a malformed time or id
        pass
    return None
