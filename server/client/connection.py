"""The connection to an A2A server: its card, a client for a transport that both speak, and what a failure means."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

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

from a2a_canvas.server.client.address import RequestHeaders, agent_addresses
from a2a_canvas.server.client.errors import ClientError
from a2a_canvas.server.client.names import resolve
from a2a_canvas.server.client.timestamps import zoned_answer

CONNECT_SECONDS = 10.0
"""After so long a server that does not answer counts as absent."""
SEARCHED = 1000
"""Of so many tasks, the newest ones, an id or a conversation is looked for."""
_PAGE = 100
_BEGINNING = re.compile("[0-9a-f-]{4,31}")
"""Of an id that a server made, a UUID."""


class ConnectionLost(ClientError):
    """The connection broke while the task was running, and could not be restored."""

    def __init__(self, url: str) -> None:
        super().__init__(f"The connection to {url} was lost; the task may go on there")


@asynccontextmanager
async def connected(url: str, headers: RequestHeaders = ()) -> AsyncIterator[tuple[httpx.AsyncClient, pb.AgentCard]]:
    """A client for HTTP, which sends the headers, and the card of the agent. Raises what `explain` explains."""
    async with httpx.AsyncClient(
        # `zoned_answer` reads bodies before they are decompressed.
        headers={"Accept-Encoding": "identity", **_named(headers)},
        timeout=httpx.Timeout(CONNECT_SECONDS, read=None),
        event_hooks={"response": [zoned_answer]},
    ) as http:
        yield http, await _card(http, url)


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


def _named(headers: RequestHeaders) -> dict[str, str]:
    return {header.name: header.value for header in headers}


def client(http: httpx.AsyncClient, card: pb.AgentCard) -> Client:
    """A client for a transport that the agent offers: HTTP is preferred to gRPC.

    Raises:
        ClientError: it offers none that this client speaks.
    """
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
        raise ClientError(f"The agent offers no transport that is spoken here (its card lists: {named})") from error


def _channel(url: str) -> grpc.aio.Channel:
    scheme, _, rest = url.rpartition("://")
    if scheme in ("https", "grpcs"):
        return grpc.aio.secure_channel(rest, grpc.ssl_channel_credentials())
    return grpc.aio.insecure_channel(rest)


def offers(card: pb.AgentCard, extension: str) -> bool:
    """Whether the card lists an extension."""
    return find_extension_by_uri(card, extension) is not None


def call_context(card: pb.AgentCard, extensions: Iterable[str], headers: RequestHeaders) -> ClientCallContext:
    """The context of calls that activate the extensions, if the card lists them, and send the headers over gRPC too."""
    wanted = [uri for uri in extensions if offers(card, uri)]
    parameters = ServiceParametersFactory.create([with_a2a_extensions(wanted)])
    return ClientCallContext(service_parameters=_named(headers) | parameters)


def absent(error: Exception) -> bool:
    """Whether no server answers at the address at all."""
    cause = error.__cause__
    known = isinstance(cause, httpx.RequestError) and not isinstance(cause, httpx.UnsupportedProtocol)
    return isinstance(error, AgentCardResolutionError) and known


async def newest_tasks(client: Client, call: ClientCallContext, limit: int = SEARCHED, **filters: Any) -> list[pb.Task]:
    """The newest tasks; `filters` are fields of `ListTasksRequest`.

    Raises:
        ClientError: the server does not list its tasks.
    """
    found, request = list[pb.Task](), pb.ListTasksRequest(**filters)
    try:
        while len(found) < limit:
            request.page_size = min(limit - len(found), _PAGE)
            page = await client.list_tasks(request, context=call)
            found += page.tasks
            request.page_token = page.next_page_token
            if not page.next_page_token:
                break
    except (UnsupportedOperationError, MethodNotFoundError, NotImplementedError) as error:
        raise ClientError("The server does not list its tasks") from error
    return found


async def resolve_id(url: str, headers: RequestHeaders, typed: str, field: Literal["id", "context_id"]) -> str:
    """The id of the task or conversation of which the beginning was typed; what begins none is an id of its own."""
    if not _BEGINNING.fullmatch(typed):
        return typed
    try:
        async with connected(url, headers) as (http, card), client(http, card) as agent:
            tasks = await newest_tasks(agent, call_context(card, (), headers), history_length=0)
    except (ClientError, A2AError):
        return typed
    known = {id_: "" for task in tasks if (id_ := str(getattr(task, field))).startswith(typed)}
    return resolve(typed, known, "task" if field == "id" else "context") if known else typed


def lost(error: Exception) -> bool:
    """Whether the connection failed, or the server says that another try may succeed."""
    if isinstance(error.__cause__, httpx.RequestError | grpc.aio.AioRpcError):
        return True
    return isinstance(error, A2AError) and _has(error.data, "retryable")


def _has(data: object, mark: str) -> bool:
    """Whether `mark` is true anywhere in an error's data, which has another shape in every binding and version."""
    if isinstance(data, Mapping):
        return data.get(mark) in (True, "true") or any(_has(value, mark) for value in data.values())
    return isinstance(data, list | tuple) and any(_has(value, mark) for value in data)


TYPED = {"selection.lineStart": "--lines", "selection.lineEnd": "--lines", "baseVersion": "--base"}
"""Fields of an operation, as they are typed."""


def explain(error: Exception, url: str) -> str:
    """What went wrong, in one line for the user."""
    cause: Any = error.__cause__
    match error:
        case AgentCardResolutionError():
            return _explain_card(error, url)
        case A2AClientError() if isinstance(cause, httpx.HTTPStatusError):
            return f"The server answered {_status(cause.response.status_code)}"
        case A2AClientError() if isinstance(cause, httpx.ConnectError):
            return f"The agent's card leads to {cause.request.url}, where no server answers"
        case A2AClientError() if lost(error):
            return f"The connection to {url} was lost: {error.message}"
        case A2AClientError():
            return f"The server's answer cannot be used: {error.message}"
        case A2AError():
            field, blank, reason = error.message.partition(" ")
            return f"The server refused: {TYPED.get(field, field)}{blank}{reason}"
        case httpx.InvalidURL():
            return f"{url} is not an address: {error}"
        case ClientError():
            return str(error)
        case OSError() if error.strerror and not isinstance(error, ConnectionError):
            return f"The output cannot be written: {error.strerror}"
        case _:
            return f"The server's answer cannot be used: {type(error).__name__}: {error}"


def _status(code: int | None) -> str:
    wants = code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
    return f"HTTP {code} (credentials are sent with --token or --header)" if wants else f"HTTP {code}"


def _explain_card(error: AgentCardResolutionError, url: str) -> str:
    match error.__cause__:
        case httpx.UnsupportedProtocol():
            return f"{url} is not an http:// or https:// address"
        case httpx.TimeoutException():
            return f"No answer from {url} within {CONNECT_SECONDS:.0f} seconds"
        case httpx.RequestError():
            return f"No server answers at {url}"
        case httpx.HTTPStatusError():
            return f"No agent card at {url}: {_status(error.status_code)}"
        case cause:
            return f"The agent card at {url} is not valid: {cause}"
