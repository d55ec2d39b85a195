"""What is notified."""

from __future__ import annotations

from dataclasses import replace

from a2a_canvas.server.agent.events import AgentMessage, ArtifactChanged, State, StatusChanged
from a2a_canvas.server.tasks.push_configs import is_notified
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from tests.fakes import Clock


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


def test_what_a_task_sends_again_is_notified_to_nobody() -> None:
    """It may be the first that the task has to do with the artifact: another one has made the version."""
    assert notified(replace(changed(1), resent=True), changed(2)) == [False, True]


def test_a_version_that_is_current_again_is_notified() -> None:
    assert notified(changed(1), changed(2), changed(1), changed(2)) == [True] * 4
