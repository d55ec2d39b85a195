"""`a2a-canvas mcp` as a host starts it: a process that speaks MCP on its standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.wire import TOKEN_VARIABLE
from tests.free_port import free_port
from tests.loopback import serving_app
from tests.server.app_server import serving

KEY = new_key("ann")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "Zed", "version": "1"}},
}


def bridge(url: str, **environment: str) -> Any:
    arguments = ["-m", "a2a_canvas", "mcp", "--url", url]
    return stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=environment))


@pytest.mark.process
@pytest.mark.parametrize("era", ["2026-07-28", "auto", "legacy"])
async def test_a_host_without_remote_servers_writes_and_asks_the_agent(era: str) -> None:
    known = types.Implementation(name="Zed", version="1")
    async with (
        serving(database="memory", grpc=False, api_keys=f"ann={KEY}") as served,
        Client(bridge(served.url, **{TOKEN_VARIABLE: KEY}), mode=era, client_info=known) as zed,
    ):
        served.gate.open()
        made = await zed.call_tool("write_artifact", {"name": "Gezeitentümpel.md", "text": "Eins.\n"})
        where = (made.structured_content or {})["id"]
        assert "Eins." in (await zed.read_resource(f"canvas://{where}")).contents[0].text
        assert "by ann via Zed" in (await zed.call_tool("history", {"id": where})).content[0].text
        labels: list[str | None] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            labels.append(message)

        told = await zed.call_tool("ask_agent", {"text": "write report"}, progress_callback=progress)
        assert (told.structured_content or {})["state"] == "completed"
        assert any("report" in (label or "") for label in labels)


@pytest.mark.process
async def test_a_host_is_told_that_no_server_answers_and_that_a_key_is_missing() -> None:
    with pytest.raises(BaseExceptionGroup) as unreachable:
        async with Client(bridge(f"http://127.0.0.1:{free_port()}"), mode="legacy"):
            pass
    assert "Start it, or give its --url." in said(unreachable.value)
    async with serving(database="memory", grpc=False, api_keys=f"ann={KEY}") as served:
        with pytest.raises(BaseExceptionGroup) as refused:
            async with Client(bridge(served.url), mode="legacy"):
                pass
    assert f"Set {TOKEN_VARIABLE} to it." in said(refused.value)


def said(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, MCPError)
    return str(error)


@asynccontextmanager
async def started(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    arguments = ("-m", "a2a_canvas", "mcp", "--url", url)
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=pipe, stdout=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


ODD = (b"{nothing", b"[1]", b'{"id": [1], "method": "ping"}', b"[" * 200_000, b"3")


@pytest.mark.process
async def test_what_is_no_message_is_answered_and_the_next_one_passes_and_the_end_of_input_ends_it() -> None:
    async with serving(database="memory", grpc=False) as served, started(served.url) as process:
        assert process.stdin
        assert process.stdout
        cancelled = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}).encode()
        process.stdin.write(b"\n".join((*ODD, cancelled, json.dumps(INITIALIZE).encode(), b"")))
        answers = [json.loads(await process.stdout.readline()) for _ in range(len(ODD) + 1)]
        assert [each["error"]["code"] for each in answers[:-1]] == [-32700, -32600, -32600, -32700, -32600]
        assert (answers[-1]["id"], answers[-1]["result"]["serverInfo"]["name"]) == (1, "a2a-canvas")
        process.stdin.close()
        assert await process.wait() == 0
        assert await process.stdout.read() == b""


@pytest.mark.process
@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_a_text_with_line_ends_of_unicode_passes(era: str) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be"
    async with serving(database="memory", grpc=False) as served, Client(bridge(served.url), mode=era) as zed:
        made = await zed.call_tool("write_artifact", {"name": "a.txt", "text": text})
        read = await zed.call_tool("read_artifact", {"id": (made.structured_content or {})["id"]})
        assert text in read.content[0].text


@pytest.mark.process
async def test_a_server_that_leads_elsewhere_or_says_nothing_is_an_error() -> None:
    def app(_: str) -> Starlette:
        async def moved(request: Request) -> Response:
            return Response(status_code=308, headers={"Location": "https://agent.example.com/mcp"})

        return Starlette(routes=[Route("/mcp", moved, methods=["POST"])])

    async with serving_app(app) as url, started(url) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        answer = json.loads(await process.stdout.readline())
        assert "HTTP 308 and leads to https://agent.example.com/mcp. Check --url." in answer["error"]["message"]


@pytest.mark.process
async def test_its_input_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("[1]\n")
    with (tmp_path / "input").open() as given:
        arguments = ("-m", "a2a_canvas", "mcp")
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdin=given, stdout=asyncio.subprocess.PIPE
        )
        answer, _ = await process.communicate()
    assert (process.returncode, json.loads(answer)["error"]["code"]) == (0, -32600)
