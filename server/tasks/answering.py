"""Who may answer what a task waits for. Pure.

Rule 1: a request to approve a call is answered by the owner of the context, or by whom the owner gave the level
        `approve`. Callers who may send messages there answer any other question.
Rule 2: a login is answered only by the caller whose message made the call: a call uses nobody else's account.
Rule 3: a message answers all that its task waits for, so its sender must be allowed to answer each of it.
"""

from __future__ import annotations

from a2a_canvas.server.accounts.access import Level
from a2a_canvas.server.agent.endings import approvals_of
from a2a_canvas.server.agent.turn.pending_calls import callers_to_log_in
from a2a_canvas.server.tasks.errors import AnswerNotAllowed
from a2a_canvas.server.tasks.record import TaskRecord


def check_answer(record: TaskRecord, sender: str, level: Level) -> None:
    """Whether a message may answer what a task waits for.

    Args:
        sender: of the message, as in `UserMessage`.
        level: the sender's in the context of the task.

    Raises:
        AnswerNotAllowed: it may not.
    """
    if approvals_of(record.message) and level < Level.APPROVE:
        raise AnswerNotAllowed(record.task_id, "the owner, or a user with the level approve, to approve a call")
    for caller in callers_to_log_in(record.transcript):
        anonymous = not caller and level is Level.OWN
        if caller != sender and not anonymous:
            text = f"{caller or 'its owner'} to log in; the owner of the context can cancel it"
            raise AnswerNotAllowed(record.task_id, text)


def may_answer(record: TaskRecord, sender: str, level: Level) -> bool:
    """The same as `check_answer`, as an answer."""
    try:
        check_answer(record, sender, level)
    except AnswerNotAllowed:
        return False
    return True
