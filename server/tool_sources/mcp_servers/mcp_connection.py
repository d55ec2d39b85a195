"""The connection to an MCP server, restored whenever it is lost.

Rule 1: a server that is missing, hangs, ends or misbehaves is tried again forever, with growing delays.
Rule 2: the lists of a server are read when a connection begins, and when the server announces a change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import ElicitationFnT
from pydantic import ValidationError

from a2a_canvas.server.tool_sources.mcp_servers.config import McpServer
from a2a_canvas.server.tool_sources.mcp_servers.resources import resource_lines
from a2a_canvas.server.tool_sources.mcp_servers.transports import describe_retry, end_reason, reason_of, ways

logger = logging.getLogger(__name__)

for _library in ("mcp", "client"):  # they log what others send, with traces; this module logs what matters
    logging.getLogger(_library).setLevel(logging.CRITICAL)

START_TIMEOUT = 10.0
"""Seconds that the start of the agent waits for a server."""
CONNECT_TIMEOUT = 120.0
"""Seconds for a program to start and answer: many install themselves at the first start."""
LIST_TIMEOUT = 60.0
HEALTHY = 60.0
"""Seconds after which the end of a connection is not a failed start."""
DELAYS = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds between tries."""
RELIST_PAUSE = 0.5
"""The minimum seconds between two readings of the lists."""
MAX_LISTED = 1_000
"""The maximum number of a server's tools, and of its resources."""

CLIENT = types.Implementation(name="a2a-canvas", version=version("a2a-canvas"))

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's tools, as it describes them, and a line for each resource."""

    tools: Sequence[Json] = ()
    resources: Sequence[str] = ()


