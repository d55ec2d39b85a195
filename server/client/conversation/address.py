"""The server's address as a user types it, and the headers of every request.

Rule: a header may be a secret: its value appears in no error, suggested command or `repr`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.wire import TOKEN_VARIABLE

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_PORT = 8000
MAX_PORT = 65535
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([!-~](?:[ -~]*[!-~])?)[ \t]*")
_TOKEN = re.compile("[!-~]+")


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOCAL = re.compile(r"(localhost|[^./:]+|[\d.]+|\[.*\])(:\d*)?(/.*)?")
_BINDING = re.compile(r"/(rest(/v1)?|v1|canvas/stream|artifacts(/.*)?)?/?$")


def server_url(typed: str) -> str:
    """The address of a server with a scheme: `http` for localhost, a name without a dot and numbers, else `https`."""
    typed = typed.strip()
    return typed if not typed or _SCHEME.match(typed) else f"http{'' if _LOCAL.fullmatch(typed) else 's'}://{typed}"


def check_url(typed: str) -> str:
    """The same, if it can be the address of a server.

    Raises:
        CannotBeDone: it is a port, the link of a share, or has a port that does not exist.
    """
    if re.fullmatch("[0-9]{2,5}", typed.strip(), re.ASCII):
        raise CannotBeDone(f"{typed.strip()} is not an address. Did you mean http://127.0.0.1:{typed.strip()}?")
    url, _, fragment = server_url(typed).partition("#")
    if fragment.startswith("share="):
        raise CannotBeDone(
            f"This is a link for a browser. In a terminal use --url {url.rstrip('/')}, set {TOKEN_VARIABLE} to what "
            "follows #share=, and give --context ID, which a2a-canvas contexts lists"
        )
    port = re.search(":([0-9]+)$", urlsplit(url).netloc.rpartition("@")[2], re.ASCII)
    if port and not 1 <= int(port[1]) <= MAX_PORT:
        raise CannotBeDone(f"Port {port[1]} is invalid: 1 to {MAX_PORT}")
    return server_url(typed)


def is_local(url: str) -> bool:
    """Whether a server at this address would run on this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def agent_addresses(url: str) -> list[str]:
    """The possible addresses of an agent: this one, or the one above the path of a binding."""
    return list(dict.fromkeys([url, _BINDING.sub("", url)]))


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """A header of every request to the server.

    `option` is how it is typed, without its value; empty if it comes from the environment.
    """

    name: str
    value: str = field(repr=False)
    option: str = ""


RequestHeaders = tuple[RequestHeader, ...]


def header(text: str) -> RequestHeader:
    """A header as it is typed, `Name: value`. Raises `ValueError`."""
    parts = _HEADER.fullmatch(text)
    if not parts:
        raise ValueError("must be a name, a colon and a value, all in ASCII")
    return RequestHeader(parts[1], parts[2], f"--header '{parts[1]}: …'")


def token_header(token: str, option: str = "--token …") -> RequestHeader:
    """The header that has a bearer token. Raises `ValueError`."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("must be one word of ASCII characters")
    return RequestHeader("Authorization", f"Bearer {token}", option)


def all_headers(typed: Sequence[RequestHeader]) -> RequestHeaders:
    """The headers that were typed, and the token of the environment if they have none.

    Raises:
        CannotBeDone: a header is given twice, or the token is invalid.
    """
    names = [each.name.lower() for each in typed]
    for name in names:
        if names.count(name) > 1:
            raise CannotBeDone(f"The header {name} is given twice")
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token or "authorization" in names:
        return tuple(typed)
    try:
        return (*typed, token_header(token, ""))
    except ValueError as error:
        raise CannotBeDone(f"{TOKEN_VARIABLE} {error}") from None
