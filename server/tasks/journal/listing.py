"""Queries for owners' tasks, and the order of the result (A2A 1.0, section 3.1.4). Pure.

Rule 1: the newest status first; of two that changed at the same time, the greater id first.
Rule 2: a page says how many tasks match on all pages. Those of a context, and those since a time, are counted for each
        page, so they are counted up to MAX_COUNTED: a page costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.record import TaskRecord

ListPosition = tuple[datetime, str]
"""The position of a task in the order: when its status changed, and its id."""


MAX_COUNTED = 10_000
"""Tasks that are counted for a page (rule 2): about 1 ms."""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """What is asked for.

    Attributes:
        owners, context_id: whose tasks, and a context's key, which is empty for all; `VisibleTasks` knows them.
        state: None for all.
        since: tasks whose status changed then or later.
        after: tasks after this position.
        limit: maximal number of tasks.
        artifacts: whether the records must have their artifacts.
        max_bytes: how much may be read at once; the rest is `more`. One task is always read. None: no limit.
    """

    owners: tuple[str, ...] = ()
    context_id: str = ""
    state: State | None = None
    since: datetime | None = None
    after: ListPosition | None = None
    limit: int = 50
    artifacts: bool = True
    max_bytes: int | None = None

    @property
    def counted(self) -> bool:
        """Whether its matches are counted for each page (rule 2)."""
        return bool(self.context_id or self.since)


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of the result.

    Attributes:
        total: number of matches on all pages (rule 2).
        more: whether any follow `records`.
    """

    records: tuple[TaskRecord, ...]
    total: int
    more: bool


def list_position(record: TaskRecord) -> ListPosition:
    return record.changed_at, record.task_id


def make_page(records: Iterable[TaskRecord], query: TaskQuery) -> TaskPage:
    """A page of `records`, which are all tasks of the owners."""
    matching = sorted((record for record in records if _matches(record, query)), key=list_position, reverse=True)
    rest = [record for record in matching if query.after is None or list_position(record) < query.after]
    total = min(len(matching), MAX_COUNTED) if query.counted else len(matching)
    return TaskPage(tuple(rest[: query.limit]), total, len(rest) > query.limit)


def count_fitting(sizes: Iterable[int], most: int) -> int:
    """How many of the first sizes sum up to at most `most`; one at least."""
    return max(1, sum(total <= most for total in accumulate(sizes)))


def _matches(record: TaskRecord, query: TaskQuery) -> bool:
    return (
        query.context_id in ("", record.context_id)
        and query.state in (None, record.state)
        and (query.since is None or record.changed_at >= query.since)
    )
