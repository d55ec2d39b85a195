"""The connection to an A2A server: its card, a client for a common transport, and the meaning of failures."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, TransportProtocol
from a2a.utils.errors import A2AError, MethodNotFoundError, UnsupportedOperationError

from a2a_canvas.server.a2a_client.agent_fault import fault_of
from a2a_canvas.server.a2a_client.timestamps import add_zones_to_answer
from a2a_canvas.server.client.conversation.address import RequestHeaders, agent_addresses
from a2a_canvas.server.client.conversation.errors import ClientError, describe_unreachable
from a2a_canvas.server.wire import CANVAS, REALM, TOKEN_VARIABLE, why_untrusted

CONNECT_SECONDS = 10.0
"""The time-out of a connection attempt."""
SEARCHED = 1000
"""The number of newest tasks that are searched for an id or a conversation."""
_PAGE = 100


class ConnectionLost(ClientError):
    """The connection broke while the task was running, and could not be restored."""

    def __init__(self, url: str) -> None:
        super().__init__(f"The connection to {url} was lost; the task may still be running")


@dataclass(frozen=True, slots=True)
class Session:
    """A connection to an agent.

    Attributes:
        card: what the agent offers.
        client: for a transport that both support.
        http: sends the headers.
        url: the address that was typed.
    """

    card: pb.AgentCard
    client: Client
    http: httpx.AsyncClient
    headers: RequestHeaders
    url: str

    @property
    def base(self) -> str:
        """The base address of the artifacts: the agent's JSON-RPC address, else the address that was typed."""
        offered = self.card.supported_interfaces
        of = (each.url for each in offered if each.protocol_binding == TransportProtocol.JSONRPC)
        return next(of, card_place(self.url)[0]).rstrip("/")

    def offers(self, extension: str) -> bool:
        """Whether the card lists an extension."""
        return find_extension_by_uri(self.card, extension) is not None

    def call(self, *extensions: str) -> ClientCallContext:
        """The context of calls that activate these extensions, as far as they are offered."""
        wanted = [uri for uri in extensions if self.offers(uri)]
        parameters = ServiceParametersFactory.create([with_a2a_extensions(wanted)])
        # gRPC has no other way to send the headers.
        return ClientCallContext(service_parameters=_header_fields(self.headers) | parameters)

    async def tasks(self, limit: int = SEARCHED, **filters: Any) -> list[pb.Task]:
        """The newest tasks, without their messages; `filters` are fields of `ListTasksRequest`.

        Raises:
            ClientError: the server does not list its tasks.
        """
        found, request = list[pb.Task](), pb.ListTasksRequest(**{"history_length": 0, **filters})
        try:
            while len(found) < limit:
                request.page_size = min(limit - len(found), _PAGE)
                page = await self.client.list_tasks(request, context=self.call())
                found += page.tasks
                request.page_token = page.next_page_token
                if not page.next_page_token:
                    break
        except (UnsupportedOperationError, MethodNotFoundError, NotImplementedError) as error:
            raise ClientError("The server does not list its tasks") from error
        return found

    async def contexts(self) -> dict[str, str]:
        """The ids of the conversations that the newest tasks belong to, the newest first, without names.

        Shared conversations come last.
        """
        own = {task.context_id: "" for task in await self.tasks()}
        return own | {str(each["contextId"]): "" for each in await self.list_contexts() if "shared" in each}

    async def list_contexts(self) -> list[dict[str, Any]]:
        """The newest conversations, own and shared, as `GET /artifacts` of an a2a-canvas server lists them."""
        if not self.offers(CANVAS):
            return []
        try:
            query = {"pageSize": _PAGE}
            answer = await self.http.get(f"{self.base}/artifacts", params=query, timeout=CONNECT_SECONDS)
            return [each for each in answer.json()["contexts"] if "contextId" in each]
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return []


