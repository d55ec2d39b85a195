"""The page with the keyboard alone: everything is reached in order, is seen when it has the focus, and has a name."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.page_actions import ask, document

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOCUS = """
() => {
  const element = document.activeElement;
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const box = [element, element.parentElement, element.closest("form > div")].filter(Boolean);
  return {
    name: element.getAttribute("aria-label") || element.title || element.textContent.trim().slice(0, 40),
    body: element === document.body,
    seen: right > 0 && bottom > 0 && left < innerWidth && top < innerHeight,
    // The line between two columns is coloured; a field is marked by its box.
    marked: element.role === "separator" ? element.matches(":focus-visible")
      : box.map((each) => getComputedStyle(each)).some((each) => each.outlineStyle + each.boxShadow !== "nonenone"),
  };
}
"""

NAMELESS = """
() => [...document.querySelectorAll("button, a[href], input, select, textarea, [role=tab], [tabindex='0']")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.getAttribute("aria-label") || each.labels?.length || each.textContent.trim()))
  .map((each) => each.outerHTML.slice(0, 120))
"""


async def stops(page: Page) -> list[str]:
    """What Tab reaches from the first link of the page to its end; each must be seen and marked."""
    first = page.get_by_role("link", name="Skip to the message field")
    await first.focus()
    found = [await first.inner_text()]
    while len(found) < 60:
        await page.keyboard.press("Tab")
        focus = await page.evaluate(FOCUS)
        if focus["body"] or focus["name"] == found[0]:
            break
        assert focus["seen"], focus
        assert focus["marked"], focus
        found.append(focus["name"])
    return found


async def test_tab_goes_through_the_start_page_in_order(window: OpenPage) -> None:
    page = window.page
    await expect(page.get_by_role("button", name="Write a guide to tide pools")).to_be_visible()

    found = await stops(page)

    order = ["Skip to the message field", "Skip to the document", "New conversation", "Message", "Attach files"]
    assert [name for name in found if name in order] == order
    assert any("guide to tide pools" in name for name in found)
    assert await page.evaluate(NAMELESS) == []


async def test_tab_goes_through_a_conversation_with_its_document_in_order(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "quickly tea")
    await expect(document(page).get_by_role("button", name="Versions", exact=True)).to_be_visible()

    found = await stops(page)

    order = ["Copy the link", "Message", "Width of the conversation", "Read", "Edit", "Versions", "Copy", "More"]
    assert [name for name in found if name in order] == order
    assert await page.evaluate(NAMELESS) == []


async def test_a_document_is_asked_for_and_the_keys_are_listed_without_a_mouse(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    await page.keyboard.type("quickly tea")
    await page.keyboard.press("Control+Enter")
    await expect(document(page)).to_contain_text("too long for its own good")
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    await expect(keys).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(keys).to_be_hidden()
    await page.keyboard.press("/")
    await expect(page.get_by_role("textbox", name="Message")).to_be_focused()


async def test_what_happens_is_told_to_a_screen_reader_once(window: OpenPage, served: Served) -> None:
    """Not each piece of a text that grows: a beginning and an end."""
    page = window.page
    await page.evaluate(
        """() => {
          globalThis.told = [];
          new MutationObserver(() => document.querySelectorAll("[role=status]").forEach((each) => {
            const text = each.textContent.trim();
            text && told.at(-1) !== text && !told.includes(text) && told.push(text);
          })).observe(document.body, { subtree: true, childList: true, characterData: true });
        }"""
    )
    await ask(page, "quickly tea")
    await expect(page.get_by_role("article")).to_have_text("Here is tea.")
    await expect(document(page).get_by_text("Version 1", exact=True)).to_be_visible()

    told = await page.evaluate("told")

    assert "tea.md, version 1" in told
    assert "Here is tea." in told
    assert len(told) <= 8, told


async def test_the_palette_finds_a_document_a_line_a_version_and_an_action(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.open()
    await ask(page, "quickly hills")
    await expect(document(page)).to_contain_text("hills", ignore_case=True)
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Find")
    field, options = palette.get_by_role("combobox"), palette.get_by_role("option")
    await expect(field).to_be_focused()
    await field.fill("hill")
    await expect(options.filter(has_text="line").first).to_be_visible()
    await field.fill("version 1")
    await expect(options.first).to_contain_text("version 1")
    await field.fill("new conv")
    await expect(options).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(palette).to_have_count(0)
    await expect(page.get_by_role("heading", name="What shall we write?")).to_be_visible()
    await page.keyboard.press("Control+k")
    await field.fill("quickly hills")
    await expect(options.first).to_contain_text("quickly hills", ignore_case=True)
    await page.keyboard.press("Enter")
    await expect(document(page)).to_contain_text("hills", ignore_case=True)
