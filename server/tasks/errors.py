"""What can be wrong with a request about a task. Errors carry data; only the edge turns them into codes.

TaskError
├── TaskNotFound        there is no such task, or it is another owner's
├── TaskFinished        the task is terminal: it takes no more messages and has no more events
├── TaskTakesNoMessages the task is an operation, not a conversation
├── TaskNotCancelable   the task is terminal, or ended before it could be cancelled
├── ContextMismatch     the message names a context that is not its task's
├── ContextNotFound     there is no such context, or it is another owner's
├── ContextInUse        a task works in the context: it cannot be removed
├── ReadOnly            the context is shared with the caller, who may not do that there
├── AnswerNotAllowed    the caller may send messages to the task, but not answer what it waits for
├── ShareNotFound       the context has no such share
├── NobodyToShare       the caller has no name, and shares nothing
├── Unwritable          the message cannot be stored: a fault of the server
├── PushConfigNotFound  there is no such config, or it was given up
├── TooManyPushConfigs  the task has as many push configs as it may have
├── QueueFull           the server has no room for another turn: nothing is wrong with the request
├── QuotaReached        the caller, or all callers together, have used what they may for now
├── StorageFull         the owner of the context, or all users together, keep as many bytes as they may
├── Unreadable          the stored task cannot be decoded
└── StreamLost          the lease was lost: a subscriber must subscribe again

A lease that was lost, or one task, shows in three places: a transaction raises `LeaseLost` (`store/sql/commit.py`), a
turn is cancelled by `Detached`, a subscriber gets `StreamLost`.
"""

from __future__ import annotations

import asyncio
from math import ceil

from a2a_canvas.server.agent.events import State
from a2a_canvas.store.context_key import public_id


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


class ContextNotFound(TaskError):
    def __init__(self, context_id: str) -> None:
        named = public_id(context_id)
        super().__init__(
            f"There is no context {named!r}. GET /artifacts lists those there are; a message with it begins it."
        )
        self.context_id = named


class ContextInUse(TaskError):
    def __init__(self, context_id: str, task_id: str) -> None:
        named = public_id(context_id)
        super().__init__(
            f"Task {task_id!r} works in context {named!r}. Wait until it is done, or cancel it; then delete again."
        )
        self.context_id = named
        self.task_id = task_id


class ReadOnly(TaskError):
    """
    Args:
        context_id: empty if the caller named none.
    """

    def __init__(self, context_id: str) -> None:
        named = public_id(context_id)
        super().__init__(
            f"You may not do that in context {named!r}, which is shared with you. Ask its owner for more."
            if named
            else "Your link is for one context: send its contextId."
        )
        self.context_id = named


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


class ShareNotFound(TaskError):
    def __init__(self, context_id: str, share_id: str) -> None:
        named = public_id(context_id)
        super().__init__(f"Context {named!r} has no share {share_id!r}. GET /artifacts/…/shares lists those there are.")


class NobodyToShare(TaskError):
    def __init__(self) -> None:
        super().__init__("Contexts of callers without a name are everybody's: send the credentials of a user to share.")


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


class QuotaReached(TaskError):
    """
    Args:
        seconds: after so long it is worth a retry.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        self.retry_after = ceil(seconds)
        super().__init__(f"{reason} Try again in {self.retry_after} s.")


class StorageFull(TaskError):
    """
    Args:
        reason: who keeps too much, as a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason} Remove contexts (DELETE /artifacts/{{context}}), or ask the operator for more.")


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


class Detached(asyncio.CancelledError):
    """The task belongs to another replica now. The turn ends as if cancelled, and nothing that it emits is stored."""


class DuplicateMessage(Exception):
    """Another replica has accepted the same message.

    Args:
        task_id: the task that the message went to.
    """

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.task_id = task_id
