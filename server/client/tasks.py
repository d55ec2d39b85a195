"""`a2a-canvas tasks`, `contexts`, `watch` and `cancel`: the tasks of any A2A server that lists them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from a2a.client import Client, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotCancelableError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.client import connection
from a2a_canvas.server.client.display import local_time, one_line, short
from a2a_canvas.server.client.errors import ClientError
from a2a_canvas.server.client.exchange import check_outcome, converse
from a2a_canvas.server.client.fold import OVER
from a2a_canvas.server.client.invocation import Invocation
from a2a_canvas.server.client.names import resolve
from a2a_canvas.server.client.send import conclude
from a2a_canvas.server.wire import CANVAS, TURN

MESSAGES = 20
"""Of each task, among which its request is."""


async def tasks(invocation: Invocation, state: str | None, context: str, limit: int) -> None:
    """Print the newest tasks."""
    async with _opened(invocation) as listing:
        found = await listing.tasks(limit, context and await listing.context(context), state or "")
    if invocation.json:
        invocation.print_json({"tasks": [MessageToDict(task) for task in found]})
        return
    rows = [
        (_id(invocation, task.id), *_row(task), _id(invocation, task.context_id), one_line(request_of(task)))
        for task in found
    ]
    invocation.table(("task", "state", "changed", "context", "request"), rows, "There are no such tasks.")


async def contexts(invocation: Invocation, limit: int) -> None:
    """Print the conversations, the newest first, each with its first request."""
    async with _opened(invocation) as listing:
        found: dict[str, list[pb.Task]] = {}
        for task in await listing.tasks():
            found.setdefault(task.context_id, []).append(task)
    shown = list(found.items())[:limit]
    if invocation.json:
        named = [{"contextId": context, "tasks": [task.id for task in of]} for context, of in shown]
        invocation.print_json({"contexts": named})
        return
    rows = [
        (_id(invocation, context), str(len(of)), *_row(of[0]), one_line(request_of(of[-1]))) for context, of in shown
    ]
    invocation.table(("context", "tasks", "state", "changed", "first request"), rows, "There are no conversations yet.")


async def watch(invocation: Invocation, typed: str) -> None:
    """Follow a task, or the newest task of a conversation."""
    async with _opened(invocation) as listing:
        task = await listing.task_or_newest_of(typed)
        seen = await converse(invocation, listing.http, listing.card, task, (TURN, CANVAS))
    if not invocation.json:
        conclude(invocation, seen, {})
    check_outcome(seen)


async def cancel(invocation: Invocation, typed: str) -> None:
    """Cancel a task."""
    async with _opened(invocation) as listing:
        task_id = await listing.task(typed)
        try:
            task = await listing.client.cancel_task(pb.CancelTaskRequest(id=task_id), context=listing.call)
        except TaskNotCancelableError:
            over = f"The task has ended: {task_id}"
            raise ClientError(over, f"How it ended: {invocation.line('watch', task_id)}") from None
    if invocation.json:
        invocation.print_json(MessageToDict(task))
    elif task.status.state == pb.TASK_STATE_CANCELED:
        invocation.say(f"Canceled: {task.id}")
    else:
        raise ClientError(f"The task is {state_of(task)}: {task.id}")


class _Listing:
    """The tasks of a server."""

    def __init__(self, http: httpx.AsyncClient, card: pb.AgentCard, client: Client, call: ClientCallContext) -> None:
        self.http, self.card, self.client, self.call = http, card, client, call

    async def tasks(self, limit: int = connection.SEARCHED, context: str = "", state: str = "") -> list[pb.Task]:
        """The newest tasks."""
        status = f"TASK_STATE_{(state or 'unspecified').upper().replace('-', '_')}"
        filters = {"context_id": context, "status": status, "history_length": MESSAGES}
        return await connection.newest_tasks(self.client, self.call, limit, **filters)

    async def context(self, typed: str) -> str:
        """The id of the conversation that the user means."""
        return resolve(typed, {task.context_id: "" for task in await self.tasks()}, "context")

    async def task(self, typed: str) -> str:
        """The id of the task that the user means."""
        return resolve(typed, {task.id: "" for task in await self.tasks()}, "task")

    async def task_or_newest_of(self, typed: str) -> str:
        """The id of a task; a conversation stands for the one that works, else for its newest one."""
        known = await self.tasks()
        ids = {id_: "" for task in known for id_ in (task.id, task.context_id)}
        found = resolve(typed, ids, "task or context")
        of = [task for task in known if found in (task.id, task.context_id)]
        return next((task for task in of if task.status.state not in OVER), of[0]).id


@asynccontextmanager
async def _opened(invocation: Invocation) -> AsyncIterator[_Listing]:
    async with (
        connection.connected(invocation.url, invocation.headers) as (http, card),
        connection.client(http, card) as client,
    ):
        yield _Listing(http, card, client, connection.call_context(card, (), invocation.headers))


def _row(task: pb.Task) -> tuple[str, str]:
    stamp = task.status.timestamp
    return state_of(task), local_time(stamp.ToJsonString()) if task.status.HasField("timestamp") else ""


def _id(invocation: Invocation, id_: str) -> str:
    """On a terminal the beginning is as good."""
    return short(id_) if invocation.console.is_terminal else id_


def state_of(task: pb.Task) -> str:
    """The state as it is typed: `input-required`."""
    return pb.TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")


def request_of(task: pb.Task) -> str:
    """What the user asked for."""
    asked = next((message for message in task.history if message.role == pb.ROLE_USER), pb.Message())
    return " ".join(part.text for part in asked.parts)