@asynccontextmanager
async def connect(url: str, headers: RequestHeaders = ()) -> AsyncIterator[Session]:
    """Connect to the agent at an address. Raises what `explain` explains."""
    async with httpx.AsyncClient(
        # `add_zones_to_answer` reads bodies before they are decompressed.
        headers={"Accept-Encoding": "identity", **_header_fields(headers)},
        timeout=httpx.Timeout(CONNECT_SECONDS, read=None),
        event_hooks={"response": [add_zones_to_answer, partial(_read_refusal, headers)]},
    ) as http:
        card = await _card(http, url)
        async with _client(http, card) as client:
            yield Session(card, client, http, headers, url)


async def _read_refusal(headers: RequestHeaders, response: httpx.Response) -> None:
    """A hook of httpx that reads the reason of a refusal, because the SDK's errors have none.

    Raises:
        ClientError: an a2a-canvas server refuses the credentials.
    """
    if not response.is_error:
        return
    await response.aread()
    ours = REALM in response.headers.get("WWW-Authenticate", "")
    if response.status_code == httpx.codes.UNAUTHORIZED and ours:
        raise _wrong_credentials(headers)


def _wrong_credentials(headers: RequestHeaders) -> ClientError:
    sent = next((each for each in headers if each.name.lower() == "authorization"), None)
    if sent is None:
        return ClientError(
            f"This server needs a key: set {TOKEN_VARIABLE}", "If you run the server: a2a-canvas key new NAME"
        )
    source = sent.option.split()[0] if sent.option else TOKEN_VARIABLE
    return ClientError(f"The key in {source} is wrong, expired or revoked. Ask the server's operator for a new one")


async def _card(http: httpx.AsyncClient, url: str) -> pb.AgentCard:
    first, *others = agent_addresses(url)
    kwargs = {"timeout": CONNECT_SECONDS, "follow_redirects": True}
    try:
        return await A2ACardResolver(http, *card_place(first)).get_agent_card(http_kwargs=kwargs)
    except AgentCardResolutionError as error:
        for other in others if isinstance(error.__cause__, httpx.HTTPStatusError) else ():
            with suppress(AgentCardResolutionError):
                return await A2ACardResolver(http, *card_place(other)).get_agent_card(http_kwargs=kwargs)
        raise


def card_place(url: str) -> tuple[str, str]:
    """The agent's base address, and the path of its card below it; `url` is either that address or the card's own."""
    base, well_known, name = url.rpartition("/.well-known/")
    return (base, f".well-known/{name}") if well_known and name else (url, AGENT_CARD_WELL_KNOWN_PATH)


def _header_fields(headers: RequestHeaders) -> dict[str, str]:
    return {header.name: header.value for header in headers}


def _client(http: httpx.AsyncClient, card: pb.AgentCard) -> Client:
    """HTTP is preferred to gRPC."""
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
        raise ClientError(f"The agent offers no supported transport (its card lists: {named})") from error


def _channel(url: str) -> grpc.aio.Channel:
    scheme, _, rest = url.rpartition("://")
    if scheme in ("https", "grpcs"):
        return grpc.aio.secure_channel(rest, grpc.ssl_channel_credentials())
    return grpc.aio.insecure_channel(rest)


def is_unreachable(error: Exception) -> bool:
    """Whether no server answers at the address."""
    cause = error.__cause__
    if not isinstance(error, AgentCardResolutionError) or not isinstance(cause, httpx.RequestError):
        return False
    answers = isinstance(cause, httpx.UnsupportedProtocol | httpx.RemoteProtocolError) or _without_tls(cause)
    return not answers and not why_untrusted(cause)


def _without_tls(error: BaseException | None) -> bool:
    """Whether the other side answered a TLS handshake without TLS."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return not isinstance(error, ssl.SSLCertVerificationError)
        error = error.__cause__ or error.__context__
    return False


_JSON_RPC = re.compile(r"JSON-RPC Error -?\d+: (.*)", re.DOTALL)
"""The SDK's wording of an unknown JSON-RPC error."""
_IN_A_TERMINAL = {"send its contextId": "add --context ID, which a2a-canvas contexts lists"}
"""A server's advice to programs, and what users type instead."""

