"""The events of a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx


async def sse_events(response: httpx.Response) -> AsyncGenerator[dict[str, str], None]:
    """The fields of each event that has data: not of comments."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
            continue
        if "data" in fields:
            yield fields
        fields = {}
