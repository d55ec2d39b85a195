"""What can be wrong with a request about a task. Errors carry data; only the edge turns them into codes.

TaskError
├── TaskNotFound        there is no such task, or it is another owner's
├── TaskFinished        the task is terminal: it takes no more messages and has no more events
├── TaskTakesNoMessages the task is an operation, not a conversation
├── TaskNotCancelable   the task is terminal, or ended before it could be cancelled
├── ContextMismatch     the message names a context that is not its task's
├── ContextInUse        a task works in the context: it cannot be removed
├── EditsOff            nothing on this server answers edits of a selection
├── QuestionChanged     the task asks something else by now, or nothing
├── AnswerNotAllowed    the caller may send messages to the task, but not answer what it waits for
├── Unwritable          the message cannot be stored: a fault of the server
├── PushConfigNotFound  there is no such config, or it was given up
├── TooManyPushConfigs  the task has as many push configs as it may have
├── QueueFull           the server has no room for another turn: nothing is wrong with the request
├── RunsNoTurns         the server only serves streams; another one takes the message
├── Unreadable          the stored task cannot be decoded
├── ChangesGone         the changes after a reader's place are no longer stored
└── StreamLost          the lease was lost: a subscriber must subscribe again

A lease that was lost, or one task, shows in three places: a transaction raises `LeaseLost` (`store/sql/commit.py`), a
turn is cancelled by `TaskDetached`, a subscriber gets `StreamLost`.
"""

from __future__ import annotations

import asyncio

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.model import EDITS_OFF
from a2a_canvas.store.ids import public_id


class TaskError(Exception):
    """Root of the tree. `str()` of each one says what to do next."""


class TaskNotFound(TaskError):
    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"Task not found: {task_id!r}. ListTasks has those there are; a message without taskId starts a new one."
        )
        self.task_id = task_id


class TaskFinished(TaskError):
    def __init__(self, task_id: str, state: State) -> None:
        super().__init__(
            f"Task {task_id!r} is {state.value}; a finished task does not change any more. "
            "Get it with GetTask, or send a message with its contextId and without taskId to go on."
        )
        self.task_id = task_id
        self.state = state


class TaskTakesNoMessages(TaskError):
    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"Task {task_id!r} is an operation and takes no further messages. Wait until it is done, or cancel it; "
            "a message without taskId starts a new task."
        )
        self.task_id = task_id


class TaskNotCancelable(TaskError):
    def __init__(self, task_id: str, state: State) -> None:
        super().__init__(f"Task {task_id!r} is already {state.value}, it cannot be canceled. GetTask has its result.")
        self.task_id = task_id
        self.state = state


class ContextMismatch(TaskError):
    def __init__(self, task_id: str, context_id: str) -> None:
        super().__init__(f"Task {task_id!r} does not belong to context {context_id!r}. Leave out contextId, or taskId.")
        self.task_id = task_id
        self.context_id = context_id


class ContextInUse(TaskError):
    def __init__(self, context_id: str, task_id: str) -> None:
        named = public_id(context_id)
        super().__init__(
            f"Task {task_id!r} works in context {named!r}. Wait until it is done, or cancel it; then delete again."
        )
        self.context_id = named
        self.task_id = task_id


class EditsOff(TaskError):
    def __init__(self) -> None:
        super().__init__(EDITS_OFF)


class QuestionChanged(TaskError):
    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task {task_id!r} has gone on since its question was shown. Get it, and answer what it asks.")


class AnswerNotAllowed(TaskError):
    """
    Args:
        waits_for: whose answer the task waits for, and to what.
    """

    def __init__(self, task_id: str, waits_for: str) -> None:
        super().__init__(
            f"Task {task_id!r} waits for {waits_for}. A message with contextId and without taskId begins a new task."
        )
        self.task_id = task_id


class Unwritable(TaskError):
    def __init__(self, task_id: str) -> None:
        super().__init__("The message could not be stored and was not accepted. This is a server error; see its log.")
        self.task_id = task_id


class QueueFull(TaskError):
    """
    Args:
        of_user: it is the user's part of the queue that is full.
    """

    def __init__(self, queued: int, *, of_user: bool = False) -> None:
        whose = f"{queued} of your tasks" if of_user else f"{queued} tasks"
        super().__init__(f"The server is busy: {whose} are waiting already. Send it again in a moment.")
        self.queued = queued


class RunsNoTurns(TaskError):
    def __init__(self) -> None:
        super().__init__("This server only serves streams (--max-turns 0). Send the message to another one.")


class TooManyPushConfigs(TaskError):
    def __init__(self, task_id: str, most: int) -> None:
        super().__init__(
            f"Task {task_id!r} has {most} push notification configs, the most that a task may have. Delete one first."
        )
        self.task_id = task_id


class PushConfigNotFound(TaskError):
    def __init__(self, config_id: str, failure: str = "") -> None:
        why = f": it was given up, because {failure}" if failure else ""
        super().__init__(
            f"There is no push notification config {config_id!r}{why}. ListTaskPushNotificationConfigs has those there "
            "are; CreateTaskPushNotificationConfig makes it."
        )
        self.config_id = config_id


class Unreadable(TaskError):
    """The cause is the error of the decoder."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"The stored data of task {task_id!r} cannot be read. Other tasks are not affected: "
            "send the message again, without taskId."
        )
        self.task_id = task_id


class StreamLost(TaskError):
    """Another replica has taken over, or the server stops. A subscriber that comes back gets a new snapshot."""

    def __init__(self) -> None:
        super().__init__("The connection to the task was lost. Subscribe to it again.")


class ChangesGone(TaskError):
    def __init__(self) -> None:
        super().__init__(
            "The changes after this offset are no longer stored. Begin again with offset=-1, which returns the whole "
            "artifact and a new offset."
        )


class TaskDetached(asyncio.CancelledError):
    """The task belongs to another replica now. The turn ends as if cancelled, and nothing that it emits is stored."""


class DuplicateMessage(Exception):
    """Another replica has accepted the same message.

    Args:
        task_id: the task that the message went to.
    """

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.task_id = task_id
