"""`--only sleeper`: a client that never reads, compared with the same run and a client that reads.

Each run has a server of its own. The writer is the scripted model at full speed. Measured is the server's memory when
the task has ended and the sleeper has not read yet. Then the sleeper reads.

The text must be long: the kernel buffers more than a megabyte before the server has to wait. A Python process returns
little memory to the system, so whether the server has freed it shows in a second run on the same server: it must not
grow by more than in the second run with a client that reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.client import Sleeper, Watcher, check_pieces, send, subscribe, watch
from bench.pace import Order
from bench.report import Check, Report
from bench.servers import SHIPPED_FRAME_MS, Server, ours, running, script

MEGA = 1e6


@dataclass(frozen=True, slots=True)
class Case:
    """Pairs of runs. The default frame has the targets. Without coalescing much more is buffered for a sleeper, so
    memory that is not freed is larger than the allocator's noise."""

    frame_ms: float
    order: Order
    pairs: int


FULL = (Case(SHIPPED_FRAME_MS, Order(250000), 3), Case(0, Order(32000), 1))
QUICK = (Case(SHIPPED_FRAME_MS, Order(250000), 1),)


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        grown: MB by which the server grew until the task ended.
        again: MB by which it grew in a second run of the same kind.
        seconds: time of the first run's writer.
        kernel: MB for the sleeper in the kernel's buffers.
    """

    grown: float
    again: float
    seconds: float
    kernel: float


async def run(cases: Sequence[Case]) -> Report:
    """Pairs of runs, one after the other."""
    columns = ("frame ms", "deltas", "sleeper", "grown MB", "again MB", "seconds", "kernel MB")
    table = Report("sleeper", "a client that never reads", columns)
    with script() as path:
        for case in cases:
            pairs = [
                (await _fresh(case, path, asleep=False), await _fresh(case, path, asleep=True))
                for _ in range(case.pairs)
            ]
            _add(table, case, pairs)
    return table


async def _fresh(case: Case, path: Path, *, asleep: bool) -> Result:
    async with running(ours(case.frame_ms, path)) as server:
        await _write(server, Order(1000), asleep=False)
        return await one(server, case.order, asleep=asleep)


async def one(server: Server, order: Order, *, asleep: bool) -> Result:
    """One run, with or without a sleeper.

    Raises:
        ClientError: a reader did not get the exact text.
    """
    before = server.rss()
    seconds, kernel, ended = await _write(server, order, asleep=asleep)
    _, _, ended_again = await _write(server, order, asleep=asleep)
    return Result((ended - before) / MEGA, (ended_again - ended) / MEGA, seconds, kernel / MEGA)


async def _write(server: Server, order: Order, *, asleep: bool) -> tuple[float, int, int]:
    """Seconds of writing; bytes in the kernel and in the server's memory when the task has ended."""
    watcher = Watcher()
    begun = time.monotonic()
    writing = asyncio.create_task(watch(server.port, send(order), watcher))
    await watcher.begun.wait()
    sleeper = Sleeper(server.port)
    if asleep:
        await sleeper.begin(subscribe(watcher.task_id))
    await writing
    found = time.monotonic() - begun, server.unsent(), server.rss()
    check_pieces(watcher, order.count)
    if asleep:
        check_pieces(await sleeper.read(), order.count)
    sleeper.close()
    return found


def _add(table: Report, case: Case, pairs: Sequence[tuple[Result, Result]]) -> None:
    for number, asleep in enumerate(("no", "yes")):
        results = [pair[number] for pair in pairs]
        columns = ("grown", "again", "seconds", "kernel")
        medians = [median(getattr(result, name) for result in results) for name in columns]
        table.rows.append((case.frame_ms, case.order.count, asleep, *medians))
    more = median(asleep.grown - awake.grown for awake, asleep in pairs)
    kept = median(asleep.again - awake.again for awake, asleep in pairs)
    slower = median(asleep.seconds / awake.seconds for awake, asleep in pairs)
    name = f"{case.order.count} deltas, {case.frame_ms:.0f} ms"
    if case.frame_ms == SHIPPED_FRAME_MS:
        table.checks.append(Check(f"more memory, {name}", more, "at most", 5, "MB"))
        table.checks.append(Check(f"writer's time, {name}", slower, "at most", 1.25, "x"))
    else:
        table.checks.append(Check(f"kept, {name}", kept, "at most", 5, "MB"))
        table.notes.append(f"for information, {name}: {more:.3g} MB more, the writer took {slower:.3g} x the time")
