"""A view shows what it is of, or nothing; what could not be loaded comes when the connection is back."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, document, messages

pytestmark = pytest.mark.asyncio(loop_scope="module")

MARKDOWN = re.compile(r"/document/markdown/markdown\.js")
"""What shows a document as it is read."""
LATER = (
    "document/editor/editor.js",
    "document/saving/saving.js",
    "vendor/merge.js",
    "identity/sharing.js",
    "developer/drawer.js",
)
"""Some of what is not needed for the first document."""


def panel(page: Page) -> Locator:
    return page.locator(".document-panel")


def operations(page: Page) -> list[str]:
    """What the page asks the server for, from now on."""
    found: list[str] = []

    def note(body: str | None) -> None:
        found.extend(re.findall(r'"op":\s*"(\w+)"', json.dumps(json.loads(body))) if body else [])

    page.on("request", lambda request: note(request.post_data if request.method == "POST" else None))
    return found


async def refuse(route: Route) -> None:
    await route.abort()


async def open_without(page: Page, part: re.Pattern[str], handle: Callable[[Route], Awaitable[None]] = refuse) -> None:
    """The page from its beginning, without a part."""
    await page.route(part, handle)
    await page.reload()


async def test_while_a_view_is_loaded_nothing_of_another_document_is_shown_or_typed_into(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    served.gate.close()
    release = asyncio.Event()

    async def hold(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await open_without(page, MARKDOWN, hold)
    await ask(page, "many 3")
    await page.get_by_role("tab", name="two.py").click()
    await expect(page.locator(".cm-content")).to_be_visible()
    sent = operations(page)
    await ask(page, "write tides")
    served.gate.let(8)
    await expect(document(page).get_by_role("heading", name="tides.md")).to_be_visible()
    await expect(page.locator(".cm-editor")).to_have_count(0)
    await expect(panel(page)).to_have_text("Loading…")
    await panel(page).click()
    await page.keyboard.type("HELLO")
    release.set()
    await expect(panel(page).get_by_role("heading", name="About tides")).to_be_visible()
    served.gate.open()
    await expect(document(page).get_by_text("Version 1", exact=True)).to_be_visible()
    assert sent == []
    await page.get_by_role("tab", name="two.py").click()
    await expect(page.locator(".cm-content")).to_contain_text("def two")


async def test_a_view_that_could_not_be_loaded_says_so_and_comes_when_the_browser_is_online(window: OpenPage) -> None:
    page = window.page
    window.expects("net::ERR_FAILED")
    await open_without(page, MARKDOWN)
    await ask(page, "quickly rivers")
    await expect(panel(page)).to_contain_text("This view could not be loaded.")
    await page.unroute(MARKDOWN)
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(panel(page).get_by_role("heading", name="About rivers")).to_be_visible()


async def test_the_user_can_have_a_view_loaded_again(window: OpenPage) -> None:
    page = window.page
    window.expects("net::ERR_FAILED")
    await open_without(page, MARKDOWN)
    await ask(page, "quickly lakes")
    retry = panel(page).get_by_role("button", name="Retry")
    await expect(retry).to_be_visible()
    # The page tries by itself, too: a click that waits for the button to rest may come when it is gone.
    pressed = await retry.evaluate_handle("(button) => () => button.click()")
    await page.unroute(MARKDOWN)
    await pressed.evaluate("(press) => press()")
    await expect(panel(page).get_by_role("heading", name="About lakes")).to_be_visible()


async def test_any_other_part_of_the_page_comes_in_the_end_too(window: OpenPage) -> None:
    page = window.page
    window.expects("net::ERR_FAILED")
    await open_without(page, re.compile("developer/drawer"))
    await page.get_by_role("button", name="Developer view").click()
    await expect(page.get_by_role("alert").filter(has_text="Part of the page could not be loaded.")).to_be_visible()
    await page.unroute_all()
    await page.get_by_role("alert").get_by_role("button", name="Retry").click()
    await expect(page.get_by_role("region", name="Developer view")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_all_parts_are_loaded_while_the_page_is_idle(open_window: Opener, served: Served) -> None:
    window = await open_window(served.url)
    loaded = "(names) => names.every((name) => performance.getEntriesByName(new URL(name, base).href).length)"
    base = "const base = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');"
    await window.page.wait_for_function(f"(names) => {{ {base} return ({loaded})(names); }}", arg=LATER)


async def test_a_preview_stays_as_it_is_while_the_conversation_goes_on(window: OpenPage) -> None:
    page = window.page
    window.expects("Blocked script execution in 'about:srcdoc'")
    await ask(page, "draw")
    await page.get_by_role("tab", name="page.html").click()
    await page.get_by_role("button", name="Preview").click()
    frame = page.locator("iframe[title='Preview of page.html']")
    await frame.evaluate("(element) => { element.dataset.first = 'yes'; }")
    await ask(page, "Explain this passage")
    await expect(messages(page).get_by_text("That is what it does.")).to_be_visible()
    await expect(frame).to_have_attribute("data-first", "yes")
