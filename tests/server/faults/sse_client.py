"""The streams of a server's JSON-RPC binding, read event by event."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from tests.server.faults.fault_scripts import Json
from tests.server.faults.observed_task import CANVAS, TURN, ObservedTask

EXTENSIONS = f"{TURN}, {CANVAS}"
INTERNAL_ERROR = -32603


def envelope(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


class Refused(Exception):
    """The answer, or the last event of a stream, is an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(json.dumps(error))
        self.code = error["code"]
        self.retryable = any(info.get("metadata", {}).get("retryable") for info in error.get("data", ()))


class Stream:
    """A stream of events, read step by step."""

    def __init__(self, response: httpx.Response, told: ObservedTask) -> None:
        self.told = told
        self._events = _results(response)

    async def next(self) -> Json:
        """One event.

        Raises:
            StopAsyncIteration: the answer is complete.
            Refused: it is an error.
            httpx.TransportError: the connection broke.
        """
        result = await anext(self._events)
        self.told.take(result)
        return result

    async def until(self, holds: Callable[[ObservedTask], Any]) -> None:
        """Read on until something was told."""
        while not holds(self.told):
            await self.next()

    async def rest(self) -> ObservedTask:
        """Read to the end of the answer."""
        try:
            while True:
                await self.next()
        except StopAsyncIteration:
            return self.told


async def _results(response: httpx.Response) -> AsyncIterator[Json]:
    if "text/event-stream" not in response.headers["content-type"]:
        answers: AsyncIterator[Any] = _once(json.loads(await response.aread()))
    else:
        answers = (json.loads(line[5:]) async for line in response.aiter_lines() if line.startswith("data:"))
    async for answer in answers:
        if error := answer.get("error"):
            raise Refused(error)
        yield answer["result"]


async def _once(answer: Json) -> AsyncIterator[Json]:
    yield answer
