"""The rules of the way out (`outbound/__init__.py`) for httpx2."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpx2

from a2a_canvas.server.outbound.answers import MAX_MESSAGE, UNCOMPRESSED, AnswerMeter


class UnreadableMessage(httpx2.StreamError):
    """An answer is too large or compressed; `str()` says why. MCP's SDK fails one call for it, not the connection."""


def limiting(most: int = MAX_MESSAGE) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A hook that limits each answer of a client, which has the headers `UNCOMPRESSED`."""

    async def limit(response: httpx2.Response) -> None:
        response.stream = _Httpx2Body(response.stream, AnswerMeter.of(response, most))

    return limit


class LimitedClient(httpx2.AsyncClient):
    """A client whose answers are limited. It follows no redirect; MCP's SDK follows those within an origin."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> None:
        super().__init__(headers=headers, timeout=timeout, auth=auth, event_hooks={"response": [limiting()]})
        self.headers.update(UNCOMPRESSED)


class _Httpx2Body(httpx2.AsyncByteStream):
    """A body that breaks off where it is too large."""

    def __init__(self, stream: Any, meter: AnswerMeter) -> None:
        self._stream, self._meter = stream, meter

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._meter.read(self._stream, UnreadableMessage)

    async def aclose(self) -> None:
        await self._stream.aclose()
