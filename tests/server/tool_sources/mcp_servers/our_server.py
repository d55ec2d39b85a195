"""An MCP server made with the class of `mcp`, over HTTP or stdio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import ElicitRequestURLParams, ToolAnnotations
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.loopback import serving_app

READS = ToolAnnotations(read_only_hint=True)


class City(BaseModel):
    city: str


async def which_city() -> Elicit[City]:
    return Elicit("Which city?", City)


def made(calls: list[str] | None = None) -> MCPServer:  # noqa: C901  many tools, each of them simple
    """A server that notes its calls in `calls`."""
    noted = [] if calls is None else calls
    server = MCPServer("ours")

    @server.tool(annotations=READS)
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    async def count(to: int, ctx: Context) -> str:
        """Count."""
        for n in range(to):
            await ctx.report_progress(n + 1, to, "counting")
        return "counted"

    @server.tool()
    def picture() -> Image:
        """A picture."""
        return Image(data=b"\x89PNG...", format="png")

    @server.tool()
    def large(megabytes: int) -> str:
        """A large text."""
        return "x" * (megabytes * 1_000_000)

    @server.tool()
    async def wait(ctx: Context) -> str:
        """Wait for ever."""
        noted.append("wait began")
        try:
            await asyncio.Event().wait()
        finally:
            noted.append("wait ended")
        return ""

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Get another tool."""

        @server.tool(name="grown")
        def grown() -> str:
            """New."""
            return "grown"

        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "done"

    @server.tool()
    async def ask(ctx: Context, who: str = "") -> str:
        """Ask, while it runs."""
        noted.append(f"ask {who}")
        answer = await ctx.elicit(f"Which city, {who}?", City)
        return f"{answer.action} {answer.data.city if answer.action == 'accept' else ''}".strip()

    @server.tool()
    async def weather(place: Annotated[City, Resolve(which_city)]) -> str:
        """Ask, in the result."""
        noted.append(f"weather of {place.city}")
        return f"{place.city} is mild"

    @server.tool()
    def secret() -> str:
        """What only who is logged in may see."""
        noted.append("secret")
        if noted.count("secret") < 3:
            login = ElicitRequestURLParams(message="Log in.", url="https://example.com/login", elicitation_id="1")
            raise UrlElicitationRequiredError([login])
        return "a secret"

    @server.resource("note://today")
    def today() -> str:
        """What is on today."""
        return "Swim."

    @server.resource("note://{day}")
    def note(day: str) -> str:
        """What is on one day."""
        return f"Nothing on {day}."

    return server


def without_discover(app: ASGIApp) -> ASGIApp:
    async def older(scope: Scope, receive: Receive, send: Send) -> None:
        discovers = (b"mcp-method", b"server/discover") in scope.get("headers", ())
        await (Response(status_code=404) if discovers else app)(scope, receive, send)

    return older


@asynccontextmanager
async def over_http(
    server: MCPServer,
    *,
    sse: bool = False,
    port: int = 0,
    legacy: bool = False,
    wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    **options: Any,
) -> AsyncIterator[str]:
    """The address of a server that runs on loopback.

    Args:
        legacy: it knows nothing of MCP 2026-07-28.
        wrap: what stands in front of it.
    """
    app: ASGIApp = server.sse_app() if sse else server.streamable_http_app(**options)
    served, path = wrap(without_discover(app) if legacy else app), "sse" if sse else "mcp"
    async with serving_app(lambda _: served, port, lifespan="on", timeout_graceful_shutdown=0) as url:
        yield f"{url}/{path}"


if __name__ == "__main__":
    sys.exit(made().run("stdio"))
