"""`--only queued`: the first byte of each of five hundred turns at once, on a server with the default limit of turns.

Measured from when the server had the delta with the first byte of the turn's artifact.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import crowd
from bench.crowd import Crowd
from bench.databases import Kind, databases, upgrade
from bench.pace import Order
from bench.report import Check, Report, spread
from bench.servers import SHIPPED_FRAME_MS, SHIPPED_MAX_TURNS, paced, running

FULL = Crowd(500, Order(25, 25))
QUICK = Crowd(100, Order(25, 25))
KINDS: Sequence[Kind] = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Result:
    """Latency of the first byte of each turn in milliseconds, and seconds until the last turn had ended."""

    firsts: list[float]
    seconds: float


async def run(size: Crowd, kinds: Sequence[Kind] = KINDS) -> Report:
    """All turns at once, on each database."""
    return report(size, {kind: await _on(kind, size) for kind in kinds})


async def _on(kind: Kind, size: Crowd) -> Result:
    with databases(kind) as new:
        database = await upgrade(new())
        async with running(paced(SHIPPED_FRAME_MS, database, SHIPPED_MAX_TURNS)) as server:
            await crowd.write(server.port, Crowd(2, size.order))
            begun = time.monotonic()
            firsts = await asyncio.gather(*(crowd.first_byte(server.port, size.order) for _ in range(size.turns)))
            return Result(firsts, time.monotonic() - begun)


def report(size: Crowd, results: Mapping[Kind, Result]) -> Report:
    """The table and the targets."""
    table = Report(
        "queued",
        f"{size.turns} turns at once, of which {SHIPPED_MAX_TURNS} run, {size.order.rate:.0f} deltas a second each",
        ("database", "first byte p50 ms", "p90 ms", "p99 ms", "max ms", "all done s"),
    )
    for kind, result in results.items():
        found = spread(result.firsts)
        table.rows.append((kind, *found, result.seconds))
        table.checks.append(Check(f"{kind} p99", found[2], "at most", 100, "ms"))
    return table
