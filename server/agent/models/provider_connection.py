"""The connection to a provider: its address, and a limit of silence while it answers. Without the SDKs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Final

import httpx2

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of one answer: more than 200,000 tokens, because an event per token takes less than 0.3 kB."""
MAX_SILENCE: Final = 600.0
"""Seconds that a provider may send nothing, unless the client has its own timeout."""
NO_KEY: Final = "none"
"""The key for a server that needs none, because the SDKs require one."""


def address_in(
    environ: Mapping[str, str], variable: str, default: str, example: str
) -> tuple[httpx2.URL, httpx2.BasicAuth | None]:
    """The address in a variable, and the credentials in it: aiohttp accepts none next to a header.

    Raises:
        ValueError: it is not an address.
    """
    address = environ.get(variable, "").strip() or default
    if not re.match(r"https?://[^/:@\s]", address):
        raise ValueError(f"{variable} is not an address: it must look like {example}")
    url = httpx2.URL(address)
    if not url.userinfo:
        return url, None
    return url.copy_with(userinfo=b""), httpx2.BasicAuth(url.username, url.password)


class SilenceLimit:
    """Closes a response that sends nothing for too long: after an invalid chunk aiohttp would wait forever.

    One timer per answer, not per read: there is a read for every token.
    """

    def __init__(self, response: httpx2.Response, seconds: float) -> None:
        self._response = response
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer = self._loop.call_later(seconds, self._check)
        self._closing: asyncio.Task[None] | None = None

    async def contents(self) -> AsyncGenerator[bytes, None]:
        """The contents as they arrive.

        Raises:
            httpx2.RequestError: the connection broke, or was silent for too long.
        """
        contents = self._response.aiter_bytes()
        try:
            self._since = self._loop.time()
            async for content in contents:
                self._since = None  # until the next read
                yield content
                self._since = self._loop.time()
        finally:
            self._timer.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        left = self._seconds - (now - self._since) if self._since is not None else self._seconds
        if left > 0:
            self._timer = self._loop.call_later(left, self._check)
        else:
            self._closing = self._loop.create_task(self._response.aclose())
