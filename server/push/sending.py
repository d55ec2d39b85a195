"""What sends notifications: the check of a target, and the way to it (`http_sender.py`).

Rule: a host is looked up once for each attempt, and what is checked are the addresses that are connected to.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Protocol

from a2a_canvas.server.push.retries import Outcome
from a2a_canvas.server.push.targets import (
    AllowedTargets,
    Target,
    check_addresses,
    literal_address,
    no_public_address,
    target_of,
)

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 10.0
"""Seconds that an attempt may take, to the headers of the answer."""
LOOKUPS = 128
"""Names that are looked up at once, each in a thread of its own. A name server that hangs takes one for longer than an
attempt lasts: they are more than twice the attempts of one user (`places.py`), so that nobody else waits for it."""


class Lookup(Protocol):
    """Finds the addresses of hosts."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Raises `OSError` if it has none."""
        ...


class Send(Protocol):
    """Makes attempts."""

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome: ...

    async def close(self) -> None: ...


class SystemLookup:
    """Looks names up as the system does. Its threads end with the process: none of them can hold it up."""

    def __init__(self) -> None:
        self._threads = asyncio.Semaphore(LOOKUPS)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        found: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(CONNECT_SECONDS):
            await self._threads.acquire()
            Thread(target=self._look_up, args=(host, port, found), name="push-lookup", daemon=True).start()
            return await found

    def _look_up(self, host: str, port: int, found: asyncio.Future[Sequence[str]]) -> None:
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            told = partial(found.set_result, tuple(dict.fromkeys(str(each[4][0]) for each in addresses)))
        except (OSError, UnicodeError) as error:
            told = partial(found.set_exception, error)
        with suppress(RuntimeError):  # the server has ended meanwhile
            found.get_loop().call_soon_threadsafe(self._tell, found, told)

    def _tell(self, found: asyncio.Future[Sequence[str]], told: Callable[[], None]) -> None:
        self._threads.release()
        if not found.done():
            told()


class TargetCheck:
    """Finds the addresses of targets, and refuses those that may not be connected to."""

    def __init__(self, allowed: AllowedTargets, lookup: Lookup) -> None:
        self._allowed = allowed
        self._lookup = lookup

    async def __call__(self, url: str) -> Target:
        """The target of a url, checked.

        Raises:
            TargetRefused: it may not be connected to.
        """
        target = target_of(url)
        await self.addresses(target)
        return target

    async def addresses(self, target: Target) -> Sequence[str]:
        """The addresses to connect to.

        Raises:
            TargetRefused: it may not be connected to.
        """
        literal = literal_address(target.host)
        try:
            found = [literal] if literal else await self._lookup(target.host, target.port)
        except (OSError, UnicodeError):
            raise no_public_address(target) from None
        check_addresses(target, found, self._allowed)
        return found


class PushSender:
    """Sends to targets that a check lets through. What speaks HTTP is imported with the first attempt."""

    def __init__(self, check: TargetCheck) -> None:
        self._check = check
        self._http: Send | None = None

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        if self._http is None:
            module = await asyncio.to_thread(import_module, "a2a_canvas.server.push.http_sender")
            self._http = self._http or module.HttpSender(self._check)
        return await self._http(url, headers, body)

    async def close(self) -> None:
        if self._http:
            await self._http.close()
