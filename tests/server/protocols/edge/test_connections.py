"""Connections over real sockets: what may take long, what may not, and how many there may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from a2a_canvas.server.protocols.edge import connections
from a2a_canvas.server.protocols.edge.connections import MAX_FIELDS, MAX_HEAD, ConnectionLimits, limited_connection
from a2a_canvas.server.protocols.edge.origins import Origin, origin_of
from tests.loopback import connect, serving_app

NEVER = 3600.0
SHORT = 0.2
PATIENCE = 10
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> bytes:
        """All that comes until the server closes the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    async def until(self, text: bytes) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readuntil(text)


class StreamServer:
    """A server whose `GET /stream` says `one` at once and `two` when `go` is set."""

    url = ""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.disconnected = asyncio.Event()
        self._clients: list[Client] = []

    async def client(self) -> Client:
        client = Client(*await connect(self.url))
        self._clients.append(client)
        return client

    async def length(self, request: Request) -> Response:
        try:
            return PlainTextResponse(str(len(await request.body())))
        except ClientDisconnect:
            self.disconnected.set()
            raise

    async def stream(self, request: Request) -> Response:
        async def pieces() -> AsyncIterator[str]:
            yield "one"
            await self.go.wait()
            yield "two"

        return StreamingResponse(pieces())

    def close(self) -> None:
        for client in self._clients:
            client.writer.close()


async def origin(request: Request) -> Response:
    return PlainTextResponse(str(origin_of(request.scope)))


async def refuse(request: Request) -> Response:
    return PlainTextResponse("too large", 413, {"Connection": "close"})


