"""`--only workers`: what a second worker adds, where each has as much to do as one core is planned for.

The unit is one worker with as many turns as use SHARE of a core. Two workers on the same PostgreSQL get turns until
each uses as much; a tenth of the turns is watched at the other worker. The model is in the server (`paced_server.py`),
so the client knows each delta's age. CPU is that of the workers' processes, while all turns run. The one and the two
take turns, because the machine may be busy.

A third of the unit's turns shows what a delta costs where less is shared: alone, and on each of three workers. Two
workers without watchers elsewhere show what the machine takes when both of its cores are busy: on two threads of one
core, the same work takes up to half as much CPU again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median

from bench.client import Watcher, exchange, request, send, subscribe, watch
from bench.cpu import US_PER_SECOND
from bench.crowd import SPREAD, Ages, check
from bench.databases import databases, upgrade
from bench.pace import Order
from bench.report import Check, Report, ratio, spread
from bench.servers import SHIPPED_FRAME_MS, Server, paced, running

SHARE = 0.35
"""Of a core, which a worker of the unit uses."""
CLOSE = 0.02
ELSEWHERE = 10
"""One of so many turns is watched at another worker."""
SETTLE = 1.0
"""Seconds before and after the measurement in which all turns run, too."""
RATE = 50.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure, how often, and how many turns to begin the search with."""

    seconds: float
    rounds: int
    turns: int = 16
    attempts: int = 4


FULL = Plan(12, 3)
QUICK = Plan(2, 1, attempts=1)


@dataclass(frozen=True, slots=True)
class Load:
    """What was measured while all turns ran.

    Attributes:
        cores: of each worker.
        ages: of the deltas, in milliseconds; `elsewhere` those that were watched at another worker.
    """

    turns: int
    cores: tuple[float, ...]
    ages: list[float]
    elsewhere: list[float]

    @property
    def per_delta(self) -> float:
        """Microseconds of CPU, of all workers."""
        return sum(self.cores) / (self.turns * RATE) * US_PER_SECOND

    @property
    def at_share(self) -> float:
        """As many turns would use SHARE of a core of each worker."""
        return self.turns * SHARE * len(self.cores) / sum(self.cores)


async def run(plan: Plan) -> Report:
    """One worker, two, and a third of the load."""
    with databases("postgresql") as new:
        database = await upgrade(new())
        async with AsyncExitStack() as stack:
            command = paced(SHIPPED_FRAME_MS, database)
            workers = [await stack.enter_async_context(running(command)) for _ in range(3)]
            return await measure(plan, workers)


