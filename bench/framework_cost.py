"""`--only framework-cost`: CPU per delta of an agent of a framework, less what the framework alone needs.

Servers run turns of COUNT deltas at full speed, without frames: ours with its own loop and a scripted model, and one
for each framework's adapter. The framework alone consumes the same stream in a process of its own. All take turns;
reported are the medians.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import import_module
from statistics import median

from bench.cpu import US_PER_SECOND, WARM_UP, cost
from bench.pace import Order
from bench.report import Check, Report, ratio
from bench.servers import HERE, MEMORY, Command, ours, running, script

FRAMEWORKS = ("pydantic_ai", "langgraph", "openai_agents", "google_adk")
TARGET = 1.2
"""How many times the CPU of our own loop."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure: `rounds` alternating measurements of `turns` turns with `count` deltas each."""

    count: int = 4000
    turns: int = 3
    rounds: int = 5


QUICK = Plan(1000, 1, 1)
FULL = Plan()


async def run(plan: Plan, frameworks: Sequence[str] = FRAMEWORKS) -> Report:
    """Measure them all, alternating."""
    report = Report(
        "framework-cost",
        f"CPU per delta, {plan.count} deltas, coalescing off",
        ("loop", "server us", "framework alone us", "difference us", "times our loop"),
    )
    async with AsyncExitStack() as stack:
        path = stack.enter_context(script())
        servers = {"own": await stack.enter_async_context(running(ours(0, path)))}
        for name in frameworks:
            servers[name] = await stack.enter_async_context(running(_looped(name)))
        for server in servers.values():
            await cost(server, WARM_UP, 1)
        costs: dict[str, list[float]] = {name: [] for name in servers}
        alone: dict[str, list[float]] = {name: [] for name in frameworks}
        for _ in range(plan.rounds):
            for name, server in servers.items():
                costs[name].append(await cost(server, plan.count, plan.turns))
                if name in alone:
                    alone[name].append(await asyncio.to_thread(_alone, name, plan))
    own = median(costs["own"])
    report.rows.append(("own", own, "-", "-", "-"))
    for name in frameworks:
        whole, without = median(costs[name]), median(alone[name])
        times = ratio(whole - without, own)
        report.rows.append((name, whole, without, whole - without, times))
        report.checks.append(Check(f"{name} / own loop", times, "at most", TARGET))
    return report


def _looped(name: str) -> Command:
    given = ["--loop", f"bench.framework_streams.{name}:agent", "--database", MEMORY, "--log-level", "warning"]
    return lambda port: ["-m", "a2a_canvas", "serve", "--port", str(port), "--frame-ms", "0", *given]


def _alone(name: str, plan: Plan) -> float:
    command = [sys.executable, "-m", "bench.framework_cost", name, str(plan.count), str(plan.turns)]
    return float(subprocess.run(command, cwd=HERE.folder, check=True, capture_output=True, text=True).stdout)


async def _consume(name: str, count: int, turns: int) -> float:
    """Microseconds of CPU per delta of the framework alone."""
    alone = import_module(f"bench.framework_streams.{name}").alone
    await alone(Order(WARM_UP))
    before = time.process_time()
    for _ in range(turns):
        await alone(Order(count))
    return (time.process_time() - before) / (count * turns) * US_PER_SECOND


if __name__ == "__main__":
    print(asyncio.run(_consume(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
