"""A Messages API on loopback that says what a test tells it to, and sees who hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.server.faults.plays import Json

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
START: Json = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}


def speaks(text: str) -> list[Json]:
    """The beginning of an answer that speaks."""
    return [START, _block({"type": "text", "text": ""}), _delta({"type": "text_delta", "text": text})]


def writes(text: str) -> list[Json]:
    """The beginning of an answer that writes an artifact."""
    call: Json = {"type": "tool_use", "id": "toolu_1", "name": "artifact_update", "input": {}}
    fragment = '{"append": false, "artifact": {"artifact_id": "doc", "parts": [{"kind": "text", "text": ' + json.dumps(
        text
    )
    return [START, _block(call), _delta({"type": "input_json_delta", "partial_json": fragment[:-1]})]


def _block(block: Json) -> Json:
    return {"type": "content_block_start", "index": 0, "content_block": block}


def _delta(delta: Json) -> Json:
    return {"type": "content_block_delta", "index": 0, "delta": delta}


class ModelCall:
    """One request, whose answer goes on for as long as the test wishes.

    Attributes:
        left: set when whoever asked has hung up.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.left = asyncio.Event()
        self._writer = writer

    async def say(self, events: list[Json]) -> None:
        for event in events:
            self._writer.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await self._writer.drain()


class MessagesApi:
    """Attributes:
    url: what ANTHROPIC_BASE_URL is to be.
    calls: as they come.
    """

    def __init__(self) -> None:
        self.url = ""
        self.calls: asyncio.Queue[ModelCall] = asyncio.Queue()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        (length,) = (int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length:"))
        await reader.readexactly(length)
        call = ModelCall(writer)
        writer.write(HEAD)
        self.calls.put_nowait(call)
        await reader.read()
        call.left.set()
        writer.close()


@asynccontextmanager
async def messages_api() -> AsyncIterator[MessagesApi]:
    api = MessagesApi()
    server = await asyncio.start_server(api.answer, "127.0.0.1", 0)
    async with server:
        api.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield api
