"""How much longer a user waits while six others send the worst bodies that they can.

Rule 1: the callers are two users, two guests with a link, and two who are anonymous. Each sends one body after the
        other, in an order of its own, as soon as it has the answer to the one before.
Rule 2: the bystander is a user of its own. Its requests are of every kind; each is measured from its first byte to the
        last of its answer. They come from a process of their own, so that they do not wait for the six.
Rule 3: a figure is the longest of its requests among the six, less the longest without them, on one server: one of its
        reads, one of its writes. More than GOAL is a fault if the machine was quiet (`bench/quiet.py`).
Rule 4: `hold_of_each` shows the cause: how long a request of another user waits while one body is served alone.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio
import httpx

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.wire import CANVAS
from bench.databases import databases
from bench.fuzz.worst_bodies import WorstBody, worst_bodies
from bench.servers import Checkout, end, script, shipped, start
from tests.free_port import free_port

REQUESTS = 1000
PAUSE = 0.02
"""Seconds between two requests of the bystander."""
SHOWN = 5
"""The slowest of the six callers' requests that are printed."""
TIMEOUT = 60.0
WRITES = frozenset({"put", "a turn", "a share", "a message of 100 KB"})
"""The kinds of requests that write; all others read."""
GOAL = 0.3
"""Seconds that a request may take longer among the six."""
PLACE = "crowded-place"
"""The context of ann's that guests have links to; each other caller has one of its own with this id."""
SCRIPT = '{"rules": [{"match": {"text": ""}, "rounds": [{"text": "Done."}]}]}'
KEYS = {name: new_key(name) for name in ("ann", "bob", "carol")}
CALLERS = ("ann", "bob", "editor", "reader", "anonymous", "anonymous")


@dataclass(frozen=True, slots=True)
class Waits:
    """The longest wait of the bystander, by kind of request, in seconds.

    Attributes:
        failed: requests with another answer than 200 or 201.
    """

    longest: Mapping[str, float]
    failed: tuple[str, ...] = ()

    def worst(self, *, writes: bool) -> float:
        """The longest of the writes, or of the reads; 0 if there was none."""
        return max((wait for kind, wait in self.longest.items() if (kind in WRITES) is writes), default=0.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Attributes:
        alone, among: the waits without and with the six callers.
        slowest: the longest of the six callers' requests, by their target, body and answer.
    """

    alone: Waits
    among: Waits
    slowest: Mapping[str, float]


def _requests(own: str) -> Iterator[tuple[str, str, str, Any]]:
    """Kind, method, path and body of the bystander's requests, in turn."""
    for number in range(10**9):
        operation = {"op": "put", "artifactId": "mine", "name": "mine.md", "text": f"Text {number}"}
        message = {"messageId": f"m{number}", "contextId": own, "role": "ROLE_USER", "parts": [{"text": "hi"}]}
        stored = message | {"metadata": {CANVAS: operation}, "messageId": f"p{number}"}
        large = message | {"messageId": f"l{number}", "parts": [{"raw": "AAAA" * 25_000, "mediaType": "image/png"}]}
        yield "health", "GET", "/healthz", None
        yield "list of contexts", "GET", "/artifacts", None
        yield "a context", "GET", f"/artifacts/{own}", None
        yield "list of tasks", "GET", f"/rest/tasks?contextId={own}&pageSize=5", None
        yield "put", "POST", "/rest/message:send", {"message": stored}
        yield "an artifact", "GET", f"/artifacts/{own}/mine", None
        yield "a turn", "POST", "/rest/message:send", {"message": message}
        yield "session", "GET", "/auth/session", None
        yield "a share", "POST", f"/artifacts/{own}/shares", {"user": f"user{number}", "level": "read"}
        if number % 5 == 0:
            yield "a message of 100 KB", "POST", "/rest/message:send", {"message": large}


def bystand(port: int, count: int, key: str) -> Waits:
    """Make the requests, and say how long they took."""
    headers = {"Authorization": f"Bearer {key}", "A2A-Version": "1.0"}
    longest: dict[str, float] = {}
    failed: list[str] = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=TIMEOUT, trust_env=False) as http:
        requests = _requests(str(uuid4()))
        for number, (kind, method, path, body) in zip(range(count + 10), requests, strict=False):
            begun = time.perf_counter()
            answer = http.request(method, path, json=body)
            seconds = time.perf_counter() - begun
            if number >= 10:
                longest[kind] = max(seconds, longest.get(kind, 0.0))
            if answer.status_code not in (200, 201) and number >= 10:
                failed.append(f"{kind}: {answer.status_code} {answer.text[:300]}")
            time.sleep(PAUSE)
    return Waits(longest, tuple(failed))


