"""What a task's model is told of the earlier tasks of its context. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from a2a_canvas.server.agent.events import State, Transcript
from a2a_canvas.server.tasks.record import TaskRecord


def earlier_transcripts(tasks: Iterable[TaskRecord], record: TaskRecord) -> tuple[Transcript, ...]:
    """The transcripts of the same owner's tasks before `record`, oldest first.

    Args:
        tasks: those of the context, oldest first.
    """
    before = takewhile(lambda other: other.task_id != record.task_id, tasks)
    return tuple(other.transcript for other in before if is_history(other.owner, other.state, record))


def is_history(owner: str, state: State, record: TaskRecord) -> bool:
    """Whether a later task of the context may be told of a task: what is still being said is not history."""
    return owner == record.owner and state.settled
