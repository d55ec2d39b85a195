"""Long documents: the outline leads to a section, the search to a line."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import bring, delay, frames

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHONE = {"width": 360, "height": 740}
PARAGRAPHS = "The tide comes in, and the tide goes out.\n\n" * 20
GUIDE = "# Guide\n\n" + "".join(
    f"## Section {number}\n\nHere is limpet {number}.\n\n{PARAGRAPHS}### Detail {number}\n\n{PARAGRAPHS}"
    for number in range(1, 31)
)
BELOW_TOP = """(element) => {
  const scroller = element.closest(".document-scroller, .cm-scroller");
  return element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
}"""


def items(page: Page) -> Locator:
    return page.get_by_role("menu").get_by_role("menuitem")


async def check_at_top(heading: Locator) -> None:
    """It stays there when what is around it has been laid out."""
    await expect(heading).to_be_in_viewport()
    await frames(heading.page)
    assert 0 <= await heading.evaluate(BELOW_TOP) < 40


async def test_the_outline_lists_the_headings_and_leads_to_a_section(window: OpenPage) -> None:
    page = window.page
    shown = await bring(page, "guide.md", GUIDE)
    outline = page.get_by_role("button", name="Outline")
    await outline.click()
    await expect(items(page)).to_have_count(61)
    await expect(items(page).first).to_be_focused()
    await expect(items(page).first).to_have_attribute("aria-current", "true")

    await items(page).get_by_text("Section 17").click()
    await check_at_top(shown.get_by_role("heading", name="Section 17"))
    await expect(items(page)).to_have_count(0)

    await outline.click()
    await expect(page.locator("[aria-current=true][role=menuitem]")).to_have_text("Section 17")
    await expect(items(page).get_by_text("Section 17")).to_be_in_viewport()


async def test_the_outline_works_with_the_keyboard_and_in_the_source(window: OpenPage) -> None:
    page = window.page
    shown = await bring(page, "guide.md", GUIDE)
    await page.get_by_role("button", name="Outline").focus()
    await page.keyboard.press("Enter")
    await expect(items(page).first).to_be_focused()
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await expect(shown.get_by_role("heading", name="Detail 30")).to_be_in_viewport()
    await expect(page.locator(".document-scroller")).to_be_focused()

    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_role("button", name="Outline").click()
    await items(page).get_by_text("Section 3", exact=True).click()
    await check_at_top(shown.locator(".cm-line", has_text=re.compile("^## Section 3$")))
    await page.keyboard.type("x")
    await expect(shown.locator(".cm-line", has_text="x## Section 3")).to_be_visible()


async def test_a_heading_that_is_chosen_before_the_document_is_shown_is_reached_then(window: OpenPage) -> None:
    page = window.page
    await bring(page, "guide.md", GUIDE)
    editor_loads = await delay(page, re.compile("/document/editor/"))
    await page.reload()
    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_role("button", name="Outline").click()
    await items(page).get_by_text("Section 17").click()
    await expect(items(page)).to_have_count(0)
    await expect(page.locator(".cm-line")).to_have_count(0)
    editor_loads.set()
    await check_at_top(page.locator(".cm-line", has_text=re.compile("^## Section 17$")))


@pytest.mark.parametrize("slowdown", [1, 8])
async def test_the_palette_lists_the_headings_and_leads_to_the_line_that_it_finds(
    window: OpenPage, slowdown: int
) -> None:
    """On a slow machine the browser has not laid out the heading yet when it is chosen."""
    page = window.page
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    shown = await bring(page, "guide.md", GUIDE)
    await bring(page, "other.txt", "Nothing here.\n")
    await page.get_by_role("tab", name="guide.md").click()
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Find")
    await expect(palette.get_by_role("option", name="Detail 5", exact=True)).to_be_attached()
    await expect(palette.get_by_text("Conversations", exact=True)).to_be_attached()
    await palette.get_by_role("combobox").fill("detail 12")
    await expect(palette.get_by_role("option").first).to_have_text("Detail 12")
    await page.keyboard.press("Enter")
    await check_at_top(shown.get_by_role("heading", name="Detail 12"))

    await page.get_by_role("tab", name="other.txt").click()
    await page.keyboard.press("Control+k")
    await palette.get_by_role("combobox").fill("limpet 23")
    found = palette.get_by_role("option", name=re.compile("Here is limpet 23"))
    await expect(found).to_contain_text("guide.md, line")
    await page.keyboard.press("Enter")
    await expect(shown.get_by_text("Here is limpet 23.")).to_be_in_viewport()
    assert await page.evaluate("[...CSS.highlights.get('document-found')].join()") == "limpet 23"
    await page.keyboard.press("ArrowDown")
    assert await page.evaluate("CSS.highlights.has('document-found')") is False


async def test_on_a_phone_the_menu_has_the_outline(open_window: Opener, window: OpenPage) -> None:
    page = window.page
    await bring(page, "guide.md", GUIDE)
    await expect(page).to_have_url(re.compile("#/"))
    url, path = page.url.split("#")
    phone = (await open_window(url.rstrip("/"), "/#" + path, viewport=PHONE)).page
    await phone.get_by_role("tab", name="guide.md").click()
    await phone.get_by_role("button", name="More").click()
    await items(phone).get_by_text("Outline").click()
    await expect(items(phone).first).to_have_text("Guide")
    await items(phone).get_by_text("Section 9").click()
    await check_at_top(phone.get_by_role("heading", name="Section 9"))
