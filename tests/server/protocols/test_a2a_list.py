"""`ListTasks`: filters, order, and pages that stay good while tasks come and change."""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from hypothesis import given
from hypothesis import strategies as st

from server.agent.events import State
from server.protocols.a2a_events import STATES
from server.protocols.a2a_list import page_of
from server.tasks.record import TaskRecord

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def task(task_id: str, second: float = 0, context: str = "c", state: State = State.WORKING) -> TaskRecord:
    return TaskRecord(task_id, context, "", EPOCH + timedelta(seconds=second), state=state)


def ids(records: list[TaskRecord], **params: Any) -> list[str]:
    return [record.task_id for record in page_of(records, pb.ListTasksRequest(**params)).records]


tasks = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), unique_by=lambda each: each[0], max_size=20).map(
    lambda pairs: [task(f"t{number:02}", second) for number, second in pairs]
)


def pages(records: list[TaskRecord], size: int) -> list[TaskRecord]:
    """All pages, one after the other."""
    seen: list[TaskRecord] = []
    token = ""
    while True:
        page = page_of(records, pb.ListTasksRequest(page_size=size, page_token=token))
        assert len(page.records) <= size
        assert (page.size, page.total) == (size, len(records))
        seen += page.records
        token = page.next_token
        if not token:
            return seen


def test_the_newest_status_comes_first() -> None:
    assert ids([task("old", 1), task("new", 3), task("middle", 2)]) == ["new", "middle", "old"]


def test_each_filter_leaves_what_matches() -> None:
    records = [task("a", 1, "c1"), task("b", 2, "c1", State.COMPLETED), task("c", 3, "c2", State.COMPLETED)]
    assert ids(records, context_id="c1") == ["b", "a"]
    assert ids(records, status=pb.TASK_STATE_COMPLETED) == ["c", "b"]
    assert ids(records, context_id="c1", status=pb.TASK_STATE_COMPLETED) == ["b"]
    assert ids(records, context_id="c3") == []


def test_a_time_includes_the_tasks_that_changed_right_then() -> None:
    records = [task("a", 1), task("b", 2), task("c", 3)]
    assert ids(records, status_timestamp_after=EPOCH + timedelta(seconds=2)) == ["c", "b"]


@pytest.mark.parametrize("state", STATES)
def test_every_state_can_be_asked_for(state: State) -> None:
    assert ids([task("a", state=state), task("b", state=State.SUBMITTED)], status=STATES[state])[-1:] == ["a"]


def test_a_page_has_50_tasks_unless_told_otherwise() -> None:
    page = page_of([task(f"{number:03}") for number in range(60)], pb.ListTasksRequest())
    assert (len(page.records), page.size, page.total) == (50, 50, 60)
    assert page.next_token


@pytest.mark.parametrize("size", [-1, 0, 101])
def test_a_page_has_1_to_100_tasks(size: int) -> None:
    with pytest.raises(InvalidParamsError, match="page size"):
        page_of([], pb.ListTasksRequest(page_size=size))
    assert ids([task("a")], page_size=1) == ids([task("a")], page_size=100) == ["a"]


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "äöü",
        "%%%",
        encoded("t01"),
        encoded("{}"),
        encoded('{"ts":null,"id":"t"}'),
        encoded('{"ts":1.5,"id":"t"}'),
        encoded('{"ts":1,"id":""}'),
        encoded("[" * 100_000),
        encoded('{"ts":' + "9" * 5000 + ',"id":"t"}'),
    ],
)
def test_a_token_that_is_not_ours_is_refused(token: str) -> None:
    with pytest.raises(InvalidParamsError, match="pageToken"):
        page_of([task("a")], pb.ListTasksRequest(page_token=token))


@given(tasks, st.integers(1, 7))
def test_the_pages_together_are_all_tasks_each_once_in_order(records: list[TaskRecord], size: int) -> None:
    assert pages(records, size) == list(page_of(records, pb.ListTasksRequest(page_size=100)).records)
    assert len({record.task_id for record in pages(records, size)}) == len(records)


@given(tasks, st.integers(1, 5), st.data())
def test_a_token_stays_good_while_tasks_come_and_change(
    records: list[TaskRecord], size: int, data: st.DataObject
) -> None:
    first = page_of(records, pb.ListTasksRequest(page_size=size))
    if not first.next_token:
        return
    gone_on = data.draw(st.sets(st.sampled_from([record.task_id for record in records])), label="changed meanwhile")
    later = [task(record.task_id, 100) if record.task_id in gone_on else record for record in records]
    later += [task("new", 101)]
    rest = page_of(later, pb.ListTasksRequest(page_size=100, page_token=first.next_token)).records
    seen = {record.task_id for record in first.records}
    unchanged = {record.task_id for record in records} - gone_on
    # What has not changed comes exactly once; what has is newer than the token and found from the first page on.
    assert {record.task_id for record in rest} == unchanged - seen
