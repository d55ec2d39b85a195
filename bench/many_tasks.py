"""`--only many-tasks`: what requests of one context take where its owner has 100,000 tasks, and where it has 100.

Two servers, asked in turn, so that both have the same machine. The tasks are copies of one context, made by SQL.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from uuid import uuid4

from bench.client import ClientError, exchange, get, request
from bench.databases import Kind, databases, upgrade
from bench.report import Check, Report, ratio
from bench.servers import SHIPPED_FRAME_MS, Server, ours, running, script
from tests.server.tasks.sql.many_contexts import multiply_context

CONTEXT = "c"
TASKS = 5
"""Of each context."""
MAX_READ_MS = 10.0
MAX_SEND_RATIO = 1.2


@dataclass(frozen=True, slots=True)
class Plan:
    """How many tasks the owner has, and how often each request is sent."""

    few: int
    many: int
    rounds: int
    kinds: Sequence[Kind] = ("sqlite", "postgresql")


FULL = Plan(100, 100_000, 100)
QUICK = Plan(100, 100_000, 20)


async def send(server: Server) -> None:
    """A turn of one short artifact."""
    message = {"messageId": str(uuid4()), "contextId": CONTEXT, "role": "ROLE_USER", "parts": [{"text": "write 3"}]}
    answer = await exchange(server.port, request("SendMessage", {"message": message}))
    state = answer.get("result", {}).get("task", {}).get("status", {}).get("state")
    if state != "TASK_STATE_COMPLETED":
        raise ClientError(f"the turn ended {state}: {answer}")


async def _list(server: Server) -> None:
    answer = await exchange(server.port, request("ListTasks", {"contextId": f"{CONTEXT}-1"}))
    if answer["result"]["totalSize"] != TASKS:
        raise ClientError(f"ListTasks has {answer['result']['totalSize']} tasks of {TASKS}")


async def _list_all(server: Server, **fields: str) -> None:
    answer = await exchange(server.port, request("ListTasks", {"pageSize": TASKS, **fields}))
    if answer["result"]["totalSize"] < TASKS:
        raise ClientError(f"ListTasks has {answer['result']['totalSize']} tasks in all")


async def _list_completed(server: Server) -> None:
    await _list_all(server, status="TASK_STATE_COMPLETED")


async def _get(server: Server) -> None:
    if len((await get(server.port, f"/artifacts/{CONTEXT}-2"))["artifacts"]) != 1:
        raise ClientError("the context has not its one artifact")


REQUESTS: Mapping[str, Callable[[Server], Awaitable[None]]] = {
    "GET of a context": _get,
    "ListTasks of a context": _list,
    "ListTasks, 5 of all": _list_all,
    "ListTasks, 5 of the completed": _list_completed,
    "SendMessage": send,
}


@dataclass(frozen=True, slots=True)
class Times:
    """Of each request, in milliseconds: the median with few tasks, and with many."""

    few: Mapping[str, float]
    many: Mapping[str, float]


async def run(plan: Plan) -> Report:
    """On each kind of database."""
    results: dict[Kind, Times] = {}
    for kind in plan.kinds:
        with databases(kind) as new, script() as path:
            few, many = await upgrade(new()), await upgrade(new())
            async with (
                running(ours(SHIPPED_FRAME_MS, path, few)) as small,
                running(ours(SHIPPED_FRAME_MS, path, many)) as large,
            ):
                for server, database, tasks in ((small, few, plan.few), (large, many, plan.many)):
                    for _ in range(TASKS):
                        await send(server)
                    await multiply_context(database, CONTEXT, tasks // TASKS)
                results[kind] = await measure(small, large, plan.rounds)
    return report(plan, results)


async def measure(small: Server, large: Server, rounds: int) -> Times:
    """Send each request to both servers in turn."""
    few: dict[str, float] = {}
    many: dict[str, float] = {}
    for name, ask in REQUESTS.items():
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            for server, taken in zip((small, large), times, strict=True):
                begun = time.monotonic()
                await ask(server)
                taken.append((time.monotonic() - begun) * 1000)
        few[name], many[name] = map(median, times)
    return Times(few, many)


def report(plan: Plan, results: Mapping[Kind, Times]) -> Report:
    """The table and the targets."""
    title = f"median of {plan.rounds} requests to an owner of {plan.few} and of {plan.many} tasks"
    table = Report("many-tasks", title, ("database", "request", "few ms", "many ms", "many / few"))
    for kind, times in results.items():
        for name, many in times.many.items():
            share = ratio(many, times.few[name])
            table.rows.append((kind, name, times.few[name], many, share))
            if name == "SendMessage":
                table.checks.append(Check(f"{name}, many / few, {kind}", share, "at most", MAX_SEND_RATIO))
            else:
                table.checks.append(Check(f"{name}, {kind}", many, "at most", MAX_READ_MS, "ms"))
    return table
