"""Two versions of a Markdown document compared as they look."""

from __future__ import annotations

from uuid import uuid4

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import document
from tests.server.canvas_client import Doc

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD = "# Tides\n\nThe tide comes in twice a day.\n\n- low\n- **high**\n\nThis goes.\n"
NEW = "# Tides\n\nThe tide comes in two times a day.\n\n- low\n- rising\n- **high**\n"
MANY = 12_000


def button(page: Page, name: str) -> Locator:
    return document(page).get_by_role("button", name=name, exact=True)


def comparison(page: Page) -> Locator:
    return page.get_by_role("region", name="Comparison of two versions")


async def compared(page: Page, served: Served, old: str, new: str, name: str = "tides.md") -> None:
    """A document of two versions is open, and they are compared."""
    doc = Doc(served, str(uuid4()), old)
    await doc.run(doc.operation("put", text=old, name=name))
    await doc.run(doc.operation("put", text=new))
    await page.goto(f"{served.url}/#/{doc.context}/{doc.artifact_id}")
    if page.viewport_size == PHONE:
        await page.get_by_role("tab", name=name).click()
    await expect(button(page, "Undo")).to_be_enabled()
    await button(page, "Versions").click()
    await button(page, "Compare").click()
    await expect(comparison(page)).to_contain_text("Version 1 → version 2")


PHONE = {"width": 390, "height": 844}


async def test_versions_are_compared_as_the_document_is_read(window: OpenPage, served: Served) -> None:
    page = window.page
    await compared(page, served, OLD, NEW)

    marks = comparison(page).get_by_role
    await expect(marks("deletion")).to_have_text(["twice", "This goes."])
    await expect(marks("insertion")).to_have_text(["two times", "rising"])
    await expect(comparison(page).get_by_role("heading", name="Tides")).to_be_visible()
    await expect(comparison(page).locator("li strong")).to_have_text("high")
    style = "element => getComputedStyle(element).textDecorationLine"
    assert await marks("deletion").first.evaluate(style) == "line-through"
    assert await marks("insertion").first.evaluate(style) == "underline"
    await expect(button(page, "Inline")).to_have_count(0)

    await button(page, "Source").press("Enter")
    await expect(button(page, "Source")).to_be_focused()
    await expect(comparison(page).get_by_role("textbox", name="New version")).to_contain_text("- **high**")
    await button(page, "Rendered").press("Enter")
    await expect(marks("deletion").first).to_have_text("twice")
    await expect(button(page, "Rendered")).to_have_attribute("aria-pressed", "true")


async def test_what_cannot_be_read_is_said_and_a_link_that_leads_elsewhere_is_marked(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    old = "# Tides\n\nSee the [table][t] of today.\n\nHigh * low tide.\n\n[t]: https://a.example/\n"
    await compared(page, served, old, old.replace("a.example", "b.example").replace("High *", "High \\*"))

    marks = comparison(page).get_by_role
    await expect(marks("deletion")).to_have_text(["table"])
    await expect(marks("insertion").get_by_role("link", name="table")).to_have_attribute("href", "https://b.example/")
    await expect(comparison(page).get_by_text("Changes in 2 paragraphs can be seen only in Source.")).to_be_visible()
    await button(page, "Source").click()
    await expect(comparison(page).get_by_role("textbox", name="New version")).to_contain_text("[t]: https://b.example/")


async def test_who_reads_the_source_compares_the_source(window: OpenPage, served: Served) -> None:
    page = window.page
    await compared(page, served, OLD, NEW)
    await button(page, "End comparison").click()
    await button(page, "Edit").click()
    await button(page, "Compare").click()
    await expect(button(page, "Source")).to_have_attribute("aria-pressed", "true")
    await expect(comparison(page).get_by_role("textbox", name="New version")).to_be_visible()


async def test_code_has_no_look_but_its_source(window: OpenPage, served: Served) -> None:
    page = window.page
    await compared(page, served, "tide = 1\n", "tide = 2\n", name="tide.py")
    await expect(comparison(page).get_by_role("textbox", name="New version")).to_contain_text("tide = 2")
    await expect(button(page, "Rendered")).to_have_count(0)


async def test_of_a_long_document_what_is_far_from_changes_is_folded(window: OpenPage, served: Served) -> None:
    page = window.page
    old = "".join(f"Paragraph {number} of the tides.\n\n" for number in range(MANY))
    await compared(page, served, old, old.replace("Paragraph 6000 of", "Paragraph 6000, new, of"))

    await expect(comparison(page).get_by_role("insertion")).to_have_text([", new,"])
    await expect(comparison(page).locator(".document-block")).to_have_count(5)
    folds = comparison(page).get_by_role("button")
    await expect(folds).to_have_text(["5,998 paragraphs unchanged", "5,997 paragraphs unchanged"])
    await folds.first.focus()
    await page.keyboard.press("Enter")
    await expect(comparison(page).get_by_text("Paragraph 5997 of the tides.")).to_have_count(1)
    await expect(comparison(page).locator(".document-block").first).to_be_focused()
    await expect(folds).to_have_count(1)


async def test_many_changes_are_all_shown(window: OpenPage, served: Served) -> None:
    page = window.page
    old = "".join(f"Paragraph {number} of the tides.\n\n" for number in range(300))
    await compared(page, served, old, old.replace("of the", "about the"))
    await expect(comparison(page).get_by_role("insertion")).to_have_count(300)


async def test_a_text_from_elsewhere_shows_nothing_here_that_it_may_not_show_in_the_document(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    bad = '<img src=x onerror="document.title=1"><a href="javascript:1">here</a> <div class="toast">words</div>'
    await compared(page, served, f"Old words.\n\n{bad} one\n", f"New words.\n\n{bad} two\n")
    await expect(comparison(page).get_by_role("insertion").first).to_have_text("New")
    assert await comparison(page).locator("[onerror], [href^=javascript], .toast").count() == 0


async def test_on_a_phone_they_are_compared_as_they_look(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, viewport=PHONE, has_touch=True, is_mobile=True)).page
    await compared(page, served, OLD, NEW)
    await expect(comparison(page).get_by_role("deletion").first).to_have_text("twice")
    assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
