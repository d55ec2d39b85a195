"""Undo and redo, the versions of a document, two of them compared, one restored, a link to one."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, document, quick_action

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "The second one is too long for its own good."
SHORT = "The second one is short now."


def button(page: Page, name: str) -> Locator:
    return document(page).get_by_role("button", name=name, exact=True)


def comparison(page: Page) -> Locator:
    return page.get_by_role("region", name="Comparison of two versions")


@pytest_asyncio.fixture(loop_scope="module")
async def page(window: OpenPage, served: Served) -> Page:
    """A document that was rewritten in one place: it has two versions."""
    page = window.page
    served.gate.open()
    await ask(page, "quickly tea")
    await document(page).get_by_text(LONG).click(click_count=3)
    await quick_action(page, "Shorter")
    await expect(document(page)).to_contain_text(SHORT)
    await button(page, "Keep").click()
    await expect(button(page, "Keep")).to_be_hidden()
    await expect(button(page, "Undo")).to_be_enabled()
    return page


async def test_undo_and_redo_are_buttons_and_keys(page: Page) -> None:
    await button(page, "Undo").click()
    await expect(document(page)).to_contain_text(LONG)
    await expect(button(page, "Undo")).to_be_disabled()
    await button(page, "Redo").click()
    await expect(document(page)).to_contain_text(SHORT)
    await expect(button(page, "Redo")).to_be_disabled()

    await document(page).locator(".document-scroller").focus()
    await page.keyboard.press("Control+z")
    await expect(document(page)).to_contain_text(LONG)
    await expect(button(page, "Redo")).to_be_enabled()
    await page.keyboard.press("Control+Shift+z")
    await expect(document(page)).to_contain_text(SHORT)


async def test_the_versions_are_there_when_the_document_is_read_before_its_pane_is_loaded(page: Page) -> None:
    async def when_there_is_a_document(route: Route) -> None:
        await expect(document(page)).to_be_visible()
        await route.continue_()

    await page.route("**/document/pane.js", when_there_is_a_document)
    await page.reload()

    await expect(button(page, "Undo")).to_be_enabled()
    await button(page, "Versions").click()
    await expect(page.get_by_role("list", name="Versions").get_by_role("button")).to_have_count(2)


async def test_a_slider_goes_through_the_versions_with_author_time_and_request(page: Page) -> None:
    await button(page, "Versions").click()
    slider = page.get_by_role("slider", name="Version")
    await expect(slider).to_be_focused()
    await expect(slider).to_have_attribute("aria-valuetext", re.compile("^Version 2 of 2 · "))
    await expect(page.locator(".version-facts")).to_contain_text(" −6 words in About tea")

    await slider.press("ArrowLeft")

    await expect(document(page)).to_contain_text(LONG)
    facts = page.locator(".version-facts")
    await expect(facts).to_contain_text("Version 1 of 2 · Agent · ")
    await expect(facts).to_contain_text("quickly tea")
    await expect(facts).to_contain_text(await page.locator(".version-row time").last.inner_text())
    await expect(document(page)).to_contain_text("This is version 1. It is read-only")
    await slider.press("Escape")
    await expect(document(page)).to_contain_text(SHORT)
    await expect(button(page, "Versions")).to_be_focused()


async def test_two_versions_are_compared_side_by_side_and_inline(page: Page) -> None:
    await button(page, "Versions").click()
    await button(page, "Compare").click()
    await expect(comparison(page)).to_contain_text("Version 1 → version 2")
    await button(page, "Source").click()
    await expect(comparison(page).get_by_role("textbox", name="Old version")).to_contain_text(LONG)
    await expect(comparison(page).get_by_role("textbox", name="New version")).to_contain_text(SHORT)

    await button(page, "Inline").click()

    await expect(comparison(page).get_by_role("textbox")).to_have_count(1)
    await expect(comparison(page)).to_contain_text("too long for its own good")
    await expect(comparison(page)).to_contain_text("short now")
    await button(page, "End comparison").click()
    await expect(comparison(page)).to_be_hidden()
    await expect(document(page)).to_contain_text(SHORT)


async def test_an_old_version_is_restored(page: Page) -> None:
    await button(page, "Versions").click()
    await page.get_by_role("list", name="Versions").get_by_role("button").last.click()
    await button(page, "Restore").click()

    await expect(document(page).get_by_text("Version 3", exact=True)).to_be_visible()
    await expect(document(page)).to_contain_text(LONG)
    await expect(page.get_by_role("list", name="Versions").get_by_role("button")).to_have_count(3)


async def test_a_link_to_a_version_shows_it(page: Page, window: OpenPage, open_window: Opener, served: Served) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await button(page, "Versions").click()
    await page.get_by_role("list", name="Versions").get_by_role("button").last.click()
    await button(page, "Copy link").click()
    await expect(page.get_by_text("Link to this version copied.")).to_be_visible()
    link = await page.evaluate("navigator.clipboard.readText()")
    await button(page, "Undo").click()

    other = (await open_window(served.url, link.removeprefix(served.url))).page

    await expect(document(other)).to_contain_text("This is version 1. It is read-only")
    await expect(document(other)).to_contain_text(LONG)


async def test_the_back_button_leaves_an_old_version(page: Page) -> None:
    await button(page, "Versions").click()
    await page.get_by_role("list", name="Versions").get_by_role("button").last.click()
    await expect(document(page)).to_contain_text(LONG)
    await page.go_back()
    await expect(document(page)).to_contain_text(SHORT)


async def test_versions_of_several_hours_are_grouped_by_hour(page: Page) -> None:
    async def an_hour_apart(route: Route) -> None:
        answer = await route.fetch()
        body = await answer.json()
        for hour, version in enumerate(body["versions"], start=9):
            version["timestamp"] = f"2026-01-02T{hour:02}:30:00Z"
        await route.fulfill(response=answer, json=body)

    await page.route("**/versions", an_hour_apart)
    await page.reload()
    await button(page, "Versions").click()
    versions = page.get_by_role("list", name="Versions")
    await expect(versions.get_by_role("listitem")).to_have_count(4)
    hours = await versions.locator(".version-hour").all_inner_texts()
    assert len(hours) == 2
    assert all(":00" in hour for hour in hours)