TYPED = {"selection.lineStart": "--lines", "selection.lineEnd": "--lines", "baseVersion": "--base"}
"""Fields of an operation, and the options that set them."""


def explain(error: Exception, url: str) -> str:
    """What went wrong, in one line for the user."""
    match error:
        case AgentCardResolutionError():
            return _explain_card(error, url)
        case A2AClientError():
            return _explain_call(error, url)
        case A2AError():
            field, blank, reason = error.message.partition(" ")
            return f"The server refused: {TYPED.get(field, field)}{blank}{reason}"
        case httpx.InvalidURL():
            return f"{url} is not an address: {error}"
        case ClientError():
            return str(error)
        case OSError() if error.strerror and not isinstance(error, ConnectionError):
            return f"{error.filename or 'The output'} cannot be written: {error.strerror}"
        case _:
            return f"The server's answer cannot be used: {type(error).__name__}: {error}"


def _explain_call(error: A2AClientError, url: str) -> str:
    match error.__cause__:
        case httpx.HTTPStatusError() as status:
            return _explain_status(status.response)
        case httpx.ConnectError() as cause:
            return describe_unreachable(cause.request.url, cause)
        case _ if fault_of(error).retryable:
            return f"The connection to {url} was lost: {error.message}"
        case grpc.aio.AioRpcError() as call:
            unknown = call.code() is grpc.StatusCode.UNAUTHENTICATED
            advice = _credentials(httpx.codes.UNAUTHORIZED) if unknown else ""
            return f"The server refused: {for_terminal(call.details() or '')}{advice}"
        case _:
            return _explain_answer(error.message)


def _explain_answer(said: str) -> str:
    if refused := _JSON_RPC.fullmatch(said):
        return f"The server refused: {for_terminal(refused[1])}"
    return f"The server's answer cannot be used: {said}"


def for_terminal(sentence: str) -> str:
    """A server's sentence, with what users type."""
    for advised, typed in _IN_A_TERMINAL.items():
        sentence = sentence.replace(advised, typed)
    return sentence


def _explain_status(response: httpx.Response) -> str:
    """The line for a refused request: the server's own sentence, if it has one."""
    if sentence := error_sentence(response):
        return f"The server refused: {for_terminal(sentence)}"
    return f"The server answered {_status(response.status_code)}"


def error_sentence(response: httpx.Response) -> str:
    """The message of an error, which is at the same place in all bindings; empty if there is none."""
    try:
        message = response.json()["error"]["message"]
        # A caller refused with 403 has sent credentials.
        return f"{message}{_credentials(response.status_code) if response.status_code == 401 else ''}"
    except (ValueError, LookupError, TypeError, httpx.StreamError):
        return ""


def _status(code: int | None) -> str:
    return f"HTTP {code}{_credentials(code)}"


def _credentials(code: int | None) -> str:
    wants = code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
    return f" (credentials are sent with --token, --header or {TOKEN_VARIABLE})" if wants else ""


def _explain_card(error: AgentCardResolutionError, url: str) -> str:
    match error.__cause__:
        case httpx.UnsupportedProtocol():
            return f"{url or repr(url)} is not an http:// or https:// address"
        case httpx.TimeoutException():
            return f"No answer from {url} within {CONNECT_SECONDS:.0f} seconds"
        case httpx.RequestError() as cause if _without_tls(cause):
            return f"Something answers at {url}, but not with TLS: try {url.replace('https', 'http', 1)}"
        case httpx.RemoteProtocolError() if url.startswith("http:"):
            return f"Something answers at {url}, but not in HTTP: try {url.replace('http:', 'https:', 1)}"
        case httpx.RequestError() as cause:
            return f"{url} answers, but {why}" if (why := why_untrusted(cause)) else f"No server answers at {url}"
        case httpx.HTTPStatusError():
            return f"No agent card at {url}: {_status(error.status_code)}"
        case cause:
            return f"The agent card at {url} is not valid: {cause}"
