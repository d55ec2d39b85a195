"""Speaks A2A with one agent, 1.0 or 0.3, over JSON-RPC or HTTP+JSON. The one module that knows the SDK's client.

Rule 1: whatever an agent does becomes an `AgentFault`, which says whether it may be tried again.
Rule 2: no redirect is followed, and the token goes to the host of the agent's address only.
Rule 3: no answer, and no event of a stream, has more than `MAX_BYTES`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from contextlib import aclosing, contextmanager
from typing import Protocol, TypeVar

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, A2AClientTimeoutError, AgentCardResolutionError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError

from a2a_canvas.server.tool_sources.remote_agents.agent_card import BINDINGS, host_of, may_lead, spoken, token_header

logging.getLogger("a2a.client").setLevel(logging.CRITICAL)  # it logs what others send; what matters is logged here

MAX_BYTES = 16 * 1024 * 1024
SILENCE = 60.0
"""Seconds without a byte after which a connection counts as broken."""
CARD_TIMEOUT = 10.0
OLDER_CARD = "/.well-known/agent.json"

T = TypeVar("T")


class AgentFault(Exception):
    """Another agent cannot be reached, refuses, or answers what is not A2A; `str()` is for the model and the log.

    Attributes:
        passing: it may be gone at the next try.
        gone: there is no such task.
    """

    def __init__(self, reason: str, *, passing: bool = False, gone: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing
        self.gone = gone


class AgentConnection(Protocol):
    """What a call needs of an agent. Each method may raise `AgentFault`.

    Attributes:
        streams: whether the agent offers streams.
    """

    streams: bool

    def send(self, message: pb.Message) -> AsyncGenerator[pb.StreamResponse, None]: ...

    def subscribe(self, task_id: str) -> AsyncGenerator[pb.StreamResponse, None]: ...

    async def get(self, task_id: str) -> pb.Task: ...

    async def cancel(self, task_id: str) -> None: ...


class AgentClient:
    """An agent at an address.

    Args:
        url: its address, below which its card is, or that of the card.
        token: sent with every request to the host of `url`.

    Attributes:
        streams: whether it offers streams.
    """

    def __init__(self, url: str, token: str = "", silence: float = SILENCE) -> None:
        self.streams = False
        self._url = url.rstrip("/")
        self._token = token
        self._header = ("Authorization", "Bearer ")
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(CARD_TIMEOUT, read=silence),
            headers={"Accept-Encoding": "identity"},
            event_hooks={"request": [self._authorize], "response": [_limit]},
        )
        self._client: Client | None = None

    async def read_card(self) -> pb.AgentCard:
        """The agent's card, from which on it can be spoken to."""
        with _faults():
            async with asyncio.timeout(CARD_TIMEOUT):
                card = await self._card()
                card = await self._checked(card)
            self._header = token_header(card)
            config = ClientConfig(httpx_client=self._http, supported_protocol_bindings=list(BINDINGS), polling=True)
            self._client = ClientFactory(config).create(card)
            self.streams = card.capabilities.streaming
        return card

    async def _card(self) -> pb.AgentCard:
        if self._url.endswith(".json"):
            return await A2ACardResolver(self._http, self._url, "").get_agent_card()
        try:
            return await A2ACardResolver(self._http, self._url).get_agent_card()
        except AgentCardResolutionError as error:
            if error.status_code != 404:
                raise
        return await A2ACardResolver(self._http, self._url, OLDER_CARD).get_agent_card()

    async def _checked(self, card: pb.AgentCard) -> pb.AgentCard:
        """The card with the interfaces that may be used."""
        if not card.name.strip():
            raise AgentFault("its card has no name")
        if not (interfaces := spoken(card)):
            raise AgentFault(f"its card offers neither of {' and '.join(BINDINGS)}")
        own = host_of(self._url)
        allowed = [
            each
            for each in interfaces
            if (host := host_of(each.url)) == own or may_lead(await _addresses(own), await _addresses(host))
        ]
        if not allowed:
            raise AgentFault(f"its card leads to {host_of(interfaces[0].url)}, which is in a private network")
        checked = pb.AgentCard()
        checked.CopyFrom(card)
        del checked.supported_interfaces[:]
        checked.supported_interfaces.extend(allowed)
        return checked

    async def send(self, message: pb.Message) -> AsyncGenerator[pb.StreamResponse, None]:
        """The events of the task that a message begins or goes on with, or the message that answers it."""
        request = pb.SendMessageRequest(message=message)
        async with aclosing(_events(self._connected().send_message(request))) as events:
            async for event in events:
                yield event

    async def subscribe(self, task_id: str) -> AsyncGenerator[pb.StreamResponse, None]:
        """The events of a task from now on."""
        request = pb.SubscribeToTaskRequest(id=task_id)
        async with aclosing(_events(self._connected().subscribe(request))) as events:
            async for event in events:
                yield event

    async def get(self, task_id: str) -> pb.Task:
        """A task as it is now."""
        return await _answer(self._connected().get_task(pb.GetTaskRequest(id=task_id)))

    async def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        await _answer(self._connected().cancel_task(pb.CancelTaskRequest(id=task_id)))

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    def _connected(self) -> Client:
        if self._client is None:
            raise AgentFault("its card has not been read yet", passing=True)
        return self._client

    async def _authorize(self, request: httpx.Request) -> None:
        if self._token and request.url.host == host_of(self._url):
            name, before = self._header
            request.headers[name] = before + self._token


