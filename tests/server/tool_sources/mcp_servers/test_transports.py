import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from a2a_canvas.server.tool_sources.mcp_servers.config import Command, Endpoint, McpServer
from a2a_canvas.server.tool_sources.mcp_servers.process import OverlongLine
from a2a_canvas.server.tool_sources.mcp_servers.source import McpSource
from a2a_canvas.server.tool_sources.mcp_servers.transports import describe_retry, reason_of, request_of

HERE = Endpoint("https://user:secret@example.com/mcp?key=secret")


@pytest.mark.parametrize(
    ("beginning", "end", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"', b'"}]}}', 7),
        (b'{"jsonrpc": "2.0", "id": 7, "result": {"content', b'"}]}}', 7),
        (b'{"id":7,"jsonrpc":"2.0","result":{"content', b'"}]}}', 7),
        (b'{"result":{"content":[{"id":8,"', b'"}]},"jsonrpc":"2.0","id":7}', 7),
        (b'{"result":{"content":[{"id":8,"', b'"}]}, "id": 7 }\r', 7),
        (b'{"result":{"id":8,', b'"id":9}}', None),
        (b'{"jsonrpc":"2.0","method":"notifications/x","params":{"id":8,', b'"}}', None),
        (b"rubbish", b"rubbish", None),
    ],
)
def test_an_answer_that_is_too_large_tells_which_request_it_was_for(
    beginning: bytes, end: bytes, request_id: int | None
) -> None:
    assert request_of(OverlongLine(beginning, end, 20_000_000)) == request_id


@pytest.mark.parametrize(
    ("error", "connection", "reason"),
    [
        (
            FileNotFoundError(2, "No such file or directory"),
            Command("x", cwd="/f"),
            "'x' cannot be run in '/f': No such",
        ),
        (
            FileNotFoundError(2, "No such file or directory"),
            Command("x", cwd="/"),
            "there is no program x. Install it, or name its path",
        ),
        (TimeoutError(), Command("x"), "it does not answer"),
        (MCPError(types.CONNECTION_CLOSED, "Connection closed"), Command("x"), "it ended"),
        (MCPError(-32600, "No."), HERE, "it says: No."),
        (ExceptionGroup("", [ExceptionGroup("", [TimeoutError()])]), HERE, "it does not answer"),
        (MCPError(types.CONNECTION_CLOSED, "Connection closed"), HERE, "it closed the connection"),
        (RuntimeError("odd"), HERE, "RuntimeError: odd"),
    ],
)
def test_why_a_server_is_not_there_is_told_in_a_few_words(
    error: Exception, connection: Command | Endpoint, reason: str
) -> None:
    assert reason_of(error, connection).startswith(reason)


@asynccontextmanager
async def web_server(answer: bytes) -> AsyncIterator[str]:
    """The address of a server that gives one answer to everything."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0, family=socket.AF_INET)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp?key=secret"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "it refuses access (HTTP 401)"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "it answers with HTTP 404"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "it answers with HTTP 502"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
            "it says: Unexpected content type",
        ),
        (b"not HTTP at all\r\n\r\n", "RemoteProtocolError"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "auto"])
async def test_an_address_that_is_no_mcp_server_is_told(
    answer: bytes, reason: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with web_server(answer) as url:
        source = McpSource(McpServer("w", "w", Endpoint(url, {}, kind)), delays=(10,))  # type: ignore[arg-type]
        await source.start()
        await source.stop()
    assert caplog.messages[0].startswith(f"MCP server w is not there: {reason}")
    assert "secret" not in caplog.text


def test_the_place_of_a_fault_in_a_foreign_answer_is_cut() -> None:
    deep: Any = "text"
    for _ in range(100):
        deep = {"name": deep}
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(Nested).validate_python(deep)
    where = reason_of(raised.value, Command("x")).removeprefix("its answer is not MCP: ").partition(": ")[0]
    assert where == ("name." * 100)[:200]


Nested = TypeAliasType("Nested", "dict[str, Nested]")


@pytest.mark.parametrize(
    ("seconds", "connection", "said"),
    [
        (0.0, Command("x"), "It is tried again at once; its command, run by hand, shows what is wrong."),
        (1.0, Command("x"), "It is tried again in 1 second; its command, run by hand, shows what is wrong."),
        (60.0, Endpoint("http://h"), "It is tried again in 60 seconds; check its url."),
    ],
)
def test_it_is_said_when_a_server_is_tried_again_and_where_to_look(
    seconds: float, connection: Command | Endpoint, said: str
) -> None:
    assert describe_retry(seconds, connection) == said
