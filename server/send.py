"""`a2a-canvas send`: one message to any A2A server, and everything that comes back, on the screen.

Rule 1: pure functions fold what the server sends into `Seen` and turn it into the events of `terminal.py`.
Rule 2: an answer is over at a terminal state, at a question, or with a message in place of a task.
Rule 3: a stream that ends before that is taken up again by `SubscribeToTask`, three times in a row at most
without anything new; the message is never sent a second time.
Rule 4: every failure is one line on `err`, and it names the task once there is one.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TextIO, cast
from uuid import uuid4

import grpc
import httpx
from a2a.client import (
    A2ACardResolver,
    A2AClientError,
    AgentCardResolutionError,
    Client,
    ClientCallContext,
    ClientConfig,
    ClientFactory,
)
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.extensions.common import find_extension_by_uri
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2AError, MethodNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from server.terminal import (
    ArtifactUpdate,
    Data,
    Event,
    Facts,
    Failure,
    File,
    FinalReply,
    Line,
    Part,
    Reply,
    Status,
    Terminal,
    label,
)

TURN = "urn:a2a-canvas:turn:v1"
DEFAULT_URL = "http://127.0.0.1:8000"
_RETRIES = 3
_POLL = 1.0
_CONNECT = 10.0

_ENDED_BADLY = {
    pb.TASK_STATE_FAILED: "Task failed",
    pb.TASK_STATE_REJECTED: "Task rejected",
    pb.TASK_STATE_CANCELED: "Task canceled",
    pb.TASK_STATE_AUTH_REQUIRED: "Task needs authentication",
}
_OVER = {pb.TASK_STATE_COMPLETED, pb.TASK_STATE_INPUT_REQUIRED, *_ENDED_BADLY}


@dataclass(frozen=True, slots=True)
class SendOptions:
    """What to send and where.

    `context` goes on with a conversation, `task` answers a task that asked, `json` prints the events as they
    came.
    """

    text: str
    url: str = DEFAULT_URL
    context: str = ""
    task: str = ""
    json: bool = False


class SendError(Exception):
    """The answer could not be had; the text is the line for the user."""


# ------------------------------------------------------------- what has come (pure)


@dataclass(frozen=True, slots=True)
class Seen:
    """A task as far as the server told. `artifacts` are pairs of id and name, oldest first."""

    task_id: str = ""
    context_id: str = ""
    state: pb.TaskState = pb.TASK_STATE_UNSPECIFIED
    message: str = ""
    artifacts: tuple[tuple[str, str], ...] = ()
    answered: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more is to be waited for."""
        return self.answered or self.state in _OVER


def fold(seen: Seen, response: pb.StreamResponse) -> Seen:
    """What is known after one more response."""
    match response.WhichOneof("payload"):
        case "task":
            task = response.task
            seen = _with_status(_with_ids(seen, task.id, task.context_id), task.status)
            for artifact in task.artifacts:
                seen = _with_artifact(seen, artifact)
        case "status_update":
            update = response.status_update
            seen = _with_status(_with_ids(seen, update.task_id, update.context_id), update.status)
        case "artifact_update":
            change = response.artifact_update
            seen = _with_artifact(_with_ids(seen, change.task_id, change.context_id), change.artifact)
        case "message":
            said = response.message
            seen = _with_ids(seen, said.task_id, said.context_id)
            seen = replace(seen, message=_message_text(said), answered=True)
    return seen


def _with_ids(seen: Seen, task_id: str, context_id: str) -> Seen:
    return replace(seen, task_id=task_id or seen.task_id, context_id=context_id or seen.context_id)


def _with_status(seen: Seen, status: pb.TaskStatus) -> Seen:
    return replace(seen, state=status.state, message=_message_text(status.message))


def _with_artifact(seen: Seen, artifact: pb.Artifact) -> Seen:
    names = dict(seen.artifacts)
    names[artifact.artifact_id] = artifact.name or names.get(artifact.artifact_id, "")
    return replace(seen, artifacts=tuple(names.items()))


