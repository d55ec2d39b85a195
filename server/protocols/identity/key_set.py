"""The public keys of an issuer, in memory (`cached_fetch.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from a2a_canvas.server.protocols.identity.cached_fetch import CachedFetch
from a2a_canvas.server.protocols.identity.json_web_tokens import Jwk, TokenHeader, fits


class KeySet:
    """The keys that an issuer publishes.

    Args:
        fetch: reads them; raises `IssuerUnavailable`.
        clock: seconds.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Sequence[Jwk]]], clock: Callable[[], float]) -> None:
        self._published = CachedFetch("keys", fetch, clock)

    async def keys_for(self, header: TokenHeader) -> Sequence[Jwk]:
        """The keys that a token may be signed with.

        Raises:
            IssuerUnavailable: no keys have ever been read.
        """
        keys = await self._published.get(lambda keys: bool(_fitting(keys, header)))
        return _fitting(keys, header)


def _fitting(keys: Sequence[Jwk], header: TokenHeader) -> Sequence[Jwk]:
    return [key for key in keys if fits(key, header)]
