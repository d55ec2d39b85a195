"""The palette finds lines in the documents of other conversations, below what it finds in the open one."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.page_actions import bring, delay, frames

pytestmark = pytest.mark.asyncio(loop_scope="module")

GUIDE = (
    "# Guide\n\n"
    + "The tide comes in.\n\n" * 200
    + "Here lives a *limpet* on its rock.\n\n"
    + "The tide goes out.\n\n" * 200
)
SEARCHES = re.compile(r"/artifacts\?text=")
ELSEWHERE = "In other conversations"


def palette(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Find")


def options(page: Page) -> Locator:
    return palette(page).get_by_role("option")


async def search(page: Page, text: str) -> None:
    await page.keyboard.press("Control+k")
    await palette(page).get_by_role("combobox").fill(text)


async def begin_another(page: Page) -> None:
    await page.get_by_role("button", name="New conversation").first.click()
    await expect(page.get_by_role("heading", name="What shall we write?")).to_be_visible()


async def test_a_line_of_another_conversation_is_found_and_opened(window: OpenPage) -> None:
    page = window.page
    shown = await bring(page, "guide.md", GUIDE)
    await bring(page, "later.md", "Something else")
    address = page.url
    await begin_another(page)
    await bring(page, "notes.md", "My notes of a limpet")

    await search(page, "limpet ROCK")
    found = options(page).filter(has_text="Here lives a *limpet* on its rock.")
    await expect(found).to_contain_text("guide.md, line 403")
    await expect(palette(page).get_by_text(ELSEWHERE)).to_be_visible()
    await expect(options(page)).to_have_count(1)
    await page.keyboard.press("Enter")

    await expect(palette(page)).to_have_count(0)
    await expect(shown.get_by_text("Here lives a limpet on its rock.")).to_be_in_viewport()
    assert await page.evaluate("[...CSS.highlights.get('document-found')].join()") == "limpet"
    assert page.url.split("#/")[1].split("/")[0] == address.split("#/")[1].split("/")[0]
    await frames(page)
    await expect(shown.get_by_text("Here lives a limpet on its rock.")).to_be_in_viewport()


async def test_a_line_of_a_table_is_opened_in_the_source(window: OpenPage) -> None:
    page = window.page
    await bring(page, "data.csv", "name,kind\n" + "tide,water\n" * 300 + "limpet,snail\n" + "tide,water\n" * 300)
    await begin_another(page)
    await search(page, "snail")
    await options(page).filter(has_text="limpet,snail").click()
    await expect(page.locator(".cm-line", has_text="limpet,snail")).to_be_in_viewport()


async def test_what_is_found_elsewhere_comes_below_and_moves_nothing(window: OpenPage) -> None:
    page = window.page
    await bring(page, "guide.md", "A whelk in the guide\n" * 5)
    await begin_another(page)
    await bring(page, "notes.md", "A whelk\n" * 5)
    answer = await delay(page, SEARCHES)

    await search(page, "whelk")
    await expect(palette(page).get_by_role("status")).to_have_text("Searching other conversations…")
    await expect(options(page)).to_have_count(5)
    await page.keyboard.press("ArrowDown")
    chosen = palette(page).get_by_role("option", selected=True)
    before = await chosen.inner_text(), await chosen.bounding_box()
    answer.set()
    await expect(options(page)).to_have_count(8)
    await expect(palette(page).get_by_role("status")).to_have_text("")
    assert (await chosen.inner_text(), await chosen.bounding_box()) == before
    assert "line 2" in before[0]
    for _ in range(4):
        await page.keyboard.press("ArrowDown")
    await expect(chosen).to_contain_text("guide.md, line 1")


async def test_it_says_that_nothing_was_found(window: OpenPage) -> None:
    page = window.page
    await bring(page, "notes.md", "A periwinkle")
    await search(page, "periwinkle")
    await expect(palette(page).get_by_role("status")).to_have_text("Nothing found in other conversations.")
    await palette(page).get_by_role("combobox").fill("no such word anywhere")
    await expect(palette(page).get_by_role("status")).to_have_text("Nothing found.")


async def test_a_search_that_fails_says_so_and_the_rest_goes_on(window: OpenPage) -> None:
    page = window.page
    refused = "Request limit reached (300 per minute)."

    async def refuse(route: Route) -> None:
        error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": refused}
        await route.fulfill(status=429, json={"error": error})

    window.expects("429")
    await page.route(SEARCHES, refuse)
    await search(page, "new conv")
    state = palette(page).get_by_role("status")
    await expect(state).to_have_text(f"Other conversations were not searched: {refused}")
    await expect(options(page)).to_have_text(["New conversation"])
    await page.unroute(SEARCHES)
    await palette(page).get_by_role("combobox").fill("new conve")
    await expect(state).to_have_text("Nothing found in other conversations.")


async def test_a_request_is_aborted_when_another_word_is_typed_and_when_the_palette_closes(window: OpenPage) -> None:
    page = window.page
    await expect(page.get_by_role("button", name="Attach files")).to_be_enabled()
    asked: asyncio.Queue[str] = asyncio.Queue()
    aborted: asyncio.Queue[str] = asyncio.Queue()
    page.on("request", lambda request: SEARCHES.search(request.url) and asked.put_nowait(request.url))
    page.on("requestfailed", lambda request: aborted.put_nowait(request.url))
    await page.route(SEARCHES, lambda route: None)
    await search(page, "first")
    first = await asked.get()
    await palette(page).get_by_role("combobox").fill("second")
    assert await aborted.get() == first
    second = await asked.get()
    assert "text=second" in second
    await page.keyboard.press("Escape")
    assert await aborted.get() == second