class Connection:
    """The connection to one server.

    Args:
        name: of the server in the log.
        listed: called with the server's lists whenever they were read.
        elicited: answers a question of the server that comes as its own request.
        delays: seconds before the server is tried again.

    Attributes:
        reason: why there is no connection.
    """

    def __init__(
        self,
        name: str,
        server: McpServer,
        listed: Callable[[Listing], None],
        elicited: ElicitationFnT,
        delays: Sequence[float] = DELAYS,
    ) -> None:
        self.reason = "it has not answered yet"
        self._name = name
        self._server = server
        self._listed = listed
        self._elicited = elicited
        self._delays = delays
        self._listing = Listing()
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried, self._there, self._wake = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._stopping = self._lost = self._changed = False
        self._way = 0

    async def start(self) -> None:
        """Start; returns when connected, when the first try has failed, or after `START_TIMEOUT`."""
        self._task = asyncio.create_task(self._run(), name=self._name)
        if not await _wait_for(START_TIMEOUT, self._tried):
            logger.warning("%s has not answered within %g seconds: the agent goes on", self._name, START_TIMEOUT)

    async def wait_first_try(self, within: float) -> str:
        """Wait for the end of the first try; returns why there is no connection, or an empty text."""
        await _wait_for(within, self._tried)
        return "" if self._client else self.reason

    async def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._task:
            if self._client:  # it ends by itself, as the protocol requires
                await asyncio.wait((self._task,), timeout=5)
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=10)

    async def client(self, within: float) -> Client | None:
        """The client, once connected; None if that takes longer than some seconds."""
        if self._client is None:
            self._wake.set()
            await _wait_for(within, self._there)
        return self._client

    def lose(self, client: Client) -> None:
        """Replace the connection of `client`, which no longer works."""
        if self._client is client:
            self._client = None
            self._there.clear()
            self._note_end()

    async def _run(self) -> None:
        clock, failures = asyncio.get_running_loop().time, 0
        while not self._stopping:
            began = clock()
            try:
                await self._connection()
                self.reason = end_reason(self._server.connection)
            except Exception as error:  # every failure leads to another try (rule 1)
                self.reason = reason_of(error, self._server.connection)
            self._client = None
            self._there.clear()
            self._tried.set()
            if not self._stopping:
                failures = 1 if clock() - began > HEALTHY else failures + 1
                delay = self._delays[min(failures, len(self._delays)) - 1]
                again = describe_retry(delay, self._server.connection)
                logger.warning("%s is not there: %s. %s", self._name, self.reason, again)
                self._wake.clear()
                await _wait_for(delay, self._wake)  # a waiting call waits no longer

    async def _connection(self) -> None:
        """One connection, until it is lost or the source stops."""
        self._lost = self._changed = False
        async with asyncio.timeout(CONNECT_TIMEOUT) as limit, self._connect() as client:
            await self._read(client)
            limit.reschedule(None)
            self._client = client
            self._log_server(client)
            self._there.set()
            self._tried.set()
            listening = asyncio.create_task(self._listen(client))
            try:
                await self._refresh_listing(client)
            finally:
                listening.cancel()
                await asyncio.wait((listening,))

    async def _refresh_listing(self, client: Client) -> None:
        while not (self._lost or self._stopping):
            await self._wake.wait()
            self._wake.clear()
            if self._changed and not self._lost:
                self._changed = False
                await self._read_again(client)
                await asyncio.sleep(RELIST_PAUSE)
                self._wake.set()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Client]:
        """A client by the first transport that works, which is tried first the next time."""
        failures: list[Exception] = []
        for number, (open_streams, mode) in enumerate(ways(self._server, self._note_end)):
            if number < self._way:
                continue
            client = Client(
                open_streams(),
                mode=mode,
                client_info=CLIENT,
                cache=None,
                message_handler=self._on_notification,
                elicitation_callback=self._elicited,
            )
            try:
                await client.__aenter__()
            except Exception as error:
                failures.append(error)
                self._lost = False
                continue
            self._way = number
            async with _exit_at_end(client):
                yield client
            return
        raise failures[0]

    def _note_end(self) -> None:
        self._lost = True
        self._wake.set()

    async def _on_notification(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification | types.ResourceListChangedNotification):
            self._note_change()

    def _note_change(self) -> None:
        self._changed = True
        self._wake.set()

    async def _listen(self, client: Client) -> None:
        """Subscribe to notifications, which a 2026-07-28 server sends only to subscribers."""
        has = client.server_capabilities
        tools, others = bool(has.tools and has.tools.list_changed), bool(has.resources and has.resources.list_changed)
        if not client.session.discover_result or not (tools or others):
            return
        while True:
            with suppress(MCPError, RuntimeError, TimeoutError):
                async with client.listen(tools_list_changed=tools, resources_list_changed=others) as events:
                    async for _ in events:
                        self._note_change()
            await asyncio.sleep(DELAYS[-1])
            self._note_change()

    async def _read(self, client: Client) -> None:
        has, session = client.server_capabilities, client.session
        tools = await _pages(session.list_tools, "tools") if has.tools else []
        found: list[Json] = []
        templates: list[Json] = []
        if has.resources:
            found = await _pages(session.list_resources, "resources")
            with suppress(MCPError):  # a server may have resources and no templates
                templates = await _pages(session.list_resource_templates, "resourceTemplates")
        self._listing = Listing(tools, resource_lines(found, templates))
        self._listed(self._listing)

    async def _read_again(self, client: Client) -> None:
        before = {tool["name"] for tool in self._listing.tools}
        try:
            async with asyncio.timeout(LIST_TIMEOUT):
                await self._read(client)
        except (MCPError, TimeoutError, ValidationError) as error:
            reason = reason_of(error, self._server.connection)
            logger.warning("%s has changed its lists, which cannot be read: %s", self._name, reason)
            return
        after = {tool["name"] for tool in self._listing.tools}
        logger.info(
            "%s has changed its lists: %d new tools, %d gone", self._name, len(after - before), len(before - after)
        )

    def _log_server(self, client: Client) -> None:
        info = client.server_info
        about = f"{info.name} {info.version}" if info else "unnamed"
        logger.info("%s (%s, MCP %s): %d tools", self._name, about, client.protocol_version, len(self._listing.tools))


async def _wait_for(seconds: float, event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


@asynccontextmanager
async def _exit_at_end(client: Client) -> AsyncIterator[None]:
    """The rest of `async with client`."""
    try:
        yield
    except BaseException as error:
        await client.__aexit__(type(error), error, error.__traceback__)
        raise
    else:
        await client.__aexit__(None, None, None)


async def _pages(read: Callable[..., Awaitable[Any]], key: str) -> list[Json]:
    """All pages of a list, up to `MAX_LISTED` items."""
    found: list[Json] = []
    cursor: str | None = None
    while len(found) < MAX_LISTED:
        page = await read(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        items = page.model_dump(mode="json", by_alias=True, exclude_none=True)[key]
        found += items
        if not items or not page.next_cursor or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    return found[:MAX_LISTED]
