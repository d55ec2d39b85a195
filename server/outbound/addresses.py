"""The addresses of hosts: whether they are public, and their lookup.

Rule: a host is looked up when the connection is made, and only checked addresses are connected to.
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
"""The time-out of a lookup, in seconds."""
LOOKUPS = 128
"""The most concurrent lookups, each in its own thread. A hanging name server occupies one for longer than an attempt
lasts: they are more than twice a user's concurrent notifications, so that no other user waits for it."""

_UNICAST = ipaddress.IPv6Network("2000::/3")
_REFUSED = tuple(
    ipaddress.ip_network(each)
    for each in ("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/3", "2001::/23", "2002::/16", "3fff::/20")
)
"""Special-use networks that `is_global` takes for public, in this or newer versions of Python."""


def address_of(text: str) -> Address:
    """An address; an IPv4-mapped IPv6 address is converted to IPv4."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address


def is_public(address: Address) -> bool:
    """Whether an address is on the public internet. IPv6 addresses with an IPv4 address inside are not: they could
    bypass checks."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if any(address.version == network.version and address in network for network in _REFUSED):
        return False
    return address.version == 4 or address in _UNICAST


def literal_address(host: str) -> str | None:
    """The host, if it is an address rather than a name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


class Lookup(Protocol):
    """Looks up the addresses of hosts."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Raises `OSError` if there are none."""
        ...


class SystemLookup:
    """The system's lookup, in threads that cannot delay the end of the process."""

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
        with suppress(RuntimeError):  # the server has ended in the meantime
            found.get_loop().call_soon_threadsafe(self._deliver, found, deliver)

    def _deliver(self, found: asyncio.Future[Sequence[str]], deliver: Callable[[], None]) -> None:
        self._threads.release()
        if not found.done():
            deliver()
