"""A Messages API on loopback that says what a test tells it to, and sees who hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.server.faults.fault_scripts import Json

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CALL, LEFT = "toolu_1", '"}]}}'
"""The id of the only call, and what is left of its input behind the text."""
USAGE: Json = {"input_tokens": 1, "output_tokens": 1}
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
        "usage": USAGE,
    },
}


def speaks(text: str, index: int = 0) -> list[Json]:
    """A block of text, without its end."""
    return [_block(index, {"type": "text", "text": ""}), _delta(index, {"type": "text_delta", "text": text})]


def writes(text: str, *, append: bool = True) -> list[Json]:
    """A first block that appends to the artifact `doc`, or rewrites it, as far as the text has come."""
    call: Json = {"type": "tool_use", "id": CALL, "name": "artifact_update", "input": {}}
    artifact = {"artifact_id": "doc", "parts": [{"kind": "text", "text": text}]}
    fragment = json.dumps({"append": append, "artifact": artifact}).removesuffix(LEFT)
    return [_block(0, call), _delta(0, {"type": "input_json_delta", "partial_json": fragment})]


def ends_call() -> list[Json]:
    return [_delta(0, {"type": "input_json_delta", "partial_json": LEFT}), {"type": "content_block_stop", "index": 0}]


def ends_answer() -> list[Json]:
    """The end of a block of text, and of the answer."""
    return [{"type": "content_block_stop", "index": 0}, *stops("end_turn")]


def stops(reason: str) -> list[Json]:
    """The end of an answer whose blocks have ended."""
    ended = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}}
    return [{**ended, "usage": USAGE}, {"type": "message_stop"}]


def _block(index: int, block: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}


class ModelCall:
    """One request, whose answer goes on for as long as the test wishes.

    Attributes:
        said: the conversation that it is asked to go on with.
        left: set when whoever asked has hung up.
    """

    def __init__(self, said: list[Json], writer: asyncio.StreamWriter) -> None:
        self.said = said
        self.left = asyncio.Event()
        self._writer = writer

    async def say(self, events: list[Json]) -> None:
        for event in events:
            self._writer.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await self._writer.drain()


class MessagesApi:
    """A provider with one model.

    Attributes:
        url: what ANTHROPIC_BASE_URL is to be.
        calls: as they come.
    """

    def __init__(self) -> None:
        self.url = ""
        self.calls: asyncio.Queue[ModelCall] = asyncio.Queue()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        (length,) = (int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length:"))
        call = ModelCall(json.loads(await reader.readexactly(length))["messages"], writer)
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


def behind(api: MessagesApi) -> dict[str, str]:
    """The environment of a server that asks this model."""
    return {"ANTHROPIC_BASE_URL": api.url, "NO_PROXY": "127.0.0.1"}


MODEL = "claude-sonnet-5-5"