def _probe(port: int, key: str, answer: Any) -> None:
    """Ask for /auth/session all the time; at each message, answer with the longest wait since the last one."""
    longest = 0.0
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=TIMEOUT, trust_env=False) as http:
        while True:
            begun = time.perf_counter()
            http.get("/auth/session")
            longest = max(longest, time.perf_counter() - begun)
            if answer.poll(PAUSE / 4):
                if not answer.recv():
                    return
                answer.send(longest)
                longest = 0.0


def _child(port: int, count: int, key: str, answer: Any) -> None:
    answer.send(bystand(port, count, key))


async def _waits(port: int, count: int) -> Waits:
    mine, theirs = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_child, args=(port, count, KEYS["carol"], theirs))
    child.start()
    theirs.close()
    try:
        return await asyncio.to_thread(mine.recv)
    finally:
        child.join()


class Crowd:
    """The six callers of a server."""

    def __init__(self, port: int, rpc: int, seed: int) -> None:
        self._port, self._rpc, self._seed = port, rpc, seed
        self.slowest: dict[str, float] = {}
        self.answered = asyncio.Event()

    async def send(self, caller: str, number: int, token: str) -> None:
        """Send bodies until this is cancelled."""
        bodies = [*worst_bodies(PLACE)]
        random.Random(f"{self._seed}:{number}").shuffle(bodies)
        async with self.connected(token) as send:
            for body in cycle(bodies):
                begun = time.perf_counter()
                name = f"{_name(body)} {await send(body)}"
                self.slowest[name] = max(time.perf_counter() - begun, self.slowest.get(name, 0.0))
                self.answered.set()

    @asynccontextmanager
    async def connected(self, token: str) -> AsyncIterator[Callable[[WorstBody], Awaitable[str]]]:
        """What sends a body as the user of a token, and says how it was answered."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{self._port}", headers=headers, timeout=TIMEOUT, trust_env=False
            ) as http,
            grpc.aio.insecure_channel(f"127.0.0.1:{self._rpc}") as channel,
        ):
            yield lambda body: self._one(body, http, channel, token)

    async def _one(self, body: WorstBody, http: httpx.AsyncClient, channel: Any, token: str) -> str:
        if body.method == "gRPC":
            metadata = [("authorization", f"Bearer {token}")] if token else []
            try:
                await channel.unary_unary(body.target)(body.body, metadata=metadata, timeout=TIMEOUT)
                return "OK"
            except grpc.aio.AioRpcError as error:
                return error.code().name
        try:
            async with http.stream(body.method, body.target, content=body.body, headers=dict(body.headers)) as answer:
                async with asyncio.timeout(5):
                    with suppress(TimeoutError):
                        await answer.aread()
                return str(answer.status_code)
        except httpx.HTTPError as error:
            return type(error).__name__


@asynccontextmanager
async def _served() -> AsyncIterator[tuple[int, int]]:
    """A new server; its port, and its port for gRPC."""
    port, rpc = free_port(), free_port()
    environ = {"A2A_CANVAS_API_KEYS": ",".join(f"{name}={key}" for name, key in KEYS.items())}
    with script(SCRIPT) as path, databases("sqlite") as new, tempfile.TemporaryFile() as said:
        command = shipped(f"script:{path}", new(), "--grpc-port", str(rpc), "--allow-anonymous")
        process = await start(command, port, said, Checkout(environ=environ))
        try:
            yield port, rpc
        finally:
            await end(process, signal.SIGTERM)


async def measure(count: int = REQUESTS, seed: int = 1) -> Measured:
    """The bystander's waits without and with the six callers, on a new server."""
    async with _served() as (port, rpc):
        alone = await _waits(port, count)
        tokens = KEYS | await _links(port) | {"anonymous": ""}
        crowd = Crowd(port, rpc, seed)
        callers = [asyncio.create_task(crowd.send(name, n, tokens[name])) for n, name in enumerate(CALLERS)]
        try:
            await crowd.answered.wait()  # from here on, all six wait for an answer
            among = await _waits(port, count)
        finally:
            for each in callers:
                each.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
    return Measured(alone, among, crowd.slowest)