async def measure(plan: Plan, workers: Sequence[Server]) -> Report:
    """Measure three running workers of one database."""
    for worker in workers:
        await load([worker], 2, 1)
    one = await search(plan, workers[:1], plan.turns)
    two = await search(plan, workers[:2], 2 * one)
    ones, twos, aparts, thirds, threes = [], [], [], [], []
    for _ in range(plan.rounds):
        ones.append(await load(workers[:1], one, plan.seconds))
        twos.append(await load(workers[:2], two, plan.seconds))
        aparts.append(await load(workers[:2], two, plan.seconds, apart=True))
        thirds.append(await load(workers[:1], max(1, one // 3), plan.seconds))
        threes.append(await load(workers, max(3, one // 3 * 3), plan.seconds))
    return report(ones, twos, aparts, thirds, threes)


async def search(plan: Plan, workers: Sequence[Server], turns: int) -> int:
    """How many turns make each worker use SHARE of a core."""
    for _ in range(plan.attempts):
        found = await load(workers, turns, plan.seconds)
        if abs(sum(found.cores) / len(workers) - SHARE) <= CLOSE:
            break
        turns = max(len(workers), round(found.at_share))
    return turns


async def load(workers: Sequence[Server], turns: int, seconds: float, *, apart: bool = False) -> Load:
    """Run so many turns at once, divided among the workers.

    Args:
        apart: all are watched at the worker that runs them.
    """
    order = Order(round(RATE * (SPREAD + 2 * SETTLE + seconds)), RATE)
    here: list[float] = []
    elsewhere: list[float] = []

    async def one(number: int) -> None:
        await asyncio.sleep(SPREAD * number / turns)
        worker, other = workers[number % len(workers)], workers[(number + 1) % len(workers)]
        # Every tenth turn of each worker, and of fewer one.
        watched_elsewhere = number // len(workers) % ELSEWHERE == min(ELSEWHERE, turns // len(workers)) // 2
        if apart or other is worker or not watched_elsewhere:
            watcher = await watch(worker.port, send(order), Watcher(Ages(here).listen))
        else:
            task_id = await start(worker.port, order)
            watcher = await watch(other.port, subscribe(task_id), Watcher(Ages(elsewhere).listen))
        check(watcher, order)

    writing = asyncio.gather(*(one(number) for number in range(turns)))
    await asyncio.sleep(SPREAD + SETTLE)
    before, begun = [worker.cpu() for worker in workers], time.monotonic()
    await asyncio.sleep(seconds)
    used = [worker.cpu() - cpu for worker, cpu in zip(workers, before, strict=True)]
    took = time.monotonic() - begun
    await writing
    return Load(turns, tuple(cpu / took for cpu in used), here, elsewhere)


async def start(port: int, order: Order) -> str:
    """Start a turn that is watched elsewhere; returns its task."""
    message = {"messageId": f"elsewhere-{time.monotonic_ns()}", "role": "ROLE_USER", "parts": [{"text": str(order)}]}
    asked = request("SendMessage", {"message": message, "configuration": {"returnImmediately": True}})
    task_id: str = (await exchange(port, asked))["result"]["task"]["id"]
    return task_id


def report(
    ones: Sequence[Load],
    twos: Sequence[Load],
    aparts: Sequence[Load],
    thirds: Sequence[Load],
    threes: Sequence[Load],
) -> Report:
    """The table and the targets."""
    table = Report(
        "workers",
        f"turns of {RATE:.0f} deltas a second, each worker at {SHARE} of a core, one in {ELSEWHERE} watched elsewhere",
        ("workers", "turns", "cores each", "CPU/delta us", "p50 ms", "p99 ms", "p99 elsewhere ms"),
    )
    for loads in (ones, twos, aparts, thirds, threes):
        _, _, late, _ = spread([age for each in loads for age in each.elsewhere] or [0.0])
        p50, _, p99, _ = spread(_ages(loads))
        cores = median(sum(each.cores) / len(each.cores) for each in loads)
        table.rows.append((len(loads[0].cores), loads[0].turns, cores, _per_delta(loads), p50, p99, late))
    carried = ratio(median(each.at_share for each in twos), median(each.at_share for each in ones))
    table.checks.append(Check("turns, two / one", carried, "at least", 1.7))
    table.checks.append(Check("CPU per delta, two / one", ratio(_per_delta(twos), _per_delta(ones)), "at most", 1.18))
    table.checks.append(Check("p99", spread(_ages(twos))[2], "at most", 100, "ms"))
    table.notes.append(
        "CPU per delta of two workers with all turns watched where they run: "
        f"{ratio(_per_delta(aparts), _per_delta(ones)):.2f} times that of one, which is the machine's; "
        f"with a tenth watched elsewhere {ratio(_per_delta(twos), _per_delta(aparts)):.2f} times that"
    )
    third = ratio(_per_delta(thirds), _per_delta(ones))
    table.notes.append(
        f"CPU per delta with a third of the turns: {third:.2f} times that of the unit on one worker, "
        f"{ratio(_per_delta(threes), _per_delta(ones)):.2f} times on three workers with a third each"
    )
    return table


def _per_delta(loads: Sequence[Load]) -> float:
    return median(each.per_delta for each in loads)


def _ages(loads: Sequence[Load]) -> list[float]:
    return [age for each in loads for age in (*each.ages, *each.elsewhere)]
