"""`--only provider`: CPU of the server per delta, on the whole way from a model's provider to a client.

A provider on the loopback interface (`messages_api.py`) writes the deltas, our server reads them through its Claude
adapter, and a client reads each turn's stream. So does the SDK's handler, with an executor that reads the same stream
(`baseline.py`). A checkout that the variable BEFORE names, with a virtual environment of its own, is measured in the
same run: BEFORE=../older python -m bench --only provider.

The servers take turns, round by round, so that what else the machine does meets them alike; reported is the median.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import crowd
from bench.crowd import Crowd
from bench.databases import databases
from bench.pace import Order
from bench.report import Check, Report, quantile, ratio
from bench.servers import MEMORY, ROOT, SHIPPED_FRAME_MS, Checkout, Command, Server, running, shipped

US_PER_SECOND = 1e6
FRAMES_MS = (SHIPPED_FRAME_MS, 0.0)
LESS = 2 / 3
"""The share of the CPU of `BEFORE` that a delta may take, in memory."""
MICROSECONDS = 150
"""Of CPU that a delta may take, in memory."""
DURABLE = 1.2
"""How many times the CPU in memory a delta may take on SQLite."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure: turns at once in each round."""

    crowd: Crowd
    rounds: int


FULL = Plan(Crowd(20, Order(500, 50)), 3)
QUICK = Plan(Crowd(20, Order(150, 50)), 1)


@dataclass(frozen=True, slots=True)
class Case:
    """A server that is measured: `ours`, `before` or `theirs`."""

    whose: str
    database: str
    frame_ms: float = 0.0


@dataclass(slots=True)
class Result:
    """Microseconds of CPU per delta of each round, and the latency of each delta in milliseconds."""

    costs: list[float] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float:
        return median(self.costs)


async def run(plan: Plan) -> Report:
    """Each case, with one provider for all of them."""
    checkouts = _checkouts(os.environ.get("BEFORE", ""))
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(running(lambda port: ["-m", "bench.messages_api", str(port)]))
        servers = {
            case: await stack.enter_async_context(_serving(case, checkouts.get(case.whose, ROOT), provider))
            for case in cases(checkouts)
        }
        results = {case: Result() for case in servers}
        for server in servers.values():
            await crowd.write(server.port, Crowd(2, Order(50, 200)))
        for _ in range(plan.rounds):
            for case, server in servers.items():
                await _measure(server, plan.crowd, results[case])
    return report(plan, results)


def _checkouts(before: str) -> dict[str, Path]:
    return {"ours": ROOT, "before": Path(before).resolve()} if before else {"ours": ROOT}


def cases(whose: Iterable[str]) -> Iterator[Case]:
    """What is measured: our checkouts in every way, the baseline in memory."""
    for database in (MEMORY, "sqlite"):
        for frame_ms in FRAMES_MS:
            yield from (Case(name, database, frame_ms) for name in whose if name != "theirs")
    yield Case("theirs", MEMORY)


@asynccontextmanager
async def _serving(case: Case, folder: Path, provider: Server) -> AsyncIterator[Server]:
    environ = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{provider.port}", "ANTHROPIC_API_KEY": "none"}
    with databases("sqlite") as new:
        command = _command(case, new() if case.database == "sqlite" else MEMORY)
        async with running(command, checkout=Checkout(folder, environ)) as server:
            yield server


def _command(case: Case, database: str) -> Command:
    if case.whose == "theirs":
        return lambda port: ["-m", "bench.baseline", str(port), database, "provider"]
    return shipped("claude-of-the-benchmark", database, "--frame-ms", str(case.frame_ms))


async def _measure(server: Server, size: Crowd, result: Result) -> None:
    begun = server.cpu()
    result.ages += await crowd.write(server.port, size)
    result.costs.append((server.cpu() - begun) / size.deltas * US_PER_SECOND)


def report(plan: Plan, results: Mapping[Case, Result]) -> Report:
    """The table, and what a delta costs compared with the same before, in memory, and over the SDK's handler."""
    turns, rate = plan.crowd.turns, plan.crowd.order.rate
    title = f"CPU per delta from a provider to a client, {turns} turns at once, {rate:.0f} deltas a second each"
    columns = ("server", "database", "frame ms", "us/delta", "turns per core", "latency p50 ms", "p99 ms")
    table = Report("provider", title, columns)
    for case, result in results.items():
        latency = [quantile(result.ages, share) for share in (0.5, 0.99)]
        per_core = US_PER_SECOND / (result.cost * rate)
        table.rows.append((case.whose, case.database, f"{case.frame_ms:.0f}", result.cost, per_core, *latency))
    costs = {case: result.cost for case, result in results.items()}
    for frame_ms in FRAMES_MS:
        table.checks += _checks(costs, frame_ms)
    times = ratio(costs[Case("theirs", MEMORY)], costs[Case("ours", MEMORY, SHIPPED_FRAME_MS)])
    table.notes.append(f"theirs / ours, in memory, {SHIPPED_FRAME_MS:.0f} ms: {times:.2f}")
    return table


def _checks(costs: Mapping[Case, float], frame_ms: float) -> Iterator[Check]:
    memory, sqlite = (costs[Case("ours", database, frame_ms)] for database in (MEMORY, "sqlite"))
    if before := costs.get(Case("before", MEMORY, frame_ms)):
        yield Check(f"ours / before, in memory, {frame_ms:.0f} ms", ratio(memory, before), "at most", LESS)
    yield Check(f"ours, in memory, {frame_ms:.0f} ms", memory, "at most", MICROSECONDS, "us")
    yield Check(f"SQLite / memory, {frame_ms:.0f} ms", ratio(sqlite, memory), "at most", DURABLE)
