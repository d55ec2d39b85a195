"""The whole application on loopback, and the SDK's client for each of its six ways in.

The model is a script. Its delays are gates: the test decides when the next delta comes, so nothing ever sleeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import grpc
import grpc.aio
import httpx
import pytest
import uvicorn
from a2a.client import Client, ClientCallContext, ClientConfig, ClientFactory, client_factory
from a2a.compat.v0_3.grpc_transport import CompatGrpcTransport
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.agent.model import LLM, ModelEvent, ModelRequest
from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.app import create_app
from a2a_canvas.server.assembly.engine import Clock
from a2a_canvas.server.protocols.edge.shutdown import GracefulServer
from a2a_canvas.server.settings.settings import Settings
from tests.free_port import free_port
from tests.loopback import listening

# Where the SDK's server is imported before its client, the client lacks this, and speaks 1.0 to gRPC of 0.3.
vars(client_factory)["CompatGrpcTransport"] = CompatGrpcTransport

SCRIPT = Path(__file__).parent / "scripts" / "app.yaml"
TURN = "urn:a2a-canvas:turn:v1"
WAYS = [(binding, version) for binding in ("JSONRPC", "HTTP+JSON", "GRPC") for version in ("1.0", "0.3")]
HTTP = [way for way in WAYS if way[0] != "GRPC"]
Way = tuple[str, str]
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)
SERVER_STOPPED = "The server was stopped before the task was done. Send it again."


def agent_options(folder: Path, script: str, tools: str, keys: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `serving` for an agent with tools and users, whose files are written into a folder."""
    (folder / "script.yaml").write_text(script)
    (folder / "tools.py").write_text(tools)
    return {
        "script": folder / "script.yaml",
        "tools": (folder / "tools.py",),
        "api_keys": ",".join(f"{name}={key}" for name, key in keys.items()),
    }


class Gate:
    """Stands for time in a script: every delta after a round's first one waits until it is let pass.

    Attributes:
        reached: set while a delta waits.
    """

    def __init__(self) -> None:
        self.close()

    def close(self) -> None:
        self.reached = asyncio.Event()
        self._passes = asyncio.Semaphore(0)
        self._open = False

    async def sleep(self, seconds: float) -> None:
        if not seconds or self._open:
            await asyncio.sleep(0)
            return
        if self._passes.locked():
            self.reached.set()
        await self._passes.acquire()

    def let(self, deltas: int) -> None:
        self.reached.clear()
        for _ in range(deltas):
            self._passes.release()

    def open(self) -> None:
        self._open = True
        self.let(1)


class WatchedModel:
    """An `LLM` around another one that remembers what it was asked and knows whether it is speaking."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self.requests: list[ModelRequest] = []
        self.speaking = 0

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def thinking(self) -> Literal["delta", "accumulated"]:
        return self._llm.thinking

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        self.speaking += 1
        try:
            async with aclosing(self._llm.stream(request)) as events:
                async for event in events:
                    yield event
        finally:
            self.speaking -= 1


@dataclass(frozen=True)
class Served:
    url: str
    grpc: str
    model: WatchedModel
    gate: Gate
    http: httpx.AsyncClient
    sdk_http: httpx.AsyncClient

    def client(self, binding: str = "JSONRPC", version: str = "1.0", *, streaming: bool = True) -> Client:
        """The SDK's client, for a card that offers only this way in."""
        url = {"JSONRPC": self.url + "/", "HTTP+JSON": self.url + "/rest", "GRPC": self.grpc}[binding]
        card = pb.AgentCard(name="canvas", capabilities=pb.AgentCapabilities(streaming=True, extended_agent_card=True))
        card.supported_interfaces.add(url=url, protocol_binding=binding, protocol_version=version)
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self.sdk_http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[binding],
        )
        return ClientFactory(config).create(card)

    async def rpc(self, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
        """A JSON-RPC answer, 1.0 unless the headers say otherwise."""
        response = await self.http.post("/", json=envelope(method, params), headers={"A2A-Version": "1.0", **headers})
        assert response.status_code == 200
        answer: dict[str, Any] = response.json()
        return answer


@asynccontextmanager
async def serving(
    script: Path | str = SCRIPT,
    *,
    model: LLM | None = None,
    grpc: bool = True,
    clock: Clock | None = None,
    loop: Any = None,
    **settings: Any,
) -> AsyncIterator[Served]:
    """The application as `serve` runs it, without frames unless told otherwise.

    Args:
        model: in place of one that plays `script`.
        clock: in place of the time of day.
        loop: the agent's own.
    """
    async with stoppable(script, model=model, grpc=grpc, clock=clock, loop=loop, **settings) as (_, _, served):
        yield served


@asynccontextmanager
async def stoppable(
    script: Path | str = SCRIPT,
    *,
    model: LLM | None = None,
    grpc: bool = True,
    clock: Clock | None = None,
    loop: Any = None,
    **settings: Any,
) -> AsyncIterator[tuple[GracefulServer, asyncio.Task[None], Served]]:
    """The same with its server, which stops when its `should_exit` is set, and the task that it runs in."""
    gate = Gate()
    watched = WatchedModel(model or ScriptedModel(script, sleep=gate.sleep))
    with listening(settings.get("port", 0)) as (listener, port):
        grpc_port = free_port() if grpc else None
        configured = Settings(**{"port": port, "grpc_port": grpc_port, "frame_ms": 0} | settings)
        app = create_app(configured, watched, clock, loop=loop)
        config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=5, lifespan="on")
        server = GracefulServer(config, app.state.shutdown)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            async with clients(port, grpc_port, watched, gate) as served:
                # The socket accepts from the first moment; an answer says that start-up is over.
                assert (await served.http.get("/healthz")).status_code == 200
                yield server, running, served
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def clients(port: int, grpc_port: int | None, model: WatchedModel, gate: Gate) -> AsyncIterator[Served]:
    """The clients of a server that runs. The SDK has one of its own: its factory adds a header to it."""
    url = f"http://127.0.0.1:{port}"
    async with (
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as sdk_http,
    ):
        yield Served(url, f"127.0.0.1:{grpc_port}", model, gate, http, sdk_http)