# ------------------------------------------------------------- what it shows (pure)


def events(response: pb.StreamResponse) -> list[Event]:
    """What one response has to show before the end; closing words are shown at the end."""
    match response.WhichOneof("payload"):
        case "task":
            task = response.task
            shown: list[Event] = [_artifact_event(artifact, append=False) for artifact in task.artifacts]
            return shown + _status_events(task.status)
        case "artifact_update":
            update = response.artifact_update
            return [_artifact_event(update.artifact, append=update.append)]
        case "status_update":
            turn = _turn_event(response.status_update.metadata)
            return _status_events(response.status_update.status) if turn is None else turn
        case _:
            return []


def _status_events(status: pb.TaskStatus) -> list[Event]:
    text = _message_text(status.message)
    return [Status(text)] if text and status.state not in _OVER else []


def _turn_event(metadata: Struct) -> list[Event] | None:
    if TURN not in metadata or not isinstance(turn := metadata[TURN], Struct):
        return None
    said = MessageToDict(turn)
    data = said.get("data")
    content = str(data.get("content", "")) if isinstance(data, dict) else ""
    match said.get("event_type"):
        case "assistant":
            return [Reply(content)]
        case "thinking":
            return [Status(content, thinking=True)]
        case "final_message_start" | "completed":
            return [Status("")]
        case _:
            return []


def _artifact_event(artifact: pb.Artifact, *, append: bool) -> Event:
    parts = tuple(map(_part, artifact.parts))
    return ArtifactUpdate(artifact.artifact_id, parts, artifact.name, append)


def _part(part: pb.Part) -> Part:
    match part.WhichOneof("content"):
        case "raw":
            return File(part.filename, part.media_type, size=len(part.raw))
        case "url":
            return File(part.filename, part.media_type, url=part.url)
        case "data":
            return Data(json.dumps(MessageToDict(part.data), ensure_ascii=False, separators=(",", ":")))
        case _:
            return part.text


def _message_text(message: pb.Message) -> str:
    parts = map(_part, message.parts)
    return "\n".join(part if isinstance(part, str) else label(part) for part in parts)


# ------------------------------------------------------------------ the command


