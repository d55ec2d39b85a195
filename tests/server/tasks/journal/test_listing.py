"""Which of an owner's tasks are found, in which order, and on which page."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.journal import listing
from a2a_canvas.server.tasks.journal.listing import TaskPage, TaskQuery, list_position, make_page
from a2a_canvas.server.tasks.record import TaskRecord

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def task(task_id: str, second: float = 0, context: str = "c", state: State = State.WORKING) -> TaskRecord:
    return TaskRecord(task_id, context, "", EPOCH + timedelta(seconds=second), state=state)


def page(records: list[TaskRecord], **query: Any) -> TaskPage:
    return make_page(records, TaskQuery(("",), **query))


def ids(records: list[TaskRecord], **query: Any) -> list[str]:
    return [record.task_id for record in page(records, **query).records]


tasks = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), unique_by=lambda each: each[0], max_size=20).map(
    lambda pairs: [task(f"t{number:02}", second) for number, second in pairs]
)


def test_the_newest_status_comes_first() -> None:
    assert ids([task("old", 1), task("new", 3), task("middle", 2)]) == ["new", "middle", "old"]


def test_of_those_that_changed_at_the_same_time_the_greater_id_comes_first() -> None:
    assert ids([task("b", 1), task("c", 1), task("a", 1), task("d", 0)]) == ["c", "b", "a", "d"]


def test_each_filter_leaves_what_matches() -> None:
    records = [task("a", 1, "c1"), task("b", 2, "c1", State.COMPLETED), task("c", 3, "c2", State.COMPLETED)]
    assert ids(records, context_id="c1") == ["b", "a"]
    assert ids(records, state=State.COMPLETED) == ["c", "b"]
    assert ids(records, context_id="c1", state=State.COMPLETED) == ["b"]
    assert ids(records, context_id="c3") == []


def test_a_time_includes_the_tasks_that_changed_right_then() -> None:
    records = [task("a", 1), task("b", 2), task("c", 3)]
    assert ids(records, since=EPOCH + timedelta(seconds=2)) == ["c", "b"]
    assert ids(records, since=EPOCH + timedelta(seconds=2, microseconds=1)) == ["c"]


def test_tasks_of_a_context_or_since_a_time_are_counted_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_COUNTED", 2)
    records = [task("a", 1), task("b", 2), task("c", 3)]
    assert page(records).total == page(records, state=State.WORKING).total == 3
    assert page(records, context_id="c").total == page(records, since=EPOCH).total == 2


@pytest.mark.parametrize(("limit", "more"), [(1, True), (2, True), (3, False), (4, False)])
def test_a_page_says_whether_anything_stands_behind_it(limit: int, more: bool) -> None:
    found = page([task("a", 1), task("b", 2), task("c", 3)], limit=limit)
    assert ([record.task_id for record in found.records], found.more) == (["c", "b", "a"][:limit], more)


def test_the_total_counts_what_matches_on_all_pages() -> None:
    records = [task(f"{number:02}", number, state=State.COMPLETED) for number in range(5)] + [task("x")]
    behind = list_position(records[3])
    assert page(records, state=State.COMPLETED, limit=2).total == 5
    assert page(records, state=State.COMPLETED, limit=2, after=behind).total == 5


@given(tasks, st.integers(1, 7))
def test_the_pages_together_are_all_tasks_each_once_in_order(records: list[TaskRecord], size: int) -> None:
    seen: list[TaskRecord] = []
    more = True
    while more:
        found = page(records, limit=size, after=list_position(seen[-1]) if seen else None)
        assert found.total == len(records)
        seen += found.records
        more = found.more
        assert len(found.records) == size or not more
    assert seen == sorted(records, key=list_position, reverse=True)


@given(tasks, st.integers(1, 5), st.data())
def test_a_place_stays_good_while_tasks_come_and_change(
    records: list[TaskRecord], size: int, data: st.DataObject
) -> None:
    first = page(records, limit=size)
    if not first.more:
        return
    gone_on = data.draw(st.sets(st.sampled_from([record.task_id for record in records])), label="changed meanwhile")
    later = [task(record.task_id, 100) if record.task_id in gone_on else record for record in records]
    rest = page([*later, task("new", 101)], after=list_position(first.records[-1]))
    seen = {record.task_id for record in first.records}
    unchanged = {record.task_id for record in records} - gone_on
    # What has not changed comes exactly once; what has is newer than the place and found from the first page on.
    assert {record.task_id for record in rest.records} == unchanged - seen
