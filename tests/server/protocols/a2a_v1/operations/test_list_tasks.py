"""`ListTasks`: what its request asks the journal for, and the tokens of its pages."""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.protocols.a2a_v1.operations import list_tasks
from a2a_canvas.server.protocols.a2a_v1.operations.list_tasks import READ_BYTES, can_match, next_page_token, to_query
from a2a_canvas.server.protocols.a2a_v1.projection.projection import STATES
from a2a_canvas.server.tasks.journal.listing import TaskPage, TaskQuery, count_fitting, list_position, make_page
from a2a_canvas.server.tasks.record import TaskRecord
from tests.server.app_server import WAYS, asking, sent, serving

NOW = datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def query(**params: Any) -> TaskQuery:
    return to_query(pb.ListTasksRequest(**params))


def task(task_id: str, changed_at: datetime = NOW) -> TaskRecord:
    return TaskRecord(task_id, "c", "ann", changed_at)


def token(at: datetime, task_id: str) -> str:
    """The token of a page that ends with such a task, and is not the last."""
    return next_page_token(TaskPage((task("x"), task(task_id, at)), 3, more=True))


def after(nanoseconds: int) -> datetime | None:
    """What is asked for by a status that changed so many nanoseconds after NOW, or later."""
    params = pb.ListTasksRequest()
    params.status_timestamp_after.FromDatetime(NOW)
    params.status_timestamp_after.nanos += nanoseconds
    return to_query(params).since


def test_without_anything_asked_for_it_is_the_first_50_tasks_without_artifacts() -> None:
    assert query() == TaskQuery(limit=50, artifacts=False, max_bytes=READ_BYTES)


def test_each_filter_is_handed_on() -> None:
    params = pb.ListTasksRequest(status=pb.TASK_STATE_COMPLETED, page_size=7, include_artifacts=True)
    asked = to_query(params)
    expected = TaskQuery(state=State.COMPLETED, limit=7, artifacts=True, max_bytes=READ_BYTES)
    assert asked == expected


@pytest.mark.parametrize("state", STATES)
def test_every_state_can_be_asked_for(state: State) -> None:
    assert query(status=STATES[state]).state is state
    assert can_match(pb.ListTasksRequest(status=STATES[state]))


@pytest.mark.parametrize("status", [4711])
def test_a_status_that_no_task_of_ours_has_matches_nothing(status: Any) -> None:
    assert not can_match(pb.ListTasksRequest(status=status))


@pytest.mark.parametrize("status", [99, -1])
def test_a_status_that_a2a_does_not_have_is_refused(status: Any) -> None:
    with pytest.raises(InvalidParamsError, match="status"):
        query(status=status)


def test_without_a_status_any_task_can_match() -> None:
    assert can_match(pb.ListTasksRequest())


def test_a_time_is_asked_for_to_the_millisecond_and_never_a_moment_too_early() -> None:
    shown, next_one = NOW.replace(microsecond=123_000), NOW.replace(microsecond=124_000)
    assert after(-456_000) == shown
    assert after(-455_999) == after(0) == after(544_000) == next_one
    assert query().since is None


@pytest.mark.parametrize(
    ("asked", "since"),
    [
        ("0001-01-01T00:00:00Z", datetime.min),
        ("1969-12-31T23:59:59.999999Z", datetime(1970, 1, 1)),
        ("9999-12-31T23:59:59.999999999Z", datetime.max),
    ],
)
def test_the_ends_of_time_can_be_asked_for(asked: str, since: datetime) -> None:
    params = pb.ListTasksRequest()
    params.status_timestamp_after.FromJsonString(asked)
    assert to_query(params).since == since.replace(tzinfo=UTC)


@pytest.mark.parametrize("size", [-1, 0, 101])
def test_a_page_has_1_to_100_tasks(size: int) -> None:
    with pytest.raises(InvalidParamsError, match=r"pageSize is .* and must be 1 to 100"):
        query(page_size=size)
    assert [query(page_size=each).limit for each in (1, 100)] == [1, 100]


def test_the_last_page_has_no_token() -> None:
    assert next_page_token(TaskPage((task("t"),), 1, more=False)) == next_page_token(TaskPage((), 0, more=False)) == ""


