"""Tokens of pages: a token encodes the position of the last item of its page, so it stays valid while items change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from a2a.utils.task import ListTasksCursor, decode_list_tasks_cursor, encode_list_tasks_cursor

from a2a_canvas.server.tasks.journal.listing import ListPosition
from a2a_canvas.server.tasks.journal.text_search import TextPosition
from a2a_canvas.store.text.unicode import valid_id

FOREIGN_TOKEN = "is not one of this server's; leave it out for the first page"

_BETWEEN_IDS = "\x1f"  # in no id
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def page_token(last: ListPosition) -> str:
    """The token of the page after `last`."""
    at, an_id = last
    return encode_list_tasks_cursor(ListTasksCursor((at - _EPOCH) // _TICK * 1000, an_id))


def text_page_token(last: TextPosition) -> str:
    """The token of the page after `last`."""
    at, context_id, artifact_id = last
    return page_token((at, f"{context_id}{_BETWEEN_IDS}{artifact_id}"))


def position_of(token: str) -> ListPosition | None:
    """The position that a page token encodes; None if it is not one of ours."""
    found = _decode(token)
    return (found[0], found[1][0]) if found and len(found[1]) == 1 else None


def text_position_of(token: str) -> TextPosition | None:
    """The same for `text_page_token`."""
    found = _decode(token)
    return (found[0], found[1][0], found[1][1]) if found and len(found[1]) == 2 else None


def _decode(token: str) -> tuple[datetime, list[str]] | None:
    try:
        cursor = decode_list_tasks_cursor(token)
        nanoseconds = cursor.timestamp_ns if cursor else None
        if cursor and nanoseconds is not None and nanoseconds % 1000 == 0:
            at = _EPOCH + nanoseconds // 1000 * _TICK
            return at, [valid_id(each) for each in cursor.task_id.split(_BETWEEN_IDS)]
    except (RecursionError, OverflowError, ValueError):  # deep nesting; a malformed time or id
        pass
    return None
