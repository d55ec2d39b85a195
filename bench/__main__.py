"""`make bench`, or `python -m bench [--quick] [--only NAME] [--profile]`: prints ratios.

The last line is JSON: the checked figures of each scenario. The exit code is 1 if one misses its target. What misses
it on a busy machine is BUSY, and does not count (`quiet.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from bench import (
    accept_all,
    broker,
    cached_readers,
    cpu,
    crash,
    crowd_durable,
    durable,
    edits,
    failover,
    first_byte,
    framework_cost,
    framework_kills,
    idle_streams,
    joiners,
    many_tasks,
    mcp_hosts,
    model_pace,
    page,
    presence,
    profiling,
    provider,
    push,
    queued,
    replicas,
    sleeper,
    start,
    subscribers,
    takeover,
    versions,
    workers,
)
from bench.client import ClientError
from bench.quiet import Calibration, busy
from bench.report import Report
from bench.servers import SHIPPED_FRAME_MS, end_in_order, ours, running, script, theirs
from bench.sse import StreamError

TIMEOUT = 240
LONGER = {
    "cached-readers": 600,
    "workers": 900,
    "provider": 900,
    "durable": 600,
    "takeover": 900,
    "crash": 3600,
    "failover": 3600,
    "framework-kills": 3600,
}
"""Seconds that a scenario may take."""


async def every_delta(quick: bool) -> Report:
    return cpu.every_delta(await _costs(0, cpu.EVERY_DELTA_QUICK if quick else cpu.EVERY_DELTA))


async def frames(quick: bool) -> Report:
    return cpu.frames(await _costs(cpu.FRAME_MS, cpu.FRAMES_QUICK if quick else cpu.FRAMES))


async def _costs(frame_ms: float, plan: cpu.Plan) -> cpu.Costs:
    with script() as path:
        async with running(ours(frame_ms, path)) as mine, running(theirs) as other:
            return await cpu.measure(mine, other, plan)


SCENARIOS: dict[str, Callable[[bool], Awaitable[Report]]] = {
    "start": lambda quick: start.run(start.QUICK if quick else start.FULL),
    "every-delta": every_delta,
    "frames": frames,
    "provider": lambda quick: provider.run(provider.QUICK if quick else provider.FULL),
    "model-pace": lambda quick: (
        model_pace.run(model_pace.QUICK, (0.0, SHIPPED_FRAME_MS)) if quick else model_pace.run(model_pace.FULL)
    ),
    "sleeper": lambda quick: sleeper.run(sleeper.QUICK if quick else sleeper.FULL),
    "joiners": lambda quick: joiners.run(joiners.QUICK, (SHIPPED_FRAME_MS,)) if quick else joiners.run(joiners.FULL),
    "subscribers": lambda quick: subscribers.run(subscribers.QUICK if quick else subscribers.FULL),
    "idle-streams": lambda quick: idle_streams.run(idle_streams.QUICK if quick else idle_streams.FULL),
    "cached-readers": lambda quick: cached_readers.run(cached_readers.QUICK if quick else cached_readers.FULL),
    "many-tasks": lambda quick: many_tasks.run(many_tasks.QUICK if quick else many_tasks.FULL),
    "mcp-hosts": lambda quick: mcp_hosts.run(mcp_hosts.QUICK if quick else mcp_hosts.FULL),
    "first-byte": lambda quick: first_byte.run(first_byte.QUICK if quick else first_byte.FULL),
    "page": lambda quick: page.run(page.QUICK if quick else page.FULL),
    "edits": lambda quick: edits.run(edits.QUICK if quick else edits.FULL),
    "versions": lambda quick: versions.run(versions.PLAN),
    "accept-all": lambda quick: accept_all.run(accept_all.QUICK if quick else accept_all.FULL),
    "durable": lambda quick: durable.run(durable.QUICK if quick else durable.FULL),
    "crowd-durable": lambda quick: crowd_durable.run(crowd_durable.QUICK if quick else crowd_durable.FULL),
    "queued": lambda quick: queued.run(queued.QUICK if quick else queued.FULL),
    "presence": lambda quick: presence.run(presence.QUICK if quick else presence.FULL),
    "push": lambda quick: push.run(push.QUICK if quick else push.FULL),
    "replicas": lambda quick: replicas.run(replicas.QUICK if quick else replicas.FULL),
    "broker": lambda quick: broker.run(broker.QUICK if quick else broker.FULL),
    "workers": lambda quick: workers.run(workers.QUICK if quick else workers.FULL),
    "takeover": lambda quick: takeover.run(takeover.QUICK if quick else takeover.FULL),
    "crash": lambda quick: crash.run(crash.QUICK if quick else crash.FULL, seed=1),
    "failover": lambda quick: failover.run(failover.QUICK if quick else failover.FULL, seed=1),
    "framework-cost": lambda quick: framework_cost.run(framework_cost.QUICK if quick else framework_cost.FULL),
    "framework-kills": lambda quick: framework_kills.run(framework_kills.QUICK if quick else framework_kills.FULL),
}


async def run(names: list[str], quick: bool) -> int:
    """Run scenarios and print their reports; when one fails, the others still run."""
    reports: list[Report] = []
    calibration = Calibration()
    for name in names:
        before, begun = calibration.slowdown(), time.monotonic()
        try:
            async with asyncio.timeout(LONGER.get(name, TIMEOUT)):
                report = await SCENARIOS[name](quick)
        except (ClientError, StreamError, OSError, RuntimeError) as error:
            print(f"\n== {name}: failed: {type(error).__name__} {error}", flush=True)
            continue
        report.busy = busy(before, calibration.slowdown())
        print(report, f"({time.monotonic() - begun:.0f} s)", sep="\n", flush=True)
        reports.append(report)
    print(json.dumps({report.name: report.figures() for report in reports}))
    holds = all(report.holds for report in reports)
    return 0 if holds and len(reports) == len(names) else 1


async def profile() -> int:
    """Profiles of a delta that is an event, of a delta that is joined, and of a short turn."""
    for frame, size, turns in ((0.0, 16000, 1), (cpu.FRAME_MS, 64000, 2), (cpu.FRAME_MS, 1, 100)):
        print(f"\n== frame {frame:.0f} ms, {turns} x {size} deltas", flush=True)
        print(await profiling.run(frame, size, turns), flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Benchmarks that print ratios.")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--only", action="append", choices=SCENARIOS, metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--profile", action="store_true", help="only show where our server's CPU goes")
    options = parser.parse_args()
    end_in_order()
    return asyncio.run(profile() if options.profile else run(options.only or list(SCENARIOS), options.quick))


if __name__ == "__main__":
    sys.exit(main())
