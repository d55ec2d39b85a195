"""`ListTasks` (A2A 1.0, section 3.1.4): turns a request into queries of the journal, and their results into a page.

A page token encodes the position of the last task of its page (`listing.py`), so it stays valid while tasks change. A
page ends at PAGE_BYTES, but has at least one task; the next page continues there.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import MAX_LIST_TASKS_PAGE_SIZE
from google.protobuf.timestamp_pb2 import Timestamp

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.a2a_v1.projection.projection import STATES, to_task
from a2a_canvas.server.protocols.edge.page_tokens import FOREIGN_TOKEN, page_token, position_of
from a2a_canvas.server.tasks.contexts import EMPTY_PAGE, Contexts, VisibleTasks
from a2a_canvas.server.tasks.journal.listing import ListPosition, TaskPage, TaskQuery, list_position
from a2a_canvas.server.tasks.record import TaskRecord

PAGE_SIZE = 50
PAGE_BYTES = 3 * 2**20
"""Bytes of the tasks on one page, unless the first has more. gRPC clients accept 4 MiB by default."""
READ_BYTES = 16 * 2**20
"""Bytes that one query reads for a page: more, because they include histories that are not sent."""

_OF_STATUS = {status: state for state, status in STATES.items()}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(milliseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)


async def list_tasks(params: pb.ListTasksRequest, caller: Caller, contexts: Contexts) -> pb.ListTasksResponse:
    """A page of the caller's tasks, or of those of a context that it may read, newest first.

    Raises:
        InvalidParamsError: the page size is out of range, the token is not from this server, or there is no such
            status.
    """
    visible = await contexts.tasks(caller, params.context_id)
    query = to_query(params)
    tasks, page = await _page(query, params.history_length, visible) if can_match(params) else ([], EMPTY_PAGE)
    return pb.ListTasksResponse(
        tasks=tasks, next_page_token=next_page_token(page), page_size=query.limit, total_size=page.total
    )


async def _page(query: TaskQuery, history: int, visible: VisibleTasks) -> tuple[list[pb.Task], TaskPage]:
    """The tasks that fit on a page, and the page that they make.

    The limit of what is read counts whole histories; the limit of what is sent counts only the part that is sent.
    """
    tasks: list[pb.Task] = []
    shown: list[TaskRecord] = []
    size, rest = 0, query
    while True:
        page = await visible.list(rest)
        for record in page.records:
            await asyncio.sleep(0)  # many large tasks would block the event loop
            record = replace(record, history=record.history[-history:] if history else ())
            task = to_task(record, artifacts=query.artifacts)
            size += task.ByteSize()
            if tasks and size > PAGE_BYTES:
                return tasks, TaskPage(tuple(shown), page.total, more=True)
            tasks.append(task)
            shown.append(record)
        if not page.more or len(tasks) == query.limit:
            return tasks, TaskPage(tuple(shown), page.total, page.more)
        rest = replace(query, after=list_position(shown[-1]), limit=query.limit - len(tasks))


def to_query(params: pb.ListTasksRequest) -> TaskQuery:
    """The query of `params`.

    Raises:
        InvalidParamsError: the page size is out of range, the token is not from this server, or there is no such
            status.
    """
    if params.status not in pb.TaskState.values():
        raise invalid_field("status", f"is {params.status} and must be one of {', '.join(pb.TaskState.keys())}")
    size = params.page_size if params.HasField("page_size") else PAGE_SIZE
    if not 1 <= size <= MAX_LIST_TASKS_PAGE_SIZE:
        raise invalid_field("pageSize", f"is {size} and must be 1 to {MAX_LIST_TASKS_PAGE_SIZE}")
    return TaskQuery(
        state=_OF_STATUS.get(params.status),
        since=_since(params.status_timestamp_after) if params.HasField("status_timestamp_after") else None,
        after=_place(params.page_token) if params.page_token else None,
        limit=size,
        artifacts=params.include_artifacts,
        max_bytes=READ_BYTES,
    )


def can_match(params: pb.ListTasksRequest) -> bool:
    """Whether our tasks can have the requested status, if there is one."""
    return not params.status or params.status in _OF_STATUS


def next_page_token(page: TaskPage) -> str:
    """The token of the next page; empty if this is the last."""
    return page_token(list_position(page.records[-1])) if page.more else ""


def _since(timestamp: Timestamp) -> datetime:
    """`timestamp`, which has nanoseconds, rounded up to milliseconds: tasks show their times cut to these."""
    ticks = -(-timestamp.ToNanoseconds() // 1_000_000)
    return _EPOCH + min(ticks * _TICK, _LAST - _EPOCH)


def _place(token: str) -> ListPosition:
    if (place := position_of(token)) is None:
        raise invalid_field("pageToken", FOREIGN_TOKEN)
    return place
