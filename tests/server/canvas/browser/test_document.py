"""The document pane: it shows what is written where it is written, and knows what of the source is selected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.node_tools import run_node
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage

pytestmark = pytest.mark.asyncio(loop_scope="module")

CORPUS = (
    "import { documents } from './tests/server/canvas/document/corpus.mjs'; console.log(JSON.stringify(documents()))"
)
SCRIPTS = Path(__file__).parent / "scripts"
SELECTIONS = (SCRIPTS / "selections.js").read_text()
EDITOR = (SCRIPTS / "editor.js").read_text()


async def say(page: Page, words: str) -> None:
    await page.get_by_role("textbox", name="Message").fill(words)
    await page.keyboard.press("Enter")


def text(page: Page) -> Locator:
    return page.locator(".document-scroller")


async def from_end(page: Page) -> float:
    """How far the end of the document is below what is seen, in pixels."""
    await page.evaluate("() => new Promise(requestAnimationFrame)")
    return await text(page).evaluate("element => element.scrollHeight - element.scrollTop - element.clientHeight")


async def test_every_selection_is_found_in_the_source(window: OpenPage) -> None:
    corpus = json.loads(run_node("--input-type=module", "-e", CORPUS, installed="jsdom"))
    checked, failures = await window.page.evaluate(SELECTIONS, corpus)
    assert not failures, "\n".join(failures[:5])
    assert checked > 1000


async def test_the_end_is_followed_unless_the_user_has_scrolled_away(window: OpenPage, served: Served) -> None:
    page = window.page
    to_end = page.get_by_role("button", name="Jump to end")
    served.gate.close()
    await say(page, "write hills")
    served.gate.let(20)
    await served.gate.reached.wait()
    await expect(text(page)).to_contain_text("Line 25")
    assert await from_end(page) < 2
    await expect(to_end).to_be_hidden()

    await text(page).hover()
    await page.mouse.wheel(0, -600)
    await expect(to_end).to_be_visible()
    seen = await text(page).evaluate("element => element.scrollTop")
    served.gate.let(3)
    await served.gate.reached.wait()
    await page.evaluate("() => new Promise(requestAnimationFrame)")
    assert await text(page).evaluate("element => element.scrollTop") == seen

    await to_end.click()
    assert await from_end(page) < 2
    await expect(to_end).to_be_hidden()
    served.gate.open()
    await expect(page.get_by_text("Version 1", exact=True)).to_be_visible()


async def test_while_it_is_written_it_says_so(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.close()
    await say(page, "write dunes")
    served.gate.let(8)
    await expect(page.get_by_text("It is read-only until it is finished.")).to_be_visible()
    served.gate.open()
    await expect(page.get_by_text("It is read-only until it is finished.")).to_have_count(0)
    await expect(page.get_by_role("status").filter(has_text="dunes.md, version 1")).to_have_count(1)


async def test_tabs_are_moved_through_with_the_keyboard(window: OpenPage) -> None:
    page = window.page
    await say(page, "many 3")
    await page.get_by_role("tab", name="three.json").click()
    for key, name in [("Home", "one.md"), ("ArrowRight", "two.py"), ("End", "three.json"), ("ArrowRight", "one.md")]:
        await page.keyboard.press(key)
        await expect(page.get_by_role("tab", name=name, selected=True)).to_be_focused()
        await expect(page.get_by_role("heading", name=name)).to_be_visible()


async def test_source_and_rendered_text_are_one_click_apart(window: OpenPage) -> None:
    page = window.page
    await say(page, "quickly tea")
    await expect(text(page).get_by_role("heading", name="About tea")).to_be_visible()
    await page.get_by_role("button", name="Edit", exact=True).click()
    source = page.get_by_role("textbox", name="Source of tea.md")
    await expect(source).to_contain_text("# About tea")
    await expect(source).to_be_focused()
    await page.get_by_role("button", name="Read", exact=True).click()
    await expect(text(page).get_by_role("heading", name="About tea")).to_be_visible()


async def test_a_page_and_an_image_are_previewed_without_scripts(window: OpenPage) -> None:
    page = window.page
    window.expects("Blocked script execution in 'about:srcdoc'")
    await say(page, "draw")
    await page.get_by_role("tab", name="page.html").click()
    await page.get_by_role("button", name="Preview").click()
    frame = page.frame_locator("iframe[title='Preview of page.html']")
    await expect(frame.get_by_role("heading", name="Tides", exact=True)).to_have_css("color", "rgb(0, 128, 128)")
    await page.get_by_role("tab", name="logo.svg").click()
    await expect(page.get_by_role("img", name="logo.svg")).to_have_js_property("naturalWidth", 40)
    await expect(page).not_to_have_title("taken")


async def test_what_changes_elsewhere_moves_no_selection_and_is_not_undone(window: OpenPage) -> None:
    seen = await window.page.evaluate(EDITOR)
    assert seen["selected"] == "three"
    assert seen["inputs"] == ["ONE MORE\ntwo\n3\nfour\n"]
    assert seen["afterUndo"] == "ONE MORE\nzwei\nthree\nfour\n"


async def test_line_ends_are_typed_as_the_text_has_them(window: OpenPage) -> None:
    seen = await window.page.evaluate(EDITOR)
    assert seen["typed"] == "one and\r\nmore\r\ntwo\r\n"
    assert seen["joined"] == "one andmore\r\ntwo\r\n"


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString"])
async def test_a_document_may_have_any_id(window: OpenPage, name: str) -> None:
    page = window.page
    await say(page, f"quickly {name}")
    await expect(page.get_by_role("heading", name=f"{name}.md")).to_be_visible()
    await expect(text(page)).to_contain_text("The first paragraph stays.")
    await expect(page.get_by_role("button", name=f"{name}.md version 1")).to_be_visible()
