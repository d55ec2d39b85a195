"""What is notified, and what of the due notifications is begun."""

from __future__ import annotations

from dataclasses import replace

from a2a_canvas.server.agent.events import AgentMessage, ArtifactChanged, State, StatusChanged
from a2a_canvas.server.push.fair_choice import Due, Room, UnderWay
from a2a_canvas.server.tasks.push_configs import ConfigKey, is_notified
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from tests.fakes import Clock

ROOM = Room(total=10, failing=10, large=10, per_target=10, per_user=10)


def due(name: str, user: str = "", target: str = "", attempts: int = 0) -> Due:
    return Due(ConfigKey("c", name, "p"), target or f"{name}:443", user, attempts)


def chosen(room: Room, *found: Due) -> list[str]:
    return [each.key.task_id for each in room.choose(found)]


def changed(version: int, *, closes: bool = True, artifact: str = "a") -> ArtifactChanged:
    return ArtifactChanged(artifact, "a.md", "", False, (), closes, version, "agent", 0)


def notified(*events: ArtifactChanged | StatusChanged) -> list[bool]:
    """Which of the events of a task are notified."""
    record, found = TaskRecord("t", "c", "", Clock()(), State.WORKING), []
    for event in events:
        found.append(is_notified(record, event))
        record = fold(record, Entry(1, record.generation + 1, record.changed_at, event))
    return found


def test_a_change_of_the_status_is_notified_and_a_label_is_not() -> None:
    label = StatusChanged(State.WORKING, AgentMessage("m", "Writing…", label=True))
    assert notified(label, StatusChanged(State.WORKING), StatusChanged(State.COMPLETED)) == [False, False, True]


def test_a_version_is_notified_and_no_draft_and_no_repetition_of_the_version() -> None:
    draft = changed(2, closes=False)
    assert notified(changed(1), draft, changed(1), draft, changed(1), draft, changed(2)) == [
        True, False, False, False, False, False, True,
    ]  # fmt: skip
    assert notified(changed(1), changed(1, artifact="b")) == [True, True]


def test_a_version_that_is_current_again_is_notified() -> None:
    assert notified(changed(1), changed(2), changed(1), changed(2)) == [True] * 4


def test_the_user_with_the_fewest_under_way_is_served_first() -> None:
    found = [*(due(f"a{number}", "ann") for number in range(5)), due("b0", "bob"), due("c0", "cy"), due("c1", "cy")]
    assert chosen(replace(ROOM, total=4), *found) == ["a0", "b0", "c0", "a1"]
    busy = UnderWay(users={"ann": 2, "bob": 1})
    assert chosen(replace(ROOM, total=4, under_way=busy), *found) == ["c0", "b0", "c1", "a0"]


def test_no_user_has_more_than_the_share_of_one() -> None:
    room = replace(ROOM, per_user=3, under_way=UnderWay(users={"ann": 1, "bob": 3}))
    assert chosen(room, *(due(f"a{number}", "ann") for number in range(5)), due("b", "bob")) == ["a0", "a1"]
    assert room.full_users == {"bob"}


def test_one_target_has_no_more_than_its_share_and_one_that_failed_has_one() -> None:
    found = [due(f"x{number}", target="x:443") for number in range(3)]
    room = replace(ROOM, per_target=2)
    assert chosen(room, *found) == ["x0", "x1"]
    assert chosen(replace(room, slow={"x:443"}), *found) == ["x0"]
    sending = UnderWay({"x:443": 1})
    assert replace(room, under_way=sending).full_targets == frozenset()
    assert replace(room, under_way=sending, slow={"x:443"}).full_targets == {"x:443"}


def test_those_that_failed_last_time_share_a_few_places() -> None:
    found = [due("a", attempts=1), due("b", attempts=2), due("c"), due("d", target="x:443")]
    assert chosen(replace(ROOM, failing=1, slow={"x:443"}), *found) == ["a", "c"]
    none = replace(ROOM, failing=0, slow={"x:443"})
    assert chosen(none, *found) == ["c"]
    assert none.full_targets == {"x:443"}


def test_large_bodies_share_a_few_places() -> None:
    found = [due("a"), due("b"), due("c")]
    large = {each.key for each in found[:2]}
    assert chosen(replace(ROOM, large=1, large_configs=large), *found) == ["a", "c"]
    assert chosen(replace(ROOM, large=0, large_configs=large), *found) == ["c"]
