"""MCP servers as tool sources.

Rule 1: the agent starts and works without a server that cannot be reached. A call waits for it briefly, and then
        tells the model.
Rule 2: a server's tools stay on offer until it lists others, so a restart removes none.
Rule 3: a question of the server to the user (elicitation) is `canvas.ask`. The call is cancelled, and repeated with
        the answer; a server that keeps its state with us (2026-07-28, `requestState`) continues where it was.
Rule 4: a question that cannot be assigned to one call is refused: no user may see a question for another.
"""

from __future__ import annotations

import logging
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from a2a_canvas.server.tool_sources.mcp_servers import resources
from a2a_canvas.server.tool_sources.mcp_servers.config import Command, McpServer
from a2a_canvas.server.tool_sources.mcp_servers.input_schema import normalise
from a2a_canvas.server.tool_sources.mcp_servers.mcp_connection import DELAYS, Connection, Listing
from a2a_canvas.server.tool_sources.mcp_servers.mcp_exchange import MAX_TIMEOUTS, Exchange, Reply, current_exchange
from a2a_canvas.server.tool_sources.mcp_servers.questions import MAX_ROUNDS, Questions
from a2a_canvas.server.tool_sources.mcp_servers.tool_names import name_prefix, unique_names
from a2a_canvas.server.tool_sources.mcp_servers.tool_results import Part, contents_of, result_of
from a2a_canvas.server.tool_sources.mcp_servers.transports import NOT_SENT
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.function_tool import Check, FunctionTool
from a2a_canvas.tools.functions.results import TO_THE_MODEL, ToolError

logger = logging.getLogger(__name__)

CALL_WAIT = 10.0
"""Seconds that a call waits for a server that cannot be reached."""
MAX_DESCRIPTION = 8_000
MAX_ERROR = 2_000
LATE = 10.0
"""Seconds in which a question may still come from an abandoned call."""
KEPT = "mcp"
"""The name under which a call stores the server's questions and state."""

Run = Callable[[Mapping[str, Any], Canvas], Awaitable[Any]]
Request = Callable[[Mapping[str, Any]], types.ClientRequest]


def mcp_sources(servers: Sequence[McpServer]) -> tuple[McpSource, ...]:
    """A tool source for each server. Start them concurrently: each waits for its server."""
    return tuple(McpSource(server) for server in servers)


