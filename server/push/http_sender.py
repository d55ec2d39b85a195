"""Attempts over HTTP, with aiohttp.

Rule 1: the connection is made to the addresses that were checked (`targets.py`), whatever a name server says in the
        next moment. Name, certificate and the header Host are those of the url.
Rule 2: a redirect is not followed, no proxy and no cookie is used, no body is read.
Rule 3: no exception's text leaves here: it may have the url in it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from io import BytesIO

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from a2a_canvas.server.push.retries import NotAccepted, Outcome, outcome_of
from a2a_canvas.server.push.sending import CONNECT_SECONDS, TOTAL_SECONDS, TargetCheck
from a2a_canvas.server.push.targets import Target, TargetRefused, target_of

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
        # A stream is written piece by piece: one receiver that does not read gets no second copy of the body.
        async with session.post(target.url, data=BytesIO(body), headers=headers, allow_redirects=False) as response:
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
        if self._session:
            await self._session.close()
