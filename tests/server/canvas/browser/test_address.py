"""Where the page may be: below a path of a proxy, and at a public address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from playwright.async_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings.settings import Settings
from tests.loopback import serving_app
from tests.node_tools import installed_file
from tests.open_id_provider import Provider, signing_in_with
from tests.server.canvas.browser.conftest import SCRIPT, Opener, Start
from tests.server.canvas.browser.page_actions import ask, document, messages
from tests.server.canvas.browser.test_accessibility import VIOLATIONS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def below(path: str, **settings: Any) -> AsyncIterator[str]:
    """The address of a server that is reached below a path only."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app = create_app(Settings(public_url=url + path, database="memory", **settings), ScriptedModel(SCRIPT))
        outer = Starlette(routes=[Mount(path, app)], lifespan=lambda _: app.router.lifespan_context(app))
        server = uvicorn.Server(uvicorn.Config(outer, log_config=None, timeout_graceful_shutdown=1))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield url
        finally:
            server.should_exit = True
            await app.state.shutdown()
            await running


async def test_below_a_path_of_a_proxy(open_window: Opener, start: Start) -> None:
    url = await start(below("/team/canvas"))
    window = await open_window(url, "/team/canvas/")
    await ask(window.page, "quickly tides")
    await expect(messages(window.page)).to_contain_text("Here is tides.")
    await expect(document(window.page)).to_contain_text("The first paragraph stays.")
    await window.page.reload()
    await expect(document(window.page)).to_contain_text("The first paragraph stays.")
    assert window.page.url.startswith(f"{url}/team/canvas/#/")


async def test_a_provider_signs_somebody_in_below_a_path_of_a_proxy(open_window: Opener, start: Start) -> None:
    issuer = await start(serving_app(Provider().app))
    url = await start(below("/team/canvas", **signing_in_with(issuer)))
    window = await open_window(url, "/team/canvas/", others=[issuer])
    window.expects("status of 401")
    page = window.page
    await page.get_by_role("dialog", name="Sign in").get_by_role("button", name="Sign in with your account").click()
    await expect(page.get_by_role("button", name="ann", exact=True)).to_be_visible()
    assert page.url == f"{url}/team/canvas/"
    await ask(page, "quickly tides")
    await expect(document(page)).to_contain_text("The first paragraph stays.")
    (cookie,) = await page.context.cookies()
    assert cookie["path"] == "/team/canvas/"

    await page.goto(f"{url}/team/canvas/auth/callback?error=access_denied")
    await expect(page.get_by_role("heading", name="Not signed in")).to_be_visible()
    await page.evaluate(installed_file("axe-core", "axe.min.js"))
    assert await page.evaluate(VIOLATIONS) == []
    window.expects("status of 40[01]")
    await page.get_by_role("link", name="Sign in again").click()
    await expect(page.get_by_role("button", name="ann", exact=True)).to_be_visible()