# ----------------------------------------------------------------------------- asking


def asking(text: str = "", *, message_id: str = "", context: str = "", task: str = "", now: bool = False) -> Any:
    """A `SendMessageRequest`. `now`: return immediately."""
    message = pb.Message(message_id=message_id or str(uuid4()), role=pb.ROLE_USER, context_id=context, task_id=task)
    message.parts.add(text=text)
    configuration = pb.SendMessageConfiguration(return_immediately=now)
    return pb.SendMessageRequest(message=message, configuration=configuration)


def with_turn_events() -> ClientCallContext:
    return ClientCallContext(service_parameters={"A2A-Extensions": TURN})


def envelope(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def sent(served: Served, way: tuple[str, str], request: Any) -> pb.Task:
    """The task that a message without streaming is answered with."""
    events = [event async for event in served.client(*way, streaming=False).send_message(request)]
    assert len(events) == 1
    return events[0].task


class Stream:
    """A stream of events, read step by step and folded as a stock client folds it."""

    def __init__(self, events: AsyncIterator[pb.StreamResponse]) -> None:
        self._events = events
        self.seen: list[pb.StreamResponse] = []
        self.task = pb.Task()

    async def next(self) -> pb.StreamResponse:
        event = await anext(self._events)
        self.seen.append(event)
        match event.WhichOneof("payload"):
            case "task":
                self.task.CopyFrom(event.task)
            case "status_update":
                self.task.status.CopyFrom(event.status_update.status)
            case "artifact_update":
                append_artifact_to_task(self.task, event.artifact_update)
        return event

    async def until_text(self, length: int) -> None:
        """Read on until the artifacts have so many characters."""
        while len(text_of(self.task)) < length:
            await self.next()

    async def until_state(self, state: int) -> None:
        while self.task.status.state != state:
            await self.next()

    async def rest(self) -> Stream:
        """Read to the end of the stream."""
        try:
            while True:
                await self.next()
        except StopAsyncIteration:
            return self

    async def close(self) -> None:
        await self._events.aclose()  # type: ignore[attr-defined]

    def updates(self) -> list[pb.TaskArtifactUpdateEvent]:
        return [event.artifact_update for event in self.seen if event.HasField("artifact_update")]

    def statuses(self) -> list[pb.TaskStatusUpdateEvent]:
        """Those that are meant for a stock client."""
        found = [event.status_update for event in self.seen if event.HasField("status_update")]
        return [update for update in found if "event_type" not in _turn_fields(update)]

    def turn_events(self) -> list[tuple[str, dict[str, Any]]]:
        """(event type, data) of all turn events, in order."""
        found = (_turn_fields(event.status_update) for event in self.seen if event.HasField("status_update"))
        return [(fields["event_type"], fields.get("data") or {}) for fields in found if "event_type" in fields]

    def orders(self) -> list[tuple[int, int]]:
        """(epoch, generation) of every event that carries them, the snapshot first."""
        fields = [_turn_fields(getattr(event, event.WhichOneof("payload") or "")) for event in self.seen]
        return [(int(each["epoch"]), int(each["generation"])) for each in fields if each]


def _turn_fields(event: Any) -> dict[str, Any]:
    fields: dict[str, Any] = MessageToDict(event.metadata).get(TURN, {})
    return fields


def text_of(task: pb.Task) -> str:
    """All text of all artifacts."""
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


def said(status: pb.TaskStatus) -> str:
    return "".join(part.text for part in status.message.parts)


def history_of(task: pb.Task) -> list[tuple[str, str]]:
    """(who, what) of each message."""
    who = {pb.ROLE_USER: "user", pb.ROLE_AGENT: "agent"}
    return [(who[message.role], "".join(part.text for part in message.parts)) for message in task.history]


async def events_of(served: Served, method: str, params: dict[str, Any]) -> AsyncIterator[str]:
    """The data lines of an SSE answer; a chunked answer that is cut raises."""
    request = served.http.stream("POST", "/", json=envelope(method, params), headers={"A2A-Version": "1.0"})
    async with request as response:
        async for line in response.aiter_lines():
            if line.startswith("data:"):
                yield line
