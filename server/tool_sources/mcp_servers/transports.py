"""The transports of MCP: a program's stdin and stdout, streamable HTTP, SSE.

Rule 1: messages of a server are limited to `MAX_MESSAGE` bytes; a larger answer fails its call. Over HTTP
        `server/outbound` enforces the limit.
Rule 2: lines on a program's stdout that are not MCP are skipped, and logged with limits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from a2a_canvas.server.outbound.answers import COMPRESSED, MAX_MESSAGE, is_compressed
from a2a_canvas.server.outbound.over_httpx2 import LimitedClient
from a2a_canvas.server.tool_sources.mcp_servers.config import Command, Endpoint, McpServer
from a2a_canvas.server.tool_sources.mcp_servers.process import OverlongLine, ServerProcess, Throttle

logger = logging.getLogger(__name__)

NOT_SENT, UNREADABLE = -32098, -32097
"""Our own error codes: a request reached no server, or its answer was rejected."""

Streams = AbstractAsyncContextManager[Any]


def ways(server: McpServer, lost: Callable[[], None]) -> list[tuple[Callable[[], Streams], str]]:
    """The ways to reach a server, the likeliest first: a transport, and a mode of version negotiation."""
    match server.connection:
        case Command() as command:
            # Some servers exit at a request before `initialize`.
            return [(partial(_stdio, server.name, command, lost), mode) for mode in ("auto", "legacy")]
        case Endpoint(kind="sse") as endpoint:
            return [(partial(_sse, endpoint), "legacy")]
        case Endpoint(kind="http") as endpoint:
            return [(partial(_http, endpoint, max(300, 2 * server.timeout)), "auto")]
        case endpoint:
            return [
                (partial(_http, endpoint, max(300, 2 * server.timeout)), "auto"),
                (partial(_sse, endpoint), "legacy"),
            ]


@asynccontextmanager
async def _stdio(name: str, command: Command, lost: Callable[[], None]) -> AsyncIterator[Any]:
    """The streams of a program, with limits that the SDK's transport lacks."""
    env = environment() | dict(command.env)
    line = (command.command, *command.args)
    process = await ServerProcess.start(f"MCP server {name}", line, env, command.cwd, MAX_MESSAGE)
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    reading = asyncio.create_task(_read(name, process, to_session))
    reading.add_done_callback(lambda _: lost())
    writing = asyncio.create_task(_write(process, from_session, to_session))
    try:
        yield from_server, to_server
    finally:
        for task in (reading, writing):
            task.cancel()
        logger.debug("MCP server %s %s", name, await process.stop())
        for stream in (to_session, from_server, to_server, from_session):
            stream.close()


def environment() -> dict[str, str]:
    """The environment of every program; programs installed beside this one are found first."""
    few = get_default_environment()
    return few | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), *filter(None, (few.get("PATH"),))))}


def missing_program(server: McpServer) -> str:
    """The program of a server if it is missing, as far as is known without running it; else empty."""
    match server.connection:
        case Command(command=command, env=env):
            path = env.get("PATH", environment()["PATH"])
            return "" if shutil.which(command, path=path) else command
        case _:
            return ""


def describe_missing_program(program: str) -> str:
    return f"there is no program {program}. Install it, or name its path"


async def _read(
    name: str, process: ServerProcess, to_session: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    throttle, clock = Throttle(1), asyncio.get_running_loop().time
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError), to_session:
        async for line in process.lines():
            if message := _message(line):
                await to_session.send(SessionMessage(message))
            elif line and throttle.passes(clock()):
                logger.warning("MCP server %s writes to stdout what is not MCP: %s", name, _excerpt(line))


