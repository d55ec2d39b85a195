"""What bounds a connection of gRPC, seen from a bare socket (HTTP/2, RFC 9113)."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from a2a_canvas.server.protocols.a2a_v1.bindings.grpc_server import CONNECTION_OPTIONS, grpc_server
from a2a_canvas.server.protocols.edge.connections import MAX_HEAD
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from tests.free_port import free_port
from tests.server.protocols.echo_handler import Echo

SETTINGS, MAX_CONCURRENT_STREAMS, MAX_HEADER_LIST_SIZE = 4, 3, 6


@asynccontextmanager
async def connected(handler: Echo) -> AsyncIterator[asyncio.StreamReader]:
    """What the server sends to a client that connects and sends nothing."""
    port = free_port()
    server = grpc_server(handler, "127.0.0.1", port, BodyLimits())
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader
    finally:
        writer.close()
        await server.stop(0)


async def test_the_calls_on_one_connection_and_their_metadata_have_a_bound() -> None:
    async with connected(Echo()) as reader:
        head = await reader.readexactly(9)
        assert head[3] == SETTINGS
        settings = await reader.readexactly(int.from_bytes(head[:3]))
        announced = dict(struct.iter_unpack("!HI", settings))
        assert announced[MAX_CONCURRENT_STREAMS] == 256
        assert announced[MAX_HEADER_LIST_SIZE] == MAX_HEAD


async def test_a_connection_that_never_begins_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONNECTION_OPTIONS, "grpc.server_handshake_timeout_ms", 100)
    async with connected(Echo()) as reader:
        async with asyncio.timeout(60):
            await reader.read()
        assert reader.at_eof()
