"""`--only first-byte`: the latency of the first byte of an artifact while fifty other turns run.

Measured from when the server had the delta with the first character of the part's text. Probes start one after the
other, with pauses, as often as turns start on a server with fifty turns of twenty seconds each.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bench import crowd
from bench.crowd import Crowd
from bench.pace import Order
from bench.report import Check, Report, spread
from bench.servers import SHIPPED_FRAME_MS, paced, running

PROBE = Order(3, 50)
LEAD = 1.5
"""Seconds until all other turns run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Probes, `gap` seconds apart, while `others` run."""

    probes: int
    gap: float
    others: Crowd

    @classmethod
    def of(cls, probes: int, turns: int = 50, rate: float = 50, gap: float = 0.1) -> Plan:
        return cls(probes, gap, Crowd(turns, Order(int((LEAD + probes * gap + 1) * rate), rate)))


FULL = Plan.of(200)
QUICK = Plan.of(30)


async def run(plan: Plan, frame_ms: float = SHIPPED_FRAME_MS) -> Report:
    """Start the others, then the probes."""
    async with running(paced(frame_ms)) as server:
        await crowd.write(server.port, Crowd(2, Order(20, 50)))
        others = asyncio.create_task(crowd.write(server.port, plan.others))
        try:
            await asyncio.sleep(LEAD)
            firsts = await asyncio.gather(*(probe(server.port, number * plan.gap) for number in range(plan.probes)))
            assert not others.done()
            await others
        finally:
            others.cancel()
    return report(plan, firsts)


async def probe(port: int, after: float) -> float:
    """Latency of the first byte of one new artifact, in milliseconds."""
    await asyncio.sleep(after)
    return await crowd.first_byte(port, PROBE)


def report(plan: Plan, firsts: list[float]) -> Report:
    """The table and the targets."""
    p50, p90, p99, longest = spread(firsts)
    table = Report(
        "first-byte",
        f"first artifact byte with {plan.others.turns} turns running",
        ("probes", "p50 ms", "p90 ms", "p99 ms", "max ms"),
        [(plan.probes, p50, p90, p99, longest)],
    )
    table.checks.append(Check("p50", p50, "at most", 5, "ms"))
    table.checks.append(Check("p99", p99, "at most", 25, "ms"))
    return table
