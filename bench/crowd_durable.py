"""`--only crowd-durable`: fifty turns at once at a model's pace on one SQLite file: added latency, and commits."""

from __future__ import annotations

import time

from bench import crowd
from bench.crowd import Crowd
from bench.databases import commits, databases
from bench.pace import Order
from bench.report import Check, Report, spread
from bench.servers import SHIPPED_FRAME_MS, paced, running

FULL = Crowd(50, Order(3000, 50))
QUICK = Crowd(50, Order(500, 50))


async def run(size: Crowd) -> Report:
    """All turns on one server."""
    with databases("sqlite") as new:
        database = new()
        async with running(paced(SHIPPED_FRAME_MS, database)) as server:
            await crowd.write(server.port, Crowd(2, Order(20, size.order.rate)))
            cpu, before, begun = server.cpu(), commits(database), time.monotonic()
            ages = await crowd.write(server.port, size)
            seconds = time.monotonic() - begun
            return report(size, ages, (commits(database) - before) / seconds, (server.cpu() - cpu) / seconds)


def report(size: Crowd, ages: list[float], commits_a_second: float, cores: float) -> Report:
    """The table and the targets."""
    p50, p90, p99, longest = spread(ages)
    table = Report(
        "crowd-durable",
        f"{size.turns} turns at once on SQLite, {size.order.rate:.0f} deltas a second each, {size.order.count} deltas",
        ("deltas", "latency p50 ms", "p90 ms", "p99 ms", "max ms", "commits/s", "cores"),
        [(len(ages), p50, p90, p99, longest, commits_a_second, cores)],
    )
    table.checks.append(Check("p50", p50, "at most", 30, "ms"))
    table.checks.append(Check("p99", p99, "at most", 150, "ms"))
    table.checks.append(Check("commits", commits_a_second, "at most", 60, "/s"))
    table.notes.append("commits: counted by SQLite itself, in the index of its write-ahead log")
    return table
