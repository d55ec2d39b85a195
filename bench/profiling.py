"""`--profile`: our server under `cProfile`, and the functions with the most CPU time of their own.

As a program, `python -m bench.profiling FILE SERVE-OPTIONS…` is our server. It is profiled from one SIGUSR1 to the
next, which leaves out the imports and the first requests, and then writes FILE.
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import pstats
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.cpu import WARM_UP, cost
from bench.servers import Command, ours, running, script

TOP = 25
IDLE = "'poll'"
TIMEOUT = 20.0


async def run(frame_ms: float, size: int, turns: int) -> str:
    """A table of microseconds per delta. Profiling makes everything slower, calls of small functions most."""
    with tempfile.TemporaryDirectory() as folder, script() as rules:
        path = Path(folder, "profile")
        async with running(_profiled(ours(frame_ms, rules), path)) as server:
            await cost(server, WARM_UP, 2)
            os.kill(server.pid, signal.SIGUSR1)
            await cost(server, size, turns)
            os.kill(server.pid, signal.SIGUSR1)
            return _table(await asyncio.to_thread(_stats, path), size * turns)


def _profiled(command: Command, path: Path) -> Command:
    return lambda port: ["-m", "bench.profiling", str(path), *command(port)[2:]]


def _stats(path: Path) -> pstats.Stats:
    until = time.monotonic() + TIMEOUT
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return pstats.Stats(str(path))


def _table(stats: pstats.Stats, deltas: int) -> str:
    timed: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = stats.stats  # type: ignore[attr-defined]
    rows = sorted(timed.items(), key=lambda item: item[1][2], reverse=True)
    busy = [(where, figures) for where, figures in rows if IDLE not in where[2]]
    us = 1e6 / deltas
    lines = [f"{'own us/delta':>12}  {'with callees':>12}  {'calls/delta':>11}  function"]
    for (file, line, name), (_, calls, own, cumulative, _) in busy[:TOP]:
        where = f"{'/'.join(Path(file).parts[-3:])}:{line}({name})" if line else name
        lines.append(f"{own * us:12.2f}  {cumulative * us:12.2f}  {calls / deltas:11.2f}  {where}")
    lines.append(f"{sum(figures[2] for _, figures in busy) * us:12.2f}  all")
    return "\n".join(lines)


def serve(path: str, options: Sequence[str]) -> int:
    """Our command line, with a profiler that SIGUSR1 starts and stops."""
    from a2a_canvas.server.commands.cli import main

    profile = cProfile.Profile()
    running = False

    def toggle(signum: int, frame: object) -> None:
        nonlocal running
        if running:
            profile.disable()
            profile.dump_stats(f"{path}.part")
            os.rename(f"{path}.part", path)
        else:
            profile.enable()
        running = not running

    signal.signal(signal.SIGUSR1, toggle)
    return main(options)


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1], sys.argv[2:]))