@given(
    st.datetimes(timezones=st.just(UTC)), st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1)
)
def test_a_token_names_the_place_of_its_pages_last_task(at: datetime, task_id: str) -> None:
    assert query(page_token=token(at, task_id)).after == (at, task_id)


def test_a_token_is_the_same_for_the_same_place_and_can_stand_in_a_url() -> None:
    # Clients keep them across an upgrade of the server.
    assert token(NOW, "t-1") == "eyJ0cyI6MTc2NzI3MDYxNTEyMzQ1NjAwMCwiaWQiOiJ0LTEifQ"


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
        encoded('{"ts":1,"id":"t"}'),
        encoded('{"ts":1000,"id":""}'),
        encoded('{"ts":1000000000000000000000000000000,"id":"t"}'),
        encoded('{"ts":-1000000000000000000000000000000,"id":"t"}'),
        encoded("[" * 100_000),
        encoded('{"ts":' + "9" * 5000 + ',"id":"t"}'),
    ],
)
def test_a_token_that_is_not_ours_is_refused(token: str) -> None:
    with pytest.raises(InvalidParamsError, match="pageToken"):
        query(page_token=token)


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_following_the_tokens_gives_every_task_once_in_order(ticks: list[int], size: int) -> None:
    records = [task(f"t{number:02}", NOW + tick * TICK) for number, tick in enumerate(ticks)]
    seen: list[TaskRecord] = []
    next_token = ""
    while True:
        page = make_page(records, query(page_size=size, page_token=next_token))
        seen += page.records
        if not (next_token := next_page_token(page)):
            break
    assert seen == sorted(records, key=list_position, reverse=True)


# ---------------------------------------------------------------------------------- pages by bytes


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.integers(0, 300))
def test_what_fits_is_as_much_as_can_be_and_one_at_least(sizes: list[int], most: int) -> None:
    count = count_fitting(sizes, most)
    assert 1 <= count <= len(sizes)
    assert count == 1 or sum(sizes[:count]) <= most
    assert count == len(sizes) or sum(sizes[: count + 1]) > most


@pytest.mark.parametrize("way", [way for way in WAYS if way[1] == "1.0"])
@pytest.mark.parametrize("kept", ["memory", "sqlite"])
@pytest.mark.parametrize("limit", ["PAGE_BYTES", "READ_BYTES"])
async def test_pages_of_few_bytes_give_every_task_once_in_order(
    way: tuple[str, str], kept: str, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_tasks, limit, 3000)
    async with serving(database="memory" if kept == "memory" else f"sqlite:///{tmp_path}/x.db") as served:
        client = served.client(*way)
        sizes = [0, 1000, 0, 5000, 500]
        sent_tasks = [await sent(served, way, asking("write report" + " " * size, context="c")) for size in sizes]
        pages, token = [], ""
        while True:
            request = pb.ListTasksRequest(context_id="c", page_token=token, include_artifacts=True, history_length=100)
            page = await client.list_tasks(request)
            assert page.total_size == len(sizes)
            pages.append(list(page.tasks))
            token = page.next_page_token
            if not token:
                break
        assert [task for page in pages for task in page] == sent_tasks[::-1]
        if limit == "PAGE_BYTES":
            assert all(len(page) == 1 or sum(task.ByteSize() for task in page) <= 3000 for page in pages)
            assert 1 < len(pages) < len(sizes)
        else:
            assert [len(page) for page in pages] == [len(sizes)]  # read in portions, answered in one page


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
async def test_a_history_that_is_left_out_takes_no_room_on_a_page(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_tasks, "PAGE_BYTES", 5000)
    monkeypatch.setattr(list_tasks, "READ_BYTES", 5000)
    way = WAYS[0]
    async with serving(database="memory" if kept == "memory" else f"sqlite:///{tmp_path}/x.db") as served:
        client = served.client(*way)
        ids = [(await sent(served, way, asking("write report" + " " * 4000, context="c"))).id for _ in range(6)]
        first = await client.list_tasks(pb.ListTasksRequest(context_id="c", page_size=4))
        second = await client.list_tasks(pb.ListTasksRequest(context_id="c", page_token=first.next_page_token))
        assert [len(first.tasks), len(second.tasks)] == [4, 2]
        assert [task.id for page in (first, second) for task in page.tasks] == ids[::-1]
        assert not second.next_page_token
