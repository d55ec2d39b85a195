"""Who is here, and where their cursors are: two people with one document, each in a browser of their own."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Page, Request, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import document, quick_action
from tests.server.canvas.browser.test_passages import LONG, SHORT, edit_source, select, with_document
from tests.server.canvas.browser.test_signing_in import shared_link

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHOWN_SELECTION = ".people-range, .people-selected"
AGENT_CURSOR = '.people-caret[title="a2a-canvas"]'
SHOWN_CURSOR = ".people-caret, .people-inline"


@pytest_asyncio.fixture(loop_scope="module")
async def both(visit: OpenPage, open_window: Opener) -> tuple[OpenPage, OpenPage]:
    """Ann, and a guest whom she has given a link to edit."""
    guest = await open_window("", await shared_link(visit, f"bees{uuid4().hex}", "edit"))
    guest.expects("request: |status of 40[13]")
    await visit.page.keyboard.press("Escape")
    await expect(document(guest.page)).to_contain_text(LONG)
    return visit, guest


async def place_of(page: Page, words: str) -> dict[str, float]:
    box = await page.locator(".document-panel").get_by_text(words).bounding_box()
    assert box
    return dict(box)


async def test_each_sees_who_is_here_and_what_the_other_has_selected(both: tuple[OpenPage, OpenPage]) -> None:
    ann, guest = (each.page for each in both)
    for page in (ann, guest):
        people = page.get_by_role("list", name="People here").get_by_role("listitem")
        await expect(people).to_have_count(2)
        await expect(people).to_have_text(["Aann", "GGuest"])
    before = await place_of(ann, LONG)
    await select(guest, LONG)
    await expect(ann.locator(SHOWN_SELECTION)).not_to_have_count(0)
    await expect(ann.locator(SHOWN_CURSOR)).to_have_attribute("title", "Guest")
    await expect(guest.locator(SHOWN_CURSOR)).to_have_count(0)
    mark = await ann.locator(SHOWN_SELECTION).first.bounding_box()
    assert mark
    assert abs(mark["y"] - before["y"]) < before["height"]
    assert await place_of(ann, LONG) == before  # nothing has moved
    await both[1].page.close()
    await expect(ann.locator(SHOWN_CURSOR)).to_have_count(0)
    await expect(ann.get_by_role("list", name="People here")).to_be_hidden()


async def test_in_the_source_a_cursor_goes_with_the_keys_and_with_what_is_typed(
    both: tuple[OpenPage, OpenPage],
) -> None:
    ann, guest = (each.page for each in both)
    await edit_source(ann)
    source = await edit_source(guest)
    await source.press("Control+Home")
    await source.press("ArrowRight")
    caret = ann.locator(SHOWN_CURSOR)
    await expect(caret).to_have_attribute("title", "Guest")
    await source.press("Shift+End")
    await expect(ann.locator(SHOWN_SELECTION)).not_to_have_count(0)
    seen: list[dict[str, Any]] = []
    guest.on("request", lambda request: keep(seen, request))
    await source.press("Control+End")
    await source.press_sequentially("abcdefghijklmnopqrstuvwxyz")
    await expect(ann.locator(".cm-content")).to_contain_text("abcdefghijklmnopqrstuvwxyz")
    await expect(ann.locator(SHOWN_SELECTION)).to_have_count(0)
    assert len(seen) < 26


async def test_an_agent_at_work_is_there_by_its_name_with_the_passage_that_it_rewrites(
    both: tuple[OpenPage, OpenPage], guarded: Served
) -> None:
    ann, guest = (each.page for each in both)
    guarded.gate.close()
    await select(guest, LONG)
    await quick_action(guest, "Shorter")
    for page in (ann, guest):
        await expect(page.get_by_role("list", name="People here").get_by_role("listitem")).to_have_text(
            ["Aann", "GGuest", re.compile("^A.+, working on bees")]
        )
    guarded.gate.let(2)
    await expect(ann.locator(AGENT_CURSOR)).to_have_count(1)
    guarded.gate.open()
    await expect(ann.locator(".document-panel").get_by_text(SHORT)).to_be_visible()
    await expect(ann.get_by_role("list", name="People here").get_by_role("listitem")).to_have_text(["Aann", "GGuest"])
    await expect(ann.locator(AGENT_CURSOR)).to_have_count(0)


async def test_who_is_alone_sees_the_agent_at_work(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "bees")
    people = page.get_by_role("list", name="People here").get_by_role("listitem")
    await select(page, LONG)
    await quick_action(page, "Shorter")
    await expect(people).to_have_text([re.compile("^A.+, working on bees")])
    served.gate.open()
    await expect(people).to_have_count(0)


def keep(seen: list[dict[str, Any]], request: Request) -> None:
    if re.search("/presence$", request.url):
        seen.append(request.post_data_json)
