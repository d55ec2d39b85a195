"""Tokens of pages: a token encodes the position of the last item of its page, so it stays valid while items change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from a2a.utils.task import ListTasksCursor, decode_list_tasks_cursor, encode_list_tasks_cursor

from a2a_canvas.server.tasks.journal.listing import ListPosition
from a2a_canvas.store.text.unicode import valid_id

FOREIGN_TOKEN = "is not one of this server's; leave it out for the first page"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def page_token(last: ListPosition) -> str:
    """The token of the page after `last`."""
    at, an_id = last
    return encode_list_tasks_cursor(ListTasksCursor((at - _EPOCH) // _TICK * 1000, an_id))


def position_of(token: str) -> ListPosition | None:
    """The position that a page token encodes; None if it is not one of ours."""
    try:
        cursor = decode_list_tasks_cursor(token)
        nanoseconds = cursor.timestamp_ns if cursor else None
        if cursor and nanoseconds is not None and nanoseconds % 1000 == 0:
            return _EPOCH + nanoseconds // 1000 * _TICK, valid_id(cursor.task_id)
    except (RecursionError, OverflowError, ValueError):  # deep nesting; a malformed time or id
        pass
    return None
