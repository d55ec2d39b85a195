"""The page speaks English; dates and numbers are the user's, and a document has the language that it names."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, bring, document

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD = "2026-01-02T15:04:00Z"


@pytest.mark.parametrize(
    ("locale", "time"), [("de-DE", r"2\. Jan\.?,? 15:04"), ("en-US", r"Jan 2, 0?3:04\sPM"), ("ar-EG", r"٢ يناير")]
)
async def test_dates_are_written_as_the_user_writes_them(
    open_window: Opener, served: Served, locale: str, time: str
) -> None:
    page = (await open_window(served.url, locale=locale, timezone_id="UTC")).page
    await page.route("**/versions", long_ago)
    served.gate.open()
    await ask(page, "quickly tea")
    await document(page).get_by_role("button", name="Versions", exact=True).click()
    await expect(page.locator(".version-row time").first).to_have_text(re.compile(time))
    await expect(page.locator("html")).to_have_attribute("lang", "en")


async def long_ago(route: Route) -> None:
    answer = await route.fetch()
    body = await answer.json()
    for version in body["versions"]:
        version["timestamp"] = OLD
    await route.fulfill(response=answer, json=body)


async def test_the_words_of_a_document_are_not_taken_for_english(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "meer.md", "# Das Meer\n\nEbbe und Flut.\n")
    await expect(panel.get_by_text("Ebbe und Flut.")).to_be_visible()
    assert await lang_of(page, "Ebbe") == ""

    panel = await bring(page, "watt.md", "---\nlang: de\n---\n\n# Das Watt\n\nEbbe und Sand.\n")
    await expect(panel.get_by_text("Ebbe und Sand.")).to_be_visible()
    assert await lang_of(page, "Ebbe") == "de"
    await document(page).get_by_role("button", name="Edit", exact=True).click()
    await expect(panel.locator(".cm-content")).to_contain_text("Ebbe und Sand.")
    assert await lang_of(page, "Ebbe") == "de"


async def lang_of(page: Page, words: str) -> str:
    """The language that holds for the words of the document."""
    found = page.locator(".document-panel :is(p, .cm-line)").filter(has_text=words)
    lang: str = await found.evaluate("element => element.closest('[lang]').lang")
    return lang