async def _write(
    process: ServerProcess,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async for each in from_session:
            await process.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
    except OSError:  # it has stopped reading: the session ends
        to_session.close()


def _message(line: bytes | OverlongLine) -> types.JSONRPCMessage | None:
    if isinstance(line, OverlongLine):
        request = request_of(line)
        if request is None:
            return None
        return types.JSONRPCError(jsonrpc="2.0", id=request, error=too_large(line.size))
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None


def request_of(line: OverlongLine) -> int | None:
    """The id of the request of an oversized answer, found at its beginning or its end."""
    at_beginning = re.match(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,', line.beginning)
    at_end = re.search(rb'\}\s*,\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*\}\s*$', line.end)
    found = at_beginning or at_end
    return int(found[1]) if found else None


def too_large(size: int) -> types.ErrorData:
    limit = MAX_MESSAGE // (1024 * 1024)
    message = f"The answer has {size / (1024 * 1024):.0f} MB, and {limit} MB are the most. Ask for less."
    return types.ErrorData(code=types.INTERNAL_ERROR, message=message)


def _excerpt(line: bytes | OverlongLine) -> str:
    raw = line.beginning if isinstance(line, OverlongLine) else line
    return raw[:200].decode(errors="replace")


@asynccontextmanager
async def _http(endpoint: Endpoint, silence: float) -> AsyncIterator[Any]:
    async with _HttpClient(endpoint.headers, httpx2.Timeout(30, read=silence)) as http:
        try:
            async with streamable_http_client(
                endpoint.url, http_client=http, max_sse_event_size=MAX_MESSAGE
            ) as streams:
                yield streams
        except Exception as error:
            raise (_HttpFailure(http.status) if http.status >= 400 else error) from None


class _HttpClient(LimitedClient):
    """A client for one session. It replaces unreadable answers by errors: otherwise the SDK would end the whole
    session, with its other calls, or give no reason.

    Attributes:
        status: of the last answer; 0 before the first.
    """

    status = 0

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if not self.status:
                raise
            return _error(request, NOT_SENT, _describe_no_answer(request.url))
        self.status = response.status_code
        if is_compressed(response.headers.get("content-encoding", "")):
            await response.aclose()
            return _error(request, UNREADABLE, COMPRESSED)
        return response


def _error(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(503, json=error, request=request)


class _HttpFailure(Exception):
    """A server answered with a status outside of MCP."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _sse(endpoint: Endpoint) -> Streams:
    return sse_client(
        endpoint.url,
        dict(endpoint.headers),
        timeout=30,
        sse_read_timeout=24 * 3600,
        httpx_client_factory=LimitedClient,
    )


def reason_of(error: BaseException, connection: Command | Endpoint) -> str:
    """The reason for a missing connection, in a few words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match connection:
        case Command():
            return _reason_of_program(error, connection) or _reason(error, connection)
        case Endpoint():
            return _reason_of_address(error, connection) or _reason(error, connection)


def _reason_of_program(error: BaseException, command: Command) -> str:
    if isinstance(error, FileNotFoundError) and Path(command.cwd).is_dir():
        return describe_missing_program(command.command)
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        return f"{command.command!r} cannot be run in {command.cwd!r}: {error.strerror}"
    return ""


def _reason_of_address(error: BaseException, endpoint: Endpoint) -> str:
    match error:
        case _HttpFailure(status=401 | 403):
            return f"it refuses access (HTTP {error.status}); headers in mcp.json can have an Authorization"
        case _HttpFailure():
            return f"it answers with HTTP {error.status}"
        case httpx2.ConnectError():
            return _describe_no_answer(httpx2.URL(endpoint.url))
        case httpx2.HTTPStatusError():
            return f"it answers with HTTP {error.response.status_code}"
        case _:
            return ""


def end_reason(connection: Command | Endpoint) -> str:
    """The reason for the end of a working connection."""
    return "it ended" if isinstance(connection, Command) else "it closed the connection"


def describe_retry(seconds: float, connection: Command | Endpoint) -> str:
    """When the next try is, and what the operator can do."""
    when = "at once" if seconds == 0 else "in 1 second" if seconds == 1 else f"in {seconds:g} seconds"
    look = "its command, run by hand, shows what is wrong" if isinstance(connection, Command) else "check its url"
    return f"It is tried again {when}; {look}."


def _reason(error: BaseException, connection: Command | Endpoint) -> str:
    match error:
        case MCPError(code=types.CONNECTION_CLOSED):
            return end_reason(connection)
        case TimeoutError():
            return "it does not answer"
        case MCPError(code=code) if code == UNREADABLE:
            return error.message
        case MCPError():
            return f"it says: {error.message[:300]}"
        case ValidationError():
            fault = error.errors()[0]
            return f"its answer is not MCP: {'.'.join(map(str, fault['loc']))[:200]}: {fault['msg']}"
        case _:
            return f"{type(error).__name__}: {str(error)[:300]}"


def _describe_no_answer(url: httpx2.URL) -> str:
    """The address is shown without parts that may be secret."""
    return f"nothing answers at {url.copy_with(userinfo=b'', query=None, fragment=None)}"
