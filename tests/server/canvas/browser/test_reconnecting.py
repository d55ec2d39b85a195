"""What may happen to a page while a document is written: it is loaded again, its server is killed, its network is slow
or gone, its neighbour is on another server. The document is exact afterwards.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.database_fixtures import FreezableProxy, postgresql_url, sqlite_url
from tests.new_database import with_tables
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import PATIENCE_MS, OpenPage
from tests.server.canvas.browser.conftest import Opener, Start
from tests.server.canvas.browser.page_actions import (
    LINES,
    REPLY,
    ask,
    check_lines,
    document,
    grow_to,
    lines_of,
    messages,
    text_of,
)
from tests.server.faults.fault_scripts import REPORT, SO_FAR, WRITE, WRITTEN
from tests.server.faults.server_processes import server_group

pytestmark = pytest.mark.asyncio(loop_scope="module")

SILENCE_MS = 20_000
"""After so long without a byte a page takes its connection for lost: the server says something every few seconds."""
NUMBERS = re.findall(r"report (\d{3})", REPORT)
LOST = "net::ERR_|Failed to fetch|network error"
"""What the console says of a server that is gone."""


async def numbers_of(page: Page) -> list[str]:
    """The numbers of the lines of the report, as the document shows them."""
    return re.findall(r"report (\d{3}): ebb and flow", await text_of(document(page)))


async def check_written(page: Page) -> None:
    """The reply is there once, with nothing of what was said on the way, and the document is exact."""
    await expect(messages(page)).to_contain_text(WRITTEN, timeout=60_000)
    said = await messages(page).inner_text()
    assert (said.count(WRITTEN), SO_FAR in said) == (1, False)
    # It has a stream of its own, which may be behind that of the task.
    await expect(document(page)).to_contain_text(f"report {NUMBERS[-1]}: ebb and flow")
    assert await numbers_of(page) == NUMBERS


async def test_an_id_that_cannot_be_one_is_no_lost_connection(open_window: Opener, served: Served) -> None:
    window = await open_window(served.url, "/#/%00")
    window.expects("status of 400")
    await expect(window.page.get_by_role("alert")).to_contain_text("This conversation no longer exists.")
    await ask(window.page, "quickly weed")
    await expect(window.page.locator("#document")).to_be_visible()


async def test_where_windows_cannot_share_a_stream_a_message_that_waits_says_why(window: OpenPage) -> None:
    page = window.page
    await page.context.add_init_script("delete globalThis.SharedWorker;")
    await page.reload()
    await ask(page, "quickly kelp")
    tabs = [await window.another_tab() for _ in range(5)]
    await expect(tabs[-1].locator("#document")).to_be_visible()
    late = page.get_by_text("other windows of this page use all of the browser's connections")

    await page.get_by_role("textbox", name="Message").fill("quickly moss")
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(late).to_be_visible()

    for tab in tabs[:2]:
        await tab.close()
    await expect(page.locator("#chat").get_by_text("quickly moss")).to_be_visible()


async def test_reload_in_mid_stream(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "write report")
    await grow_to(page, served, "12")
    before = await lines_of(page)
    await page.reload()
    await expect(document(page)).to_contain_text(f"Line {before[-1]}")
    assert (await lines_of(page))[: len(before)] == before
    await expect(messages(page)).to_contain_text("Writing report.md…")
    await grow_to(page, served, "20")
    served.gate.open()
    await expect(messages(page)).to_contain_text(REPLY)
    await check_lines(page)
    assert (await messages(page).inner_text()).count("write report") == 1


async def test_a_slow_network(window: OpenPage, served: Served) -> None:
    page = window.page
    await window.slow_down(latency_ms=400, bytes_per_second=20_000)
    await ask(page, "write report")
    await served.gate.reached.wait()
    served.gate.let(12)
    await expect(document(page)).to_contain_text("Line 08")
    seen = await lines_of(page)
    assert seen == LINES[: len(seen)] != LINES
    served.gate.open()
    await expect(messages(page)).to_contain_text(REPLY)
    await check_lines(page)


async def test_a_network_that_is_gone_for_a_while(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "write report")
    await grow_to(page, served, "10")
    await window.disconnect()
    offline = page.locator("span", has_text="You are offline. The page reconnects by itself.")
    await expect(offline).to_be_visible()
    served.gate.open()
    await window.reconnect()
    await expect(messages(page)).to_contain_text(REPLY)
    await expect(offline).to_be_hidden()
    await check_lines(page)


async def test_connections_that_are_cut(open_window: Opener, served: Served) -> None:
    proxy = FreezableProxy(served.url)
    async with proxy as url:
        window = await open_window(url)
        window.expects(LOST)
        await ask(window.page, "write report")
        for line in ("05", "10", "15"):
            await grow_to(window.page, served, line)
            proxy.cut()
        served.gate.open()
        await expect(messages(window.page)).to_contain_text(REPLY)
        await check_lines(window.page)


async def test_a_connection_that_says_nothing_any_more(open_window: Opener, served: Served) -> None:
    """As after the sleep of a machine, or in a lift: nobody is told that it is gone."""
    proxy = FreezableProxy(served.url)
    async with proxy as url:
        window = await open_window(url, clock=True)
        window.expects(LOST)
        await ask(window.page, "write report")
        await grow_to(window.page, served, "10")
        proxy.freeze()
        served.gate.open()
        await window.page.clock.fast_forward(SILENCE_MS)
        await expect(window.page.get_by_text(re.compile("Reconnecting"))).to_be_visible()
        proxy.thaw()
        await expect(messages(window.page)).to_contain_text(REPLY)
        await check_lines(window.page)
        await expect(window.page.get_by_text(re.compile("Reconnecting"))).to_be_hidden()


async def test_a_server_that_was_upgraded_meanwhile(open_window: Opener, served: Served) -> None:
    proxy = FreezableProxy(served.url)
    async with proxy as url:
        window = await open_window(url)
        window.expects(LOST)
        page = window.page
        served.gate.open()
        await ask(page, "quickly tides")
        await expect(messages(page)).to_contain_text("Here is tides.")

        async def upgraded(route: Route) -> None:
            if route.request.method == "GET":
                await route.fulfill(json={"assets": "page/0123456789abcdef"})
            else:
                await route.continue_()

        await page.route(f"{url}/", upgraded)
        notice = page.get_by_role("alert").filter(has_text="The server has a newer version of this page.")
        for _ in range(10):
            proxy.cut()  # again, if the page was only about to connect
            with suppress(AssertionError):
                await expect(notice).to_be_visible(timeout=PATIENCE_MS / 10)
                break
        await expect(notice).to_be_visible()
        await page.unroute_all()
        await notice.get_by_role("button", name="Reload").click()
        await expect(messages(page)).to_contain_text("Here is tides.")
        await expect(notice).to_be_hidden()


async def test_a_server_that_is_killed_and_started_again_in_mid_stream(open_window: Opener, tmp_path: Path) -> None:
    async with server_group(sqlite_url(tmp_path), tmp_path) as group:
        first = await group.start()
        window = await open_window(str(first.http.base_url))
        window.expects(LOST)
        page = window.page
        await ask(page, WRITE)
        await expect(document(page)).to_contain_text("report 005: ebb and flow")
        await first.kill()
        await expect(page.get_by_text(re.compile("Reconnecting"))).to_be_visible()
        await group.start(port=first.port)
        await check_written(page)
        await expect(page.get_by_text(re.compile("Reconnecting"))).to_be_hidden()


@pytest.mark.postgres
async def test_two_people_on_two_replicas(open_window: Opener, start: Start, tmp_path: Path) -> None:
    group = await start(server_group(await with_tables(postgresql_url()), tmp_path))
    ours, theirs = await group.several(2)
    window = await open_window(str(ours.http.base_url))
    await ask(window.page, WRITE)
    await expect(document(window.page)).to_contain_text("report 003: ebb and flow")
    other = await open_window(str(theirs.http.base_url), "/" + window.page.url.partition("/#")[2].join(("#", "")))
    await expect(document(other.page)).to_contain_text("report 003: ebb and flow")
    for each in (window, other):
        await expect(each.page.get_by_title("2 people are viewing")).to_be_visible()
    for each in (window, other):
        await check_written(each.page)
