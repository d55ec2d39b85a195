"""What sends notifications: the check of a target, and the way to it (`http_sender.py`).

Rule: a host is looked up once for each attempt, and what is checked are the addresses that are connected to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol

from a2a_canvas.server.outbound.addresses import Lookup, literal_address
from a2a_canvas.server.push.retries import Outcome
from a2a_canvas.server.push.targets import (
    AllowedTargets,
    Target,
    check_addresses,
    no_public_address,
    target_of,
    unknown_host,
)

TOTAL_SECONDS = 10.0
"""Seconds that an attempt may take, to the headers of the answer."""


class Send(Protocol):
    """Makes attempts."""

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome: ...

    async def close(self) -> None: ...


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
            raise (unknown_host if self._allowed.has_name(target.host) else no_public_address)(target) from None
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
