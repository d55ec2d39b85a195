"""Sends one notification over HTTP.

Rule 1: a host is looked up once for each attempt, and the connection is made to the addresses that were checked
        (`targets.py`), whatever its name server says in the next moment. Name, certificate and the header Host are
        those of the url.
Rule 2: a redirect is not followed, no proxy and no cookie is used, no body is read.
Rule 3: no exception's text leaves here: it may have the url in it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from a2a_canvas.server.push.retries import NotAccepted, Outcome, outcome_of
from a2a_canvas.server.push.targets import (
    AllowedTargets,
    Target,
    TargetRefused,
    check_addresses,
    literal_address,
    target_of,
)

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 10.0
"""Seconds that an attempt may take, to the headers of the answer."""
LOOKUPS = 8
"""Names that are looked up at once, in threads of their own: those of others must not wait for a slow name server."""


class Lookup(Protocol):
    """Finds the addresses of hosts."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Raises `OSError` if it has none."""
        ...

    def close(self) -> None: ...


class Send(Protocol):
    """Makes attempts."""

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome: ...

    async def close(self) -> None: ...


class SystemLookup:
    """Looks names up as the system does."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="push-lookup")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await loop.run_in_executor(
                self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        return tuple(dict.fromkeys(str(each[4][0]) for each in found))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


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
            raise TargetRefused(f"names a host, {target.host}, that has no address") from None
        check_addresses(target, found, self._allowed)
        return found

    def close(self) -> None:
        self._lookup.close()


_checked: ContextVar[Sequence[str]] = ContextVar("_checked")
"""The addresses of the attempt that is made in this task."""


class _CheckedAddresses(AbstractResolver):
    """Gives aiohttp the addresses that were checked, and looks nothing up (rule 1)."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [_result(host, port, address) for address in _checked.get()]

    async def close(self) -> None:
        pass


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


class HttpSender:
    """Sends to targets that a check lets through."""

    def __init__(self, check: TargetCheck) -> None:
        self._check = check
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                target = target_of(url)
                _checked.set(await self._check.addresses(target))
                return await self._post(target, headers, body)
        except TargetRefused as refusal:
            return NotAccepted(f"its url {refusal}")
        except TimeoutError:
            return NotAccepted(f"the receiver did not answer within {TOTAL_SECONDS:g} seconds")
        except aiohttp.ClientConnectorCertificateError:
            return NotAccepted("the receiver's certificate is not valid")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return NotAccepted(f"the receiver cannot be reached ({type(error).__name__})")

    async def _post(self, target: Target, headers: Mapping[str, str], body: bytes) -> Outcome:
        session = self._opened()
        async with session.post(target.url, data=body, headers=headers, allow_redirects=False) as response:
            outcome = outcome_of(response.status, response.headers.get("Retry-After", ""))
            response.close()
            return outcome

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # One connection for each attempt: another attempt must not use the one of an address it has not checked.
            connector = aiohttp.TCPConnector(
                resolver=_CheckedAddresses(), use_dns_cache=False, force_close=True, limit=0
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=TOTAL_SECONDS, connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
            )
        return self._session

    async def close(self) -> None:
        self._check.close()
        if self._session:
            await self._session.close()
