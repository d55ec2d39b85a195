"""The origin of a request: the other end of its connection, and the client behind trusted proxies.

Rule 1: FORWARDED_ALLOW_IPS names the trusted proxies: addresses and networks, separated by commas; 127.0.0.1 if it is
        not set. uvicorn reads `X-Forwarded-For` of HTTP itself. The metadata of gRPC is read here, in the same way: the
        last address that is not a trusted proxy's.
Rule 2: a trusted proxy can claim any address, and with `*` every client can. So the other end of the connection is
        remembered, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from starlette.types import Scope
from uvicorn.middleware.proxy_headers import _TrustedHosts

TRUSTED_PROXIES: Final = "FORWARDED_ALLOW_IPS"
FORWARDED_FOR: Final = "x-forwarded-for"
PEER: Final = "a2a_canvas.peer"
"""Key of the address of a connection's other end, in the state of the scopes of its requests."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from.

    Attributes:
        address: of the client.
        peer: the address of the other end of the connection; empty if it is not known.
    """

    address: str
    peer: str = ""


def origin_of(scope: Scope) -> Origin:
    """The origin of an HTTP request."""
    return Origin((scope.get("client") or ("",))[0], scope.get("state", {}).get(PEER, ""))


class GrpcOrigins:
    """Finds the origins of gRPC calls.

    Args:
        environment: names the trusted proxies (rule 1).
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._trusted = _TrustedHosts(environment.get(TRUSTED_PROXIES, "127.0.0.1"))

    def origin_of(self, peer: str, metadata: Iterable[tuple[str, Any]]) -> Origin:
        """The origin of a call.

        Args:
            peer: as gRPC names it, such as `ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000`.
        """
        address = _address_of(peer)
        forwarded = ",".join(str(value) for key, value in metadata if key == FORWARDED_FOR)
        if not forwarded or address not in self._trusted:
            return Origin(address, address)
        return Origin(self._trusted.get_trusted_client_address(forwarded)[0] or address, address)


def _address_of(peer: str) -> str:
    kind, _, where = unquote(peer).partition(":")
    # A server that listens on `::` sees IPv4 clients as `::ffff:…`.
    return where.rpartition(":")[0].strip("[]").removeprefix("::ffff:") if kind in ("ipv4", "ipv6") else peer
