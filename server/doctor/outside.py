"""How a server looks from outside: what a client gets at its address, with and without credentials.

Rule 1: only what reads is asked, and redirects are not followed: credentials go to the address that was given.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import httpx

from a2a_canvas.server.doctor.findings import Finding, failed, ok, warning
from a2a_canvas.server.doctor.judgements import judge_anonymous, judge_clocks, judge_credentials
from a2a_canvas.server.settings import is_loopback, without_password
from a2a_canvas.server.wire import TOKEN_VARIABLE, VERSION_HEADER

SECONDS: Final = 5.0
CARD: Final = "/.well-known/agent-card.json"
ASKED: Final = ("/", "/rest/tasks", "/artifacts", "/metrics")
"""The paths that nobody should be answered at without credentials. At `/` the tasks are listed by JSON-RPC."""
_LIST = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}


async def check_outside(url: str, token: str) -> AsyncIterator[Finding]:
    """Args: token: what a client would send; empty for none."""
    if (parts := _parts(url)) is None:
        yield failed("outside", "--url is no address.", "Give one such as https://agent.example.com.")
        return
    url, token, local = url.rstrip("/"), token.strip(), is_loopback(parts.hostname or "")
    shown = without_password(url)
    if parts.scheme != "https" and not local:
        said = f"{shown} is not encrypted: keys and documents can be read on the way."
        yield failed("tls", said, "Put a proxy with TLS before the server, and use https://.")
    try:
        async with httpx.AsyncClient(base_url=url, timeout=SECONDS, headers={VERSION_HEADER: "1.0"}) as client:
            async for finding in _ask(client, shown, local, token):
                yield finding
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        said = f"{shown} does not answer: {str(error) or type(error).__name__}."
        yield failed("outside", said, "Check the name, the proxy and the firewall.")


def _parts(url: str) -> SplitResult | None:
    """An address that can be asked; None for anything else, of which nothing is repeated."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


async def _ask(client: httpx.AsyncClient, url: str, local: bool, token: str) -> AsyncIterator[Finding]:
    answer = await client.get(CARD)
    yield _card(answer, url)
    if when := answer.headers.get("date"):
        yield judge_clocks(parsedate_to_datetime(when).timestamp() - int(time.time()), url)
    yield judge_anonymous({path: await _status(client, path) for path in ASKED}, local)
    if token and not re.fullmatch("[!-~]+", token):
        yield failed("credentials", f"{TOKEN_VARIABLE} has characters that no key has.", "Copy it again.")
    elif token:
        credentials = {"Authorization": f"Bearer {token}"}
        yield judge_credentials(await _status(client, "/rest/tasks", credentials), TOKEN_VARIABLE)
    else:
        yield ok("credentials", f"None were tried: {TOKEN_VARIABLE} is not set.")


async def _status(client: httpx.AsyncClient, path: str, headers: Mapping[str, str] | None = None) -> int:
    if path != "/":
        return (await client.get(path, headers=headers)).status_code
    answer = await client.post(path, json=_LIST, headers=headers)
    refused = answer.status_code == 200 and b'"error"' in answer.content[:200]
    return 403 if refused else answer.status_code


def _card(answer: httpx.Response, url: str) -> Finding:
    try:
        card: Any = answer.json() if answer.status_code == 200 else None
        addresses = [str(each["url"]) for each in card["supportedInterfaces"] if "://" in str(each["url"])]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        said = f"There is no agent card at {url}{CARD} (HTTP {answer.status_code})."
        return failed("card", said, "Check that the proxy passes this path to the server.")
    if not any(each.startswith(url) for each in addresses):
        said = f"The card names {', '.join(sorted({*addresses}))}, not {url}."
        return warning("card", said, f"Start the server with --public-url {url}.")
    return ok("card", f"The card is at {url}{CARD}.")
