"""`--only takeover`: a server is killed (`kill -9`) while its turns run, and others take them over, on one PostgreSQL.

Every turn has written a long draft and continues slowly and without end, before the kill and after the takeover. Each
delta of the draft is an event of its own, as at a model's pace. A turn counts as taken over when its new owner has
written to it, not when it has claimed it. The time includes the lease of the dead server. The survivors' heartbeats are
read from the table `replicas`, often.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import astuple, dataclass, field
from typing import Any
from uuid import uuid4

import asyncpg

from a2a_canvas.store.sql.tables import CompressedText
from bench.client import exchange, request
from bench.databases import databases, upgrade
from bench.pace import SIZE, Order
from bench.report import Check, Report
from bench.servers import SHIPPED_FRAME_MS, Server, paced, running

POLL_SECONDS = 0.05
OBSERVED_SECONDS = 5.0
"""How long the survivors are observed after the takeover: longer than a lease."""
TAKEOVER_TIMEOUT = 60.0
MAX_TAKEOVER_SECONDS, MAX_HEARTBEAT_GAP = 6.0, 2.0

SELECT_HEARTBEATS = "SELECT replica_id, heartbeat_at FROM replicas"
SELECT_TASKS = "SELECT task_id, generation, epoch, resumptions FROM tasks"
_STORED = CompressedText()
SELECT_DRAFTS = "SELECT context_id, content FROM drafts"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure.

    Attributes:
        turns: running when their server is killed.
        order: of each turn; endless.
        survivors: number of other servers, in one run each.
    """

    turns: int
    order: Order
    survivors: Sequence[int] = (1, 2)


FULL = Plan(100, Order(7000, 2, endless=True))
QUICK = Plan(20, Order(1000, 2, endless=True))


@dataclass(slots=True)
class HeartbeatGaps:
    """The last heartbeat of each server, by the clock of the database, and its largest gap; seconds."""

    last: dict[str, float] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)

    def take(self, rows: Mapping[str, float]) -> None:
        """Take in the rows of the table."""
        for replica, beat in rows.items():
            self.gaps[replica] = max(self.gaps.get(replica, 0.0), beat - self.last.get(replica, beat))
        self.last |= rows


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        seconds: from the kill until all turns were taken over; infinite if they were not.
        gap: the largest between two heartbeats of a survivor; seconds.
        lost: survivors that lost their lease.
        once: turns that were resumed exactly once.
        entries: journal entries per turn when the server was killed, on average.
        load: the machine's load average of the minute before the kill.
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
        RuntimeError: a server did not start, or lost its lease before it was killed.
    """
    connection = await asyncpg.connect(database)
    try:
        async with AsyncExitStack() as stack:
            for _ in range(survivors):
                await stack.enter_async_context(running(paced(SHIPPED_FRAME_MS, database), signal.SIGKILL))
            theirs = await _heartbeats(connection)
            victim = await stack.enter_async_context(running(paced(0, database), signal.SIGKILL))
            await _start_turns(connection, victim, plan)
            return await _kill(connection, victim, set(theirs), plan)
    finally:
        await connection.close()


async def _start_turns(connection: Any, server: Server, plan: Plan) -> None:
    """Start all turns, and wait until each has written its draft.

    Raises:
        RuntimeError: the server lost its lease.
    """
    await asyncio.gather(*(exchange(server.port, _send(plan.order)) for _ in range(plan.turns)))
    written: Sequence[int] = []
    while len(written) < plan.turns or min(written) < plan.order.count * SIZE:
        await asyncio.sleep(1)
        written = _written(await connection.fetch(SELECT_DRAFTS))
        if any(row["epoch"] > 1 for row in await connection.fetch(SELECT_TASKS)):
            raise RuntimeError("the server has lost its lease before it was killed: this machine is too busy")


def _written(drafts: Sequence[Mapping[str, str]]) -> list[int]:
    """How many characters each turn has written. Drafts are stored compressed."""
    lengths: defaultdict[str, int] = defaultdict(int)
    for row in drafts:
        content = json.loads(_STORED.process_result_value(row["content"], None) or "{}")
        lengths[row["context_id"]] += sum(len(part["body"]) for part in content["parts"])
    return [*lengths.values()]


def _send(order: Order) -> bytes:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": str(order)}]}
    return request("SendMessage", {"message": message, "configuration": {"returnImmediately": True}})


async def _kill(connection: Any, victim: Server, survivors: set[str], plan: Plan) -> Result:
    """Kill a server, and wait until the survivors have taken its turns over."""
    load = os.getloadavg()[0]
    beats = HeartbeatGaps()
    beats.take(await _heartbeats(connection))
    os.kill(victim.pid, signal.SIGKILL)
    begun = time.monotonic()
    before = {row["task_id"]: row["generation"] for row in await connection.fetch(SELECT_TASKS)}
    entries = sum(before.values()) / len(before)
    seconds = math.inf
    with suppress(TimeoutError):
        async with asyncio.timeout(TAKEOVER_TIMEOUT):
            while not _taken_over(await connection.fetch(SELECT_TASKS), before):
                beats.take(await _heartbeats(connection))
                await asyncio.sleep(POLL_SECONDS)
            seconds = time.monotonic() - begun
    until = time.monotonic() + OBSERVED_SECONDS
    while time.monotonic() < until:
        beats.take(await _heartbeats(connection))
        await asyncio.sleep(POLL_SECONDS)
    lost = survivors - set(await _heartbeats(connection))
    once = sum(row["resumptions"] == 1 for row in await connection.fetch(SELECT_TASKS))
    return Result(seconds, max(beats.gaps[replica] for replica in survivors), len(lost), once, entries, load)


async def _heartbeats(connection: Any) -> dict[str, float]:
    return {row["replica_id"]: row["heartbeat_at"] for row in await connection.fetch(SELECT_HEARTBEATS)}


def _taken_over(tasks: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> bool:
    return all(task["epoch"] > 1 and task["generation"] > before[task["task_id"]] for task in tasks)


def report(plan: Plan, results: Mapping[int, Result]) -> Report:
    """The table and the targets."""
    table = Report(
        "takeover",
        f"a server is killed while {plan.turns} turns of {plan.order.count} deltas each run",
        ("survivors", "taken over s", "largest heartbeat gap s", "leases lost", "resumed once", "entries", "load"),
    )
    for survivors, result in results.items():
        table.rows.append((survivors, *astuple(result)))
        table.checks.append(Check(f"taken over, {survivors}", result.seconds, "at most", MAX_TAKEOVER_SECONDS, "s"))
        table.checks.append(Check(f"heartbeats, {survivors}", result.gap, "at most", MAX_HEARTBEAT_GAP, "s"))
        table.checks.append(Check(f"leases lost, {survivors}", result.lost, "at most", 0))
        table.checks.append(Check(f"resumed once, {survivors}", result.once, "at least", plan.turns))
    table.notes.append("entries: of the journal of each turn when the server was killed")
    table.notes.append("load: average of the minute before the kill")
    return table
