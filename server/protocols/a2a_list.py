"""`ListTasks`: filters, order and pages (A2A 1.0, section 3.1.4). Pure.

Newest status first; a page token names the last task of its page, so it stays good while tasks change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import (
    ListTasksCursor,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
    validate_page_size,
)
from google.protobuf.timestamp_pb2 import Timestamp

from server.protocols.a2a_events import STATES
from server.tasks.record import TaskRecord

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `size`: how many it may have; `total`: what matches, on all pages; `next_token`: empty on the last."""

    records: tuple[TaskRecord, ...]
    next_token: str
    size: int
    total: int


def page_of(records: Iterable[TaskRecord], params: pb.ListTasksRequest) -> Page:
    """The page of `records` that `params` asks for.

    Raises:
        InvalidParamsError: the page size is out of range, or the token is not one of ours.
    """
    size = params.page_size if params.HasField("page_size") else PAGE_SIZE
    validate_page_size(size)
    matching = sorted((record for record in records if _matches(record, params)), key=_key, reverse=True)
    after = _cursor(params.page_token) if params.page_token else None
    rest = [record for record in matching if after is None or _key(record) < after]
    page = tuple(rest[:size])
    token = _token(page[-1]) if len(rest) > size else ""
    return Page(page, token, size, len(matching))


def _matches(record: TaskRecord, params: pb.ListTasksRequest) -> bool:
    if params.context_id and record.context_id != params.context_id:
        return False
    if params.status and STATES[record.state] != params.status:
        return False
    if not params.HasField("status_timestamp_after"):
        return True
    return _nanoseconds(record.changed_at) >= params.status_timestamp_after.ToNanoseconds()


def _key(record: TaskRecord) -> tuple[int, str]:
    return _nanoseconds(record.changed_at), record.task_id


def _nanoseconds(at: datetime) -> int:
    timestamp = Timestamp()
    timestamp.FromDatetime(at)
    return timestamp.ToNanoseconds()


def _token(record: TaskRecord) -> str:
    return encode_list_tasks_cursor(ListTasksCursor(_nanoseconds(record.changed_at), record.task_id))


def _cursor(token: str) -> tuple[int, str]:
    try:
        cursor = decode_list_tasks_cursor(token)
    except RecursionError:  # brackets without end
        cursor = None
    if cursor is None or cursor.timestamp_ns is None:
        raise InvalidParamsError("pageToken is not one of this server's. Leave it out for the first page.")
    return cursor.timestamp_ns, cursor.task_id
