"""How an MCP server is reached: a program's stdin and stdout, streamable HTTP, SSE.

Rule 1: no message of a server has more than `MAX_MESSAGE` bytes; a call that such an answer belongs to is told so.
Rule 2: what a program writes to stdout and is not MCP is skipped, and logged with limits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import sys
from collections import deque
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

from a2a_canvas.server.tool_sources.mcp_servers.config import Command, Endpoint, McpServer
from a2a_canvas.server.tool_sources.mcp_servers.process import Overlong, ServerProcess, Throttle

logger = logging.getLogger(__name__)

MAX_MESSAGE = 16 * 1024 * 1024

Streams = AbstractAsyncContextManager[Any]


def ways(server: McpServer, lost: Callable[[], None]) -> list[tuple[Callable[[], Streams], str]]:
    """The ways to speak with a server, the likeliest first: a transport, and how the version is agreed on."""
    match server.connection:
        case Command() as command:
            # There are servers that end at a request before `initialize`.
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
    """The streams of a program, with limits that the SDK's own transport does not have."""
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
    """What every program gets of the environment; programs installed beside this one are found first."""
    few = get_default_environment()
    return few | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), *filter(None, (few.get("PATH"),))))}


def missing_program(server: McpServer) -> str:
    """The program of a server that is not there, as far as that can be told without running it; else empty."""
    match server.connection:
        case Command(command=command, env=env):
            path = env.get("PATH", environment()["PATH"])
            return "" if shutil.which(command, path=path) else command
        case _:
            return ""


def no_program(program: str) -> str:
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
    except OSError:  # it reads no more: the session ends
        to_session.close()


def _message(line: bytes | Overlong) -> types.JSONRPCMessage | None:
    if isinstance(line, Overlong):
        request = request_of(line)
        if request is None:
            return None
        return types.JSONRPCError(jsonrpc="2.0", id=request, error=too_large(line.size))
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None


def request_of(line: Overlong) -> int | None:
    """The id of the request that an answer of too many bytes belongs to; at its beginning or at its end."""
    at_beginning = re.match(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,', line.beginning)
    at_end = re.search(rb'\}\s*,\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*\}\s*$', line.end)
    found = at_beginning or at_end
    return int(found[1]) if found else None


def too_large(size: int) -> types.ErrorData:
    limit = MAX_MESSAGE // (1024 * 1024)
    message = f"The answer has {size / (1024 * 1024):.0f} MB, and {limit} MB are the most. Ask for less."
    return types.ErrorData(code=types.INTERNAL_ERROR, message=message)


def _excerpt(line: bytes | Overlong) -> str:
    raw = line.beginning if isinstance(line, Overlong) else line
    return raw[:200].decode(errors="replace")


@asynccontextmanager
async def _http(endpoint: Endpoint, silence: float) -> AsyncIterator[Any]:
    limits = httpx2.Timeout(30, read=silence)
    statuses: deque[int] = deque(maxlen=1)

    async def check(response: httpx2.Response) -> None:
        statuses.append(response.status_code)
        if response.headers.get("content-type", "").lower().startswith("application/json"):
            response.stream = _Limited(response.stream)

    async with httpx2.AsyncClient(
        headers=dict(endpoint.headers), timeout=limits, event_hooks={"response": [check]}
    ) as http:
        try:
            async with streamable_http_client(
                endpoint.url, http_client=http, max_sse_event_size=MAX_MESSAGE
            ) as streams:
                yield streams
        except Exception as error:
            raise (_HttpFailure(statuses[-1]) if statuses and statuses[-1] >= 400 else error) from None


class _HttpFailure(Exception):
    """A server answered with a status that is none of MCP."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Limited(httpx2.AsyncByteStream):
    """A body that breaks off when it is too large. The SDK reads bodies of JSON without a limit."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise httpx2.StreamError(too_large(size).message)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _sse(endpoint: Endpoint) -> Streams:
    return sse_client(endpoint.url, dict(endpoint.headers), timeout=30, sse_read_timeout=24 * 3600)


def reason_of(error: BaseException, connection: Command | Endpoint) -> str:
    """Why there is no connection, in a few words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match connection:
        case Command():
            return _reason_of_program(error, connection) or _reason(error, connection)
        case Endpoint():
            return _reason_of_address(error, connection) or _reason(error, connection)


def _reason_of_program(error: BaseException, command: Command) -> str:
    if isinstance(error, FileNotFoundError) and Path(command.cwd).is_dir():
        return no_program(command.command)
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
            return f"nothing answers at {_plain(endpoint.url)}"
        case httpx2.HTTPStatusError():
            return f"it answers with HTTP {error.response.status_code}"
        case _:
            return ""


def ended(connection: Command | Endpoint) -> str:
    """Why there is no connection after one that worked."""
    return "it ended" if isinstance(connection, Command) else "it closed the connection"


def _reason(error: BaseException, connection: Command | Endpoint) -> str:
    match error:
        case MCPError(code=types.CONNECTION_CLOSED):
            return ended(connection)
        case TimeoutError():
            return "it does not answer"
        case MCPError():
            return f"it says: {error.message[:300]}"
        case ValidationError():
            fault = error.errors()[0]
            return f"its answer is not MCP: {'.'.join(map(str, fault['loc']))[:200]}: {fault['msg']}"
        case _:
            return f"{type(error).__name__}: {str(error)[:300]}"


def _plain(url: str) -> str:
    """An address without what may be secret."""
    return str(httpx2.URL(url).copy_with(userinfo=b"", query=None, fragment=None))