async def send(
    options: SendOptions,
    out: TextIO,
    err: TextIO,
    *,
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> int:
    """Send one message and show what comes back until the task ends or asks.

    Args:
        options: what to send and where.
        out: replies, artifacts and ids, or with `options.json` one event per line. Colours and a status line
            are used when it is a terminal.
        err: failures, one line each.
        pause: waits that many seconds, between tries.

    Returns:
        The exit code: 0 completed or asked, 1 failed, 130 interrupted. Nothing is raised.
    """
    terminal = Terminal(out, err, lambda: shutil.get_terminal_size().columns)
    exchange = _Exchange(options, terminal, out, pause)
    try:
        return await exchange.run()
    except BrokenPipeError:
        return 1
    except (asyncio.CancelledError, KeyboardInterrupt):
        terminal.show(Failure(_interrupted(exchange.seen)))
        return 130
    except Exception as error:
        known = f" (task {exchange.seen.task_id})" if exchange.seen.task_id else ""
        terminal.show(Failure(_explain(error, options.url) + known))
        return 1


class _Exchange:
    def __init__(
        self,
        options: SendOptions,
        terminal: Terminal,
        out: TextIO,
        pause: Callable[[float], Awaitable[object]],
    ) -> None:
        self.seen = Seen()
        self._options, self._terminal, self._out, self._pause = options, terminal, out, pause
        self._updates = 0
        self._stale = False

    async def run(self) -> int:
        timeout = httpx.Timeout(_CONNECT, read=None)
        async with httpx.AsyncClient(timeout=timeout) as http:
            card = await _card(http, self._options.url)
            async with _client(http, card) as client:
                await self._converse(client, card)
        return self._conclude()

    async def _converse(self, client: Client, card: pb.AgentCard) -> None:
        call = _activation(card)
        streaming = card.capabilities.streaming
        # A stream that answers a question may begin with the task as it was: still asking.
        self._stale = streaming and bool(self._options.task)
        try:
            await self._read(client.send_message(_request(self._options), context=call))
        except A2AClientError as error:
            if not (self.seen.task_id and _lost(error)):
                raise
        self._stale = False
        await (self._resume(client, call) if streaming else self._poll(client, call))

    async def _read(self, stream: AsyncIterator[pb.StreamResponse]) -> None:
        async with aclosing(cast(AsyncGenerator[pb.StreamResponse], stream)) as responses:
            async for response in responses:
                self._take(response)
                if self._over:
                    return

    @property
    def _over(self) -> bool:
        return self.seen.over and not self._stale

    def _take(self, response: pb.StreamResponse) -> None:
        self.seen = fold(self.seen, response)
        self._updates += not response.HasField("task")
        self._stale = self._stale and _asks(response)
        if self._options.json:
            self._out.write(json.dumps(MessageToDict(response)) + "\n")
            self._out.flush()
            return
        for event in events(response):
            self._terminal.show(event)

    # -------------------------------------------------- a task that is not over yet

    async def _resume(self, client: Client, call: ClientCallContext) -> None:
        tries = 0
        while not self._over:
            self._must_go_on(tries)
            tries += 1
            await self._announce(tries)
            if await self._subscribe(client, call):
                tries = 0

    async def _subscribe(self, client: Client, call: ClientCallContext) -> bool:
        """Whether anything new came."""
        before = self._updates
        try:
            await self._read(client.subscribe(pb.SubscribeToTaskRequest(id=self.seen.task_id), context=call))
        except (UnsupportedOperationError, MethodNotFoundError):
            # The task is over by now, or this server cannot: the task itself tells.
            await self._get(client, call)
        except A2AClientError:
            pass
        return self._updates > before

    async def _poll(self, client: Client, call: ClientCallContext) -> None:
        tries = 0
        while not self._over:
            self._must_go_on(tries)
            await (self._announce(tries) if tries else self._pause(_POLL))
            tries = 0 if await self._get(client, call) else tries + 1

    async def _get(self, client: Client, call: ClientCallContext) -> bool:
        """Whether the server answered."""
        try:
            task = await client.get_task(pb.GetTaskRequest(id=self.seen.task_id), context=call)
        except A2AClientError:
            return False
        self._take(pb.StreamResponse(task=task))
        return True

    def _must_go_on(self, tries: int) -> None:
        if not self.seen.task_id:
            raise SendError("The server's answer ended without a task and without a message")
        if tries == _RETRIES:
            raise SendError(f"The connection to {self._options.url} was lost; the task may go on there")

    async def _announce(self, tries: int) -> None:
        if not self._options.json:
            self._terminal.show(Status(f"Connection lost, trying again ({tries} of {_RETRIES})…"))
        await self._pause(2.0 ** (tries - 2))

    # ------------------------------------------------------------------- the end

    def _conclude(self) -> int:
        seen, problem = self.seen, _ENDED_BADLY.get(self.seen.state, "")
        if not self._options.json:
            self._terminal.show(FinalReply("" if problem else seen.message))
            self._terminal.show(Facts(seen.context_id, seen.task_id, seen.artifacts))
            if seen.state == pb.TASK_STATE_INPUT_REQUIRED:
                self._terminal.show(Line(_how_to_answer(seen.task_id, self._options.url)))
        if problem:
            self._terminal.show(Failure(f"{problem}: {seen.message}" if seen.message else f"{problem}."))
        return 1 if problem else 0


def _asks(response: pb.StreamResponse) -> bool:
    return response.HasField("task") and response.task.status.state == pb.TASK_STATE_INPUT_REQUIRED


def _request(options: SendOptions) -> pb.SendMessageRequest:
    message = pb.Message(
        message_id=str(uuid4()),
        role=pb.ROLE_USER,
        parts=[pb.Part(text=options.text)],
        context_id=options.context,
        task_id=options.task,
    )
    return pb.SendMessageRequest(message=message)


def _how_to_answer(task_id: str, url: str) -> str:
    # Quoted, because the id is the server's and the line is there to be copied into a shell.
    at = "" if url == DEFAULT_URL else f" --url {shlex.quote(url)}"
    return f'Answer with: a2a-canvas send --task {shlex.quote(task_id)}{at} "…"'


def _interrupted(seen: Seen) -> str:
    if not seen.task_id:
        return "Interrupted before the server named a task"
    return f"Interrupted; the task goes on: {seen.task_id}"


# ---------------------------------------------------------------- the connection


async def _card(http: httpx.AsyncClient, url: str) -> pb.AgentCard:
    kwargs = {"timeout": _CONNECT, "follow_redirects": True}
    return await A2ACardResolver(http, url).get_agent_card(http_kwargs=kwargs)


def _client(http: httpx.AsyncClient, card: pb.AgentCard) -> Client:
    web = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON]
    offered = {interface.protocol_binding for interface in card.supported_interfaces}
    config = ClientConfig(
        httpx_client=http,
        grpc_channel_factory=_channel,
        supported_protocol_bindings=list(web if offered.intersection(web) else [TransportProtocol.GRPC]),
    )
    try:
        return ClientFactory(config).create(card)
    except ValueError as error:
        named = ", ".join(sorted(offered)) or "none"
        reason = f"The agent offers no transport that is spoken here (its card lists: {named})"
        raise SendError(reason) from error


