"""`/mcp` and what hosts look for before they come: who issues tokens, and a catalogue of what is here.

Rule 1: the SDK is imported with the first request, in a thread, and MCP is an extra: without it `/mcp` says so.
Rule 2: a body is checked like every other one, a large one in the thread that all users share; the SDK reads it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import UnsupportedOperationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from a2a_canvas.server.protocols.edge.http_requests import caller_of
from a2a_canvas.server.protocols.guard.bodies import replay_body
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_json
from a2a_canvas.server.protocols.guard.error_forms import method_not_allowed, rest_response
from a2a_canvas.server.protocols.guard.parsing import ParsingThread
from a2a_canvas.server.protocols.identity.authenticator import AuthenticatedCaller
from a2a_canvas.server.protocols.mcp_server.tools import CanvasTools
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.wire import CATALOG_PATH, MCP_PATH, RESOURCE_PATH
from a2a_canvas.store.models import JsonValue

McpApp = Callable[[Scope, Receive, Send, JsonValue], Awaitable[None]]
"""An ASGI application that is also given the parsed body."""
MAX_VALUES: Final = 10_000
"""JSON values in a request: the arguments of a tool are few."""
NOT_INSTALLED: Final = Refusal(
    UnsupportedOperationError, "MCP is not installed on this server: pip install 'a2a-canvas[mcp]'.", http_status=501
)


def mcp_routes(
    runtime: Runtime,
    limits: BodyLimits,
    parsing: ParsingThread,
    card: pb.AgentCard,
    url: str,
    issuer: str,
    sign: Callable[[AuthenticatedCaller, str], Awaitable[str]],
    *,
    has_page: bool,
) -> list[Route]:
    """The routes.

    Args:
        card: says how the server is called.
        url: its public address.
        issuer: of the tokens that it accepts; empty for none.
        sign: signs an address for a caller.
        has_page: whether people can be sent to its page.
    """

    def load() -> McpApp | None:
        try:
            from a2a_canvas.server.protocols.mcp_server.server import McpService
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
                raise
            return None
        tools = CanvasTools(runtime, url if has_page else "", limits.max_text_bytes)
        return McpService(card, tools, runtime, sign, url)

    endpoint = _McpEndpoint(load, limits, parsing)
    resource = {"resource": url + MCP_PATH, "authorization_servers": [issuer], "bearer_methods_supported": ["header"]}
    known = [Route(each, _serve_fixed(resource)) for each in (RESOURCE_PATH, RESOURCE_PATH + MCP_PATH) if issuer]
    return [
        Route(MCP_PATH, endpoint),
        Route(CATALOG_PATH, _serve_fixed(_catalog(card.name, url), "application/ai-catalog+json")),
        *known,
    ]


def _serve_fixed(value: Mapping[str, Any], media_type: str = "application/json") -> Any:
    async def answer(request: Request) -> Response:
        return JSONResponse(value, media_type=media_type, headers={"Cache-Control": "public, max-age=300"})

    return answer


def _catalog(name: str, url: str) -> dict[str, Any]:
    """The catalogue of the two ways in: A2A and MCP."""
    entries = (
        ("a2a", "application/a2a-agent-card+json", url + AGENT_CARD_WELL_KNOWN_PATH),
        ("mcp", "application/mcp-server+json", url + MCP_PATH),
    )
    return {
        "specVersion": "1.0",
        "host": {"displayName": name},
        "entries": [
            {"identifier": f"{url}#{kind}", "displayName": name, "type": media, "url": where}
            for kind, media, where in entries
        ],
    }


class _McpEndpoint:
    def __init__(self, load: Callable[[], McpApp | None], limits: BodyLimits, parsing: ParsingThread) -> None:
        self._load = load
        self._limits = limits
        self._parsing = parsing
        self._app: McpApp | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":  # clients older than 2026-07-28 ask for a stream, which would stay empty
            refusal = method_not_allowed(request.method, request.url.path, ("POST",))
            await rest_response(refusal)(scope, receive, send)
            return
        async with self._one_at_a_time:
            self._app = self._app or await asyncio.to_thread(self._load)
        if self._app is None:
            await rest_response(NOT_INSTALLED)(scope, receive, send)
            return
        body = await request.body()
        check = partial(check_json, body, self._limits, MAX_VALUES)
        parsed = await self._parsing.run(caller_of(request).account, len(body), check)
        if isinstance(parsed, Refusal):
            await rest_response(parsed)(scope, receive, send)
        else:
            await self._app(scope, replay_body(body, receive), send, parsed)
