"""`--only accept-all`: accepting all suggestions on a document at once, as one version and one undo.

Measured is the whole request, from its first byte to its answer, on a real server. Each suggestion changes a word of a
line of its own; the first version was edited since, so that each has to be mapped.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal
from uuid import uuid4

from a2a_canvas.server.wire import CANVAS
from bench.client import ClientError, exchange, get, request
from bench.databases import databases, upgrade
from bench.report import Check, Report
from bench.servers import MEMORY, running, shipped

On = Literal["memory", "sqlite", "postgresql"]
MAX_MS = 100
LINE = "Line {number:04} has a word that somebody wants to change.\n"
WORD, INSTEAD = "word", "phrase"


@dataclass(frozen=True, slots=True)
class Plan:
    """How many suggestions, and how often they are accepted and undone."""

    suggestions: int
    times: int
    stores: Sequence[On]


FULL = Plan(100, 9, ("memory", "sqlite", "postgresql"))
QUICK = Plan(100, 3, ("memory", "sqlite"))


@dataclass(frozen=True, slots=True)
class Result:
    """Milliseconds of each acceptance, and of each undo."""

    accepted: list[float]
    undone: list[float]


async def run(plan: Plan) -> Report:
    """The scenario on each store."""
    return report(plan, {store: await _on(store, plan) for store in plan.stores})


async def _on(store: On, plan: Plan) -> Result:
    if store == "memory":
        return await _measure(MEMORY, plan)
    with databases(store) as new:
        return await _measure(await upgrade(new()), plan)


async def _measure(database: str, plan: Plan) -> Result:
    async with running(shipped("rehearsal", database)) as server:
        text = "".join(LINE.format(number=number) for number in range(plan.suggestions))
        context = (await _ask(server.port, "", op="put", text=text, name="doc.md"))["contextId"]
        await _suggest(server.port, context, plan.suggestions)
        first = await _text(server.port, context)
        result = Result([], [])
        for _ in range(plan.times):
            result.accepted.append(await _time(server.port, context, op="accept-all"))
            if await _text(server.port, context) != first.replace(WORD, INSTEAD):
                raise ClientError("not all suggestions were accepted")
            result.undone.append(await _time(server.port, context, op="undo"))
            if await _text(server.port, context) != first:
                raise ClientError("one undo did not take all back")
        return result


async def _suggest(port: int, context: str, count: int) -> None:
    """Suggestions on the first version, and an edit after half of them."""
    for number in range(count):
        start = number * len(LINE.format(number=0)) + LINE.format(number=0).index(WORD)
        place = {"start": start, "end": start + len(WORD), "text": WORD}
        await _ask(port, context, op="annotate", baseVersion=1, selection=place, replacement=INSTEAD)
        if number == count // 2:
            before = await _text(port, context)
            await _ask(port, context, op="put", baseVersion=1, text=f"# A title\n\n{before}The end.\n")


async def _time(port: int, context: str, **operation: Any) -> float:
    begun = time.perf_counter()
    await _ask(port, context, **operation)
    return (time.perf_counter() - begun) * 1000


async def _ask(port: int, context: str, **operation: Any) -> dict[str, Any]:
    """The task of an operation.

    Raises:
        ClientError: it was refused.
    """
    message: dict[str, Any] = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": operation["op"]}]}
    message |= {"metadata": {CANVAS: {"artifactId": "doc", **operation}}} | ({"contextId": context} if context else {})
    answer = await exchange(port, request("SendMessage", {"message": message}, [CANVAS]))
    task: dict[str, Any] = answer.get("result", {}).get("task", {})
    if task.get("status", {}).get("state") != "TASK_STATE_COMPLETED":
        raise ClientError(str(answer))
    return task


async def _text(port: int, context: str) -> str:
    parts = (await get(port, f"/artifacts/{context}/doc"))["parts"]
    return "".join(part.get("text", "") for part in parts)


def report(plan: Plan, results: Mapping[On, Result]) -> Report:
    """The table and the targets."""
    table = Report(
        "accept-all",
        f"{plan.suggestions} suggestions accepted as one version, and undone, {plan.times} times",
        ("store", "accept all, median ms", "max ms", "undo, median ms"),
    )
    for store, result in results.items():
        accepted = median(result.accepted)
        table.rows.append((store, accepted, max(result.accepted), median(result.undone)))
        table.checks.append(Check(store, accepted, "at most", MAX_MS, "ms"))
    return table