def _channel(url: str) -> grpc.aio.Channel:
    scheme, _, rest = url.rpartition("://")
    if scheme in ("https", "grpcs"):
        return grpc.aio.secure_channel(rest, grpc.ssl_channel_credentials())
    return grpc.aio.insecure_channel(rest)


def _activation(card: pb.AgentCard) -> ClientCallContext:
    wanted = [TURN] if find_extension_by_uri(card, TURN) else []
    parameters = ServiceParametersFactory.create([with_a2a_extensions(wanted)])
    return ClientCallContext(service_parameters=parameters)


# --------------------------------------------------------------------- failures


def _lost(error: A2AClientError) -> bool:
    return isinstance(error.__cause__, httpx.RequestError | grpc.aio.AioRpcError)


def _explain(error: Exception, url: str) -> str:
    cause: Any = error.__cause__
    match error:
        case AgentCardResolutionError():
            return _explain_card(error, url)
        case A2AClientError() if isinstance(cause, httpx.HTTPStatusError):
            return f"The server answered HTTP {cause.response.status_code}"
        case A2AClientError() if isinstance(cause, httpx.ConnectError):
            return f"The agent's card leads to {cause.request.url}, where no server answers"
        case A2AClientError() if _lost(error):
            return f"The connection to {url} was lost: {error.message}"
        case A2AClientError():
            return f"The server's answer cannot be used: {error.message}"
        case A2AError():
            return f"The server refused: {error.message}"
        case httpx.InvalidURL():
            return f"{url} is not an address: {error}"
        case SendError():
            return str(error)
        case _:
            return f"The server's answer cannot be used: {type(error).__name__}: {error}"


def _explain_card(error: AgentCardResolutionError, url: str) -> str:
    match error.__cause__:
        case httpx.UnsupportedProtocol():
            return f"{url} is not an http:// or https:// address"
        case httpx.TimeoutException():
            return f"No answer from {url} within {_CONNECT:.0f} seconds"
        case httpx.RequestError():
            return f"No A2A server answers at {url}"
        case httpx.HTTPStatusError():
            return f"No agent card at {url}: HTTP {error.status_code}"
        case cause:
            return f"The agent card at {url} is not valid: {cause}"
