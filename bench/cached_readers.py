"""`--only cached-readers`: how many requests reach the server while many readers follow one artifact through nginx.

nginx has the configuration of docs/deploy.md. The readers share a link, and are in a process of their own. Each reads
the artifact from its beginning, which reaches the server, and then asks for what is next, again and again, until its
task is cancelled. Counted is what reaches the server from soon after the last reader has begun. Some of the readers
fold what they get: they must have exactly the text.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from a2a_canvas.server.accounts.api_key import new_key
from bench.client import HOST, exchange, post, request
from bench.databases import databases
from bench.nginx import Proxy, caching
from bench.pace import Order, StampReader
from bench.report import Cell, Check, Report, spread
from bench.servers import SHIPPED_FRAME_MS, Checkout, Server, paced, running

JOIN_RATE = 100
"""Readers that begin in a second."""
SAMPLE = 50
"""Readers that fold."""
LONG = 1_000_000
"""Deltas: more than are written until the task is cancelled."""
MAX_GROWTH = 1.2
MAX_RATE = 60
NS = 1e9

_NEXT = re.compile(rb"\r\nStream-Next-Offset: (\S+)", re.IGNORECASE)
_CURSOR = re.compile(rb"\r\nStream-Cursor: (\S+)", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many readers, one run after the other.

    Attributes:
        seconds: how long they are counted.
        settling: how long before, after the last one has begun: readers who have just begun ask for offsets of their
            own once or twice.
    """

    readers: Sequence[int]
    seconds: float
    settling: float
    rate: float = 50


FULL = Plan((100, 1000), 20, 10)
QUICK = Plan((20, 200), 4, 3)


@dataclass(frozen=True, slots=True)
class Followed:
    """What is read.

    Attributes:
        server, cancel: the port, and the request that cancels the task.
        settling, seconds: as in `Plan`.
    """

    url: str
    token: str
    server: int
    cancel: bytes
    settling: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Watched:
    """What the readers did.

    Attributes:
        begun: soon after the last one had its beginning, in seconds since 1970.
        ended: when the task was cancelled.
        requests: of all between these times.
        ages: of the deltas when a folding reader got them, in seconds.
        texts: of the folding readers, at their ends.
        faults: of the others.
    """

    begun: float
    ended: float
    requests: int
    ages: list[float]
    texts: list[str]
    faults: list[str]


@dataclass(frozen=True, slots=True)
class Result:
    """One run. `reached`: requests that reached the server, in a second."""

    readers: int
    watched: Watched
    reached: float
    exact: int
    cpu: float

    @property
    def seconds(self) -> float:
        return self.watched.ended - self.watched.begun


async def run(plan: Plan) -> Report:
    """On SQLite."""
    key = new_key("alice")
    keys = Checkout(environ={"A2A_CANVAS_API_KEYS": f"alice={key}", "A2A_CANVAS_LOG_LEVEL": "error"})
    spawn = multiprocessing.get_context("spawn")
    with databases("sqlite") as new, ProcessPoolExecutor(1, spawn) as elsewhere:
        async with running(paced(SHIPPED_FRAME_MS, new()), checkout=keys) as server, caching(server.port) as proxy:
            results = [await _measure(server, proxy, elsewhere, key, count, plan) for count in plan.readers]
    return report(plan, results)


async def _measure(
    server: Server, proxy: Proxy, elsewhere: ProcessPoolExecutor, key: str, readers: int, plan: Plan
) -> Result:
    context = str(uuid4())
    message = {"messageId": context, "role": "ROLE_USER", "parts": [{"text": str(Order(LONG, plan.rate))}]}
    params = {"message": message | {"contextId": context}, "configuration": {"returnImmediately": True}}
    task = (await exchange(server.port, _signed(request("SendMessage", params), key)))["result"]["task"]["id"]
    path = f"/artifacts/{context}/text/stream"
    shared = await exchange(server.port, _signed(post(f"/artifacts/{context}/shares", {"link": True}, ()), key))
    while "error" in await exchange(server.port, _signed(_get(f"{path}?offset=now"), key)):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    cpu, cancel = server.cpu(), _signed(request("CancelTask", {"id": task}), key)
    followed = Followed(f"{path}?task={quote(task)}", shared["token"], server.port, cancel, plan.settling, plan.seconds)
    watched = await asyncio.wrap_future(elsewhere.submit(read_all, proxy.port, followed, readers))
    cpu = server.cpu() - cpu
    passed = [each for each in proxy.passed() if path in each.uri and watched.begun < each.at < watched.ended]
    final = await exchange(server.port, _signed(_get(path.removesuffix("/stream")), key))
    text = "".join(part["text"] for part in final["parts"])
    exact = sum(each == text for each in watched.texts)
    return Result(readers, watched, len(passed) / (watched.ended - watched.begun), exact, cpu)


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()


