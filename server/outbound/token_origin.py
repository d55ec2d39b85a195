"""The origin that a credential is for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class TokenOrigin(NamedTuple):
    """The origin of an HTTP address; empty for any other."""

    scheme: str = ""
    host: str = ""
    port: int = 0

    @property
    def authority(self) -> str:
        """Host and port, without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS.get(self.scheme) else f"{host}:{self.port}"

    @classmethod
    def parse(cls, url: str) -> TokenOrigin:
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            return cls()
        return cls(parts.scheme, parts.hostname, port) if parts.hostname and port else cls()


def token_for(url: str, configured: str, tokens: Mapping[str, str]) -> str:
    """The token of a request; empty if its origin has none.

    Args:
        url: of the request.
        configured: the address that the operator configured, which led to `url`.
        tokens: by `host:port`, or by host for the configured port. An IPv6 address has brackets if a port follows.
    """
    to, own = TokenOrigin.parse(url), TokenOrigin.parse(configured)
    if not to.host or is_downgrade(url, configured):
        return ""
    of_host = tokens.get(to.host, "") if to[1:] == own[1:] else ""
    host = f"[{to.host}]" if ":" in to.host else to.host
    return tokens.get(f"{host}:{to.port}", of_host)


def is_downgrade(url: str, configured: str) -> bool:
    """Whether an address without TLS is used in place of one with it."""
    return TokenOrigin.parse(configured).scheme == "https" and TokenOrigin.parse(url).scheme != "https"
