"""One browser for the tests of a module; each window has storage of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage, opened, running_browser

Opener = Callable[..., Awaitable[OpenPage]]
"""Opens a window: on a server, at a path (`opened`)."""


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    scripts = Path(__file__).parent / "scripts"
    return {"script": scripts / "page.yaml", "tools": (scripts / "tools.py",), "grpc": False}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with running_browser() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def open_window(browser: Browser) -> AsyncIterator[Opener]:
    """Windows on any server; they are checked and closed at the end."""
    async with AsyncExitStack() as windows:

        async def open_window(url: str, path: str = "/", **options: Any) -> OpenPage:
            return await windows.enter_async_context(opened(browser, url, path, **options))

        yield open_window


@pytest_asyncio.fixture(loop_scope="module")
async def window(open_window: Opener, served: Served) -> OpenPage:
    """A window on the module's server, at its start page."""
    return await open_window(served.url)
