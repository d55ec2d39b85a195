"""`--only durable`: the cost of a database: one task at full speed, each delta an event, ours and the baseline.

Measured is the wall time from the request to the end of the stream: the median of several runs of ours, and one run of
the baseline, which is slow. Every server has a new database of its own with the server's default settings, including
fsync.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.client import ClientError, Watcher, check_pieces, get_text, send, watch
from bench.databases import Kind, New, databases, upgrade
from bench.pace import Order
from bench.report import Check, Report, ratio
from bench.servers import Server, ours, running, script, theirs_on

WARM_UP = 500
TARGETS: Mapping[Kind, Mapping[int, float]] = {"sqlite": {1000: 30, 4000: 60}, "postgresql": {1000: 22, 4000: 60}}
"""How many times faster ours must be, by number of deltas. The baseline's time grows faster than the text, so the
targets for 1,000 and for 4,000 demand the same of ours."""
SHORT, LINEAR = 4000, 1.3
"""A delta of the longest text may take `LINEAR` times as long as one of a text of `SHORT` deltas."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure.

    Attributes:
        mine: numbers of deltas; without `SHORT` their growth is not judged.
        other: number of deltas of the baseline; one of `mine`, and of the targets if it is to be judged.
        runs: of ours, for each number.
    """

    mine: Sequence[int]
    other: int
    runs: int


FULL = Plan((4000, 16000, 64000), 4000, 5)
QUICK = Plan((1000, 4000, 16000), 1000, 3)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of wall time: ours by number of deltas, and the baseline's."""

    mine: Mapping[int, float]
    other: float


async def run(plan: Plan, kinds: Sequence[Kind] = ("sqlite", "postgresql")) -> Report:
    """Each kind of database, one after the other."""
    results: dict[Kind, Times] = {}
    for kind in kinds:
        with databases(kind) as new:
            results[kind] = await measure(kind, new, plan)
    return report(plan, results)


async def measure(kind: Kind, new: New, plan: Plan) -> Times:
    """Ours and the baseline, each on a database of its own.

    Raises:
        ClientError: a client did not get the exact text, from the stream or from `GetTask`.
    """
    database = new() if kind == "sqlite" else await upgrade(new())
    with script() as path:
        async with running(ours(0, path, database)) as server:
            mine = await _ours(server, plan)
    async with running(theirs_on(new())) as server:
        await seconds(server, WARM_UP)
        return Times(mine, await seconds(server, plan.other))


async def _ours(server: Server, plan: Plan) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    await seconds(server, WARM_UP)
    for _ in range(plan.runs):
        for size in plan.mine:
            found.setdefault(size, []).append(await seconds(server, size))
    return {size: median(times) for size, times in found.items()}


async def seconds(server: Server, size: int) -> float:
    """Seconds that one task of `size` deltas took.

    Raises:
        ClientError: the client did not get the exact text, from the stream or from `GetTask`.
    """
    begun = time.monotonic()
    watcher = await watch(server.port, send(Order(size)), Watcher())
    taken = time.monotonic() - begun
    kept = await get_text(server.port, watcher.task_id)
    check_pieces(watcher, size)
    if kept != watcher.text:
        raise ClientError(f"{len(watcher.text)} characters were sent and {len(kept)} are kept")
    return taken


def report(plan: Plan, results: Mapping[Kind, Times]) -> Report:
    """The table and the targets."""
    columns = ("database", "deltas", "ours s", "us/delta", "theirs s", "theirs/ours")
    table = Report("durable", "wall time of one task on a database, coalescing off", columns)
    for kind, times in results.items():
        for size, mine in times.mine.items():
            beside = (times.other, ratio(times.other, mine)) if size == plan.other else ("-", "-")
            table.rows.append((kind, size, mine, mine / size * 1e6, *beside))
        if target := TARGETS[kind].get(plan.other):
            faster = ratio(times.other, times.mine[plan.other])
            table.checks.append(Check(f"theirs / ours, {kind}, {plan.other}", faster, "at least", target))
        if SHORT in times.mine:
            long = max(times.mine)
            growth = ratio(times.mine[long] / long, times.mine[SHORT] / SHORT)
            table.checks.append(Check(f"{long} / {SHORT}, {kind}", growth, "at most", LINEAR))
    return table
