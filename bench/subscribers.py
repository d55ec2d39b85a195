"""`--only subscribers`: many subscribers of one running turn, and how long others wait for the server meanwhile.

The subscribers are in a process of their own, so that what they read does not delay who asks: `/healthz`, on a new
connection each time, one request after the other from when they join until the last one has the end. Most only read
bytes, to the end of the answer. A sample folds them, evenly among the others: each must have exactly the text, and the
time from when the model wrote a delta until its bytes were there is measured. One more subscriber reads nothing.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from bench import crowd
from bench.client import HOST, ClientError, Sleeper, Watcher, exchange, get_text, send, subscribe, watch
from bench.crowd import NS_PER_MS
from bench.databases import databases
from bench.pace import Order, StampReader
from bench.report import Check, Report, spread
from bench.servers import SHIPPED_FRAME_MS, Command, paced, running
from bench.sse import ByteReader, StreamError

PROBE_SECONDS = 0.02
MAX_P99_SECONDS = 0.5
MAX_AGE_P99_MS = 1000
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Plan:
    """Subscribers of one turn.

    Attributes:
        sample: how many of them fold what they read.
    """

    subscribers: int
    order: Order
    sample: int = 50


FULL = Plan(1000, Order(1000, 50))
QUICK = Plan(200, Order(150, 50))


@dataclass(slots=True)
class Read:
    """What a subscriber has.

    Attributes:
        text: None if it does not fold.
        ages: of the deltas that it got live, in milliseconds.
        fault: why its stream broke; empty if it did not.
    """

    text: str | None = None
    state: str = ""
    ages: list[float] = field(default_factory=list)
    size: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        waits: of each request to `/healthz`, in seconds.
        exact: subscribers with the whole stream, and with exactly the text if they fold it.
        faults: of the others.
        ages: of the deltas in the sample, in milliseconds.
        seconds: from the beginning of the turn until the last subscriber had its end.
        cpu: of the server, in seconds.
        megabytes: sent to those that only read bytes.
    """

    waits: list[float]
    exact: int
    faults: list[str]
    ages: list[float]
    seconds: float
    cpu: float
    megabytes: float


async def run(plan: Plan) -> Report:
    """On SQLite."""
    with databases("sqlite") as new:
        return report(plan, await measure(plan, paced(SHIPPED_FRAME_MS, new())))


async def measure(plan: Plan, command: Command) -> Result:
    """One turn.

    Raises:
        ClientError: its sender did not get the exact text.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as elsewhere:
        async with running(command) as server:
            await crowd.write(server.port, crowd.Crowd(1, Order(20, 100)))
            await asyncio.wrap_future(elsewhere.submit(read_all, 0, "", Plan(0, plan.order, 0)))  # it has begun
            writer, begun, cpu = Watcher(), time.monotonic(), server.cpu()
            writing = asyncio.create_task(watch(server.port, send(plan.order), writer))
            await writer.begun.wait()
            reading = elsewhere.submit(read_all, server.port, writer.task_id, plan)
            waits = await _probe(server.port, asyncio.wrap_future(reading))
            await writing
            seconds, cpu = time.monotonic() - begun, server.cpu() - cpu
            crowd.check(writer, plan.order)
            text = await get_text(server.port, writer.task_id)
    reads = reading.result()
    faults = [fault for read in reads if (fault := _fault(read, text))]
    ages = [age for read in reads for age in read.ages]
    sent = sum(read.size for read in reads) / 1e6
    return Result(waits, plan.subscribers - len(faults), faults, ages, seconds, cpu, sent)


async def _probe(port: int, done: asyncio.Future[list[Read]]) -> list[float]:
    waits: list[float] = []
    while not done.done():
        begun = time.monotonic()
        await exchange(port, HEALTH)
        waits.append(time.monotonic() - begun)
        await asyncio.wait((done,), timeout=PROBE_SECONDS)
    return waits


def read_all(port: int, task_id: str, plan: Plan) -> list[Read]:
    """Let the subscribers read a task to its end, all at once."""
    return asyncio.run(_read_all(port, task_id, plan))


async def _read_all(port: int, task_id: str, plan: Plan) -> list[Read]:
    if not plan.subscribers:
        return []
    asleep = Sleeper(port)
    await asleep.begin(subscribe(task_id))
    every = max(1, plan.subscribers // max(1, plan.sample))
    reads = (_fold if number % every == 0 else _only_read for number in range(plan.subscribers))
    try:
        return await asyncio.gather(*(read(port, task_id) for read in reads))
    finally:
        asleep.close()


async def _fold(port: int, task_id: str) -> Read:
    read, stamps = Read(), None

    def listen(text: str, at: int) -> None:
        nonlocal stamps
        stamps = stamps or StampReader(watcher.first)
        read.ages.extend((at - produced) / NS_PER_MS for produced in stamps.read(text))

    watcher = Watcher(listen)
    try:
        await watch(port, subscribe(task_id), watcher)
    except (ClientError, StreamError, OSError) as error:
        read.fault = f"{type(error).__name__} {error}"
    read.text, read.state = watcher.text, watcher.state
    return read


async def _only_read(port: int, task_id: str) -> Read:
    loop = asyncio.get_running_loop()
    try:
        _, reader = await loop.create_connection(lambda: ByteReader(subscribe(task_id)), HOST, port)
        return Read(size=await reader.ended)
    except (StreamError, OSError) as error:
        return Read(fault=f"{type(error).__name__} {error}")


def _fault(read: Read, text: str) -> str:
    """What is wrong with what a subscriber has; empty for nothing."""
    if read.fault or read.text is None:
        return read.fault
    exact = read.text == text and read.state.endswith("COMPLETED")
    return "" if exact else f"{read.state} with {len(read.text)} characters of {len(text)}"


def report(plan: Plan, result: Result) -> Report:
    """The table and the targets."""
    title = (
        f"{plan.subscribers} subscribers of one turn, {plan.order.rate:.0f} deltas a second, {plan.order.count} deltas"
    )
    p50, _, p99, longest = spread(result.waits)
    age = spread(result.ages)
    columns: Sequence[str] = (
        *("age p50 ms", "p90 ms", "p99 ms", "max ms", "probes", "/healthz p50 s", "p99 s", "max s"),
        *("until all had the end s", "CPU s", "MB read"),
    )
    row = (*age, len(result.waits), p50, p99, longest, result.seconds, result.cpu, result.megabytes)
    table = Report("subscribers", title, columns, [row])
    table.checks.append(Check("age p99", age[2], "at most", MAX_AGE_P99_MS, "ms"))
    table.checks.append(Check("/healthz p99", p99, "at most", MAX_P99_SECONDS, "s"))
    table.checks.append(Check("exact", result.exact, "at least", plan.subscribers))
    table.notes += [f"not exact: {fault}" for fault in result.faults[:3]]
    return table
