"""The view of a document in an MCP host: with the bridge that hosts use, in a frame with an origin of its own."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from functools import cache
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import FrameLocator, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.wire import CANVAS, MCP_PATH
from tests.loopback import serving_app
from tests.node_tools import ROOT, need_node, run_node
from tests.server.app_server import Served, serving
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import SCRIPT, Opener

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANN = new_key("ann")
AS_ANN = {"Authorization": f"Bearer {ANN}"}
HOSTS = ROOT / "tests/server/protocols/mcp_server/hosts"
BUNDLE = """
import { build } from "esbuild";
const entryPoints = [process.argv[1]];
const { outputFiles } = await build({ entryPoints, bundle: true, write: false, format: "esm", target: "es2022" });
console.log(outputFiles[0].text);
"""


PASSED = ("accept", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version")


@cache
def bundle() -> str:
    """The host's page, with the libraries of hosts."""
    need_node("@modelcontextprotocol/ext-apps", within=HOSTS)
    return run_node("--input-type=module", "-e", BUNDLE, str(HOSTS / "host_page.mjs"), installed="esbuild")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served() -> AsyncIterator[Served]:
    async with serving(SCRIPT, grpc=False, api_keys=f"ann={ANN}") as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def host_url(served: Served) -> AsyncIterator[str]:
    """A host: a page elsewhere, and its own server, which has the user's key."""
    script = await asyncio.to_thread(bundle)

    async def page(request: Request) -> Response:
        return HTMLResponse(f"<!doctype html><link rel=icon href=data:,><body><script type=module>{script}</script>")

    async def forward(request: Request) -> Response:
        passed = {name: request.headers[name] for name in PASSED if name in request.headers} | AS_ANN
        async with httpx.AsyncClient(timeout=30) as http:
            answer = await http.post(f"{served.url}{MCP_PATH}", content=await request.body(), headers=passed)
        return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))

    def app(_: str) -> Starlette:
        return Starlette(routes=[Route("/", page), Route(MCP_PATH, forward, methods=["POST"])])

    async with serving_app(app) as url:
        yield url.replace("127.0.0.1", "localhost")


@pytest_asyncio.fixture(loop_scope="module")
async def window(open_window: Opener, host_url: str, served: Served) -> OpenPage:
    window = await open_window(host_url)
    window.expects(re.escape(f"request: {served.url}/artifacts/"))
    await window.page.wait_for_function("globalThis.host")
    return window


def view_of(window: OpenPage) -> FrameLocator:
    return window.page.frame_locator("iframe")


async def call(window: OpenPage, tool: str, **arguments: Any) -> dict[str, Any]:
    given = json.dumps([tool, arguments])
    result: dict[str, Any] = await window.page.evaluate(f"host.call(...{given})")
    return result


async def put(served: Served, where: str, text: str, base: int) -> None:
    """Somebody else saves a version, over A2A."""
    context, artifact = where.split("/")
    operation = {"op": "put", "artifactId": artifact, "text": text, "baseVersion": base}
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "contextId": context, "parts": [{"text": "put"}]}
    answer = await served.rpc("SendMessage", {"message": message | {"metadata": {CANVAS: operation}}}, **AS_ANN)
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_the_document_grows_while_the_host_s_model_writes_and_then_follows_what_others_do(
    window: OpenPage, served: Served
) -> None:
    view = view_of(window)
    assert await window.page.evaluate("host.viewOf('write_artifact')") == "ui://canvas/artifact.html"
    for text in ("# Ti", "# Tide pools\n\nOne **tw"):
        await window.page.evaluate(f"host.write({json.dumps({'name': 'tide.md', 'text': text})})")
    await expect(view.get_by_role("heading", name="Tide pools")).to_be_visible()
    await expect(view.get_by_role("status")).to_have_text("Writing…")
    made = await call(window, "write_artifact", name="tide.md", text="# Tide pools\n\nOne **two** three.\n")
    await expect(view.get_by_role("status")).to_have_text("Version 1")
    await expect(view.locator("strong")).to_have_text("two")
    await put(served, made["id"], "# Tide pools\n\nFour five.\n", 1)
    await expect(view.get_by_text("Four five.")).to_be_visible()
    await expect(view.get_by_role("status")).to_have_text("Version 2")


async def test_an_older_version_is_looked_at_and_restored(window: OpenPage, served: Served) -> None:
    view = view_of(window)
    made = await call(window, "write_artifact", name="tide.md", text="The first.\n")
    await expect(view.get_by_role("status")).to_have_text("Version 1")
    await put(served, made["id"], "The second.\n", 1)
    await expect(view.get_by_text("The second.")).to_be_visible()
    await view.get_by_label("Versions").select_option("1")
    await expect(view.get_by_text("The first.")).to_be_visible()
    await view.get_by_role("button", name="Restore").click()
    await expect(view.get_by_role("status")).to_have_text("Version 3")
    await expect(view.get_by_text("The first.")).to_be_visible()


async def test_a_selected_passage_goes_to_the_host_s_model_and_the_page_can_be_opened(window: OpenPage) -> None:
    view = view_of(window)
    made = await call(window, "write_artifact", name="tide.md", text="One two three.\n")
    await view.get_by_text("One two three.").click(click_count=3)
    await view.get_by_role("textbox").fill("Make it longer")
    await view.get_by_role("textbox").press("Enter")
    await window.page.wait_for_function("host.messages.length")
    [message] = await window.page.evaluate("host.messages")
    assert message == f"Make it longer\n\nThis is about a passage of {made['id']}, version 1:\n\nOne two three."
    await view.get_by_role("button", name="Open in the page").click()
    await window.page.wait_for_function("host.links.length")
    assert await window.page.evaluate("host.links") == [made["url"]]


async def test_a_document_of_strangers_runs_nothing_and_a_refusal_is_shown(window: OpenPage) -> None:
    view = view_of(window)
    hostile = "Hello <img src=x onerror=alert(1)><script>alert(2)</script> [a](javascript:alert(3)) ![b](https://example.com/b.png)\n"
    await call(window, "write_artifact", name="hostile.md", text=hostile)
    await expect(view.get_by_text("Hello")).to_be_visible()
    assert await view.locator("#host script, #host [onerror], #host a[href^=javascript]").count() == 0
    await window.page.evaluate("host.call('read_artifact', {id: 'x/y'})")
    await expect(view.get_by_role("status")).to_contain_text("There is no context 'x'.")
