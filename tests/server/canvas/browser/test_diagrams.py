"""Diagrams: drawn once they are complete, without a flicker while they change, and saved as pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Download, Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.page_actions import ask, document, messages, step, text_of
from tests.server.canvas.browser.test_formulas import requests
from tests.server.canvas.browser.test_passages import edit_source
from tests.server.canvas.browser.test_reading import bring, sent_by

pytestmark = pytest.mark.asyncio(loop_scope="module")

FLOW = "flowchart LR\n  A[Start] --> B{Enough?}\n  B -->|yes| C[End]\n"
TEXT = f"# Plan\n\nFirst.\n\n```mermaid\n{FLOW}```\n\nThe *last* words.\n"
FLICKERS = """
() => {
  window.flickers = 0;
  const look = () => {
    const image = document.querySelector("#document img.document-diagram");
    window.flickers += image?.complete && image.naturalWidth > 0 ? 0 : 1;
    requestAnimationFrame(look);
  };
  look();
}
"""
"""Counts the frames in which there is no picture."""


def pictures(page: Page) -> Locator:
    return page.locator("#document img.document-diagram")


async def test_a_diagram_is_drawn_by_a_library_that_nothing_else_loads(window: OpenPage) -> None:
    page = window.page
    asked = requests(page)
    panel = await bring(page, "code.md", "# Code\n\n```js\nlet a = 1;\n```\n")
    await expect(panel.locator(".tok-keyword")).to_be_visible()
    assert [url for url in asked if "mermaid" in url] == []
    await bring(page, "plan.md", TEXT)
    await expect(pictures(page)).to_have_attribute("alt", "Diagram: flowchart")
    assert await pictures(page).evaluate("(image) => image.naturalWidth > 100")
    assert any("/vendor/mermaid/" in url for url in asked)
    await expect(page.locator("iframe")).to_have_count(0)


async def test_a_diagram_is_drawn_when_its_block_closes_while_the_text_is_still_written(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    served.gate.close()
    await ask(page, f"note down plan: {TEXT}")
    while "Enough?" not in await text_of(document(page)):
        await step(page, served)
    await expect(pictures(page)).to_have_count(0)
    while "last" not in await text_of(document(page)):
        await step(page, served)
    await expect(pictures(page)).to_have_count(1)
    served.gate.open()
    await expect(messages(page)).to_contain_text("Noted.")
    await expect(pictures(page)).to_have_count(1)


async def test_the_last_picture_stays_until_the_next_one_is_drawn(window: OpenPage) -> None:
    page = window.page
    await bring(page, "plan.md", TEXT)
    await expect(pictures(page)).to_have_count(1)
    first = await pictures(page).get_attribute("src")
    await page.evaluate(FLICKERS)
    # While it is written it is wrong, unfinished, and at last another one.
    for said in ("flowchart LR\n  A[Start", "flowchart LR\n  A[Start] --> B\n```\n", f"{FLOW}  C --> D\n```\n"):
        await bring_again(page, "plan.md", TEXT.replace(f"{FLOW}```\n", said))
    await expect(pictures(page)).not_to_have_attribute("src", first or "")
    await expect(pictures(page)).to_have_attribute("data-source", re.compile("C --> D"))
    assert await page.evaluate("window.flickers") == 0


async def bring_again(page: Page, name: str, text: str) -> None:
    """Another version of a document."""
    about = page.locator(".document-about")
    before = await about.inner_text()
    await bring(page, name, text)
    await expect(about).not_to_have_text(before)


async def test_a_wrong_diagram_is_shown_as_it_is_written(window: OpenPage) -> None:
    panel = await bring(window.page, "wrong.md", "```mermaid\nflowchart LR\n  A[Start\n```\n")
    await expect(panel.locator(".document-diagram-wrong code")).to_have_attribute("title", re.compile("Parse error"))
    await expect(panel).to_contain_text("A[Start")


async def saved(page: Page, item: str, tmp_path: Path) -> bytes:
    async with page.expect_download() as download:
        await page.get_by_role("menuitem", name=item).click()
    done: Download = await download.value
    assert done.suggested_filename == f"plan.{item[-3:].lower()}"
    await done.save_as(tmp_path / "saved")
    return (tmp_path / "saved").read_bytes()


async def test_a_diagram_is_saved_as_svg_and_as_png(window: OpenPage, tmp_path: Path) -> None:
    page = window.page
    await bring(page, "plan.md", TEXT)
    await pictures(page).click()
    svg = (await saved(page, "Save as SVG", tmp_path)).decode()
    assert svg.startswith("<svg")
    assert "Enough?" in svg
    await pictures(page).press("Enter")
    png = await saved(page, "Save as PNG", tmp_path)
    assert png.startswith(b"\x89PNG")
    width = int.from_bytes(png[16:20], "big")
    assert width == 2 * await pictures(page).evaluate("(image) => image.naturalWidth")


async def test_the_source_of_a_diagram_can_be_selected_and_changed(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.open()
    await bring(page, "plan.md", TEXT)
    await pictures(page).click()
    await page.get_by_role("menuitem", name="Select its source").click()
    await expect(page.locator(".composer-place")).to_contain_text("Lines 6–8")
    asked = await sent_by(page, ask(page, "Explain this passage"))
    assert asked["selection"]["text"] == FLOW.rstrip("\n")


async def test_a_selection_across_a_diagram_has_its_source(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.open()
    panel = await bring(page, "plan.md", TEXT)
    await expect(pictures(page)).to_have_count(1)
    await panel.get_by_text("First.").click()
    await page.keyboard.press("Control+a")
    await expect(page.locator(".composer-place")).to_contain_text("Lines 1–11")
    asked = await sent_by(page, ask(page, "Explain this passage"))
    assert asked["selection"]["text"] == TEXT.rstrip("\n")


async def test_a_file_of_mermaid_is_its_picture_with_the_source_beside_it(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "plan.mmd", FLOW)
    await expect(pictures(page)).to_have_count(1)
    await bring_again(page, "plan.mmd", "flowchart LR\n  A[Start")
    await expect(panel.get_by_role("status")).to_contain_text("This diagram cannot be drawn. Parse error")
    await expect(pictures(page)).to_have_count(1)
    await expect(await edit_source(page)).to_contain_text("A[Start")
