"""`make fuzz`: hostile requests against a real server, over every route and gRPC; the exit code is 1 for any fault.

Rule 1: a fault is a 5xx or an internal error that is not a retryable refusal, an answer that takes longer than
        `RESPONSE_TIMEOUT`, the text of an exception in an answer or in the log, what the sender of a request must not
        see (users.py), a task that fails with `INTERNAL_ERROR`, memory that is not freed (more than `MAX_LEAK` since
        the warm-up, plus `MAX_LEAK_PER_REQUEST` for every request, because its task is stored), a request of the victim
        that does not succeed (`tests/victims.py`), and a server that is not healthy, or does not stop, at the end.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

import grpc
import grpc.aio
import httpx

from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from bench.databases import databases, upgrade
from bench.fuzz.requests import SCRIPT, Request, request
from bench.fuzz.users import Accounts
from bench.servers import MEMORY, Checkout, Server, end, script, shipped, start
from tests.every_request import every_route
from tests.free_port import free_port
from tests.loopback import serving_app
from tests.open_id_provider import Provider
from tests.victims import VICTIM, Victim

RESPONSE_TIMEOUT = 20.0
STREAM_SECONDS = 0.5
"""How long an answer that may be endless is read."""
VICTIMS = "127.0.0.2"
"""Where victims sign in. At the address of the attacker, wrong credentials slow new ones down (`attempts.py`)."""
CONCURRENCY = 8
MAX_LEAK = 128 * 2**20
MAX_LEAK_PER_REQUEST = 16 * 2**10

ERROR_TRACES = (
    "Traceback",
    'File "/',
    "object at 0x",
    "sqlalchemy",
    "asyncpg",
    "KeyError",
    "IndexError",
    "ValueError",
    "TypeError",
)


@dataclass(slots=True)
class Result:
    """The result of a run."""

    seed: int
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    slowest: float = 0.0
    grown: int = 0
    followed: float = 0.0
    """The longest wait of the victim."""


class Fuzzer:
    """Sends the requests of a seed to a server."""

    def __init__(
        self,
        server: Server,
        http: httpx.AsyncClient,
        http_of_victims: httpx.AsyncClient,
        channel: grpc.aio.Channel,
        seed: int,
        accounts: Accounts,
        provider: Provider,
    ) -> None:
        self._accounts = accounts
        self._server = server
        self._http = http
        self._channel = channel
        self._victims = [
            Victim(http_of_victims, accounts.credentials, provider=provider, channel=channel)
            for _ in range(CONCURRENCY)
        ]
        self.result = Result(seed)

    async def run(self, count: int) -> None:
        """Send them, `CONCURRENCY` at a time; the first tenth is the warm-up."""
        await self._accounts.prepare(self._http)
        for victim in self._victims:
            await victim.begin()
        begun, warm = time.monotonic(), count // 10
        await self._some(iter(range(warm)))
        before = self._server.rss()
        await self._some(iter(range(warm, count)))
        self.result.seconds = time.monotonic() - begun
        self.result.grown = self._server.rss() - before
        self.result.followed = max(victim.slowest for victim in self._victims)
        if self.result.grown > MAX_LEAK + MAX_LEAK_PER_REQUEST * count:
            self.result.faults.append(f"memory: {self.result.grown / 2**20:.0f} MB are kept")
        for user in await self._accounts.changed(self._http):
            self.result.faults.append(f"what {user} has was changed by somebody else")
        if (await self._http.get("/healthz", timeout=2)).status_code != 200:
            self.result.faults.append("/healthz is not 200")

    async def _some(self, numbers: Any) -> None:
        async def work(victim: Victim) -> None:
            for number in numbers:
                await self._one(number)
                if fault := await victim.next_fault():
                    self.result.faults.append(f"seed {self.result.seed}, after request {number}: {fault}")

        await asyncio.gather(*map(work, self._victims))

    async def _one(self, number: int) -> None:
        asked, begun = request(self.result.seed, number), time.monotonic()
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                answer, text, judged = await (self._call(asked) if asked.kind == "gRPC" else self._ask(asked))
        except (TimeoutError, httpx.HTTPError) as error:
            answer, text = f"{type(error).__name__}, or no answer within {RESPONSE_TIMEOUT:g} s", ""
            judged = ""
        if asked.kind != "worst":
            self.result.slowest = max(self.result.slowest, time.monotonic() - begun)
        self.result.answers[f"{asked.kind} {answer}"] += 1
        leaks = self._accounts.leaks(asked.sender, text)
        if leaks or _is_fault(answer, judged):
            again = f"seed {self.result.seed}, request {number}: {asked}"
            seen = f" {asked.sender} sees {', '.join(leaks)}:" if leaks else ""
            self.result.faults.append(f"{answer}:{seen} {text[:600]!r}\n    {again}")

    async def _ask(self, asked: Request) -> tuple[str, str, str]:
        """How it was answered, all of the answer with its headers, and what of it is looked at for errors."""
        target = f"http://127.0.0.1:{self._server.port}{self._accounts.filled(asked.target)}".encode()
        credentials = [("Authorization", self._accounts.filled(each)) for each in asked.credentials]
        headers = [*((name, self._accounts.filled(value)) for name, value in asked.headers.items()), *credentials]
        url, body = self._accounts.with_tasks(target).decode(), self._accounts.with_tasks(asked.body)
        async with self._http.stream(asked.method, url, headers=headers, content=body) as response:
            endless = "event-stream" in response.headers.get("content-type", "")
            text = (
                await _read_for_a_while(response.aiter_text())
                if endless
                else (await response.aread()).decode(errors="replace")
            )
            retry = " retryable" if "retry-after" in response.headers else ""
            # A page and a script may have any word in them.
            judged = text if "html" not in response.headers.get("content-type", "") else ""
            return f"{response.status_code}{retry}", f"{response.headers.multi_items()}\n{text}", judged

    async def _call(self, asked: Request) -> tuple[str, str, str]:
        answer, text = await self._call_grpc(asked)
        return answer, text, text

    async def _call_grpc(self, asked: Request) -> tuple[str, str]:
        channel: Any = self._channel  # without a serializer it takes bytes
        body = self._accounts.with_tasks(asked.body)
        metadata = [("authorization", self._accounts.filled(each)) for each in asked.credentials]
        try:
            if "Stream" in asked.target or "Subscri" in asked.target:
                with ExitStack() as stack:
                    stream = channel.unary_stream(asked.target)(body, metadata=metadata)
                    stack.callback(stream.cancel)
                    pieces = _read(stream)
                    return "OK", await anext(pieces, "") + await _read_for_a_while(pieces)
            answer = await channel.unary_unary(asked.target)(body, metadata=metadata)
            return "OK", answer.decode(errors="replace")
        except grpc.aio.AioRpcError as error:
            return error.code().name, f"{error.details() or ''} {list(error.trailing_metadata() or ())}"


async def _read(stream: Any) -> AsyncGenerator[str]:
    while (piece := await stream.read()) is not grpc.aio.EOF:
        yield piece.decode(errors="replace")


async def _read_for_a_while(answer: AsyncIterator[str]) -> str:
    """The part of an answer that is sent within `STREAM_SECONDS`."""
    pieces: list[str] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(STREAM_SECONDS):
            async for piece in answer:
                pieces.append(piece)
    return "".join(pieces)


def _is_fault(answer: str, text: str) -> bool:
    if answer.startswith("5") and answer != "503 retryable":
        return True
    refused = '"code": -32603' in text or '"code":-32603' in text
    internal = refused and "Internal error" in text
    silent = "no answer" in answer or answer in ("INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED")
    return internal or silent or any(trace in text for trace in (*ERROR_TRACES, INTERNAL_ERROR))


async def fuzz(count: int, database: str, seed: int) -> Result:
    """A run against a new server."""
    with databases(cast(Any, database)) if database != MEMORY else nullcontext(lambda: MEMORY) as new:
        url = await upgrade(new()) if database == "postgresql" else new()
        return await _against(url, count, seed)


def _client(port: int, address: str) -> httpx.AsyncClient:
    """A client of the server, from this address."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", transport=transport, timeout=RESPONSE_TIMEOUT)


