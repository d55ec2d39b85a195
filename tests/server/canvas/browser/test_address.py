"""Where the page may be: below a path of a proxy, and at a public address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from playwright.async_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings import Settings
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, document, messages

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = Path(__file__).parent / "scripts" / "page.yaml"


@asynccontextmanager
async def below(path: str) -> AsyncIterator[str]:
    """The address of a server that is reached below a path only."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app = create_app(Settings(public_url=url + path, database="memory"), ScriptedModel(SCRIPT))
        outer = Starlette(routes=[Mount(path, app)], lifespan=lambda _: app.router.lifespan_context(app))
        server = uvicorn.Server(uvicorn.Config(outer, log_config=None, timeout_graceful_shutdown=1))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield url
        finally:
            server.should_exit = True
            await app.state.shutdown()
            await running


async def test_below_a_path_of_a_proxy(open_window: Opener) -> None:
    async with below("/team/canvas") as url:
        window = await open_window(url, "/team/canvas/")
        await ask(window.page, "quickly tides")
        await expect(messages(window.page)).to_contain_text("Here is tides.")
        await expect(document(window.page)).to_contain_text("The first paragraph stays.")
        await window.page.reload()
        await expect(document(window.page)).to_contain_text("The first paragraph stays.")
        assert window.page.url.startswith(f"{url}/team/canvas/#/")
        window.check()
        window.expects("net::ERR_")
