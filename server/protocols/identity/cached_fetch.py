"""Caches what an issuer publishes.

Rule 1: it is fetched when it is first needed, when it is older than MAX_AGE, and when it lacks what is needed: issuers
        change their keys. Fetches are at least MIN_INTERVAL seconds apart, so that requests with invented keys, or many
        sign-ins, do not burden the issuer.
Rule 2: while it cannot be fetched, the cached value remains valid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable

logger = logging.getLogger(__name__)

MAX_AGE = 300.0
MIN_INTERVAL = 10.0

T = TypeVar("T")


class CachedFetch(Generic[T]):
    """One cached value.

    Args:
        what: its name in messages for the operator, in the plural.
        fetch: reads it; raises `IssuerUnavailable`.
        clock: seconds.
    """

    def __init__(self, what: str, fetch: Callable[[], Awaitable[T]], clock: Callable[[], float]) -> None:
        self._what = what
        self._fetch = fetch
        self._clock = clock
        self._value: T | None = None
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def get(self, is_enough: Callable[[T], bool] = lambda value: True) -> T:
        """The value, fetched if necessary (rule 1).

        Args:
            is_enough: whether the value has what is needed.

        Raises:
            IssuerUnavailable: it has never been read.
        """
        is_old = self._clock() - self._fetched_at >= MAX_AGE
        if is_old or self._value is None or not is_enough(self._value):
            await self._refresh()
        if self._value is None:
            raise IssuerUnavailable(f"The {self._what} of the token issuer have not been read yet.")
        return self._value

    async def _refresh(self) -> None:
        if self._fetching is None or self._fetching.done():
            if self._clock() - self._tried_at < MIN_INTERVAL:
                return
            self._tried_at = self._clock()
            self._fetching = asyncio.create_task(self._read(), name=f"{self._what} of the issuer")
        await asyncio.shield(self._fetching)

    async def _read(self) -> None:
        try:
            self._value = await self._fetch()
            self._fetched_at = self._clock()
        except IssuerUnavailable as error:
            known = (
                f"There are no cached {self._what}" if self._value is None else f"The cached {self._what} stay valid"
            )
            logger.warning("%s %s.", error, known)