def _signed(asked: bytes, token: str) -> bytes:
    """A request with a credential."""
    return asked.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1)


def read_all(port: int, followed: Followed, readers: int) -> Watched:
    """Let so many readers follow an artifact until its task has been cancelled."""
    return asyncio.run(_read_all(port, followed, readers))


async def _read_all(port: int, followed: Followed, readers: int) -> Watched:
    crowd = [_Reader(followed.url, followed.token, folds=number < SAMPLE) for number in range(readers)]
    loop = asyncio.get_running_loop()
    for reader in crowd:
        await loop.create_connection(lambda reader=reader: reader, HOST, port)  # type: ignore[misc]
        await asyncio.sleep(1 / JOIN_RATE)
        await crowd[0].begun.wait()  # until the link is known, only a few may try it
    for reader in crowd:
        await reader.begun.wait()
    await asyncio.sleep(followed.settling)
    begun = time.time()
    await asyncio.sleep(followed.seconds)
    ended = time.time()
    await exchange(followed.server, followed.cancel)
    await asyncio.gather(*(each.ended for each in crowd))
    requests = sum(begun < at < ended for each in crowd for at in each.times)
    ages = [age for each in crowd for at, age in each.ages if begun < at < ended]
    faults = [each.fault for each in crowd if each.fault]
    return Watched(begun, ended, requests, ages, ["".join(each.texts) for each in crowd if each.folds], faults)


@dataclass(eq=False)
class _Reader(asyncio.Protocol):
    """One reader, on one connection. `times`: of its answers, in seconds since 1970."""

    url: str
    token: str
    folds: bool
    times: list[float] = field(default_factory=list)
    ages: list[tuple[float, float]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    fault: str = ""
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self._stamps = StampReader()
        self._got = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask("offset=-1")

    def _ask(self, query: str) -> None:
        head = f"GET {self.url}&{query} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {self.token}\r\n\r\n"
        self._transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, separator, body = self._got.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not separator or len(body) < int(length[1] if length else 0):
            return
        self._got = b""
        if b" 20" not in head[:13]:
            self._end(f"{head[9:12].decode()} {body.decode()}")
            return
        self.times.append(time.time())
        self.begun.set()
        if self.folds and body:
            self._fold(json.loads(body))
        if b"stream-closed" in head.lower():
            self._end()
            return
        cursor, offset = _CURSOR.search(head), _NEXT.search(head)
        assert offset
        returned = f"cursor={cursor[1].decode()}&" if cursor else ""
        self._ask(f"{returned}live=long-poll&offset={offset[1].decode()}")

    def _fold(self, messages: list[dict[str, Any]]) -> None:
        now = time.monotonic_ns()
        for message in messages:
            parts = message.get("parts") or message.get("artifact", {}).get("parts", [])
            text = "".join(part["text"] for part in parts)
            if "artifact" in message:
                self.texts.clear()
                self._stamps = StampReader()
            self.texts.append(text)
            self.ages += [(self.times[-1], (now - each) / NS) for each in self._stamps.read(text)]

    def connection_lost(self, error: Exception | None) -> None:
        self._end("the connection was lost")

    def _end(self, fault: str = "") -> None:
        if not self.ended.done():
            self.fault = fault
            self.begun.set()
            self.ended.set_result(None)
            self._transport.close()


def report(plan: Plan, results: Sequence[Result]) -> Report:
    """The table and the targets."""
    columns = ("readers", "seconds", "requests/s", "reached the server/s", "age p50 s", "p99 s", "server CPU s")
    rows: list[Sequence[Cell]] = []
    for each in results:
        p50, _, p99, _ = spread(each.watched.ages)
        requests = each.watched.requests / each.seconds
        rows.append((each.readers, each.seconds, requests, each.reached, p50, p99, each.cpu))
    title = f"readers of one artifact through a cache, {plan.rate:.0f} deltas a second"
    table = Report("cached-readers", title, columns, rows)
    first, last = results[0], results[-1]
    table.checks.append(Check("growth", last.reached / first.reached, "at most", MAX_GROWTH))
    table.checks.append(Check("reached", max(each.reached for each in results), "at most", MAX_RATE, "a second"))
    exact = min(each.exact / len(each.watched.texts) for each in results)
    table.checks.append(Check("exact", exact, "at least", 1))
    faults = [fault for each in results for fault in each.watched.faults]
    table.checks.append(Check("faults", len(faults), "at most", 0))
    table.notes += [f"a reader ended with: {fault[:300]}" for fault in faults[:3]]
    table.notes.append(f"10,000 readers (derived): {last.reached * last.reached / first.reached:.1f} a second")
    return table
