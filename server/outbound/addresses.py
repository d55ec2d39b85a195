"""The addresses of hosts: which are public, and how they are found.

Rule: a host is looked up where the connection is made, and the addresses that were checked are those connected to.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Protocol

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

CONNECT_SECONDS = 5.0
"""Seconds to find the addresses of a host."""
LOOKUPS = 128
"""Names that are looked up at once, each in a thread of its own. A name server that hangs takes one for longer than an
attempt lasts: they are more than twice the notifications of one user at once, so that nobody else waits for it."""

_UNICAST = ipaddress.IPv6Network("2000::/3")
_REFUSED = tuple(
    ipaddress.ip_network(each)
    for each in ("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/3", "2001::/23", "2002::/16", "3fff::/20")
)
"""Networks that `is_global` takes for public, or that newer versions of Python do: those of special use."""


def address_of(text: str) -> Address:
    """An address; one of IPv4 that is written as one of IPv6 counts as what it is."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address


def is_public(address: Address) -> bool:
    """Whether an address is on the public internet. Those of IPv6 that have one of IPv4 in them are not: they are ways
    around checks."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if any(address.version == network.version and address in network for network in _REFUSED):
        return False
    return address.version == 4 or address in _UNICAST


def literal_address(host: str) -> str | None:
    """The host, if it is an address and no name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


class Lookup(Protocol):
    """Finds the addresses of hosts."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Raises `OSError` if it has none."""
        ...


class SystemLookup:
    """Looks names up as the system does. Its threads end with the process: none of them can hold it up."""

    def __init__(self) -> None:
        self._threads = asyncio.Semaphore(LOOKUPS)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        found: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(CONNECT_SECONDS):
            await self._threads.acquire()
            Thread(target=self._look_up, args=(host, port, found), name="lookup", daemon=True).start()
            return await found

    def _look_up(self, host: str, port: int, found: asyncio.Future[Sequence[str]]) -> None:
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            deliver = partial(found.set_result, tuple(dict.fromkeys(str(each[4][0]) for each in addresses)))
        except (OSError, UnicodeError) as error:
            deliver = partial(found.set_exception, error)
        with suppress(RuntimeError):  # the server has ended meanwhile
            found.get_loop().call_soon_threadsafe(self._deliver, found, deliver)

    def _deliver(self, found: asyncio.Future[Sequence[str]], deliver: Callable[[], None]) -> None:
        self._threads.release()
        if not found.done():
            deliver()
