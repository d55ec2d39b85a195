"""`--only replicas`: two replicas on one PostgreSQL: a task runs on one, its watchers join on the other.

They join at random moments, and each must get exactly its text (`joiners.py`). The added latency is the time from when
the owner's stream had a delta until a watcher's stream on the other replica had it; one process reads both.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench import joiners
from bench.crowd import NS_PER_MS
from bench.databases import databases, upgrade
from bench.joiners import Plan, Result
from bench.pace import Order
from bench.report import Check, Report, spread
from bench.servers import SHIPPED_FRAME_MS, paced, running

FULL = Plan(60, Order(1000, 50))
QUICK = Plan(60, Order(400, 50))


@dataclass(slots=True)
class StreamTimes:
    """When each delta arrived on the owner's stream and on the watchers' streams: nanoseconds, by its stamp."""

    owner: dict[int, int] = field(default_factory=dict)
    watchers: list[tuple[int, int]] = field(default_factory=list)

    def on_owner(self, stamp: int, at: int) -> None:
        self.owner[stamp] = at

    def on_watcher(self, stamp: int, at: int) -> None:
        self.watchers.append((stamp, at))

    def added(self) -> list[float]:
        """The added latency in milliseconds, of every delta that a watcher got live."""
        return [(at - self.owner[stamp]) / NS_PER_MS for stamp, at in self.watchers]


async def run(plan: Plan) -> Report:
    """One task."""
    with databases("postgresql") as new:
        return await measure(plan, await upgrade(new()))


async def measure(plan: Plan, database: str) -> Report:
    """One task on two replicas of their own.

    Raises:
        ClientError: the sender of the task did not get the exact text.
    """
    times = StreamTimes()
    command = paced(SHIPPED_FRAME_MS, database)
    async with running(command) as owner, running(command) as other:
        listening = {"wrote": times.on_owner, "read": times.on_watcher}
        result = await joiners.join(owner, plan, turn=True, elsewhere=other, **listening)
    return report(plan, result, times.added())


def report(plan: Plan, result: Result, added: list[float]) -> Report:
    """The table and the targets."""
    found = spread(added)
    table = Report(
        "replicas",
        f"{plan.subscribers} watchers on another replica join one task of {plan.order.count} deltas at random",
        ("exact", "joined at", "added p50 ms", "p90 ms", "p99 ms", "max ms"),
        [(result.exact, result.range, *found)],
    )
    table.checks.append(Check("exact", result.exact, "at least", plan.subscribers))
    table.checks.append(Check("added p50", found[0], "at most", 60, "ms"))
    table.checks.append(Check("added p99", found[2], "at most", 200, "ms"))
    table.notes += [f"not exact: {fault[:200]}" for fault in result.faults[:5]]
    return table
