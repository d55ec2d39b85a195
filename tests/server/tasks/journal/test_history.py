"""What a task's model is told of the tasks before it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from a2a_canvas.server.agent.events import State, Transcript, UserInput
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.server.tasks.journal.journal import earlier_tasks
from a2a_canvas.server.tasks.record import TaskRecord

TOLD = [State.INPUT_REQUIRED, State.AUTH_REQUIRED, State.COMPLETED, State.CANCELED, State.FAILED, State.REJECTED]


def task(task_id: str, owner: str = "ann", state: State = State.COMPLETED) -> TaskRecord:
    transcript: Transcript = (UserInput(f"m-{task_id}", (ModelText(f"Said in {task_id}"),)),)
    return TaskRecord(task_id, "c", owner, datetime(2026, 1, 1, tzinfo=UTC), state=state, transcript=transcript)


def told(tasks: list[TaskRecord], record: TaskRecord) -> list[str]:
    """What the user said in those that are told of."""
    items = [item for each in earlier_tasks(tasks, record) for item in each.transcript if isinstance(item, UserInput)]
    return [block.text for item in items for block in item.content if isinstance(block, ModelText)]


def test_the_tasks_before_it_are_told_the_oldest_first() -> None:
    tasks = [task("a"), task("b"), task("c", state=State.WORKING), task("d")]
    assert told(tasks, tasks[2]) == ["Said in a", "Said in b"]
    assert told(tasks, tasks[0]) == []


def test_somebody_elses_tasks_are_not_told_of() -> None:
    tasks = [task("a"), task("b", owner="bob"), task("c", owner=""), task("d")]
    assert told(tasks, tasks[3]) == ["Said in a"]


@pytest.mark.parametrize("state", State)
def test_what_is_still_being_said_is_not_history(state: State) -> None:
    later = task("b", state=State.WORKING)
    earlier = task("a", state=state)
    assert earlier_tasks([earlier, later], later) == ((earlier,) if state in TOLD else ())


def test_a_task_that_the_context_does_not_have_yet_is_told_of_all() -> None:
    tasks = [task("a"), task("b")]
    assert told(tasks, replace(tasks[0], task_id="new")) == ["Said in a", "Said in b"]
