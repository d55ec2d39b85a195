"""Who may answer what a task waits for. Pure.

Rule 1: a request to approve a call is answered by the owner of the context, or by a user to whom the owner gave the
        level `approve`. Any caller who may send messages there may answer other questions.
Rule 2: a login is answered only by the caller whose message made the call: a call uses nobody else's account.
Rule 3: a message answers everything its task waits for, so its sender must be allowed to answer all of it.
Rule 4: what a model wrote answers neither a request to approve a call nor one to log in.
"""

from __future__ import annotations

from a2a_canvas.server.accounts.access import Level
from a2a_canvas.server.agent.endings import approvals_of
from a2a_canvas.server.agent.turn.pending_calls import callers_to_log_in
from a2a_canvas.server.tasks.errors import AnswerNotAllowed
from a2a_canvas.server.tasks.record import TaskRecord


def check_answer(record: TaskRecord, sender: str, level: Level, *, of_model: bool = False) -> None:
    """Whether a message may answer what a task waits for.

    Args:
        sender: of the message, as in `UserMessage`.
        level: the sender's in the context of the task.
        of_model: see `Incoming`.

    Raises:
        AnswerNotAllowed: it may not.
    """
    if waits_for := _refusal(record, sender, level, of_model):
        raise AnswerNotAllowed(record.task_id, waits_for)


def may_answer(record: TaskRecord, sender: str, level: Level, *, of_model: bool = False) -> bool:
    """Whether `check_answer` passes."""
    return not _refusal(record, sender, level, of_model)


def _refusal(record: TaskRecord, sender: str, level: Level, of_model: bool) -> str:
    """Whose answer the task waits for instead, and to what; empty if the sender may answer."""
    if approvals_of(record.message) and (of_model or level < Level.APPROVE):
        return "the owner, or a user with the level approve, to approve a call"
    for caller in callers_to_log_in(record.transcript):
        if of_model:
            return f"{caller or 'its owner'} to log in, and not for a model"
        anonymous = not caller and level is Level.OWN
        if caller != sender and not anonymous:
            return f"{caller or 'its owner'} to log in; the owner of the context can cancel it"
    return ""
