"""One browser for the tests of a module; each window has storage of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from a2a_canvas.server.accounts.api_key import new_key
from tests.server.app_server import Served, serving
from tests.server.canvas.browser.browser_harness import OpenPage, opened, running_browser

Opener = Callable[..., Awaitable[OpenPage]]
"""Opens a window: on a server, at a path (`opened`)."""
SCRIPT = Path(__file__).parent / "scripts" / "page.yaml"
ANN, JOE = new_key("ann"), new_key("joe")
REFUSED = "status of (401|429)"
Entered = TypeVar("Entered")


class Start(Protocol):
    """Starts a server of one test."""

    async def __call__(self, server: AbstractAsyncContextManager[Entered]) -> Entered: ...


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"script": SCRIPT, "tools": (SCRIPT.with_name("tools.py"),), "grpc": False}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with running_browser() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def start() -> AsyncIterator[Start]:
    """Servers that stop after the windows of the test have closed: a page that misses its server has faults."""
    async with AsyncExitStack() as servers:
        yield servers.enter_async_context


@pytest_asyncio.fixture(loop_scope="module")
async def open_window(browser: Browser, start: Start) -> AsyncIterator[Opener]:  # closed before its servers stop
    """Windows on any server; they are checked and closed at the end."""
    async with AsyncExitStack() as windows:

        async def open_window(url: str, path: str = "/", **options: Any) -> OpenPage:
            return await windows.enter_async_context(opened(browser, url, path, **options))

        yield open_window


@pytest_asyncio.fixture(loop_scope="module")
async def window(open_window: Opener, served: Served) -> OpenPage:
    """A window on the module's server, at its start page."""
    return await open_window(served.url)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def guarded() -> AsyncIterator[Served]:
    """A server that asks for the key of ann or joe."""
    async with serving(SCRIPT, grpc=False, api_keys=f"ann={ANN},joe={JOE}") as served:
        served.gate.open()
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def visit(open_window: Opener, guarded: Served) -> OpenPage:
    """Somebody whom the server does not know yet."""
    window = await open_window(guarded.url)
    window.expects(REFUSED)
    return window
