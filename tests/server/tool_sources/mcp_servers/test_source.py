"""MCP servers as tool sources: one of the registry over stdio, one of ours over stdio, HTTP and SSE."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from a2a_canvas.server.tool_sources.mcp_servers import source as source_module
from a2a_canvas.server.tool_sources.mcp_servers.config import Command, Endpoint, Http, McpServer
from a2a_canvas.server.tool_sources.mcp_servers.source import McpSource, mcp_sources
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.recorded_call import CallPaused
from a2a_canvas.tools.functions.results import File
from tests.free_port import free_port
from tests.node_tools import ROOT, need_node
from tests.server.tool_sources.mcp_servers import our_server
from tests.server.tool_sources.mcp_servers.call_canvas import CallCanvas, outcome
from tests.server.tool_sources.mcp_servers.test_hostile_servers import eventually

EVERYTHING = "@modelcontextprotocol/server-everything"
TRANSPORTS = (
    "stdio",
    "http",
    *(pytest.param(each, marks=pytest.mark.slow) for each in ("json", "legacy", "stateless", "sse")),
)
"""How our server is reached; over HTTP with streams, with bodies of JSON, as before 2026, without sessions, by SSE."""


@asynccontextmanager
async def started(*servers: McpServer) -> AsyncIterator[tuple[McpSource, ...]]:
    sources = mcp_sources(servers)
    await asyncio.gather(*(each.start() for each in sources))
    try:
        yield sources
    finally:
        await asyncio.gather(*(each.stop() for each in sources))


def server_at(url: str, kind: Http = "auto", timeout: float = 60) -> McpServer:
    return McpServer("ours", "ours", Endpoint(url, {}, kind), timeout, frozenset(("add",)))


@asynccontextmanager
async def ours(transport: str, calls: list[str] | None = None) -> AsyncIterator[McpSource]:
    """Our server, reached in one of `TRANSPORTS`."""
    if transport == "stdio":
        program = Command(sys.executable, ("-m", our_server.__name__), {}, str(Path(__file__).parents[4]))
        async with started(McpServer("ours", "ours", program)) as (one,):
            yield one
        return
    options = {"json": {"json_response": True}, "stateless": {"stateless_http": True}, "legacy": {"legacy": True}}.get(
        transport, {}
    )
    serving = our_server.over_http(our_server.made(calls), sse=transport == "sse", **options)
    async with serving as url, started(server_at(url)) as (one,):
        yield one


def tool(source: McpSource, name: str) -> FunctionTool:
    return next(each for each in source.tools() if each.name == f"ours__{name}")


async def test_a_server_of_the_registry_over_stdio() -> None:
    server = McpServer("time", "time", Command("mcp-server-time", ("--local-timezone=UTC",)))
    async with started(server) as (source,):
        tools = {each.name: each for each in source.tools()}
        now = await outcome(tools["time__get_current_time"], {"timezone": "Europe/Berlin"})
        assert json.loads(now[0])["timezone"] == "Europe/Berlin"
        given = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = json.loads((await outcome(tools["time__convert_time"], given))[0])
        assert converted["time_difference"] == "+9.0h"
        wrong = await outcome(tools["time__get_current_time"], {"timezone": "Nowhere"})
        assert wrong.startswith("ToolError: ")
        assert "Invalid timezone" in wrong


async def test_the_server_of_the_registry_that_does_everything_over_stdio() -> None:
    need_node(EVERYTHING)
    program = Command("node", (str(ROOT / "node_modules" / EVERYTHING / "dist/index.js"), "stdio"))
    async with started(McpServer("all", "all", program)) as (source,):
        tools = {each.name.removeprefix("all__"): each for each in source.tools()}
        assert await outcome(tools["echo"], {"message": "hi"}) == ["Echo: hi"]
        assert await outcome(tools["get-sum"], {"a": 1, "b": 2}) == ["The sum of 1 and 2 is 3."]
        _, image, _ = await outcome(tools["get-tiny-image"], {})
        assert (image.media_type, image.content[:4]) == ("image/png", b"\x89PNG")
        [weather] = await outcome(tools["get-structured-content"], {"location": "New York"})
        assert json.loads(weather)["conditions"] == "Cloudy"
        _, link, _ = await outcome(tools["get-resource-links"], {"count": 2})
        assert "(demo://resource/dynamic/blob/1, which all__read_resource reads)" in link
        read = await outcome(tools["read_resource"], {"uri": "demo://resource/dynamic/text/1"})
        assert "Resource 1: This is a plaintext resource" in read[0]
        canvas = CallCanvas()
        await outcome(tools["trigger-long-running-operation"], {"duration": 0.02, "steps": 2}, canvas)
        assert canvas.labels[-1] == "all__trigger-long-running-operation: 2 of 2"


async def test_what_the_server_that_does_everything_asks_is_asked_and_answered() -> None:
    need_node(EVERYTHING)
    program = Command("node", (str(ROOT / "node_modules" / EVERYTHING / "dist/index.js"), "stdio"))
    async with started(McpServer("all", "all", program)) as (source,):
        [asks] = [each for each in source.tools() if each.name == "all__trigger-elicitation-request"]
        asked = CallCanvas()
        assert await outcome(asks, {}, asked) is CallPaused
        assert "- name (String): Your full, legal name [text]" in asked.questions[0]
        assert "[one of hero-1 (Superman), hero-2 (Green Lantern)" in asked.questions[0]
        told = await outcome(asks, {}, CallCanvas(("Ann",), asked.kept))
        assert told[1] == "User inputs:\n- Name: Ann\n- Favorite Integer: 42\n- Favorite Number: 3.14"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_tools_have_a_prefix_and_what_the_server_says_of_them(transport: str) -> None:
    async with ours(transport) as source:
        add, count, picture = (tool(source, name) for name in ("add", "count", "picture"))
        assert (add.description, add.input_schema["required"]) == ("Add two numbers.", ["a", "b"])
        assert [(each.idempotent, each.parallel) for each in (add, count, picture)] == [
            (True, True),
            (True, False),
            (False, False),
        ]
        assert (picture.approval, add.approval) == ("never", "never" if transport == "stdio" else "ask")


async def test_an_approval_of_a_tool_that_the_server_does_not_have_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with our_server.over_http(our_server.made()) as url:
        connection = Endpoint(url, {}, "auto")
        async with started(McpServer("ours", "ours", connection, approval=frozenset(("add", "pictur", "grown")))) as (
            one,
        ):
            await eventually(lambda: bool(one.tools()))
            assert [text for text in caplog.messages if "approval" in text] == [
                "MCP server ours has no tool 'grown', which `approval` lists, so the entry has no effect. "
                "Perhaps grow is meant",
                "MCP server ours has no tool 'pictur', which `approval` lists, so the entry has no effect. "
                "Perhaps picture is meant",
            ]
            caplog.clear()
            await outcome(tool(one, "grow"), {})
            await eventually(lambda: any(each.name == "ours__grown" for each in one.tools()))
            assert tool(one, "grown").approval == "ask"
            assert not [text for text in caplog.messages if "approval" in text]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_results_are_text_and_files(transport: str) -> None:
    async with ours(transport) as source:
        assert await outcome(tool(source, "add"), {"a": 1, "b": 2}) == ["3"]
        (file,) = await outcome(tool(source, "picture"), {})
        assert isinstance(file, File)
        assert (file.media_type, file.content) == ("image/png", b"\x89PNG...")
        assert "validation error" in await outcome(tool(source, "add"), {"a": "x"})


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_resources_are_described_and_read(transport: str) -> None:
    async with ours(transport) as source:
        read = tool(source, "read_resource")
        assert "\nnote://today – today – What is on today.\n" in read.description
        assert "\nnote://{day} – note – What is on one day." in read.description
        assert await outcome(read, {"uri": "note://today"}) == ["Swim."]
        assert await outcome(read, {"uri": "note://monday"}) == ["Nothing on monday."]
        assert "ToolError: ours__read_resource failed: " in await outcome(read, {"uri": "other://x"})
        assert await outcome(read, {}) == "ToolError: ours__read_resource needs the URI of a resource as “uri”."


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_progress_is_the_label(transport: str) -> None:
    async with ours(transport) as source:
        canvas = CallCanvas()
        assert await outcome(tool(source, "count"), {"to": 3}, canvas) == ["counted"]
        assert canvas.labels[-1].startswith("counting (")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_question_in_the_result_goes_on_with_the_answer_and_the_state(transport: str) -> None:
    calls: list[str] = []
    async with ours(transport, calls) as source:
        weather, canvas = tool(source, "weather"), CallCanvas()
        assert await outcome(weather, {}, canvas) is CallPaused
        assert canvas.questions[0].startswith("ours asks: Which city?")
        assert await outcome(weather, {}, CallCanvas(["Rom"], canvas.kept)) == ["Rom is mild"]
        assert calls == ([] if transport == "stdio" else ["weather of Rom"])


async def test_questions_of_calls_that_run_at_once_reach_each_its_own_over_http() -> None:
    async with ours("legacy") as source:
        ask, names = tool(source, "ask"), ("Ann", "Bob", "Cem")
        asked = [CallCanvas() for _ in names]
        await asyncio.gather(*(outcome(ask, {"who": who}, each) for who, each in zip(names, asked, strict=True)))
        assert [each.questions[0].split("\n")[0] for each in asked] == [
            f"ours asks: Which city, {who}?" for who in names
        ]
        told = [CallCanvas([f"{who}ville"]) for who in names]
        answers = (outcome(ask, {"who": who}, each) for who, each in zip(names, told, strict=True))
        assert await asyncio.gather(*answers) == [[f"accept {who}ville"] for who in names]


async def test_a_login_that_a_call_needs_pauses_it() -> None:
    async with ours("legacy") as source:
        secret, canvas = tool(source, "secret"), CallCanvas()
        assert await outcome(secret, {}, canvas) is CallPaused
        assert canvas.questions[0].startswith("ours asks: Log in.\n\nOpen https://example.com/login and answer “done”")
        declined = await outcome(secret, {}, CallCanvas(["decline"], dict(canvas.kept)))
        assert declined == "ToolError: The user declined to open https://example.com/login."
        assert await outcome(secret, {}, CallCanvas(["done", "done"], canvas.kept)) == ["a secret"]


async def test_a_call_that_is_cancelled_ends_at_the_server() -> None:
    calls: list[str] = []
    async with ours("http", calls) as source:
        calling = asyncio.create_task(outcome(tool(source, "wait"), {}))
        await eventually(lambda: calls == ["wait began"])
        calling.cancel()
        await eventually(lambda: calls == ["wait began", "wait ended"])


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_list_that_has_changed_is_read_again(transport: str) -> None:
    async with ours(transport) as source:
        await eventually(lambda: bool(source.tools()))
        assert await outcome(tool(source, "grow"), {}) == ["done"]
        await eventually(lambda: any(each.name == "ours__grown" for each in source.tools()))
        assert await outcome(tool(source, "grown"), {}) == ["grown"]


@pytest.mark.parametrize("transport", ["http", "json"])
async def test_an_answer_over_http_that_is_too_large_fails_the_call_alone(transport: str) -> None:
    async with ours(transport) as source:
        assert "16" in await outcome(tool(source, "large"), {"megabytes": 50})
        assert await outcome(tool(source, "add"), {"a": 1, "b": 2}) == ["3"]


async def test_a_server_over_http_that_was_restarted_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "CALL_WAIT", 0.3)
    port = free_port()
    source = McpSource(server_at(f"http://127.0.0.1:{port}/mcp"), delays=(0.05,))
    async with our_server.over_http(our_server.made(), port=port):
        await source.start()
        assert await outcome(tool(source, "add"), {"a": 1, "b": 2}) == ["3"]
    for _ in range(2):  # neither call has reached the server, so nothing is unknown of its outcome
        failed = await outcome(tool(source, "add"), {"a": 1, "b": 2})
        assert "is not there: nothing answers at http://127.0.0.1" in failed
    async with our_server.over_http(our_server.made(), port=port):
        monkeypatch.setattr(source_module, "CALL_WAIT", 30)
        assert await outcome(tool(source, "add"), {"a": 1, "b": 2}) == ["3"]
        await source.stop()
