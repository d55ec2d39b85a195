"""Several passages are selected with Ctrl, and rewritten together."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.test_passages import LONG, bar, document, edit_source, select, with_document

pytestmark = pytest.mark.asyncio(loop_scope="module")

TITLE = "bees"


async def rewrite(page: Page, served: Served, said: str) -> None:
    await bar(page).get_by_role("textbox").fill(said)
    await bar(page).get_by_role("button", name="Rewrite").click()
    served.gate.open()


async def test_ctrl_adds_a_passage_in_the_rendered_view_and_one_undo_takes_all_back(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, TITLE)
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    await (
        document(page)
        .get_by_role("heading")
        .first.click(click_count=3, position={"x": 20, "y": 8}, modifiers=["ControlOrMeta"])
    )
    await expect(bar(page)).to_contain_text("2 passages")
    await rewrite(page, served, "upper")
    await expect(document(page).get_by_text("UPPER CASE")).to_have_count(2)
    await expect(document(page).get_by_text("The first paragraph stays.")).to_be_visible()
    await document(page).locator(".document-scroller").focus()
    await page.keyboard.press("Control+z")
    await expect(document(page)).to_contain_text(LONG)
    await expect(document(page).get_by_text("UPPER CASE")).to_have_count(0)
    await expect(document(page).get_by_role("heading")).to_have_text(f"About {TITLE}")


async def test_the_source_has_several_cursors_whose_passages_are_rewritten_together(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, TITLE)
    source = await edit_source(page)
    await source.press("Control+Home")
    await source.press("Shift+End")
    line = page.locator(".cm-line", has_text="The second one").first
    await line.dblclick(position={"x": 6, "y": 8}, modifiers=["ControlOrMeta"])
    await expect(bar(page)).to_contain_text("2 passages")
    await rewrite(page, served, "upper")
    await expect(source).to_contain_text("UPPER CASE second one is too long")
    await expect(page.locator(".cm-line").first).to_have_text("UPPER CASE")
