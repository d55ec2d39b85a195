"""`--only every-delta` and `--only frames`: CPU of the server per delta at full speed, without and with coalescing.

A measurement is the CPU of whole turns, including the request, divided by their deltas of text. Short turns are
measured several at a time, because the kernel counts CPU in ticks. Our server and the baseline take turns; reported is
the median. A size of 1 shows the cost of a turn itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from bench.client import Watcher, check_pieces, send, watch
from bench.pace import Order
from bench.report import Check, Report, ratio
from bench.servers import Server

US_PER_SECOND = 1e6
WARM_UP = 1000
FRAME_MS = 25.0
TARGETS = {4000: 3.0, 16000: 7.0}
"""How many times more CPU the baseline must use, by number of deltas."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure: turns in one measurement, by number of deltas.

    Attributes:
        once: sizes that are measured in the first round only.
    """

    mine: Mapping[int, int]
    other: Mapping[int, int]
    rounds: int
    once: tuple[int, ...] = ()


EVERY_DELTA = Plan({1: 50, 1000: 8, 4000: 2, 16000: 1, 64000: 1}, {1: 50, 1000: 4, 4000: 1, 16000: 1}, 3, (16000,))
EVERY_DELTA_QUICK = Plan({1: 20, 1000: 4, 4000: 1, 16000: 1}, {1: 20, 1000: 1, 4000: 1}, 1)
FRAMES = Plan({4000: 20}, {4000: 1}, 5)
FRAMES_QUICK = Plan({4000: 10}, {4000: 1}, 1)


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds of CPU per delta by number of deltas."""

    mine: Mapping[int, float]
    other: Mapping[int, float]


async def measure(mine: Server, other: Server, plan: Plan) -> Costs:
    """Measure two running servers.

    Raises:
        ClientError: a client did not get the exact text.
    """
    found: tuple[dict[int, list[float]], dict[int, list[float]]] = ({}, {})
    for server in (mine, other):
        await cost(server, WARM_UP, 1)
    for number in range(plan.rounds):
        for size in plan.mine:
            for server, turns, costs in ((mine, plan.mine, found[0]), (other, plan.other, found[1])):
                if size in turns and not (number and server is other and size in plan.once):
                    costs.setdefault(size, []).append(await cost(server, size, turns[size]))
    medians = [{size: median(costs) for size, costs in by_size.items()} for by_size in found]
    return Costs(*medians)


async def cost(server: Server, size: int, turns: int) -> float:
    """Microseconds of CPU per delta in so many turns of `size` deltas, one after the other.

    Raises:
        ClientError: a client did not get the exact text.
    """
    before = server.cpu()
    for _ in range(turns):
        check_pieces(await watch(server.port, send(Order(size)), Watcher()), size)
    return (server.cpu() - before) / (size * turns) * US_PER_SECOND


def every_delta(costs: Costs) -> Report:
    """Each delta is an event."""
    report = _table("every-delta", "CPU per delta, coalescing off", costs)
    turn, *sizes = sorted(costs.mine)
    long, short = sizes[-1], sizes[0]
    report.checks.append(Check(f"{long} / {short}", ratio(costs.mine[long], costs.mine[short]), "at most", 1.2))
    for size, target in TARGETS.items():
        if size in costs.mine and size in costs.other:
            times = ratio(costs.other[size], costs.mine[size])
            report.checks.append(Check(f"theirs / ours, {size}", times, "at least", target))
    net = {size: costs.mine[size] - costs.mine[turn] / size for size in (short, long)}
    report.notes.append(
        f"without the cost of a turn of {turn} delta, {long} / {short}: {ratio(net[long], net[short]):.2f}"
    )
    return report


def frames(costs: Costs) -> Report:
    """Deltas are joined."""
    report = _table("frames", f"CPU per delta, frame {FRAME_MS:.0f} ms", costs)
    report.checks.append(Check("theirs / ours, 4000", ratio(costs.other[4000], costs.mine[4000]), "at least", 40))
    return report


def _table(name: str, title: str, costs: Costs) -> Report:
    report = Report(name, title, ("deltas", "ours us", "theirs us", "theirs/ours"))
    for size, mine in costs.mine.items():
        other = costs.other.get(size)
        report.rows.append((size, mine, "-", "-") if other is None else (size, mine, other, ratio(other, mine)))
    return report
