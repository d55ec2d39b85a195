"""Scenario 13: a server is killed (`kill -9`) with turns at work, and the others take them up, on one PostgreSQL.

Every turn has written a long draft and goes on writing, slowly and without end: before the kill, and with whoever takes
it up. Each delta of the draft is an event of its own, as if it had come at a model's pace. A turn counts as taken up
when its new owner has written of it (a claim alone does not). The time includes the lease of the dead server. What is
reported of the survivors' heartbeats is read from the table `replicas`, often.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import asyncpg

from bench.client import exchange, request
from bench.databases import databases, upgrade
from bench.pace import PIECE, SIZE, Order
from bench.report import Check, Report
from bench.servers import SHIPPED_FRAME_MS, Server, paced, running

LOOK = 0.05
"""Seconds between two looks at the tables."""
WATCHED = 5.0
"""Seconds that the survivors are watched after all is taken up: longer than a lease."""
PATIENCE = 60.0
"""Seconds after which what has not been taken up never will be."""
IN_TIME, ON_TIME = 6.0, 2.0
"""Seconds: from the kill until all is taken up, and from one heartbeat to the next."""

BEATS = "SELECT replica_id, heartbeat_at FROM replicas"
TASKS = "SELECT task_id, generation, epoch, resumptions FROM tasks"
WRITTEN = f"SELECT sum(length(content) - length(replace(content, '{PIECE}', ''))) AS n FROM drafts GROUP BY context_id"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure.

    Attributes:
        turns: at work when their server is killed.
        order: of each; without end.
        survivors: how many there are, in one run after the other.
    """

    turns: int
    order: Order
    survivors: Sequence[int] = (1, 2)


FULL = Plan(100, Order(7000, 2, endless=True))
QUICK = Plan(20, Order(1000, 2, endless=True))


@dataclass(slots=True)
class Beats:
    """When each server was last seen to be alive, by the clock of the database, and its largest gap; seconds."""

    last: dict[str, float] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)

    def take(self, rows: Mapping[str, float]) -> None:
        """What the table says now."""
        for replica, beat in rows.items():
            self.gaps[replica] = max(self.gaps.get(replica, 0.0), beat - self.last.get(replica, beat))
        self.last |= rows


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        seconds: from the kill until all was taken up; infinite if that did not happen.
        gap: the largest between two heartbeats of a survivor; seconds.
        lost: survivors that were taken for dead.
        once: turns that were resumed exactly once.
        entries: of the journal of a turn when its server was killed, on average.
        load: of the machine, as the system averages it over a minute, when the server was killed.
    """

    seconds: float
    gap: float
    lost: int
    once: int
    entries: float
    load: float


async def run(plan: Plan) -> Report:
    """One run for each number of survivors, each on a database of its own."""
    results: dict[int, Result] = {}
    with databases("postgresql") as new:
        for survivors in plan.survivors:
            results[survivors] = await measure(plan, survivors, await upgrade(new()))
    return report(plan, results)


async def measure(plan: Plan, survivors: int, database: str) -> Result:
    """One kill, on a new database.

    Raises:
        RuntimeError: a server did not start, or lost its turns before it was killed.
    """
    connection = await asyncpg.connect(database)
    try:
        async with AsyncExitStack() as stack:
            for _ in range(survivors):
                await stack.enter_async_context(running(paced(SHIPPED_FRAME_MS, database), signal.SIGKILL))
            theirs = await _beats(connection)
            victim = await stack.enter_async_context(running(paced(0, database), signal.SIGKILL))
            await _at_work(connection, victim, plan)
            return await _killed(connection, victim, set(theirs), plan)
    finally:
        await connection.close()


async def _at_work(connection: Any, server: Server, plan: Plan) -> None:
    """Begin all turns; every one has written its draft.

    Raises:
        RuntimeError: the server lost them before it was killed.
    """
    await asyncio.gather(*(exchange(server.port, _send(plan.order)) for _ in range(plan.turns)))
    written: list[int] = []
    while len(written) < plan.turns or min(written) < plan.order.count * SIZE:
        await asyncio.sleep(1)
        written = [row["n"] for row in await connection.fetch(WRITTEN)]
        if any(row["epoch"] > 1 for row in await connection.fetch(TASKS)):
            raise RuntimeError("the server has lost its lease before it was killed: this machine is too busy")


def _send(order: Order) -> bytes:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": str(order)}]}
    return request("SendMessage", {"message": message, "configuration": {"returnImmediately": True}})


async def _killed(connection: Any, victim: Server, survivors: set[str], plan: Plan) -> Result:
    """Kill a server, and see what the survivors make of it."""
    load = os.getloadavg()[0]
    beats = Beats()
    beats.take(await _beats(connection))
    os.kill(victim.pid, signal.SIGKILL)
    begun = time.monotonic()
    before = {row["task_id"]: row["generation"] for row in await connection.fetch(TASKS)}
    entries = sum(before.values()) / len(before)
    seconds = math.inf
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while not _taken_up(await connection.fetch(TASKS), before):
                beats.take(await _beats(connection))
                await asyncio.sleep(LOOK)
            seconds = time.monotonic() - begun
    until = time.monotonic() + WATCHED
    while time.monotonic() < until:
        beats.take(await _beats(connection))
        await asyncio.sleep(LOOK)
    lost = survivors - set(await _beats(connection))
    once = sum(row["resumptions"] == 1 for row in await connection.fetch(TASKS))
    return Result(seconds, max(beats.gaps[replica] for replica in survivors), len(lost), once, entries, load)


async def _beats(connection: Any) -> dict[str, float]:
    return {row["replica_id"]: row["heartbeat_at"] for row in await connection.fetch(BEATS)}


def _taken_up(tasks: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> bool:
    return all(task["epoch"] > 1 and task["generation"] > before[task["task_id"]] for task in tasks)


def report(plan: Plan, results: Mapping[int, Result]) -> Report:
    """The table and the targets."""
    table = Report(
        "takeover",
        f"a server is killed with {plan.turns} turns at work of {plan.order.count} deltas each",
        (
            "survivors",
            "all taken up s",
            "largest gap of heartbeats s",
            "leases lost",
            "resumed once",
            "entries",
            "load",
        ),
    )
    for survivors, result in results.items():
        table.rows.append(
            (survivors, result.seconds, result.gap, result.lost, result.once, result.entries, result.load)
        )
        table.checks.append(Check(f"taken up, {survivors}", result.seconds, "at most", IN_TIME, "s"))
        table.checks.append(Check(f"heartbeats, {survivors}", result.gap, "at most", ON_TIME, "s"))
        table.checks.append(Check(f"leases lost, {survivors}", result.lost, "at most", 0))
        table.checks.append(Check(f"resumed once, {survivors}", result.once, "at least", plan.turns))
    table.notes.append("entries: of the journal of each turn when its server was killed")
    table.notes.append("load: of the machine, average of the minute before the kill")
    return table
