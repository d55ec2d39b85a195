"""The hosts that the server answers to, and the origins whose pages may use it: checked before everything else.

Rules:
1. The `Host` of a request must be one of the server's names. A page on the internet can resolve its own name to this
   machine's address (DNS rebinding), and a browser then treats this server as that page's origin; `Host` reveals it.
2. A browser sends the origin of a page in `Origin`. It must be the server's own, as in `Host` or the public address, or
   one that the operator allows (CORS): other pages can change nothing here, and without CORS headers they could not
   read an answer either.
3. A request without `Origin` does not come from a page and passes; so does HTTP/1.0 without `Host`: browsers do not
   speak it.
4. An IP address as the host cannot be rebound. A server that listens on all addresses accepts any IP address.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from a2a.utils.errors import InvalidRequestError

from a2a_canvas.server.protocols.edge.error_tables import PermissionDeniedError
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.settings.settings import ALL_ADDRESSES, Settings
from a2a_canvas.server.wire import EXTENSIONS_HEADERS, VERSION_HEADER

LOCALHOST = ("localhost", "127.0.0.1", "::1")

_PORTS = {"http": ":80", "https": ":443"}
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/?#@\s]+))(?::([0-9]{0,5}))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The allowed values of `Host` and `Origin`.

    Attributes:
        names: hosts in lower case, without ports; `*` for any, `*.example.com` for any subdomain.
        any_address: any IP address is allowed as well.
        origins: allowed in addition to the origin of the request's own `Host`, in lower case.
    """

    names: frozenset[str]
    any_address: bool = False
    origins: frozenset[str] = frozenset()

    @classmethod
    def for_server(
        cls, host: str, public_url: str | None = None, more: Iterable[str] = (), cors_origins: Iterable[str] = ()
    ) -> Hosts:
        """The names of a server.

        Args:
            host: where it listens.
            public_url: its public address, if it has one.
            more: names added by the operator.
            cors_origins: origins allowed by the operator.
        """
        everywhere = host in ALL_ADDRESSES
        public = urlsplit(public_url or "")
        names = {*LOCALHOST, *more, socket.gethostname() if everywhere else host, public.hostname or ""}
        own = (f"{public.scheme}://{public.netloc.rpartition('@')[2]}",) if public_url else ()
        origins = frozenset(origin.lower() for origin in (*own, *cors_origins))
        return cls(frozenset(name.lower() for name in names if name), everywhere, origins)

    def check(self, host: str | None, origin: str | None) -> Refusal | None:
        """Why a request with these headers is refused; None if it may pass."""
        if host is not None and not self._knows(host):
            return _refusal(421, f"This server does not answer to the host {host[:255]!r}. {_ADVICE}")
        if origin is None or origin.lower() in self.origins or _is_page_of(origin, host):
            return None
        return _refusal(403, f"Pages from {origin[:255]!r} may not use this server. {_CORS_ADVICE}")

    def _knows(self, host: str) -> bool:
        if "*" in self.names:
            return True
        name = _host_of(host)
        if name in self.names or (self.any_address and _is_address(name)):
            return True
        return any(name.endswith(allowed[1:]) for allowed in self.names if allowed.startswith("*."))


def hosts_of(settings: Settings) -> Hosts:
    """The hosts and origins of a server with these settings."""
    return Hosts.for_server(settings.host, settings.public_url, settings.allowed_hosts, settings.cors_origin)


_ADVICE = (
    "If it is one of this server's names, its operator starts it with --allowed-hosts NAME (or "
    "A2A_CANVAS_ALLOWED_HOSTS), or with --public-url if it is its public address."
)


_CORS_ADVICE = "To allow it, its operator starts it with --cors-origin ORIGIN (or A2A_CANVAS_CORS_ORIGIN)."


_EXPOSED = (
    *("WWW-Authenticate", "Retry-After", "Allow", "Accept-Encoding", "ETag", "Content-Disposition"),
    *("Stream-Next-Offset", "Stream-Up-To-Date", "Stream-Closed", "Stream-Cursor"),
)
"""Headers of answers that a page of another origin may read, in addition to those that browsers always allow."""


def cors_options(origins: Sequence[str]) -> dict[str, Any]:
    """The arguments of Starlette's `CORSMiddleware`, the outermost one: refusals need its headers, too."""
    return {
        "allow_origins": origins,
        "allow_methods": ("GET", "HEAD", "POST", "PATCH", "DELETE"),
        "allow_headers": ("Authorization", VERSION_HEADER, *EXTENSIONS_HEADERS, "If-None-Match", "Last-Event-ID"),
        "expose_headers": (*EXTENSIONS_HEADERS, *_EXPOSED),
        "allow_private_network": True,  # the operator has named the origin
    }


def _refusal(status: int, text: str) -> Refusal:
    return Refusal(PermissionDeniedError if status == 403 else InvalidRequestError, text, http_status=status)


def _host_of(authority: str) -> str:
    """The host of `host:port`, in lower case; empty if it is malformed."""
    found = _AUTHORITY.fullmatch(authority.strip())
    return (found[1] or found[2]).lower().rstrip(".") if found else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_page_of(origin: str, host: str | None) -> bool:
    """Whether an origin is that of `host`, with any scheme: behind a proxy the browser's scheme is unknown."""
    scheme, _, authority = origin.lower().partition("://")
    port = _PORTS.get(scheme)
    return port is not None and host is not None and authority.removesuffix(port) == host.lower().removesuffix(port)
