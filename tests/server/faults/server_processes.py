"""Servers as processes of their own, `python -m a2a_canvas serve`, to be killed, stopped and continued by their id.

Rule 1: every wait has an end: of a process, of a line in its log, of an answer, of the next event of a stream.
Rule 2: whatever was done to a server, it has no trace of an exception in its log.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.metrics import NAMESPACE
from tests.free_port import free_port
from tests.server.faults.fault_scripts import Json, script
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.sse_client import EXTENSIONS, Refused, Stream, envelope

ROOT = Path(__file__).parents[3]
PATIENCE = 30.0
"""Seconds that anything may take; more than twice what the slowest takes on a busy machine."""
POLL = 0.02
"""Seconds between two looks at what nobody tells of."""


class ServerProcess:
    """A server that runs.

    Attributes:
        log: the lines that it has said so far.
    """

    def __init__(self, port: int, grpc_port: int, process: asyncio.subprocess.Process, opened: AsyncExitStack) -> None:
        self.port = port
        self.grpc = f"127.0.0.1:{grpc_port}"
        self.http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE)
        opened.push_async_callback(self.http.aclose)
        self._opened = opened
        self.process = process
        self.log: list[str] = []
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    # ---------------------------------------------------------------------- the process

    async def _read(self) -> None:
        assert self.process.stdout
        async for line in self.process.stdout:
            await self._note(line.decode(errors="replace").rstrip())
        await self._note("")

    async def _note(self, line: str) -> None:
        async with self._news:
            self.log.append(line)
            self._news.notify_all()

    async def says(self, words: str) -> None:
        """Wait for a line of the log."""
        async with asyncio.timeout(PATIENCE), self._news:
            while not any(words in line for line in self.log):
                assert self.log[-1:] != [""], "\n".join(self.log)
                await self._news.wait()

    async def ended(self) -> int:
        """Wait for its end; the exit code."""
        async with asyncio.timeout(PATIENCE):
            await self._reading
            return await self.process.wait()

    async def kill(self) -> None:
        """`kill -9`."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.ended()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """It stands still, as a process does whose machine has no time for it."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    # ---------------------------------------------------------------------- its clients

    async def call(self, method: str, params: Json) -> Json:
        """The result of a JSON-RPC call.

        Raises:
            Refused: the answer is an error.
        """
        headers = {"A2A-Version": "1.0", "A2A-Extensions": EXTENSIONS}
        answer = (await self.http.post("/", json=envelope(method, params), headers=headers)).json()
        if error := answer.get("error"):
            raise Refused(error)
        result: Json = answer["result"]
        return result

    async def task(self, task_id: str) -> Json:
        return await self.call("GetTask", {"id": task_id})

    async def metric(self, sample: str) -> float:
        """The value of a sample, such as `commit_failures_total`; 0 if there is none."""
        lines = (await self.http.get("/metrics")).text.splitlines()
        return next(
            (float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{NAMESPACE}_{sample} ")), 0.0
        )

    async def get(self, path: str) -> Json:
        answer: Json = (await self.http.get(path)).raise_for_status().json()
        return answer

    @asynccontextmanager
    async def stream(self, method: str, params: Json, told: ObservedTask) -> AsyncIterator[Stream]:
        """The events of a streaming call; `told` is told of each."""
        headers = {"A2A-Version": "1.0", "A2A-Extensions": EXTENSIONS}
        asked = self.http.stream("POST", "/", json=envelope(method, params), headers=headers)
        async with asked as response:
            yield Stream(response, told)

    def sends(self, text: str, told: ObservedTask) -> AbstractAsyncContextManager[Stream]:
        """A message, and the stream that answers it."""
        return self.stream("SendStreamingMessage", {"message": message(text)}, told)

    def joins(self, told: ObservedTask) -> AbstractAsyncContextManager[Stream]:
        """The stream of a task that was begun before."""
        return self.stream("SubscribeToTask", {"id": told.task_id}, told)

    def sdk(self, binding: str = "JSONRPC") -> Client:
        """The SDK's client."""
        url = {"JSONRPC": f"http://127.0.0.1:{self.port}/", "GRPC": self.grpc}[binding]
        card = pb.AgentCard(name="canvas", capabilities=pb.AgentCapabilities(streaming=True))
        card.supported_interfaces.add(url=url, protocol_binding=binding, protocol_version="1.0")
        http = httpx.AsyncClient(trust_env=False, timeout=PATIENCE)
        self._opened.push_async_callback(http.aclose)
        config = ClientConfig(
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[binding],
        )
        return ClientFactory(config).create(card)


def message(
    text: str, *, message_id: str = "", context: str = "", task: str = "", operation: Json | None = None
) -> Json:
    """A user's message. `operation`: of `canvas:v1`."""
    said: Json = {"messageId": message_id or str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
    ids = {"contextId": context, "taskId": task}
    metadata = {"metadata": {"urn:a2a-canvas:canvas:v1": operation}} if operation else {}
    return said | {name: value for name, value in ids.items() if value} | metadata


class ServerGroup:
    """Starts servers on one database.

    Args:
        model: what `--model` says.
        environment: what the servers find in theirs beside that of the tests.
    """

    def __init__(self, database: str, model: str, environment: Mapping[str, str] | None = None) -> None:
        self.servers: list[ServerProcess] = []
        self._options = ("--model", model, "--database", database)
        self._environment = environment or {}
        self._opened = AsyncExitStack()

    async def start(self, *options: str, port: int = 0) -> ServerProcess:
        """A server that serves."""
        server = await self.begin(*options, port=port)
        await server.says(" listens on ")
        return server

    async def several(self, count: int) -> list[ServerProcess]:
        """As many servers that live; those that are missing are started."""
        living = [server for server in self.servers if server.process.returncode is None][:count]
        return [*living, *await asyncio.gather(*(self.start() for _ in range(count - len(living))))]

    async def begin(self, *options: str, port: int = 0) -> ServerProcess:
        """A server that may not come to serve.

        Args:
            port: for one in the place of another that has ended; a free one if not given.
        """
        port, grpc_port = port or free_port(), free_port()
        ports = ("--port", str(port), "--grpc-port", str(grpc_port))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "a2a_canvas", "serve", *ports, *self._options, *options),
            cwd=ROOT,
            env=os.environ | self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        server = ServerProcess(port, grpc_port, process, self._opened)
        self.servers.append(server)
        return server

    async def end(self) -> None:
        """Kill what still runs."""
        for server in self.servers:
            await server.kill()
        await self._opened.aclose()


@asynccontextmanager
async def server_group(database: str, folder: Path, model: str = "", **environment: str) -> AsyncIterator[ServerGroup]:
    """Servers with a scripted model (`fault_scripts.py`), unless another is named; all are killed at the end."""
    started = ServerGroup(database, model or f"script:{script(folder)}", environment)
    try:
        yield started
    finally:
        await started.end()
    traces = [line for server in started.servers for line in server.log if "Traceback" in line]
    assert not traces, "\n".join(line for server in started.servers for line in server.log)


async def eventually(holds: Callable[[], Awaitable[Any]]) -> None:
    """Wait for something that nobody tells of: what is in a database, what another process is about."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if await holds():
                return
            await asyncio.sleep(POLL)
