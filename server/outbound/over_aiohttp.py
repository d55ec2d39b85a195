"""The rules of `outbound/__init__.py` for aiohttp."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextvars import ContextVar

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

checked: ContextVar[Sequence[str]] = ContextVar("checked")
"""The addresses that the requests of this task connect to."""


class CheckedAddresses(AbstractResolver):
    """Gives aiohttp the checked addresses instead of a lookup."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [_result(host, port, address) for address in checked.get()]

    async def close(self) -> None:
        pass


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


def session(total: float, connect: float) -> aiohttp.ClientSession:
    """A session that connects only to `checked` addresses, without proxy, cookies or decompression.

    Args:
        total: seconds for a whole exchange; `connect`: for the connection.
    """
    # One connection for each attempt: another attempt must not use the one of an address it has not checked.
    connector = aiohttp.TCPConnector(resolver=CheckedAddresses(), use_dns_cache=False, force_close=True, limit=0)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=total, connect=connect),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
    )
