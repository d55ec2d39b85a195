"""A provider on loopback that writes the bytes that a test gives it, over connections that end as it says."""

from __future__ import annotations

import asyncio
import contextlib

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


class Provider:
    """A server on loopback with one answer for each request, written in pieces. After the last it leaves the
    connection open, if it is to wait for the client.

    Attributes:
        requests: the head and body of each.
        gone: a client has closed its connection.
    """

    def __init__(self, *answers: bytes, size: int = 1 << 16, waits: bool = False) -> None:
        self.requests: list[bytes] = []
        self.gone = asyncio.Event()
        self._answers = list(answers)
        self._size = size
        self._waits = waits

    async def __aenter__(self) -> Provider:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while self._answers:
                await self._answer(reader, writer)
            while self._waits and await reader.read(65536):
                pass
        self.gone.set()
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split()[0]
        self.requests.append(head + await reader.readexactly(int(length)))
        content = self._answers.pop(0)
        for at in range(0, len(content), self._size):
            writer.write(content[at : at + self._size])
            await asyncio.sleep(0)  # the client, in this loop, has read a piece before the next is written
