"""How the page reaches a browser: what it paints from, and how many requests its start takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, Request, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAINTED = """async () => {
    const paint = await new Promise((done) => new PerformanceObserver((list) =>
        list.getEntriesByName("first-contentful-paint").forEach((each) => done(each.startTime))
    ).observe({type: "paint", buffered: true}));
    const read = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return read.filter((each) => each.responseEnd <= paint).reduce((sum, each) => sum + each.transferSize, 0);
}"""
LAST = "**/a2a/shared_worker.js"
"""What an idle page loads last. It has no end for Playwright, whose `networkidle` therefore never comes."""
PACE = {"latency_ms": 400, "bytes_per_second": 63_000}


async def test_it_paints_from_20_kb_and_starts_with_few_requests(browser: Browser, served: Served) -> None:
    context = await browser.new_context()
    try:
        page = await context.new_page()
        window = OpenPage(context, page, [served.url])
        requests = watch(page)
        await window.slow_down(**PACE)
        async with page.expect_request(LAST):
            await page.goto(served.url)
        await expect(page.get_by_role("button", name="New conversation").first).to_be_visible()

        assert await page.evaluate(PAINTED) < 20_000
        assert {path for path, times in requests.items() if times > 1} <= {"/"}
        assert len(requests) < 40
        window.check()
    finally:
        await context.close()


async def test_it_paints_before_its_scripts_arrive(browser: Browser, served: Served) -> None:
    context = await browser.new_context()
    painted = asyncio.Event()
    try:
        page = await context.new_page()

        async def hold(route: Route) -> None:
            await painted.wait()
            await route.continue_()

        await page.route("**/page/**", hold)
        await page.goto(served.url, wait_until="commit")
        assert await page.evaluate(PAINTED) < 20_000
        painted.set()
        await expect(page.get_by_role("button", name="New conversation").first).to_be_visible()
    finally:
        await context.close()


async def test_what_views_need_is_there_before_it_is_needed(window: OpenPage) -> None:
    page = window.page
    async with page.expect_request(LAST):
        await page.reload()
    requests = watch(page)

    await page.get_by_role("textbox", name="Message").fill("quickly tea")
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.locator("#document").get_by_role("heading").first).to_be_visible()

    assert modules(requests) == []


def watch(page: Page) -> Counter[str]:
    """The paths of what a page asks for from now on."""
    asked: Counter[str] = Counter()

    def on_request(request: Request) -> None:
        asked[urlsplit(request.url).path] += 1

    page.on("request", on_request)
    return asked


def modules(requests: Counter[str]) -> list[str]:
    """The modules of the page among them; chunks and libraries apart."""
    names = [path.split("/", 3)[3] for path in requests if path.startswith("/page/")]
    return sorted(name for name in names if name.endswith(".js") and not name.startswith(("vendor/", "chunks/")))
