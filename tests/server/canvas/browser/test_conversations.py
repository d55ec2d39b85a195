"""The list of conversations: found, opened, renamed and deleted."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, delay

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def begin(page: Page, words: str) -> None:
    """A conversation that is done and listed."""
    await page.get_by_role("button", name="New conversation").first.click()
    field = page.get_by_role("textbox", name="Message")
    await field.fill(words)
    await field.press("Enter")
    await expect(page.locator(".message-agent")).to_have_text(f"Here is {words.split()[1]}.")
    await expect(link(page, words)).to_be_visible()


def link(page: Page, words: str) -> Locator:
    return page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^(Working: )?{words}"))


async def choose(page: Page, words: str, action: str) -> None:
    await link(page, words).hover()
    await page.get_by_role("button", name=f"Actions for {words}", exact=True).click()
    await page.get_by_role("menuitem", name=action).click()


async def test_the_newest_is_first_and_the_open_one_is_marked(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly one")
    await begin(page, "quickly two")
    await expect(page.locator(".context-name").first).to_have_text("quickly two")
    await expect(link(page, "quickly two")).to_have_attribute("aria-current", "page")

    await link(page, "quickly one").click()

    await expect(link(page, "quickly one")).to_have_attribute("aria-current", "page")
    await expect(page.locator(".message-agent")).to_have_text("Here is one.")
    await expect(page).to_have_title("quickly one · a2a-canvas")


async def test_the_start_page_is_not_shown_before_a_conversation_whose_link_was_opened(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly linked")
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)
        await expect(page.get_by_text("Loading…")).to_be_visible()
        await expect(page.get_by_role("heading", name="What shall we write?")).to_be_hidden()
        await route.continue_()

    await page.route("**/artifacts?*", hold)
    await page.reload()

    await expect(page.locator(".message-agent")).to_have_text("Here is linked.")
    assert held


async def test_a_message_sent_before_a_linked_conversation_is_open_goes_to_that_conversation(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly early")
    open_it = await delay(page, re.compile(r"/artifacts\?"))
    await page.reload()
    await expect(page.get_by_text("Loading…")).to_be_visible()

    await ask(page, "quickly more")
    await expect(page.get_by_text("The conversation is being opened. Your message will then be sent")).to_be_visible()
    open_it.set()

    await expect(page.locator(".message-agent")).to_have_text(["Here is early.", "Here is more."])
    await expect(page.get_by_role("textbox", name="Message")).to_have_value("")


async def test_it_is_searched(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly needle")
    await begin(page, "quickly hay")
    search = page.get_by_role("searchbox", name="Search conversations")

    await search.fill("needle")
    await expect(page.locator(".context-name")).to_have_text(["quickly needle"])
    await search.fill("nothing of that kind")
    await expect(page.get_by_text("No conversations match “nothing of that kind”.")).to_be_visible()
    await search.press("Escape")
    await expect(link(page, "quickly hay")).to_be_visible()


async def test_a_search_continues_over_pages_without_a_hit(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly found")

    async def empty(route: Route) -> None:
        await route.fulfill(json={"contexts": [], "nextPageToken": "later"})

    async def first(route: Route) -> None:
        await route.continue_(url=route.request.url.replace("pageToken=later", "pageToken="))

    await page.route("**/artifacts?query=quickly+found&pageToken=", empty)
    await page.route("**/artifacts?query=quickly+found&pageToken=later", first)
    await page.get_by_role("searchbox", name="Search conversations").fill("quickly found")
    await expect(page.locator(".context-name")).to_have_text(["quickly found"])


async def test_it_is_renamed_in_place(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly drafts")
    await choose(page, "quickly drafts", "Rename")
    name = page.get_by_role("textbox", name="Name of the conversation")
    await expect(name).to_be_focused()
    await name.fill("The draft")
    await name.press("Enter")

    await expect(link(page, "The draft")).to_be_focused()
    await expect(page.get_by_role("heading", name="The draft")).to_be_visible()
    await page.reload()
    await expect(link(page, "The draft")).to_be_visible()


async def test_a_new_name_can_be_taken_back(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly names")
    await choose(page, "quickly names", "Rename")
    await page.get_by_role("textbox", name="Name of the conversation").fill("Wrong")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Undo", exact=True).and_(page.locator(".toast *")).click()
    await expect(link(page, "quickly names")).to_be_visible()


async def test_escape_keeps_the_name(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly kept")
    await link(page, "quickly kept").focus()
    await page.keyboard.press("F2")
    name = page.get_by_role("textbox", name="Name of the conversation")
    await name.fill("Another")
    await name.press("Escape")
    await expect(link(page, "quickly kept")).to_be_focused()


async def test_it_is_deleted_after_a_question_that_says_what_is_lost(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly gone")
    await choose(page, "quickly gone", "Delete")
    dialog = page.get_by_role("dialog", name="Delete “quickly gone”?")
    await expect(dialog).to_contain_text("1 document with all their versions")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(link(page, "quickly gone")).to_be_focused()

    await choose(page, "quickly gone", "Delete")
    await dialog.get_by_role("button", name="Delete").click()

    await expect(link(page, "quickly gone")).to_have_count(0)
    await expect(page.get_by_role("heading", name="What shall we write?")).to_be_visible()


async def test_the_notice_of_its_new_name_goes_with_it(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly brief")
    await choose(page, "quickly brief", "Rename")
    await page.get_by_role("textbox", name="Name of the conversation").fill("Short-lived")
    await page.keyboard.press("Enter")
    await expect(page.locator(".toast")).to_contain_text("Short-lived")
    await choose(page, "Short-lived", "Delete")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(link(page, "Short-lived")).to_have_count(0)
    assert await page.locator(".toast").count() == 0


async def test_it_is_not_deleted_while_a_task_works(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.close()
    window.expects("409")
    await page.get_by_role("textbox", name="Message").fill("write hills")
    await page.get_by_role("textbox", name="Message").press("Enter")
    await expect(page.locator(".context .dot-working")).to_be_visible()
    await choose(page, "write hills", "Delete")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(link(page, "write hills")).to_be_visible()
    served.gate.open()


async def test_the_arrow_keys_move_in_it(window: OpenPage) -> None:
    page = window.page
    await begin(page, "quickly first")
    await begin(page, "quickly second")
    await link(page, "quickly second").focus()
    await page.keyboard.press("ArrowDown")
    await expect(link(page, "quickly first")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_role("searchbox")).to_be_focused()


async def test_a_link_to_a_conversation_shows_it_and_nothing_else_before(open_window: Opener, served: Served) -> None:
    first = (await open_window(served.url)).page
    await begin(first, "quickly shared")
    window = await open_window(served.url, "/" + first.url.removeprefix(served.url + "/"))
    await expect(window.page.locator(".message-agent")).to_have_text("Here is shared.")


async def test_it_says_how_many_look_at_it(open_window: Opener, served: Served) -> None:
    first = (await open_window(served.url)).page
    await begin(first, "quickly together")
    await expect(first.locator(".watchers")).to_be_hidden()
    second = await open_window(served.url, "/" + first.url.removeprefix(served.url + "/"))

    for page in (first, second.page):
        await expect(page.locator(".watchers")).to_have_text("2 people are viewing")