@asynccontextmanager
async def listening(max_connections: int = 10, head: float = NEVER, body: float = NEVER) -> AsyncIterator[StreamServer]:
    stream_server = StreamServer()
    app = Starlette(
        routes=[
            Route("/", stream_server.length, methods=["GET", "POST"]),
            Route("/stream", stream_server.stream),
            Route("/origin", origin),
            Route("/refused", refuse, methods=["POST"]),
        ]
    )
    http = limited_connection(ConnectionLimits(max_connections, head, body))
    async with serving_app(lambda _: app, http=http) as stream_server.url:
        try:
            yield stream_server
        finally:
            stream_server.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused clients may take any time to read, however busy the machine is."""
    monkeypatch.setattr(connections, "LINGER", NEVER)
    monkeypatch.setattr(connections, "MAX_LINGER", NEVER)


@pytest.mark.parametrize("beginning", [b"G", GET, GET + b"X: y\r\n", GET + b"X: y\r\n\r"])
async def test_a_head_that_does_not_end_is_answered_and_closed(beginning: bytes) -> None:
    async with listening(head=SHORT) as stream_server:
        client = await stream_server.client()
        await client.send(beginning)
        assert (await client.answer()).startswith(b"HTTP/1.1 408 ")


async def test_a_head_gets_no_more_time_for_coming_in_many_pieces() -> None:
    async with listening(head=SHORT) as stream_server:
        client = await stream_server.client()

        async def drip() -> None:
            await client.send(GET)
            while True:
                await client.send(b"X: y\r\n")
                await asyncio.sleep(SHORT / 20)

        dripping = asyncio.create_task(drip())
        assert (await client.answer()).startswith(b"HTTP/1.1 408 ")
        assert not dripping.done()
        dripping.cancel()


async def test_who_says_nothing_is_closed_without_a_word() -> None:
    async with listening(head=SHORT) as stream_server:
        assert await (await stream_server.client()).answer() == b""


async def test_the_head_of_a_second_request_on_a_connection_must_come_as_well() -> None:
    async with listening(head=SHORT) as stream_server:
        client = await stream_server.client()
        await client.send(GET + b"\r\n")
        await client.until(b"\r\n\r\n0")
        await client.send(GET)
        assert (await client.answer()).startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_makes_no_progress_is_answered_and_closed() -> None:
    async with listening(body=SHORT) as stream_server:
        client = await stream_server.client()
        await client.send(POST + b"half")
        assert (await client.answer()).startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_makes_progress_may_take_longer_than_the_limit() -> None:
    async with listening(body=1) as stream_server:
        client = await stream_server.client()
        await client.send(POST)
        for _ in range(10):  # 1.5 seconds, because the time-out is real
            await asyncio.sleep(0.15)
            await client.send(b"x")
        await client.until(b"\r\n\r\n10")


async def test_an_answer_may_take_longer_than_both_limits() -> None:
    async with listening(head=SHORT, body=SHORT) as stream_server:
        client = await stream_server.client()
        await client.send(b"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await client.until(b"one")
        # Two others are timed out meanwhile, so the time-outs have passed for this one, too.
        assert await (await stream_server.client()).answer() == b""
        late = await stream_server.client()
        await late.send(POST)
        assert (await late.answer()).startswith(b"HTTP/1.1 408 ")
        stream_server.go.set()
        assert b"two" in await client.answer()


async def test_one_connection_too_many_is_told_so_and_there_is_room_again_when_one_has_gone() -> None:
    async with listening(max_connections=2) as stream_server:
        first, second = await stream_server.client(), await stream_server.client()
        for client in (first, second):
            await client.send(GET + b"\r\n")
            await client.until(b"\r\n\r\n0")
        third = await stream_server.client()
        await third.send(GET + b"\r\n")
        refused = await third.answer()
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in refused.lower()
        await first.send(GET + b"Connection: close\r\n\r\n")
        await first.answer()
        again = await stream_server.client()
        await again.send(GET + b"\r\n")
        assert (await again.until(b"\r\n")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "fields",
    [
        b"X: y\r\n" * MAX_FIELDS + b"\r\n",
        b"X: " + b"y" * MAX_HEAD + b"\r\n\r\n",
        b"X: " + b"y" * MAX_HEAD * 3 + b"\r\n\r\n",
        b"X: " + b"y" * MAX_HEAD,
    ],
    ids=["too many fields", "too many bytes", "far too many", "no end"],
)
async def test_a_head_that_is_too_large_is_refused(fields: bytes) -> None:
    async with listening() as stream_server:
        client = await stream_server.client()
        await client.send(GET + fields)
        assert (await client.answer()).startswith(b"HTTP/1.1 431 ")


async def test_a_head_may_have_as_much_as_it_may_have() -> None:
    async with listening() as stream_server:
        client = await stream_server.client()
        await client.send(GET + b"X: y\r\n" * (MAX_FIELDS - 2) + b"Y: " + b"y" * (MAX_HEAD - 1000) + b"\r\n\r\n")
        assert (await client.until(b"\r\n")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nX: y\r\n",
    ],
)
async def test_a_request_with_two_lengths_is_refused_and_what_hides_in_it_is_not_carried_out(lengths: bytes) -> None:
    async with listening() as stream_server:
        client = await stream_server.client()
        hidden = GET + b"\r\n"
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\n" + lengths + b"\r\n0\r\n\r\n" + hidden)
        answer = await client.answer()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1


REFUSED = {
    400: b"\x16\x03\x01\r\n\r\n",
    408: POST + b"half",
    431: GET + b"X: y\r\n" * MAX_FIELDS + b"\r\n",
    503: GET + b"\r\n",
}


@pytest.mark.parametrize("status", REFUSED)
async def test_a_client_that_sends_on_after_a_refusal_can_read_it(status: int) -> None:
    async with listening(max_connections=0 if status == 503 else 10, body=SHORT) as stream_server:
        client = await stream_server.client()
        await client.send(REFUSED[status])
        assert (await client.until(b"\r\n")).startswith(b"HTTP/1.1 %d " % status)
        for _ in range(5):
            await client.send(b"more")
            await asyncio.sleep(0)
        assert (await client.answer()).endswith(b"}}")


LARGE = 10 * 2**20


async def test_a_client_whose_large_request_is_refused_unread_sends_all_of_it_and_reads_why() -> None:
    async with listening() as stream_server:
        client = await stream_server.client()
        await client.send(b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % LARGE)
        await client.until(b"\r\n\r\n")
        for _ in range(LARGE // 2**16):
            await client.send(bytes(2**16))
        client.writer.write_eof()
        assert await client.answer() == b"too large"


@pytest.mark.parametrize("limit", ["LINGER", "MAX_LINGER"])
async def test_a_client_that_never_stops_sending_after_a_refusal_is_closed(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, limit, 0.0)
    async with listening() as stream_server:
        client = await stream_server.client()
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(PATIENCE):
                while True:
                    await client.send(REFUSED[400])
                    await asyncio.sleep(0)


async def test_the_application_hears_of_a_refused_body_at_once() -> None:
    async with listening(body=SHORT) as stream_server:
        await (await stream_server.client()).send(POST + b"half")
        async with asyncio.timeout(PATIENCE):
            await stream_server.disconnected.wait()


async def test_what_is_no_http_is_refused() -> None:
    async with listening() as stream_server:
        client = await stream_server.client()
        await client.send(b"\x16\x03\x01\r\n\r\n")
        assert (await client.answer()).startswith(b"HTTP/1.1 400 ")


async def test_requests_that_come_in_one_piece_are_answered_one_after_the_other() -> None:
    async with listening(head=SHORT, body=SHORT) as stream_server:
        client = await stream_server.client()
        await client.send(POST + b"0123456789" + GET + b"\r\n" + POST + b"01234")
        await client.until(b"\r\n\r\n10")
        await client.until(b"\r\n\r\n0")
        assert (await client.answer()).startswith(b"HTTP/1.1 408 ")


async def test_a_request_says_who_has_sent_it_also_when_a_proxy_says_for_whom() -> None:
    async with listening() as stream_server:
        client = await stream_server.client()
        head = b"GET /origin HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
        await client.send(head)
        assert str(Origin("192.0.2.1", "127.0.0.1")).encode() in await client.answer()