async def hold_of_each(bodies: Sequence[WorstBody]) -> Mapping[str, float]:
    """Of each body, sent alone, the seconds that a request of another user waited at most (rule 4)."""
    spawn = multiprocessing.get_context("spawn")
    held: dict[str, float] = {}
    async with _served() as (port, rpc):
        mine, theirs = spawn.Pipe()
        prober = spawn.Process(target=_probe, args=(port, KEYS["carol"], theirs))
        prober.start()
        try:
            crowd = Crowd(port, rpc, 0)
            async with crowd.connected(KEYS["ann"]) as send:
                for body in bodies:
                    mine.send(True)
                    await asyncio.to_thread(mine.recv)
                    name = f"{_name(body)} {await send(body)}"
                    mine.send(True)
                    held[name] = max(await asyncio.to_thread(mine.recv), held.get(name, 0.0))
        finally:
            mine.send(False)
            prober.join()
    return held


def _name(body: WorstBody) -> str:
    return f"{body.target.replace(PLACE, '…')} {body.name}"


async def _links(port: int) -> dict[str, str]:
    """The tokens of the guests of `PLACE`."""
    headers = {"Authorization": f"Bearer {KEYS['ann']}", "A2A-Version": "1.0"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False) as http:
        message = {"messageId": "first", "contextId": PLACE, "role": "ROLE_USER", "parts": [{"text": "hi"}]}
        (await http.post("/rest/message:send", json={"message": message})).raise_for_status()
        tokens = {}
        for guest, level in (("editor", "edit"), ("reader", "read")):
            made = await http.post(f"/artifacts/{PLACE}/shares", json={"link": True, "level": level})
            tokens[guest] = made.raise_for_status().json()["token"]
    return tokens


def report(found: Measured) -> None:
    """Print the waits, by kind, and the figure (rule 3)."""
    for kind, seconds in found.among.longest.items():
        print(f"{kind:24} {found.alone.longest.get(kind, 0):6.3f} s alone, {seconds:6.3f} s among them")
    for name, seconds in sorted(found.slowest.items(), key=lambda each: -each[1])[:SHOWN]:
        print(f"{seconds:8.3f} s {name}")
    for each in figures(found):
        print(each)


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the two figures (rule 3), in seconds.

    Attributes:
        what: "read" or "write".
    """

    what: str
    alone: float
    among: float

    @property
    def holds(self) -> bool:
        return self.among - self.alone <= GOAL

    def __str__(self) -> str:
        waits = f"{self.alone:.3f} s alone, {self.among:.3f} s among six others"
        return f"a bystander's longest {self.what}: {waits}: +{self.among - self.alone:.3f} s (goal +{GOAL} s)"


def figures(found: Measured) -> tuple[Figure, Figure]:
    """The figures of the reads and of the writes."""
    reads, writes = ((found.alone.worst(writes=writes), found.among.worst(writes=writes)) for writes in (False, True))
    return Figure("read", *reads), Figure("write", *writes)


def faults(found: Measured, busy: str) -> list[str]:
    """What is wrong in what was measured.

    Args:
        busy: why times say nothing (`quiet.py`); empty on a quiet machine.
    """
    failed = [f"a bystander's request failed: {each}" for each in found.among.failed[:3]]
    return failed if busy else failed + [str(each) for each in figures(found) if not each.holds]
