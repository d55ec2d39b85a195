"""The columns of the page: widths, the drawer, the two views of a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
TABLET = {"viewport": {"width": 820, "height": 1100}}

TOO_WIDE = """() => [...document.querySelectorAll('body *')]
    .filter((each) => each.checkVisibility({visibilityProperty: true}))
    .filter((each) => !each.closest('pre, table, .visually-hidden, .cm-scroller, .document-tabs'))
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 0.5)
    .map((each) => each.outerHTML.slice(0, 90))"""
TOO_LOW = """() => [...document.querySelectorAll('button, a, input, textarea')]
    .filter((each) => each.checkVisibility({visibilityProperty: true}) && !each.matches('.skip-link, .link-button'))
    .filter((each) => each.getBoundingClientRect().height < 44)
    .map((each) => each.outerHTML.slice(0, 90))"""

SECONDS = """() => Math.max(...[...document.querySelectorAll('*')].map((each) => getComputedStyle(each))
    .flatMap((style) => [style.transitionDuration, style.animationDuration]).map(parseFloat))"""
DARKER = """(parts) => Object.fromEntries(parts.map((part) => {
    const sum = (colour) => colour.match(/[0-9.]+/g).slice(0, 3).reduce((all, each) => all + Number(each), 0);
    const isOpaque = (colour) => !/, 0\\)$/.test(colour);
    const element = document.querySelector(part);
    let ground = element;
    while (ground !== document.documentElement && !isOpaque(getComputedStyle(ground).backgroundColor)) {
      ground = ground.parentElement;
    }
    const darker = sum(getComputedStyle(ground).backgroundColor) < sum(getComputedStyle(element).color);
    return [part, darker ? "background" : "text"];
}))"""


async def say(page: Page, words: str) -> None:
    await page.get_by_role("textbox", name="Message").fill(words)
    await page.get_by_role("button", name="Send", exact=True).click()


async def width_of(page: Page, selector: str) -> float:
    box = await page.locator(selector).bounding_box()
    assert box is not None
    return box["width"]


async def test_without_a_document_the_conversation_has_the_room(window: OpenPage) -> None:
    await expect(window.page.locator("#document")).to_be_hidden()

    await say(window.page, "quickly tea")

    await expect(window.page.locator("#document")).to_be_visible()


async def test_a_column_is_resized_with_the_keyboard_and_stays_so(window: OpenPage) -> None:
    page = window.page
    separator = page.get_by_role("separator", name="Width of the list of conversations")
    before = await width_of(page, "#contexts")

    await separator.focus()
    await page.keyboard.press("ArrowRight")
    await expect(separator).to_have_attribute("aria-valuenow", str(round(before + 16)))
    await page.reload()

    assert await width_of(page, "#contexts") == before + 16


async def test_a_column_is_resized_with_the_mouse_within_its_limits(window: OpenPage) -> None:
    page = window.page
    before = await width_of(page, "#contexts")
    await page.mouse.move(before, 400)
    await page.mouse.down()
    await page.mouse.move(before + 40, 400)
    assert await width_of(page, "#contexts") == before + 40
    await page.mouse.move(10, 400)
    await page.mouse.up()

    assert await width_of(page, "#contexts") == 200


async def test_the_list_can_be_closed_and_opened(window: OpenPage) -> None:
    page = window.page
    await page.get_by_role("button", name="Hide conversations").click()
    await expect(page.locator("#contexts")).to_be_hidden()
    await page.reload()
    await expect(page.locator("#contexts")).to_be_hidden()
    await page.get_by_role("button", name="Conversations", exact=True).click()
    await expect(page.locator("#contexts")).to_be_visible()


async def test_the_drawer_takes_the_focus_and_gives_it_back(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, **TABLET)).page
    opener = page.get_by_role("button", name="Conversations", exact=True)
    await opener.click()

    await expect(page.locator("#contexts :focus")).to_have_count(1)
    await expect(page.locator("#main")).to_have_js_property("inert", True)
    await page.keyboard.press("Escape")

    await expect(page.locator("#contexts")).not_to_be_visible()
    await expect(opener).to_be_focused()


async def test_a_phone_shows_one_view_at_a_time(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, **PHONE)).page
    await expect(page.get_by_role("tablist", name="Views")).to_be_hidden()
    await say(page, "quickly tea")

    tab = page.get_by_role("tab", name="tea.md")
    await expect(tab.get_by_text("changed")).to_be_attached()
    await tab.click()

    await expect(page.locator("#document")).to_be_visible()
    await expect(page.locator("#chat")).to_be_hidden()
    await expect(tab.get_by_text("changed")).to_have_count(0)
    await page.get_by_role("tab", name="Conversation").click()
    await page.get_by_role("button", name="tea.md version 1").click()
    await expect(page.locator("#document")).to_be_visible()


async def test_a_phone_shows_the_last_lines_of_a_document_that_grows(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, **PHONE)).page
    served.gate.close()
    await say(page, "write dunes")
    growing = page.get_by_role("button", name="Open dunes.md")
    served.gate.let(8)
    await expect(growing).to_contain_text("Line 01 of **dunes**")
    box = await growing.bounding_box()
    served.gate.let(20)
    await expect(growing).not_to_contain_text("Line 01 of **dunes**")
    assert await growing.bounding_box() == box
    ends = "(lines) => lines.parentElement.getBoundingClientRect().bottom - lines.getBoundingClientRect().bottom"
    assert abs(await growing.locator(".growing-lines > span").evaluate(ends)) < 2

    await growing.click()
    await expect(page.locator("#document")).to_be_visible()
    served.gate.open()
    await page.get_by_role("tab", name="Conversation").click()
    await expect(page.get_by_role("article")).to_contain_text("I have written dunes")
    await expect(growing).to_be_hidden()


async def test_nothing_is_wider_than_a_phone(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, **PHONE)).page
    await expect(page.get_by_role("heading", name="What shall we write?")).to_be_visible()
    assert await page.evaluate(TOO_WIDE) == []

    await say(page, "quickly " + "a-name-that-is-much-longer-than-the-page-is-wide-" * 3)
    await expect(page.get_by_role("article")).to_be_visible()
    assert await page.evaluate(TOO_WIDE) == []

    await page.get_by_role("tab").nth(1).click()
    assert await page.evaluate(TOO_WIDE) == []
    assert await page.evaluate("() => document.scrollingElement.scrollWidth") == 360


async def test_what_a_finger_uses_is_large_enough(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, **PHONE)).page
    assert await page.evaluate(TOO_LOW) == []


async def test_nothing_moves_for_who_wants_it_calm(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, reduced_motion="reduce")).page
    await say(page, "quickly tea")
    await expect(page.locator(".document-panel")).to_contain_text("The first paragraph stays.")
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert await page.evaluate(SECONDS) < 0.001


@pytest.mark.parametrize(("scheme", "darker"), [("dark", "background"), ("light", "text")])
async def test_every_part_has_the_colours_of_the_system(
    open_window: Opener, served: Served, scheme: str, darker: str
) -> None:
    page = (await open_window(served.url, color_scheme=scheme)).page
    await say(page, "quickly tea")
    await expect(page.locator(".document-panel")).to_contain_text("The first paragraph stays.")
    parts = ["body", "#contexts", "#chat", ".composer-field", "#document", ".document-panel"]
    assert await page.evaluate(DARKER, parts) == dict.fromkeys(parts, darker)

    await page.get_by_role("button", name="Edit", exact=True).click()
    await expect(page.locator(".cm-content")).to_be_visible()
    await page.get_by_role("button", name="Developer view").click()
    await expect(page.locator(".developer")).to_be_visible()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("?")
    await expect(page.locator("dialog[open]")).to_be_visible()
    parts = [".cm-content", ".developer", "dialog[open]"]
    assert await page.evaluate(DARKER, parts) == dict.fromkeys(parts, darker)


async def test_the_skip_links_come_first(window: OpenPage) -> None:
    page = window.page
    first = "() => document.querySelector('a, button, input, textarea, [tabindex]').textContent"
    assert await page.evaluate(first) == "Skip to the message field"
    await page.get_by_role("link", name="Skip to the message field").press("Enter")
    await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
    assert "#" not in page.url


async def test_a_page_of_another_origin_cannot_put_it_into_a_frame(open_window: Opener, served: Served) -> None:
    other = "http://other.example/"
    window = await open_window(served.url, others=[other])
    page = window.page
    await page.route(other, lambda route: route.fulfill(content_type="text/html", body=f"<iframe src={served.url}/>"))
    await page.goto(other)
    assert [frame.url for frame in page.frames[1:]] == ["chrome-error://chromewebdata/"]
