"""The contents of a response that may be silent for only so long. Of httpx2, and nothing of a provider's SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx2


class SilenceLimit:
    """Closes a response that sends nothing for too long: after a chunk that is none, aiohttp waits without end.

    One timer for each answer, not for each read: there is a read for every token.
    """

    def __init__(self, response: httpx2.Response, seconds: float) -> None:
        self._response = response
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer = self._loop.call_later(seconds, self._check)
        self._closing: asyncio.Task[None] | None = None

    async def contents(self) -> AsyncGenerator[bytes, None]:
        """The contents, as they come.

        Raises:
            httpx2.RequestError: the connection broke, or nothing has come for so long.
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
