"""What a connection may do at the server as it is started: `serve` has the limits of `protocols/connections.py`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.server.faults.server_processes import PATIENCE, ServerProcess, server_group

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(server: ServerProcess) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def healthy(connection: Connection) -> bytes:
    """The status line of an answer that is read to its end; the connection stays open."""
    reader, writer = connection
    writer.write(HEALTHZ)
    async with asyncio.timeout(PATIENCE):
        return (await reader.readuntil(b'{"status":"ok"}')).partition(b"\r\n")[0]


async def last(connection: Connection, head: bytes) -> bytes:
    """All that is answered until the server closes the connection."""
    reader, writer = connection
    writer.write(head)
    async with asyncio.timeout(PATIENCE):
        return await reader.read()


async def test_serve_has_the_limits_of_connections(tmp_path: Path) -> None:
    two_lengths = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    async with server_group("memory", tmp_path) as servers:
        server = await servers.start("--max-connections", "3")
        async with connected(server) as first, connected(server) as second, connected(server) as third:
            assert [await healthy(one) for one in (first, second, third)] == [b"HTTP/1.1 200 OK"] * 3
            async with connected(server) as fourth:
                assert (await last(fourth, HEALTHZ)).startswith(b"HTTP/1.1 503 ")
            smuggled = await last(first, b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + two_lengths + HEALTHZ)
            assert smuggled.startswith(b"HTTP/1.1 400 ")
            assert smuggled.count(b"HTTP/1.1 ") == 1
            foreign = await last(second, b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            assert foreign.startswith(b"HTTP/1.1 421 ")
