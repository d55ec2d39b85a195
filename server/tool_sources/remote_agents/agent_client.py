"""Speaks A2A with one agent, 1.0 or 0.3, over JSON-RPC or HTTP+JSON. The one module that knows the SDK's client.

Rule 1: whatever an agent does becomes an `AgentFault`, which says whether it may be tried again.
Rule 2: no redirect is followed; a token goes where `token_for` says; an agent on the internet cannot lead us elsewhere.
Rule 3: no answer, and no event of a stream, has more than `MAX_MESSAGE` bytes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Protocol, TypeVar

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, A2AClientTimeoutError, AgentCardResolutionError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError

from a2a_canvas.server.outbound.addresses import Lookup, SystemLookup
from a2a_canvas.server.outbound.answers import MAX_MESSAGE, is_stream
from a2a_canvas.server.outbound.over_httpx import UnreadableAnswer, checked_transport, client
from a2a_canvas.server.outbound.token_origin import TokenOrigin, is_downgrade, token_for
from a2a_canvas.server.tool_sources.remote_agents.agent_card import (
    BINDINGS,
    host_of,
    needs_credentials,
    spoken,
    token_header,
    without_downgrades,
)
from a2a_canvas.server.tool_sources.remote_agents.agent_network import AgentNetwork, into_private_network

logger = logging.getLogger(__name__)
logging.getLogger("a2a.client").setLevel(logging.CRITICAL)  # it logs what others send; what matters is logged here

SILENCE = 60.0
"""Seconds without a byte after which a connection counts as broken, and in which an answer that is no stream ends."""
CARD_TIMEOUT = 10.0
TOKENS = "A2A_CANVAS_AGENT_TOKENS"
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
        tokens: by origin (`token_for`).

    Attributes:
        streams: whether it offers streams.
    """

    def __init__(
        self, url: str, tokens: Mapping[str, str] | None = None, silence: float = SILENCE, lookup: Lookup | None = None
    ) -> None:
        self.streams = False
        self._url = url.rstrip("/")
        self._tokens = tokens or {}
        self._header = ("Authorization", "Bearer ")
        self._silence = silence
        self._network = AgentNetwork(host_of(url), lookup or SystemLookup())
        self._http = client(
            MAX_MESSAGE,
            timeout=httpx.Timeout(CARD_TIMEOUT, read=silence),
            transport=checked_transport(self._network.addresses),
        )
        self._http.event_hooks["request"].append(self._authorize)
        self._http.event_hooks["response"] += [self._note_refusal, _add_zones]
        self._client: Client | None = None

    async def read_card(self) -> pb.AgentCard:
        """The agent's card, from which on it can be spoken to."""
        with _faults():
            async with asyncio.timeout(CARD_TIMEOUT):
                card = await self._card()
                card = await self._checked(card)
            self._note_tokens(card)
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
        await self._network.confine()
        allowed = [each for each in interfaces if await self._network.allows(each.url)]
        if not allowed:
            raise AgentFault(into_private_network(host_of(interfaces[0].url)))
        checked = pb.AgentCard()
        checked.CopyFrom(card)
        del checked.supported_interfaces[:]
        checked.supported_interfaces.extend(without_downgrades(allowed, self._url))
        return checked

    def _note_tokens(self, card: pb.AgentCard) -> None:
        """Log that a token is missing, or is not sent where the card leads."""
        urls = [each.url for each in card.supported_interfaces]
        if not needs_credentials(card) or any(token_for(url, self._url, self._tokens) for url in urls):
            return
        needed = TokenOrigin.of(urls[0]).authority
        if is_downgrade(urls[0], self._url):
            logger.warning("The agent at %s has an address without TLS in its card: no token is sent there", needed)
        else:
            logger.warning("The agent at %s requires credentials: set %s=%s=TOKEN", needed, TOKENS, needed)

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
        return await self._answer(self._connected().get_task(pb.GetTaskRequest(id=task_id)))

    async def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        await self._answer(self._connected().cancel_task(pb.CancelTaskRequest(id=task_id)))

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    def _connected(self) -> Client:
        if self._client is None:
            raise AgentFault("its card has not been read yet", passing=True)
        return self._client

    async def _answer(self, answer: Awaitable[T]) -> T:
        with _faults():
            async with asyncio.timeout(self._silence):
                return await answer

    async def _authorize(self, request: httpx.Request) -> None:
        if token := token_for(str(request.url), self._url, self._tokens):
            name, before = self._header
            request.headers[name] = before + token

    async def _note_refusal(self, response: httpx.Response) -> None:
        if response.status_code in (401, 403):
            where = TokenOrigin.of(str(response.request.url)).authority
            given = "the token that it was sent" if self._header[0] in response.request.headers else "no token"
            form = "The agent at %s refuses access (HTTP %d) with %s: set %s=%s=TOKEN"
            logger.warning(form, where, response.status_code, given, TOKENS, where)


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
    cause = error if isinstance(error, TimeoutError) else error.__cause__ or error
    match cause:
        case UnreadableAnswer():
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
        return f"it refuses access (HTTP {status}); the operator of this server can set a token for it"
    if 300 <= status < 400:
        return f"it redirects (HTTP {status}), which is not followed"
    return f"it answers with HTTP {status}"


_WITHOUT_ZONE = re.compile(
    rb'("state"\s*:\s*"[\w-]+"\s*,\s*"timestamp"\s*:\s*"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)"'
)


def with_zones(body: bytes) -> bytes:
    """JSON with UTC for the times of statuses that have no zone, as fasta2a's have none: the SDK refuses them."""
    return _WITHOUT_ZONE.sub(rb'\1Z"', body)


async def _add_zones(response: httpx.Response) -> None:
    request, content_type = response.request, response.headers.get("content-type", "")
    events = is_stream(request.method, request.headers.get("accept", ""), response.status_code, content_type)
    response.stream = _ZonedBody(response.stream, events)


class _ZonedBody(httpx.AsyncByteStream):
    """A body with `with_zones`: line by line if it is a stream, else as a whole."""

    def __init__(self, stream: object, events: bool) -> None:
        self._stream = stream
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending = bytearray()
        async for chunk in self._stream:  # type: ignore[attr-defined]
            pending += chunk
            end = pending.rfind(b"\n", len(pending) - len(chunk)) + 1 if self._events else 0
            if end:
                yield with_zones(bytes(pending[:end]))
                del pending[:end]
        yield with_zones(bytes(pending))

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[attr-defined]