async def _answer(answer: Awaitable[T]) -> T:
    with _faults():
        return await answer


async def _events(stream: AsyncIterator[pb.StreamResponse]) -> AsyncGenerator[pb.StreamResponse, None]:
    with _faults():
        try:
            async for event in stream:
                yield event
        finally:
            await stream.aclose()  # type: ignore[attr-defined]  # it is a generator


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except AgentFault:
        raise
    except Exception as error:
        raise fault_of(error) from error


def fault_of(error: Exception) -> AgentFault:
    """What an exception of the SDK's client means."""
    cause = error.__cause__ or error
    match cause:
        case _TooLarge():
            return AgentFault(str(cause))
        case httpx.TimeoutException() | TimeoutError():
            return AgentFault("it does not answer", passing=True)
        case httpx.HTTPStatusError():
            status = cause.response.status_code
            return AgentFault(_status(status), passing=status >= 500 or status in (408, 429), gone=status == 404)
        case httpx.RequestError() | OSError():
            return AgentFault("the connection to it broke, or nothing answers there", passing=True)
    match error:
        case TaskNotFoundError():
            return AgentFault("it does not know the task", gone=True)
        case A2AClientTimeoutError():
            return AgentFault("it does not answer", passing=True)
        case A2AError() if not isinstance(error, A2AClientError):
            return AgentFault(f"it refuses: {error.message[:500]}")
        case _:
            return AgentFault("it answers what is not A2A")


def _status(status: int) -> str:
    if status in (401, 403):
        return f"it refuses access (HTTP {status}); a token for it can be set"
    if 300 <= status < 400:
        return f"it redirects (HTTP {status}), which is not followed"
    return f"it answers with HTTP {status}"


async def _addresses(host: str) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class _TooLarge(httpx.StreamError):
    def __init__(self) -> None:
        super().__init__(f"it sends more than {MAX_BYTES // 2**20} MB at once")


async def _limit(response: httpx.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise AgentFault("it compresses its answers although it was asked not to")
    streams = response.request.headers.get("accept") == "text/event-stream"  # else the body is read as a whole
    events = streams and response.headers.get("content-type", "").startswith("text/event-stream")
    response.stream = _LimitedBody(response.stream, events)


_WITHOUT_ZONE = re.compile(
    rb'("state"\s*:\s*"[\w-]+"\s*,\s*"timestamp"\s*:\s*"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)"'
)


def with_zones(body: bytes) -> bytes:
    """JSON with UTC for the times of statuses that have no zone, as fasta2a's have none: the SDK refuses them."""
    return _WITHOUT_ZONE.sub(rb'\1Z"', body)


class _LimitedBody(httpx.AsyncByteStream):
    """A body that breaks off when it, or one event of it, is too large (rule 3), with `with_zones`."""

    def __init__(self, stream: object, events: bool) -> None:
        self._stream = stream
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending, size, before = bytearray(), 0, b""
        async for chunk in self._stream:  # type: ignore[attr-defined]
            pending += chunk
            size += len(chunk)
            if self._events:
                end = pending.rfind(b"\n", len(pending) - len(chunk)) + 1
                lines = bytes(pending[:end])
                del pending[:end]
                before = before[-2:] + lines
                if b"\n\n" in before or b"\n\r\n" in before:  # the end of an event
                    size = len(pending)
                yield with_zones(lines)
            if size > MAX_BYTES:
                raise _TooLarge
        yield with_zones(bytes(pending))

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[attr-defined]
