"""Checks of a server from outside: the answers to clients with and without credentials.

Rule 1: requests only read, and redirects are not followed: credentials go only to the given address.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import grpc
import grpc.aio
import httpx
from a2a.types import ListTasksRequest

from a2a_canvas.server.commands.doctor.findings import Finding, failure, ok, warning
from a2a_canvas.server.commands.doctor.judgements import judge_anonymous, judge_clocks, judge_credentials, judge_grpc
from a2a_canvas.server.settings.value_types import is_loopback, without_password
from a2a_canvas.server.wire import TOKEN_VARIABLE, VERSION_HEADER, why_untrusted

SECONDS: Final = 5.0
CARD: Final = "/.well-known/agent-card.json"
ASKED: Final = ("/", "/rest/tasks", "/artifacts", "/metrics")
"""Paths that require credentials. At `/`, JSON-RPC lists the tasks."""
_GRPC_LIST: Final = "/lf.a2a.v1.A2AService/ListTasks"
_LIST = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}


async def check_outside(url: str, token: str, grpc_url: str = "") -> AsyncIterator[Finding]:
    """Check the answers at `url`, and over gRPC.

    Args:
        token: of a client; empty for none.
        grpc_url: where gRPC is, encrypted if this begins with https; empty for the address in the card, if it has one.
    """
    if (parts := _parts(url)) is None:
        yield failure("outside", "--url is not an address.", "Give one such as https://agent.example.com.")
        return
    url, token, local = url.rstrip("/"), token.strip(), is_loopback(parts.hostname or "")
    shown = without_password(url)
    if finding := _encryption(parts, shown):
        yield finding
    try:
        async with httpx.AsyncClient(base_url=url, timeout=SECONDS, headers={VERSION_HEADER: "1.0"}) as client:
            async for finding in _ask(client, shown, local, token, grpc_url):
                yield finding
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        if why := why_untrusted(error):
            yield failure("tls", f"{shown} answers, but {why}.", "Clients without that file need another certificate.")
        else:
            message = f"{shown} does not answer: {str(error) or type(error).__name__}."
            yield failure("outside", message, "Check the name, the proxy and the firewall.")


def _encryption(parts: SplitResult, shown: str) -> Finding | None:
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return None
    message = f"{shown} is not encrypted: keys and documents can be read in transit."
    return failure("tls", message, "Put a proxy with TLS in front of the server, and use https://.")


def _parts(url: str) -> SplitResult | None:
    """The parts of an HTTP address; None for anything else."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


async def _ask(client: httpx.AsyncClient, url: str, local: bool, token: str, grpc_url: str) -> AsyncIterator[Finding]:
    answer = await client.get(CARD)
    interfaces = _interfaces(answer)
    yield _card(interfaces, answer.status_code, url)
    if when := answer.headers.get("date"):
        yield judge_clocks(parsedate_to_datetime(when).timestamp() - int(time.time()), url)
    yield judge_anonymous({path: await _status(client, path) for path in ASKED}, local)
    if token and not re.fullmatch("[!-~]+", token):
        yield failure("credentials", f"{TOKEN_VARIABLE} contains characters that no key contains.", "Copy it again.")
        token = ""
    elif token:
        credentials = {"Authorization": f"Bearer {token}"}
        yield judge_credentials(await _status(client, "/rest/tasks", credentials), TOKEN_VARIABLE)
    else:
        yield ok("credentials", f"None were tried: {TOKEN_VARIABLE} is not set.")
    in_card = next((address for binding, address in interfaces or () if binding == "GRPC"), "")
    if in_card and not grpc_url:
        grpc_url = f"{client.base_url.scheme}://{in_card}"
        parts = _parts(grpc_url)
        token = token if parts and parts.hostname == client.base_url.host else ""  # rule 1: nothing for other hosts
    if grpc_url:
        async for finding in _ask_grpc(grpc_url, token):
            yield finding


async def _status(client: httpx.AsyncClient, path: str, headers: Mapping[str, str] | None = None) -> int:
    if path != "/":
        return (await client.get(path, headers=headers)).status_code
    answer = await client.post(path, json=_LIST, headers=headers)
    refused = answer.status_code == 200 and b'"error"' in answer.content[:200]
    return 403 if refused else answer.status_code


async def _ask_grpc(url: str, token: str) -> AsyncIterator[Finding]:
    if (parts := _parts(url)) is None:
        yield failure(
            "grpc",
            "--grpc-url, or the card's address for gRPC, is not an address.",
            "Give one such as https://grpc.example.com.",
        )
        return
    host = parts.hostname or ""
    target = f"{f'[{host}]' if ':' in host else host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    if finding := _encryption(parts, f"{parts.scheme}://{target}"):
        yield finding
    secure = grpc.aio.secure_channel(target, grpc.ssl_channel_credentials()) if parts.scheme == "https" else None
    async with secure or grpc.aio.insecure_channel(target) as channel:
        alone = await _code(channel)
        authenticated = await _code(channel, token) if token else ""
    yield judge_grpc(target, alone, authenticated, is_loopback(host))


async def _code(channel: grpc.aio.Channel, token: str = "") -> str:
    """The status code of a gRPC call that lists tasks."""
    metadata = [(VERSION_HEADER.lower(), "1.0"), *([("authorization", f"Bearer {token}")] if token else [])]
    listing: grpc.aio.UnaryUnaryMultiCallable[ListTasksRequest, bytes]
    listing = channel.unary_unary(_GRPC_LIST, ListTasksRequest.SerializeToString, None)
    return (await listing(ListTasksRequest(page_size=1), metadata=metadata, timeout=SECONDS).code()).name


def _interfaces(answer: httpx.Response) -> list[tuple[str, str]] | None:
    """The bindings in a card, with their addresses; None without a card."""
    try:
        card: Any = answer.json() if answer.status_code == 200 else None
        return [(str(each["protocolBinding"]), str(each["url"])) for each in card["supportedInterfaces"]]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        return None


def _card(interfaces: list[tuple[str, str]] | None, status: int, url: str) -> Finding:
    if interfaces is None:
        message = f"There is no agent card at {url}{CARD} (HTTP {status})."
        return failure("card", message, "Check that the proxy passes this path to the server.")
    addresses = {address for _, address in interfaces if "://" in address}
    if not any(each.startswith(url) for each in addresses):
        message = f"The card names {', '.join(sorted(addresses))}, not {url}."
        return warning("card", message, f"Start the server with --public-url {url}.")
    return ok("card", f"The card is at {url}{CARD}.")