class McpSource:
    """The tools of one MCP server."""

    def __init__(self, server: McpServer, delays: Sequence[float] = DELAYS) -> None:
        self.name = f"MCP server {server.name}"
        self._server = server
        self._connection = Connection(self.name, server, self._take, self._on_elicitation, delays)
        self._tools: tuple[FunctionTool, ...] = ()
        self._told = frozenset[str]()
        self._exchanges: set[Exchange] = set()
        self._given_up = -LATE
        self.start = self._connection.start
        self.stop = self._connection.stop
        self.wait_first_try = self._connection.wait_first_try

    def tools(self) -> Sequence[FunctionTool]:
        return self._tools

    async def wait_for(self, name: str) -> str:
        if self._tools or not name.startswith(name_prefix(self._server.prefix)):
            return ""
        there = await self._connection.client(CALL_WAIT)
        return "" if there else f"the MCP server {self._server.name} is not there ({self._connection.reason})"

    # ------------------------------------------------------------- tools from what the server lists

    def _take(self, listing: Listing) -> None:
        by_name: dict[str, Mapping[str, Any]] = {}
        for tool in listing.tools:
            if _needs_task(tool):
                logger.warning(
                    "%s has a tool %r that runs only as an MCP task: it is not offered",
                    self.name,
                    tool["name"][:100],
                )
            elif by_name.setdefault(tool["name"], tool) is not tool:
                logger.warning("%s has two tools %r; the first one is taken", self.name, tool["name"][:100])
        own = ("read_resource", "list_resources") if listing.resources else ()
        self._warn_of_unknown_approvals({*by_name, *own})
        keys = [*((name, "") for name in by_name), *((name, "own") for name in own)]
        names = unique_names({key: (self._server.prefix, key[0]) for key in keys})
        reader = names.get(("read_resource", "own"), "")
        tools = [self._tool(names[name, ""], tool, reader) for name, tool in by_name.items()]
        if own:
            tools += self._resource_tools(reader, names["list_resources", "own"], listing.resources)
        self._tools = tuple(tools)

    def _warn_of_unknown_approvals(self, names: set[str]) -> None:
        """Warns about names in `approval` that the server does not offer: those tools would run without approval."""
        if self._server.approval == "all":
            return
        for wrong in sorted(self._server.approval - names - self._told):
            near = get_close_matches(wrong, names, n=1)
            logger.warning(
                "%s has no tool %r, which `approval` lists, so the entry has no effect. %s",
                self.name,
                wrong,
                f"Perhaps {near[0]} is meant" if near else "Its name must be that which the server has",
            )
            self._told |= {wrong}

    def _tool(self, name: str, tool: Mapping[str, Any], reader: str) -> FunctionTool:
        schema = normalise(tool.get("inputSchema"))
        hints = tool.get("annotations") or {}
        reads = hints.get("readOnlyHint") is True

        async def run(arguments: Mapping[str, Any], canvas: Canvas) -> list[Part]:
            params = types.CallToolRequestParams(name=tool["name"], arguments=schema.original(arguments))
            result = await self._call(name, lambda more: types.CallToolRequest(params=_update(params, more)), canvas)
            return result_of(name, result, reader)

        about = str(tool.get("description") or tool.get("title") or tool["name"])[:MAX_DESCRIPTION]
        again = reads or hints.get("idempotentHint") is True
        check = partial(schema.fault, name)
        return self._make_tool(
            name, tool["name"], about, schema.json, run, idempotent=again, parallel=reads, check=check
        )

    def _resource_tools(self, reader: str, lister: str, lines: Sequence[str]) -> list[FunctionTool]:
        about = resources.read_description(self._server.name, lines, lister)
        read = self._make_tool(
            reader, "read_resource", about, resources.READ_INPUT, partial(self._read_resource, reader)
        )
        if lister not in about:
            return [read]

        async def listing(arguments: Mapping[str, Any], canvas: Canvas) -> str:
            return resources.listing(lines, str(arguments.get("contains") or ""))

        about = f"List the resources of the MCP server {self._server.name}, which {reader} reads."
        return [read, self._make_tool(lister, "list_resources", about, resources.LIST_INPUT, listing)]

    def _make_tool(
        self,
        name: str,
        plain: str,
        about: str,
        schema: Mapping[str, Any],
        run: Run,
        *,
        idempotent: bool = True,
        parallel: bool = True,
        check: Check | None = None,
    ) -> FunctionTool:
        max_seconds = CALL_WAIT + MAX_TIMEOUTS * self._server.timeout + 30  # longer than an exchange
        approval = self._server.approval_of(plain)
        return FunctionTool(
            name, about, schema, run, max_seconds, approval, idempotent=idempotent, parallel=parallel, check=check
        )

    # ------------------------------------------------------------- calls

    async def _read_resource(self, name: str, arguments: Mapping[str, Any], canvas: Canvas) -> list[Part]:
        uri = arguments.get("uri")
        if not isinstance(uri, str):
            raise ToolError(f"{name} needs the URI of a resource as “uri”.")
        params = types.ReadResourceRequestParams(uri=uri)
        result = await self._call(name, lambda more: types.ReadResourceRequest(params=_update(params, more)), canvas)
        return contents_of(name, result["contents"])

    async def _call(self, name: str, request: Request, canvas: Canvas) -> dict[str, Any]:
        """The result of a call, after all questions to the user (rule 3).

        Raises:
            ToolError: it failed, or has no result.
        """
        kept: Any = canvas.recall(KEPT) or {}
        rounds, past = list(kept.get("rounds", ())), list(kept.get("past", ()))
        questions = Questions(self._server.name, canvas)
        await questions.repeat(past)
        more: Mapping[str, Any] = {}
        for asked in rounds:
            more = await questions.answers(asked)
        for _ in range(MAX_ROUNDS):
            try:
                result = await self._exchange(name, request(more), questions)
            except _StateLost:  # the server restarted: begin again, with the answers so far
                past, rounds, more = list(questions.asked), [], {}
                questions.answer_again()
                continue
            if not isinstance(result, types.InputRequiredResult | types.ElicitationRequiredErrorData):
                return _json(result)
            rounds.append(_json(result))
            await canvas.remember(KEPT, {"past": past, "rounds": rounds})
            more = await questions.answers(rounds[-1])
        raise ToolError(f"{name} asked {MAX_ROUNDS} times and did not come to an end.")

    async def _exchange(self, name: str, request: types.ClientRequest, questions: Questions) -> Any:
        """The answer to one request, or what the user has to do first.

        If the session ended before the request, the request is repeated in a new one.

        Raises:
            ToolError: it failed.
            _StateLost: the call may begin again.
        """
        for last_try in (False, True):
            client = await self._connection.client(CALL_WAIT)
            if client is None:
                reason = self._connection.reason
                raise ToolError(f"The MCP server {self._server.name} is not there: {reason}.{TO_THE_MODEL}")
            exchange = Exchange(name, self._server.timeout)
            self._exchanges.add(exchange)
            ended = False
            try:
                result = await exchange.run(client, request, questions)
                ended = True
                return result
            except MCPError as error:
                ended = True
                if error.code == types.URL_ELICITATION_REQUIRED:
                    return types.ElicitationRequiredErrorData.model_validate(error.data)
                if error.code == types.INVALID_PARAMS and getattr(request.params, "request_state", None):
                    raise _StateLost from None
                gone = error.message == "Session terminated" or error.code == NOT_SENT
                if gone or error.code == types.CONNECTION_CLOSED:
                    self._connection.lose(client)
                if not gone or last_try:
                    raise ToolError(self._failure(name, error)) from None
            except ValidationError:
                raise ToolError(f"{name} answered with something that is not MCP.") from None
            finally:
                self._exchanges.discard(exchange)
                if not (ended or exchange.asked):
                    self._given_up = get_running_loop().time()
        raise AssertionError

    def _failure(self, name: str, error: MCPError) -> str:
        if error.code != types.CONNECTION_CLOSED:
            return f"{name} failed: {error.message[:MAX_ERROR]}"
        ended, again = (
            ("ended", "The server is started again.")
            if isinstance(self._server.connection, Command)
            else ("broke the connection", "It is connected to again.")
        )
        return (
            f"The MCP server {self._server.name} {ended} while {name} ran, so its outcome is unknown. {again} "
            "Repeat the call only if it does no harm to do it twice."
        )

    async def _on_elicitation(self, context: object, params: types.ElicitRequestParams) -> Reply:
        """A question that came as its own request; it waits in its call (rule 4)."""
        exchange = current_exchange.get() or self._sole_exchange()
        if exchange is None or exchange not in self._exchanges:
            logger.warning("%s asks the user, and of which call is unknown: it is refused", self.name)
            return types.ErrorData(
                code=types.INVALID_REQUEST, message="The user cannot be asked now. Call again later."
            )
        return await exchange.ask(_json(params))

    def _sole_exchange(self) -> Exchange | None:
        """The exchange of a question that does not name it; None if that is ambiguous."""
        late = get_running_loop().time() - self._given_up < LATE
        return next(iter(self._exchanges)) if len(self._exchanges) == 1 and not late else None


class _StateLost(Exception):
    """A server rejects the state that it sent."""


def _needs_task(tool: Mapping[str, Any]) -> bool:
    """Whether a tool refuses plain calls (`execution.taskSupport` of MCP 2025-11-25)."""
    return (tool.get("execution") or {}).get("taskSupport") == "required"


def _update(params: Any, more: Mapping[str, Any]) -> Any:
    return params.model_copy(update=more)


def _json(value: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped
