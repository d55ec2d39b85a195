"""`--only idle-streams`: the memory of a server for each stream that waits, and the CPU that waiting streams cost.

The streams subscribe to one task, which has asked a question and waits for the answer. They are in a process of their
own, `python -m bench.idle_streams PORT TASK STREAMS`, which prints a line once all have their snapshot, and ends when
its input does. Measured is by how much the server's resident memory has grown by then, since a few came and went.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench.client import Watcher, send, subscribe, watch
from bench.pace import Order
from bench.report import Check, Report
from bench.servers import MEMORY, SHIPPED_FRAME_MS, Server, ours, running, script

KILO = 1e3
MAX_KILOBYTES = 30
SPARE_FILES = 300
"""Files that a process needs beside its connections."""
AT_ONCE = 50
"""Streams that join at once: measured is that they wait, not that they join."""
ASKS = """\
rules:
  - match: {text: ".*"}
    rounds:
      - tools: [{name: ask_user, input: {question: "Which?"}}]
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """Streams that wait, and for how many seconds their CPU is measured."""

    streams: int
    seconds: float


FULL = Plan(10_000, 10)
QUICK = Plan(1000, 4)


async def run(plan: Plan) -> Report:
    """On a server in memory."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES
    plan, wanted = Plan(min(plan.streams, allowed), plan.seconds), plan.streams
    room = str(plan.streams + AT_ONCE)
    limits = ("--max-connections", room, "--max-streams", room)
    with script(ASKS) as path:
        async with running(ours(SHIPPED_FRAME_MS, path, MEMORY, *limits)) as server:
            before, after, cpu = await _measure(server, plan)
    table = report(plan, before, after, cpu)
    if plan.streams < wanted:
        table.notes.append(f"{wanted} streams need more open files than this system allows a process: {allowed}")
    return table


async def _measure(server: Server, plan: Plan) -> tuple[int, int, float]:
    """Bytes of resident memory before and with the streams, and seconds of CPU while they wait."""
    asking = await watch(server.port, send(Order(1)), Watcher())
    async with _waiting(server, asking.task_id, AT_ONCE):
        pass
    before = server.rss()
    async with _waiting(server, asking.task_id, plan.streams):
        after, begun = server.rss(), server.cpu()
        await asyncio.sleep(plan.seconds)
        return before, after, server.cpu() - begun


@asynccontextmanager
async def _waiting(server: Server, task_id: str, streams: int) -> AsyncIterator[None]:
    pipe = asyncio.subprocess.PIPE
    arguments = (str(server.port), task_id, str(streams))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.idle_streams", *arguments, stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if not await process.stdout.readline():
            raise RuntimeError("the streams could not be opened")
        yield
    finally:
        process.stdin.close()
        await process.wait()


def report(plan: Plan, before: int, after: int, cpu: float) -> Report:
    """The table and the target."""
    each = (after - before) / plan.streams / KILO
    columns = ("streams", "KB each", "RSS before MB", "with them MB", "% of a core")
    table = Report("idle-streams", f"{plan.streams} streams of a task that waits for an answer", columns)
    table.rows.append((plan.streams, each, before / 1e6, after / 1e6, 100 * cpu / plan.seconds))
    table.checks.append(Check("memory of a stream", each, "at most", MAX_KILOBYTES, "KB"))
    return table


async def _wait(port: int, task_id: str, streams: int) -> None:
    """Open the streams, say so, and keep them until the input ends."""
    opened, watchers = asyncio.Semaphore(AT_ONCE), [Watcher() for _ in range(streams)]

    async def open_one(watcher: Watcher) -> asyncio.Task[Watcher]:
        async with opened:
            waiting = asyncio.create_task(watch(port, subscribe(task_id), watcher))
            begun = asyncio.create_task(watcher.begun.wait())
            await asyncio.wait((waiting, begun), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
            return waiting

    streaming = await asyncio.gather(*(open_one(each) for each in watchers))
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for each in streaming:
        each.cancel()


if __name__ == "__main__":
    asyncio.run(_wait(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