async def _against(url: str, count: int, seed: int) -> Result:
    port, rpc, accounts = free_port(), free_port(), Accounts.new(urlsplit(url).password or "")
    provider = Provider(user=VICTIM)
    async with serving_app(provider.app) as issuer:
        with script(SCRIPT) as path, tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory() as folder:
            environ = {**accounts.environ, **as_environment(every_route(Path(folder), issuer))}
            command = shipped(
                f"script:{path}", url, "--grpc-port", str(rpc), "--log-level", "debug", "--push-allow", "127.0.0.1"
            )
            process = await start(command, port, said, Checkout(environ=environ))
            try:
                client, of_victims = _client(port, "127.0.0.1"), _client(port, VICTIMS)
                async with client, of_victims, grpc.aio.insecure_channel(f"127.0.0.1:{rpc}") as channel:
                    fuzzer = Fuzzer(Server(port, process.pid), client, of_victims, channel, seed, accounts, provider)
                    await fuzzer.run(count)
            finally:
                await end(process, signal.SIGTERM)
            log = log_of(said)
            fuzzer.result.faults += faults_of_end(process.returncode, log, "Traceback", "ERROR")
            for secret in accounts.logged(log):
                fuzzer.result.faults.append(f"the log has {secret}: {_around(secret, log)!r}")
            return fuzzer.result


def log_of(said: IO[bytes]) -> str:
    """All that a server has said."""
    said.seek(0)
    return said.read().decode(errors="replace")


def faults_of_end(code: int | None, log: str, *signs: str) -> list[str]:
    """The faults of a server that SIGTERM has ended: its exit code, and its log around the first sign of a fault."""
    faults = [f"SIGTERM: ended with {code}"] if code != 0 else []
    if found := [log.index(sign) for sign in signs if sign in log]:
        faults.append(f"the log:\n{log[max(0, min(found) - 300) : min(found) + 3000]}")
    return faults


def as_environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as variables of the environment."""
    return {f"A2A_CANVAS_{name.upper()}": str(value) for name, value in settings.items()}


def _around(found: str, text: str) -> str:
    at = text.index(found)
    return text[max(0, at - 300) : at + 300]
