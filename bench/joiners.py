"""`--only joiners`: subscribers join one task at random moments; each must get exactly its text, whatever it missed.

The pieces are time stamps, so gaps and repeats show. Every other subscriber of ours activates `turn:v1` and gets the
`generation` of every event: generations never decrease, and no two changes of the artifact share one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench import crowd
from bench.client import ClientError, Watcher, send, subscribe, watch
from bench.crowd import Crowd
from bench.pace import SIZE, Order, StampReader
from bench.report import Check, Report
from bench.servers import SHIPPED_FRAME_MS, Server, paced, running, theirs
from bench.sse import StreamError

FRAMES_MS = (SHIPPED_FRAME_MS, 0.0)
Seen = Callable[[int, int], None]
"""Called with each stamp that arrives, and the monotonic time in nanoseconds at which it did."""
LATEST = 0.9
"""Subscribers join in this first share of the task's time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Subscribers of one task."""

    subscribers: int
    order: Order


FULL = Plan(100, Order(300, 100))
QUICK = Plan(100, Order(100, 100))


@dataclass(frozen=True, slots=True)
class Result:
    """How many subscribers got the exact text, the faults of the others, and the pieces written when each joined."""

    exact: int
    faults: list[str]
    joined: list[int]

    @property
    def range(self) -> str:
        return f"{min(self.joined)}…{max(self.joined)}"


async def run(plan: Plan, frames_ms: Sequence[float] = FRAMES_MS) -> Report:
    """Ours with and without coalescing, and the baseline."""
    results: dict[str, Result] = {}
    for frame in frames_ms:
        async with running(paced(frame)) as server:
            results[f"ours, {frame:.0f} ms"] = await join(server, plan, turn=True)
    async with running(theirs) as server:
        results["theirs"] = await join(server, plan, turn=False)
    return report(plan, results)


async def join(
    server: Server,
    plan: Plan,
    *,
    turn: bool,
    elsewhere: Server | None = None,
    wrote: Seen | None = None,
    read: Seen | None = None,
) -> Result:
    """Write one task and let the subscribers join.

    Args:
        turn: every other subscriber activates `turn:v1`.
        elsewhere: the server that they subscribe to, if it is not the one that runs the task.
        wrote: called with every stamp that the sender of the task gets.
        read: called with every stamp that a subscriber gets live.

    Raises:
        ClientError: the sender of the task did not get the exact text.
    """
    await crowd.write(server.port, Crowd(1, Order(20, 100)))
    writer = _watcher(wrote)
    writing = asyncio.create_task(watch(server.port, send(plan.order), writer))
    await writer.begun.wait()
    whole = plan.order.count / plan.order.rate
    moments = random.Random(5)
    late = [moments.uniform(0, LATEST * whole) for _ in range(plan.subscribers)]
    readers = [_Reader(turn=turn and number % 2 == 0, read=read) for number in range(plan.subscribers)]
    port = (elsewhere or server).port
    joining = (reader.join(port, writer.task_id, after) for reader, after in zip(readers, late, strict=True))
    faults = await asyncio.gather(*joining)
    await writing
    crowd.check(writer, plan.order)
    faults = [fault or reader.fault(writer.text) for fault, reader in zip(faults, readers, strict=True)]
    return Result(faults.count(""), [fault for fault in faults if fault], [reader.joined for reader in readers])


def _watcher(seen: Seen | None) -> Watcher:
    reader: StampReader | None = None

    def listen(text: str, at: int) -> None:
        nonlocal reader
        if seen:
            reader = reader or StampReader(watcher.first)
            for stamp in reader.read(text):
                seen(stamp, at)

    watcher = Watcher(listen)
    return watcher


class _Reader:
    def __init__(self, *, turn: bool, read: Seen | None) -> None:
        self._turn = turn
        self._watcher = _watcher(read)

    @property
    def joined(self) -> int:
        return self._watcher.first // SIZE

    async def join(self, port: int, task_id: str, after: float) -> str:
        await asyncio.sleep(after)
        try:
            await watch(port, subscribe(task_id, turn=self._turn), self._watcher)
        except (ClientError, StreamError, OSError) as error:
            return str(error) or type(error).__name__
        return ""

    def fault(self, text: str) -> str:
        """What is wrong with the events received; empty for nothing."""
        if self._watcher.text != text:
            return f"has {len(self._watcher.text)} characters of {len(text)}"
        if not self._watcher.state.endswith("COMPLETED"):
            return f"ends {self._watcher.state}"
        return self._disorder() if self._turn else ""

    def _disorder(self) -> str:
        every, changes = self._watcher.generations, self._watcher.changes
        if len(every) != self._watcher.events:
            return f"{self._watcher.events - len(every)} events without a generation"
        in_order = every == sorted(every) and changes == sorted(set(changes)) and every[0] not in changes
        return "" if in_order else "generations out of order"


def report(plan: Plan, results: Mapping[str, Result]) -> Report:
    """The table; the baseline has no target."""
    title = f"{plan.subscribers} subscribers join one task of {plan.order.count} deltas at random"
    table = Report("joiners", title, ("server", "exact", "joined at", "others, for example"))
    for name, result in results.items():
        table.rows.append((name, result.exact, result.range, (result.faults or ["-"])[0][:60]))
        if name != "theirs":
            table.checks.append(Check(f"exact, {name}", result.exact, "at least", plan.subscribers))
    return table
