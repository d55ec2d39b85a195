"""The public keys of an issuer, in memory.

Rule 1: they are fetched when they are needed first, when they are older than MAX_AGE, and when a token has a key that
        is not among them: issuers change their keys. Between two attempts there are at least MIN_INTERVAL seconds, so
        that made-up keys cost the issuer nothing.
Rule 2: while they cannot be fetched, those of before count.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable
from a2a_canvas.server.protocols.identity.json_web_tokens import Jwk, TokenHeader, fits

logger = logging.getLogger(__name__)

MAX_AGE = 300.0
MIN_INTERVAL = 10.0


class KeySet:
    """The keys.

    Args:
        fetch: reads them; raises `IssuerUnavailable`.
        clock: seconds.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Sequence[Jwk]]], clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: Sequence[Jwk] | None = None
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def keys_for(self, header: TokenHeader) -> Sequence[Jwk]:
        """The keys that a token may be signed with.

        Raises:
            IssuerUnavailable: none were ever read.
        """
        if self._is_old() or not self._fitting(header):
            await self._refresh()
        if self._keys is None:
            raise IssuerUnavailable("The keys of the issuer of tokens could not be read yet.")
        return self._fitting(header)

    def _is_old(self) -> bool:
        return self._clock() - self._fetched_at >= MAX_AGE

    def _fitting(self, header: TokenHeader) -> Sequence[Jwk]:
        return [key for key in self._keys or () if fits(key, header)]

    async def _refresh(self) -> None:
        if self._fetching is None or self._fetching.done():
            if self._clock() - self._tried_at < MIN_INTERVAL:
                return
            self._tried_at = self._clock()
            self._fetching = asyncio.create_task(self._read(), name="keys of the issuer")
        await asyncio.shield(self._fetching)

    async def _read(self) -> None:
        try:
            self._keys = await self._fetch()
            self._fetched_at = self._clock()
        except IssuerUnavailable as error:
            if self._keys is None:
                logger.warning("%s No token can be checked until its keys are read.", error)
            else:
                logger.warning("%s Tokens are checked with the keys that were read before.", error)
