"""`--only model-pace`: fifty turns at once at a model's pace: CPU, and the latency that a frame adds.

The recommendation is the longest frame whose p99 latency is at most `MAX_P99_MS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import crowd
from bench.crowd import Crowd
from bench.pace import Order
from bench.report import Check, Report, quantile, ratio
from bench.servers import SHIPPED_FRAME_MS, paced, running, theirs

FRAMES_MS = sorted({0.0, 25.0, 50.0, SHIPPED_FRAME_MS})
LONG = 500
"""With fewer deltas a turn's own cost hides that of its deltas, so the ratio has no target."""
MAX_P99_MS = 40.0
"""With the latency of a screen and a network this is well within the tenth of a second that feels immediate."""

FULL = Crowd(50, Order(1000, 50))
QUICK = Crowd(50, Order(50, 50))


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds of CPU of all turns, and the latency of each delta in milliseconds."""

    cpu: float
    ages: list[float]


async def run(size: Crowd, frames_ms: Sequence[float] = FRAMES_MS) -> Report:
    """Ours with each frame, and the baseline, one after the other."""
    names = {f"ours, {frame:.0f} ms": paced(frame) for frame in frames_ms}
    results: dict[str, Result] = {}
    for name, command in {"theirs": theirs, **names}.items():
        async with running(command) as server:
            await crowd.write(server.port, Crowd(2, Order(20, size.order.rate)))
            before = server.cpu()
            ages = await crowd.write(server.port, size)
            results[name] = Result(server.cpu() - before, ages)
    return report(size, results, frames_ms)


def report(size: Crowd, results: Mapping[str, Result], frames_ms: Sequence[float]) -> Report:
    """The table; the ratio is that of the default frame."""
    title = f"{size.turns} turns at once, {size.order.rate:.0f} deltas a second each, {size.order.count} deltas"
    table = Report("model-pace", title, ("server", "CPU s", "us/delta", "latency p50 ms", "p99 ms", "theirs/ours"))
    other = results["theirs"].cpu
    for name, result in results.items():
        p50, p99 = (quantile(result.ages, share) for share in (0.5, 0.99))
        table.rows.append((name, result.cpu, result.cpu / size.deltas * 1e6, p50, p99, ratio(other, result.cpu)))
    share = ratio(results[f"ours, {SHIPPED_FRAME_MS:.0f} ms"].cpu, other)
    if size.order.count >= LONG:
        table.checks.append(Check("ours / theirs", share, "at most", 0.5))
    else:
        table.notes.append(f"ours / theirs: {share:.2f}; turns are too short for the target of a full run")
    table.notes.append(recommendation({frame: results[f"ours, {frame:.0f} ms"] for frame in frames_ms}))
    return table


def recommendation(results: Mapping[float, Result]) -> str:
    """The frame to ship, and why."""
    slow = {frame: quantile(result.ages, 0.99) for frame, result in results.items()}
    within = [frame for frame in slow if slow[frame] <= MAX_P99_MS]
    if not within:
        return f"recommended frame: none has a p99 of at most {MAX_P99_MS:.0f} ms"
    best = max(within)
    saved = 1 - ratio(results[best].cpu, results[min(results)].cpu)
    return (
        f"recommended frame: {best:.0f} ms, the longest with a p99 of at most {MAX_P99_MS:.0f} ms; "
        f"it saves {saved:.0%} of the CPU at this pace"
    )
