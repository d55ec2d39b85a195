"""`--only subscribers`: how long others wait for a server while many subscribers of one running turn read it.

The subscribers are in a process of their own, so that what they read does not delay who asks: `/healthz`, on a new
connection each time, one request after the other from when they join until the last one has the end. Each must have
exactly the text.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from bench import crowd
from bench.client import ClientError, Watcher, exchange, get_text, send, subscribe, watch
from bench.databases import databases
from bench.pace import Order
from bench.report import Check, Report, spread
from bench.servers import SHIPPED_FRAME_MS, paced, running
from bench.sse import StreamError

Read = tuple[str, str]
"""The text that a subscriber has, and the state; or an error, and empty."""

PROBE_SECONDS = 0.02
MAX_P99_SECONDS = 0.5
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Plan:
    """Subscribers of one turn."""

    subscribers: int
    order: Order


FULL = Plan(1000, Order(500, 50))
QUICK = Plan(200, Order(150, 50))


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        waits: of each request to `/healthz`, in seconds.
        exact: subscribers with exactly the text.
        faults: of the others.
        seconds: from the beginning of the turn until the last subscriber had its end.
        cpu: of the server, in seconds.
    """

    waits: list[float]
    exact: int
    faults: list[str]
    seconds: float
    cpu: float


async def run(plan: Plan) -> Report:
    """On SQLite."""
    with databases("sqlite") as new:
        return report(plan, await measure(plan, new()))


async def measure(plan: Plan, database: str) -> Result:
    """One turn.

    Raises:
        ClientError: its sender did not get the exact text.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as elsewhere:
        async with running(paced(SHIPPED_FRAME_MS, database)) as server:
            await crowd.write(server.port, crowd.Crowd(1, Order(20, 100)))
            await asyncio.wrap_future(elsewhere.submit(read_all, 0, "", 0))  # so that the process has begun
            writer, begun, cpu = Watcher(), time.monotonic(), server.cpu()
            writing = asyncio.create_task(watch(server.port, send(plan.order), writer))
            await writer.begun.wait()
            reading = elsewhere.submit(read_all, server.port, writer.task_id, plan.subscribers)
            waits = await _probe(server.port, asyncio.wrap_future(reading))
            await writing
            seconds, cpu = time.monotonic() - begun, server.cpu() - cpu
            crowd.check(writer, plan.order)
            text = await get_text(server.port, writer.task_id)
    faults = [fault for watched in reading.result() if (fault := _fault(watched, text))]
    return Result(waits, plan.subscribers - len(faults), faults, seconds, cpu)


async def _probe(port: int, done: asyncio.Future[list[Read]]) -> list[float]:
    waits: list[float] = []
    while not done.done():
        begun = time.monotonic()
        await exchange(port, HEALTH)
        waits.append(time.monotonic() - begun)
        await asyncio.wait((done,), timeout=PROBE_SECONDS)
    return waits


def read_all(port: int, task_id: str, subscribers: int) -> list[Read]:
    """Let so many subscribers read a task to its end, all at once."""
    return asyncio.run(_read_all(port, task_id, subscribers))


async def _read_all(port: int, task_id: str, subscribers: int) -> list[Read]:
    return await asyncio.gather(*(_read(port, task_id) for _ in range(subscribers)))


async def _read(port: int, task_id: str) -> Read:
    try:
        watcher = await watch(port, subscribe(task_id), Watcher())
    except (ClientError, StreamError, OSError) as error:
        return f"{type(error).__name__} {error}", ""
    return watcher.text, watcher.state


def _fault(read: Read, text: str) -> str:
    """What is wrong with what a subscriber has; empty for nothing."""
    have, state = read
    if not state:
        return have
    return "" if have == text and state.endswith("COMPLETED") else f"{state} with {len(have)} characters of {len(text)}"


def report(plan: Plan, result: Result) -> Report:
    """The table and the targets."""
    title = (
        f"{plan.subscribers} subscribers of one turn, {plan.order.rate:.0f} deltas a second, {plan.order.count} deltas"
    )
    p50, p90, p99, longest = spread(result.waits)
    columns: Sequence[str] = ("probes", "/healthz p50 s", "p90 s", "p99 s", "max s", "until all had the end s", "CPU s")
    row = (len(result.waits), p50, p90, p99, longest, result.seconds, result.cpu)
    table = Report("subscribers", title, columns, [row])
    table.checks.append(Check("/healthz p99", p99, "at most", MAX_P99_SECONDS, "s"))
    table.checks.append(Check("exact", result.exact, "at least", plan.subscribers))
    table.notes += [f"not exact: {fault}" for fault in result.faults[:3]]
    return table
