"""Scenario 10: two replicas on one PostgreSQL. A task runs on one, its watchers join on the other at random moments.

Each must have exactly its text (`joiners.py`). The latency that is added is the time from when the stream of the
owner has shown a delta to when a watcher's stream on the other replica has; both are read by one process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench import joiners
from bench.crowd import MILLI
from bench.databases import databases, upgrade
from bench.joiners import Plan, Result
from bench.pace import Order, stamps
from bench.report import Check, Report, quantile
from bench.servers import SHIPPED_FRAME_MS, paced, running

FULL = Plan(60, Order(1000, 50))
QUICK = Plan(60, Order(400, 50))


@dataclass(slots=True)
class Heard:
    """When each delta was on the owner's stream, and when on those of the others; nanoseconds, by its stamp."""

    there: dict[int, int] = field(default_factory=dict)
    here: list[tuple[int, int]] = field(default_factory=list)

    def on_owner(self, text: str, at: int) -> None:
        self.there.update((stamp, at) for stamp in stamps(text))

    def elsewhere(self, text: str, at: int) -> None:
        self.here.extend((stamp, at) for stamp in stamps(text))

    def added(self) -> list[float]:
        """Milliseconds, of every delta that a watcher was shown when it came."""
        return [(at - self.there[stamp]) / MILLI for stamp, at in self.here]


async def run(plan: Plan) -> Report:
    """One task."""
    with databases("postgresql") as new:
        return await measure(plan, await upgrade(new()))


async def measure(plan: Plan, database: str) -> Report:
    """One task on two replicas of their own.

    Raises:
        ClientError: the client that sent the task has not got its text.
    """
    heard = Heard()
    command = paced(SHIPPED_FRAME_MS, database)
    async with running(command) as owner, running(command) as other:
        listening = {"wrote": heard.on_owner, "read": heard.elsewhere}
        result = await joiners.join(owner, plan, turn=True, elsewhere=other, **listening)
    return report(plan, result, heard.added())


def report(plan: Plan, result: Result, added: list[float]) -> Report:
    """The table and the targets."""
    p50 = quantile(added, 0.5)
    table = Report(
        "replicas",
        f"{plan.subscribers} watchers on another replica join one task of {plan.order.count} deltas at random",
        ("exact", "joined at", "added p50 ms", "p90 ms", "p99 ms", "max ms"),
        [(result.exact, result.range, p50, quantile(added, 0.9), quantile(added, 0.99), max(added))],
    )
    table.checks.append(Check("exact", result.exact, "at least", plan.subscribers))
    table.checks.append(Check("added p50", p50, "at most", 150, "ms"))
    table.notes += [f"not exact: {fault[:200]}" for fault in result.faults[:5]]
    return table
