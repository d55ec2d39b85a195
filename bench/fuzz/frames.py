"""HTTP/2 frames that no client sends, on the port of gRPC, by strangers. Afterwards a call succeeds.

Rule 1: each kind is sent for `SECONDS` on `CONNECTIONS` connections at once, or until the server closes them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4
SECONDS = 1.0
CONNECTIONS = 4
_IN_A_PIECE = 200
HEAD = b"\x83\x86\x04\x01/\x5f\x10application/grpc"
"""`:method POST`, `:scheme http`, `:path /` and the content type, as HPACK has them."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _streams(make: Callable[[int], bytes]) -> Iterator[bytes]:
    for first in range(1, 2**30, 2 * _IN_A_PIECE):
        yield b"".join(make(stream) for stream in range(first, first + 2 * _IN_A_PIECE, 2))


def _same(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece * _IN_A_PIECE


def _endless_head(piece: bytes) -> Iterator[bytes]:
    yield frame(HEADERS, 0, 1, HEAD)
    yield from _same(frame(CONTINUATION, 0, 1, piece))


def _noise(rng: random.Random) -> Iterator[bytes]:
    while True:
        size = rng.choice([0, 1, 4, 8, 30])
        yield frame(rng.randrange(12), rng.randrange(256), rng.randrange(2**16), rng.randbytes(size))


def floods(rng: random.Random) -> dict[str, Iterator[bytes]]:
    """What is sent behind the preface, by name."""
    header = b"\x40\x01x\x7f\x81\x7e" + b"y" * 253
    return {
        "rapid reset": _streams(
            lambda stream: frame(HEADERS, END_HEADERS, stream, HEAD) + frame(RST_STREAM, 0, stream, bytes(4))
        ),
        "streams left open": _streams(lambda stream: frame(HEADERS, END_HEADERS, stream, HEAD)),
        "a head without end": _endless_head(header),
        "an empty head without end": _endless_head(b""),
        "settings": _same(frame(SETTINGS, 0, 0, b"\0\4" + (2**16).to_bytes(4))),
        "pings": _same(frame(PING, 0, 0, bytes(8))),
        "priorities": _same(frame(PRIORITY, 0, 3, bytes(5))),
        "window updates": _same(frame(WINDOW_UPDATE, 0, 0, (1).to_bytes(4))),
        "windows beyond their limit": _same(frame(WINDOW_UPDATE, 0, 0, (2**31 - 1).to_bytes(4))),
        "data of no stream": _same(frame(DATA, 0, 1, bytes(1000))),
        "goaway": _same(frame(GOAWAY, 0, 0, bytes(8))),
        "noise": _noise(rng),
    }


async def flood(port: int, seed: int, seconds: float = SECONDS) -> int:
    """Send each kind; how many bytes the server took."""
    sent = 0
    for name in floods(random.Random(seed)):
        connections = (_one(port, name, f"{seed}:{number}", seconds) for number in range(CONNECTIONS))
        sent += sum(await asyncio.gather(*connections))
    return sent


async def _one(port: int, name: str, seed: str, seconds: float) -> int:
    until, sent = time.monotonic() + seconds, 0
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return 0
    reading = asyncio.create_task(_discard(reader))
    try:
        writer.write(PREFACE + frame(SETTINGS, 0, 0))
        for piece in floods(random.Random(seed))[name]:
            if time.monotonic() > until or reading.done():
                break
            writer.write(piece)
            async with asyncio.timeout(seconds):
                await writer.drain()
            sent += len(piece)
            await asyncio.sleep(0)
    except (OSError, TimeoutError):
        pass
    finally:
        reading.cancel()
        writer.close()
    return sent


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass
