"""The newest words of a document that grows fade in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import LINES, ask, document, grow_to

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTEN = """
() => {
  const { add } = Highlight.prototype;
  const seen = new WeakSet();
  globalThis.faded = [];
  Highlight.prototype.add = function (range) {
    seen.has(range) || faded.push(range.toString());
    seen.add(range);
    return add.call(this, range);
  };
}
"""
LEFT = "() => [...CSS.highlights.keys()].every((name) => !name.startsWith('document-new'))"


async def growing(page: Page, served: Served) -> str:
    """What has faded in of a document that grows to its fifth line."""
    await page.evaluate(LISTEN)
    await ask(page, "write report")
    await grow_to(page, served, LINES[4])
    await expect(document(page)).to_contain_text(f"Line {LINES[4]}")
    return "".join(await page.evaluate("faded"))


async def test_new_words_fade_in_and_are_then_like_all_others(window: OpenPage, served: Served) -> None:
    page = window.page
    faded = await growing(page, served)
    assert f"Line{LINES[2]}ofreport" in re.sub(r"\s", "", faded), faded
    colours: dict[str, Any] = await page.evaluate(
        """() => Object.fromEntries([1, 2, 3].map((step) => {
            const block = document.querySelector(".document-block p");
            return [step, getComputedStyle(block, `::highlight(document-new-${step})`).color];
        }))"""
    )
    assert len(set(colours.values())) == 3, colours
    served.gate.open()
    await expect(document(page)).to_contain_text(f"Line {LINES[-1]}")
    await page.wait_for_function(LEFT)


async def test_the_work_is_that_of_the_new_words(window: OpenPage, served: Served) -> None:
    """Of each word that was shown, nothing fades twice."""
    page = window.page
    faded = await growing(page, served)
    for number in LINES[1:4]:
        assert faded.count(f"Line {number} ") <= 1, faded
    assert len(faded) <= len(await document(page).inner_text())
    served.gate.open()


async def test_who_wants_less_motion_sees_words_at_once(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, reduced_motion="reduce")).page
    assert await growing(page, served) == ""
    served.gate.open()


async def test_what_is_there_when_a_document_is_opened_does_not_fade(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.open()
    await ask(page, "quickly tea")
    await expect(document(page)).to_contain_text("too long for its own good")
    await page.evaluate(LISTEN)
    await document(page).get_by_role("button", name="Edit", exact=True).click()
    await document(page).get_by_role("button", name="Read", exact=True).click()
    await expect(document(page).locator(".document-markdown")).to_contain_text("too long for its own good")
    assert await page.evaluate("faded") == []
