"""A model's provider on the loopback interface: a Messages API that writes an artifact at the pace it is asked for.

Run as `python -m bench.messages_api PORT`. The answer to a message with an order (`pace.py`) streams one call of
`artifact_update`, a piece of its input for each event, as a provider does; the answer to the call's result is empty.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncGenerator
from typing import Any

from bench.pace import SIZE, Order
from bench.paced_server import CLOSING, OPENING

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
CALL = {"type": "tool_use", "id": "toolu_1", "name": "artifact_update", "input": {}}
ORDER = re.compile(rb"(?:pace|write) \d+(?: [\d.]+)?")


def event(kind: str, **fields: Any) -> bytes:
    """A chunk with one event."""
    data = f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, separators=(',', ':'))}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def delta(piece: str) -> bytes:
    """The next piece of the call's input."""
    return event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": piece})


def ending(reason: str) -> bytes:
    """The end of an answer."""
    stop = event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 9})
    return stop + event("message_stop")


async def answer(body: bytes) -> AsyncGenerator[bytes, None]:
    """The answer to a request.

    Raises:
        ValueError: it has no order.
    """
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None})
    if b'"tool_result"' in body:
        yield ending("end_turn")
        return
    found = ORDER.search(body)
    if found is None:
        raise ValueError("the request has no order")
    yield event("content_block_start", index=0, content_block=CALL)
    for at in range(0, len(OPENING), SIZE):
        yield delta(OPENING[at : at + SIZE])
    async for piece in Order.read(found[0].decode()).pieces():
        yield delta(piece)
    yield delta(CLOSING) + event("content_block_stop", index=0) + ending("tool_use")


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length[1]) if length else 0)
            writer.write(HEAD)
            async for piece in answer(body):
                writer.write(piece)
                await writer.drain()
            writer.write(END)
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()


async def main(port: int) -> None:
    """Serve until the process is ended."""
    await (await asyncio.start_server(serve, "127.0.0.1", port)).serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
