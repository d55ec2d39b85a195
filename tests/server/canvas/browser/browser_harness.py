"""The page in a real browser: Debian's Chromium, driven by Playwright, against a real server.

Rules:
1. A page has done nothing wrong when its test ends: no error on its console, no exception, no violation of its policy,
   and no request to another host. A test names what it expects of these (`OpenPage.expects`).
2. Where there is no Chromium a test is skipped, or fails if `TESTS_NEED_CHROMIUM` is set. `CHROMIUM` may name it.
3. Playwright waits for what a test expects (`expect`); nothing sleeps.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    CDPSession,
    ConsoleMessage,
    Page,
    Request,
    async_playwright,
    expect,
)

NEEDS_CHROMIUM: Final = "TESTS_NEED_CHROMIUM"
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-quic", "--no-first-run"),
    *("--disable-component-update", "--disable-sync"),
)
PATIENCE_MS: Final = 20_000
"""How long anything may take; more than twice what the slowest takes on a busy machine."""
WIDE: Final = {"width": 1280, "height": 800}
LOCALE: Final = "en-GB"
"""Unless a test says so, that of the machine is none of its business."""

WATCH_POLICY: Final = (
    "document.addEventListener('securitypolicyviolation', (event) =>"
    " console.error(`The policy refuses ${event.blockedURI} (${event.effectiveDirective})`));"
)

expect.set_options(timeout=PATIENCE_MS)


def chromium() -> str:
    """The program. Skips the test, or fails it, if there is none (rule 2)."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), "")
    if not found:
        reason = "Chromium is not installed (Debian: chromium), so the page cannot be tested in a browser"
        if os.environ.get(NEEDS_CHROMIUM):
            pytest.fail(f"{reason}, and {NEEDS_CHROMIUM} is set")
        pytest.skip(reason)
    return found


@asynccontextmanager
async def running_browser() -> AsyncIterator[Browser]:
    program = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        await browser.close()


class OpenPage:
    """One person's browser window on a server, with storage of its own.

    Attributes:
        page: Playwright's.
        faults: what it has done wrong so far (rule 1).
        frames_load: whether frames in the page may ask other hosts: without its policy nobody forbids it to a preview.
    """

    frames_load = False

    def __init__(self, context: BrowserContext, page: Page, urls: Iterable[str]) -> None:
        self.page = page
        self.faults: list[str] = []
        self._expected: list[str] = []
        self._news = asyncio.Event()
        self._hosts = {urlsplit(url).netloc for url in urls}
        self._context = context
        self._cdp: CDPSession | None = None
        self._watch(page)

    def _watch(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._fault(f"exception: {error}"))
        page.on("request", self._on_request)

    async def another_tab(self) -> Page:
        """The same address in the same browser."""
        tab = await self._context.new_page()
        self._watch(tab)
        await tab.add_init_script(WATCH_POLICY)
        await tab.goto(self.page.url)
        return tab

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._fault(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        allowed = self.frames_load and request.frame.parent_frame is not None
        if not allowed and address.scheme not in ("data", "blob", "about") and address.netloc not in self._hosts:
            self._fault(f"request: {request.url}")

    def _fault(self, text: str) -> None:
        self.faults.append(text)
        self._news.set()

    async def noticed(self, words: str) -> None:
        """Wait for a fault, and expect it from now on."""
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while not any(words in fault for fault in self.faults):
                self._news.clear()
                await self._news.wait()
        self.expects(re.escape(words))

    def expects(self, pattern: str) -> None:
        """What matches this is no fault: a server that is stopped is an error on the console."""
        self._expected.append(pattern)

    def check(self) -> None:
        """Raises AssertionError if the page has done anything wrong."""
        unexpected = [fault for fault in self.faults if not any(re.search(each, fault) for each in self._expected)]
        assert not unexpected, "\n".join(unexpected)

    @staticmethod
    async def turn(tab: Page, state: str) -> None:
        """A tab is `hidden` behind another one, or `visible` again: a headless browser shows all of them."""
        await tab.evaluate(
            """(state) => {
                Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
                document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )

    # ---------------------------------------------------------------------- the network

    async def slow_down(self, *, latency_ms: float, bytes_per_second: float) -> None:
        """What comes from now on is as slow as that."""
        await self._emulate(offline=False, latency=latency_ms, downloadThroughput=bytes_per_second)

    async def disconnect(self) -> None:
        """Its network is gone, streams included."""
        self.expects("net::ERR_|Failed to fetch|network error")
        await self._emulate(offline=True, latency=0, downloadThroughput=-1)

    async def reconnect(self) -> None:
        await self._emulate(offline=False, latency=0, downloadThroughput=-1)

    async def _emulate(self, **conditions: Any) -> None:
        if self._cdp is None:
            self._cdp = await self._context.new_cdp_session(self.page)
            await self._cdp.send("Network.enable")
        await self._cdp.send("Network.emulateNetworkConditions", {**conditions, "uploadThroughput": -1})


@asynccontextmanager
async def opened(
    browser: Browser,
    url: str,
    path: str = "/",
    *,
    others: Iterable[str] = (),
    clock: bool = False,
    **options: Any,
) -> AsyncIterator[OpenPage]:
    """A window on a server; at the end it is checked (rule 1) and closed.

    Args:
        path: with the fragment.
        others: the servers that the page may talk to beside this one.
        clock: whether the test can let time pass (`page.clock`).
        options: of Playwright's `new_context`, such as `viewport` or `color_scheme`.
    """
    context = await browser.new_context(**{"viewport": WIDE, "locale": LOCALE, **options})
    context.set_default_timeout(PATIENCE_MS)
    try:
        page = await context.new_page()
        await page.add_init_script(WATCH_POLICY)
        if clock:
            await page.clock.install()
        window = OpenPage(context, page, (url, *others))
        await page.goto(url + path)
        yield window
        window.check()
    finally:
        await context.close()
