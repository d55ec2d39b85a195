"""The rules of `outbound/__init__.py` for httpx2."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from a2a_canvas.server.outbound.answers import MAX_MESSAGE, UNCOMPRESSED, AnswerMeter


class UnreadableMessage(httpx2.StreamError):
    """An answer is too large or compressed; `str()` says why. MCP's SDK fails one call for it, not the connection."""


def limit_answers(client: httpx2.AsyncClient, most: int = MAX_MESSAGE, *, by_event: bool = True) -> httpx2.AsyncClient:
    """Limit the answers of a client, and disable redirects; returns the client.

    Args:
        most: the maximum bytes of a body, or of each event of a stream.
        by_event: the limit applies to each event, not to a stream as a whole.
    """

    async def limit(response: httpx2.Response) -> None:
        response.stream = _Httpx2Body(response.stream, AnswerMeter.for_response(response, most, by_event=by_event))

    client.event_hooks["response"].append(limit)
    client.headers.update(UNCOMPRESSED)
    client.follow_redirects = False
    return client


class LimitedClient(httpx2.AsyncClient):
    """A client with limited answers. It follows no redirects; MCP's SDK follows those within an origin."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> None:
        super().__init__(headers=headers, timeout=timeout, auth=auth)
        limit_answers(self)


class _Httpx2Body(httpx2.AsyncByteStream):
    """A body that breaks off at its limit."""

    def __init__(self, stream: Any, meter: AnswerMeter) -> None:
        self._stream, self._meter = stream, meter

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._meter.read(self._stream, UnreadableMessage)

    async def aclose(self) -> None:
        await self._stream.aclose()
