"""`a2a-canvas tasks`, `contexts`, `watch` and `cancel`: the tasks of any A2A server that can list them."""

from __future__ import annotations

from typing import Any

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotCancelableError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.client.commands.send import show_end
from a2a_canvas.server.client.conversation.canvas_session import CanvasSession
from a2a_canvas.server.client.conversation.errors import ClientError
from a2a_canvas.server.client.conversation.exchange import check_outcome, converse
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.conversation.names import resolve
from a2a_canvas.server.client.screen.display import excerpt, local_time, short
from a2a_canvas.server.client.screen.fold import OVER
from a2a_canvas.server.wire import CANVAS, TURN

MESSAGES = 20
"""Messages of each task, which include its request."""


async def tasks(invocation: Invocation, state: str | None, context: str, limit: int) -> None:
    """Print the newest tasks."""
    status = f"TASK_STATE_{(state or 'unspecified').upper().replace('-', '_')}"
    async with invocation.connect() as session:
        of = context and resolve(context, await session.contexts(), "context")
        found = await session.tasks(limit, context_id=of, status=status, history_length=MESSAGES)
    if invocation.json:
        invocation.print_json({"tasks": [MessageToDict(task) for task in found]})
        return
    rows = [
        (_id(invocation, task.id), *_row(task), _id(invocation, task.context_id), excerpt(request_of(task)))
        for task in found
    ]
    invocation.table(("task", "state", "changed", "context", "request"), rows, "There are no such tasks.")


async def contexts(invocation: Invocation, limit: int, text: str | None) -> None:
    """Print the conversations, the newest first, each with its first request; then those that others share."""
    if text is not None:
        await _find_lines(invocation, text, limit)
        return
    async with invocation.connect() as session:
        listed = await session.list_contexts()
        found: dict[str, list[pb.Task]] = {}
        for task in await session.tasks(history_length=MESSAGES):
            found.setdefault(task.context_id, []).append(task)
    shown = list(found.items())[:limit]
    shared = [each for each in listed if "shared" in each]
    if invocation.json:
        named = [{"contextId": context, "tasks": [task.id for task in of]} for context, of in shown]
        others = [{name: each.get(name) for name in ("contextId", "shared")} for each in shared]
        invocation.print_json({"contexts": [*named, *others][:limit]})
        return
    requests = {each["contextId"]: str(each.get("request") or "") for each in listed}
    rows = [
        (
            _id(invocation, context),
            str(len(of)),
            *_row(_latest(of)),
            excerpt(requests.get(context) or request_of(of[-1])),
        )
        for context, of in shown
    ]
    rows += [_share_row(invocation, each) for each in shared]
    invocation.table(
        ("context", "tasks", "state", "changed", "first request"), rows[:limit], "There are no conversations yet."
    )


async def _find_lines(invocation: Invocation, text: str, limit: int) -> None:
    async with invocation.connect() as session:
        found = await CanvasSession(invocation, session, "").search(text, limit)
    if invocation.json:
        invocation.print_json({"found": found})
        return
    rows = [
        (_id(invocation, each["contextId"]), each["name"] or each["artifactId"], str(line["line"]), line["text"])
        for each in found
        for line in each["lines"]
    ]
    invocation.table(("context", "artifact", "line", "text"), rows, "No line of your documents has all these words.")


async def watch(invocation: Invocation, typed: str) -> int:
    """Follow a task, or the newest task of a conversation."""
    async with invocation.connect() as session:
        known = await session.tasks()
        found = resolve(typed, {id_: "" for task in known for id_ in (task.id, task.context_id)}, "task or context")
        of = [task for task in known if found in (task.id, task.context_id)]
        task = next((each for each in of if each.status.state not in OVER), of[0])
        seen = await converse(invocation, session, task.id, (TURN, CANVAS))
    if not invocation.json:
        show_end(invocation, seen, {})
    return check_outcome(seen)


async def cancel(invocation: Invocation, typed: str) -> None:
    """Cancel a task."""
    async with invocation.connect() as session:
        task_id = resolve(typed, {task.id: "" for task in await session.tasks()}, "task")
        try:
            task = await session.client.cancel_task(pb.CancelTaskRequest(id=task_id), context=session.call())
        except TaskNotCancelableError:
            over = f"The task has ended: {task_id}"
            raise ClientError(over, f"How it ended: {invocation.line('watch', task_id)}") from None
    if invocation.json:
        invocation.print_json(MessageToDict(task))
    elif task.status.state == pb.TASK_STATE_CANCELED:
        invocation.say(f"Canceled: {task.id}")
    else:
        raise ClientError(f"The task is {state_of(task)}: {task.id}")


def _share_row(invocation: Invocation, context: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """A conversation shared by another user, whose name replaces the state."""
    level = f"shared by {context['shared'].get('owner')} ({context['shared'].get('level')})"
    changed, request = local_time(str(context.get("updatedAt", ""))), excerpt(str(context.get("request", "")))
    return _id(invocation, str(context["contextId"])), str(context.get("tasks", "")), level, changed, request


def _latest(tasks: list[pb.Task]) -> pb.Task:
    """The newest task; a rejected one counts only if there is no other, because it did nothing."""
    return next((task for task in tasks if task.status.state != pb.TASK_STATE_REJECTED), tasks[0])


def _row(task: pb.Task) -> tuple[str, str]:
    stamp = task.status.timestamp
    return state_of(task), local_time(stamp.ToJsonString()) if task.status.HasField("timestamp") else ""


def _id(invocation: Invocation, id_: str) -> str:
    """An id; on a terminal its beginning, which is enough."""
    return short(id_) if invocation.console.is_terminal else id_


def state_of(task: pb.Task) -> str:
    """The state as users type it: `input-required`."""
    return pb.TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")


def request_of(task: pb.Task) -> str:
    """The user's request."""
    asked = next((message for message in task.history if message.role == pb.ROLE_USER), pb.Message())
    return " ".join(part.text for part in asked.parts)
