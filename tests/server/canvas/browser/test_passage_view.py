"""What a person looks at while passages are rewritten: it stays where it is, and what is selected stays selected."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import frames
from tests.server.canvas.browser.test_passages import PHONE, bar, edit_source
from tests.server.canvas_client import Doc

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINES = [f"Line {number:02} of the tides: ebb and flow.\n" for number in range(1, 81)]
TEXT = "\n".join(LINES)
LONGER = "Much more " + "than what was there before, and so it takes several lines more. " * 12
VIEWS = pytest.mark.parametrize("view", ["read", "source"])


def line(page: Page, number: int) -> Locator:
    return page.locator(".document-block, .cm-line").filter(has_text=f"Line {number:02} of the tides").last


async def with_text(page: Page, served: Served, view: str, text: str = TEXT) -> Doc:
    """A long document is open in a view."""
    doc = Doc(served, str(uuid4()), text)
    await doc.run(doc.operation("put", text=text, name="tides.md"))
    await page.goto(f"{served.url}/#/{doc.context}/{doc.artifact_id}")
    if page.viewport_size == PHONE:
        await page.get_by_role("tab", name="tides.md").click()
    await expect(page.locator(".document-markdown")).to_contain_text("Line 01")
    if view == "source":
        await edit_source(page)
    return doc


async def begun(doc: Doc, passage: str, text: str) -> asyncio.Task[object]:
    """Somebody else has a passage rewritten; its first words are there."""
    request = doc.edit(f"becomes {text}", passage)
    served = doc.served
    served.gate.close()
    running = asyncio.create_task(doc.run(request))
    served.gate.let(3)
    return running


async def top_of(place: Locator) -> float:
    top: float = await place.evaluate("element => element.getBoundingClientRect().top")
    return top


@VIEWS
async def test_on_a_phone_a_passage_is_not_under_the_bar(open_window: Opener, served: Served, view: str) -> None:
    page = (await open_window(served.url, viewport=PHONE)).page
    await with_text(page, served, view)
    lowest = await page.evaluate(
        """() => {
            const bottom = innerHeight - 60;
            const blocks = [...document.querySelectorAll(".document-block, .cm-line")];
            const lines = blocks.filter((one) => one.textContent.startsWith("Line"));
            const lowest = lines.findLast((one) => one.getBoundingClientRect().bottom < bottom);
            return Number(lowest.textContent.slice(5, 7));
        }"""
    )
    passage = line(page, lowest)
    await passage.click(click_count=3, position={"x": 60, "y": 8})
    await expect(bar(page)).to_be_visible()
    covered = """element => {
        const bar = document.querySelector(".passage-bar").getBoundingClientRect();
        return element.getBoundingClientRect().bottom > bar.top;
    }"""
    assert not await passage.evaluate(covered)
    # Who scrolls on is left alone.
    scroller = page.locator(".document-scroller, .cm-scroller")
    await scroller.evaluate("element => element.scrollBy(0, -60)")
    await frames(page)
    assert await passage.evaluate(covered)


@VIEWS
@pytest.mark.parametrize("text", [LONGER, "Less."], ids=["longer", "shorter"])
async def test_what_is_read_stays_where_it_is(open_window: Opener, served: Served, view: str, text: str) -> None:
    """A passage above it is rewritten by somebody else."""
    page = (await open_window(served.url)).page
    passage = "".join(LINES[4:8]).replace("\n", "\n\n")
    doc = await with_text(page, served, view)
    scroller = page.locator(".document-scroller, .cm-scroller")
    await scroller.evaluate("element => element.scrollTo(0, 600)")
    await expect(line(page, 20)).to_be_in_viewport()
    await frames(page)
    before = await top_of(line(page, 20))
    running = await begun(doc, passage.rstrip("\n"), text)
    await expect(page.locator(".document-panel")).to_contain_text(text[:8])
    await frames(page)
    assert abs(await top_of(line(page, 20)) - before) < 2
    served.gate.open()
    await running
    await expect(page.get_by_text("Version 2", exact=True)).to_be_visible()
    await frames(page)
    assert abs(await top_of(line(page, 20)) - before) < 2


async def select_line(page: Page, view: str, number: int) -> None:
    """All of a line, without its end."""
    await line(page, number).click(click_count=3 if view == "read" else 1, position={"x": 60, "y": 8})
    if view == "source":
        await page.keyboard.press("Home")
        await page.keyboard.press("Shift+End")


@VIEWS
async def test_what_is_being_written_is_marked_and_then_nothing(open_window: Opener, served: Served, view: str) -> None:
    page = (await open_window(served.url)).page
    await with_text(page, served, view)
    await select_line(page, view, 3)
    await bar(page).get_by_role("textbox").fill("becomes Line 03 of the tides is rewritten.")
    await bar(page).get_by_role("textbox").press("Enter")
    selected = "() => document.querySelector('.cm-selectionBackground') || !document.getSelection().isCollapsed"
    await expect(bar(page)).to_be_hidden()
    assert not await page.evaluate(selected)
    served.gate.let(3)
    await expect(page.locator(".document-panel")).to_contain_text("Line 03 of the tides is ")
    assert not await page.evaluate(selected)
    served.gate.open()
    await expect(page.get_by_text("Version 2", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Keep").click()
    marks = ".cm-line :is(.document-writing, .document-passage, .note-rewritten)"
    await expect(page.locator(marks)).to_have_count(0)
    assert await page.evaluate("() => [...CSS.highlights.keys()]") == []
    assert not await page.evaluate(selected)


@VIEWS
async def test_a_selection_stays_while_others_rewrite_what_is_before_it(
    open_window: Opener, served: Served, view: str
) -> None:
    page = (await open_window(served.url)).page
    doc = await with_text(page, served, view)
    await select_line(page, view, 6)
    await expect(page.locator(".composer-place")).to_contain_text("Line 11 of")
    running = await begun(doc, LINES[1].rstrip("\n"), "Two lines. In place of one.")
    await expect(page.locator(".document-panel")).to_contain_text("Two lin")
    await expect(bar(page)).to_be_visible()
    served.gate.open()
    await running
    await expect(page.get_by_text("Version 2", exact=True)).to_be_visible()
    start = (await doc.read())[1].index(LINES[5])
    characters = f"Characters {start}–{start + len(LINES[5]) - 1}"
    await expect(page.locator(".passage-place")).to_have_attribute("title", characters)
    await bar(page).get_by_role("textbox").fill("becomes The tide")
    await bar(page).get_by_role("textbox").press("Enter")
    await expect(page.get_by_text("Version 3", exact=True)).to_be_visible()
    expected = TEXT.replace(LINES[1], "Two lines. In place of one.\n").replace(LINES[5], "The tide\n")
    assert await doc.read() == (3, expected)
