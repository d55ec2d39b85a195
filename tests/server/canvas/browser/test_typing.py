"""People type into the document, also while others and the agent change it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from playwright.async_api import Error, Locator, Page, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import bring, quick_action
from tests.server.canvas.browser.test_passages import (
    LONG,
    SHORT,
    document,
    edit_source,
    say,
    select,
    with_document,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIRST = "The first paragraph stays."


async def type_behind(page: Page, text: str, words: str) -> None:
    await page.locator(".cm-line", has_text=text).click()
    await page.keyboard.press("End")
    await page.keyboard.type(words)


def saved(page: Page) -> Locator:
    return page.get_by_text("Saved", exact=True)


def path_of(page: Page) -> str:
    return "/" + page.url.split("/", 3)[3]


async def changed_by_two(
    window: OpenPage, open_window: Opener, served: Served, topic: str, words: tuple[str, str]
) -> tuple[Page, Page]:
    """Two pages in which the end of the same heading is typed on at once."""
    page = await with_document(window, served, topic)
    other = (await open_window(served.url, path_of(page))).page
    for each in (page, other):
        await edit_source(each)
        await each.locator(".cm-line", has_text=f"About {topic}").click()
        await each.keyboard.press("End")
    await page.keyboard.type(words[0])
    await other.keyboard.type(words[1])
    return page, other


async def test_what_is_typed_is_saved_and_seen_by_others(window: OpenPage, open_window: Opener, served: Served) -> None:
    page = await with_document(window, served, "cats")
    await edit_source(page)
    await type_behind(page, FIRST, " For now.")
    await expect(saved(page)).to_be_visible()
    other = (await open_window(served.url, path_of(page))).page
    await expect(document(other).get_by_text(f"{FIRST} For now.")).to_be_visible()
    await page.get_by_role("button", name="Read", exact=True).click()
    await expect(document(page).get_by_text(f"{FIRST} For now.")).to_be_visible()


async def test_what_is_typed_is_saved_at_once_when_asked(open_window: Opener, served: Served) -> None:
    window = await open_window(served.url)
    page = await with_document(window, served, "newts")
    await edit_source(page)
    await type_behind(page, FIRST, " Now.")
    async with page.expect_request(lambda request: "Now." in (request.post_data or "")):
        await page.keyboard.press("Control+s")
    await expect(saved(page)).to_be_visible()


async def test_two_people_type_into_different_passages(window: OpenPage, open_window: Opener, served: Served) -> None:
    page = await with_document(window, served, "hens")
    other = (await open_window(served.url, path_of(page))).page
    for each in (page, other):
        await edit_source(each)
    await type_behind(page, FIRST, " Says one.")
    await type_behind(other, "- two", " and three")
    await page.keyboard.type(" And more.")
    for each in (page, other):
        await expect(saved(each)).to_be_visible()
        await expect(each.locator(".cm-content")).to_contain_text(f"{FIRST} Says one. And more.")
        await expect(each.locator(".cm-content")).to_contain_text("- two and three")


async def test_the_same_words_changed_by_two_are_shown_and_decided(
    window: OpenPage, open_window: Opener, served: Served
) -> None:
    page, other = await changed_by_two(window, open_window, served, "wolves", ("hounds", "cubs"))
    # Whoever is saved first is not asked.
    await expect(page.get_by_role("region", name="Conflict").or_(saved(page))).to_be_visible()
    asked = await page.get_by_role("region", name="Conflict").is_visible()
    later, sooner = (page, other) if asked else (other, page)
    conflict = later.get_by_role("region", name="Conflict")
    await expect(conflict.get_by_label("Yours")).to_be_checked()
    await conflict.get_by_label("Both").check()
    await conflict.get_by_role("textbox", name="Text to keep").fill("wolfhounds and wolfcubs")
    await conflict.get_by_role("button", name="Save").click()
    await expect(conflict).to_be_hidden()
    for each in (later, sooner):
        await expect(each.locator(".cm-line").first).to_have_text("# About wolfhounds and wolfcubs")
        await expect(saved(each)).to_be_visible()


async def test_typing_while_the_agent_rewrites_another_passage(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "geese")
    await select(page, LONG)
    await quick_action(page, "Shorter")
    await edit_source(page)
    served.gate.let(2)
    await expect(page.locator(".document-written")).to_have_text("The second o")
    await type_behind(page, FIRST, " Typed meanwhile.")
    await expect(saved(page)).to_be_visible()
    await expect(page.locator(".document-written")).to_have_text("The second o")
    await page.keyboard.type(" And this.")
    served.gate.let(100)
    await expect(page.locator(".cm-content")).to_contain_text(SHORT)
    await expect(page.locator(".document-written")).to_have_count(0)
    await expect(page.locator(".cm-content")).to_contain_text(f"{FIRST} Typed meanwhile. And this.")
    await expect(saved(page)).to_be_visible()
    await page.get_by_role("button", name="Read", exact=True).click()
    await expect(document(page).get_by_text(f"{FIRST} Typed meanwhile. And this.")).to_be_visible()
    await expect(document(page).get_by_text(SHORT)).to_be_visible()


async def test_a_reload_loses_nothing_that_was_typed(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "owls")
    await edit_source(page)
    await type_behind(page, FIRST, " Just typed.")
    await page.reload()
    await expect(document(page).get_by_text(f"{FIRST} Just typed.")).to_be_visible()
    await expect(page.get_by_text("Your unsaved changes to owls.md have been restored.")).to_be_visible()
    await expect(saved(page)).to_be_visible()


@pytest.mark.parametrize("leaves", ["conversation", "page"])
async def test_what_is_being_saved_as_its_conversation_or_the_page_is_left_is_sent_again(
    window: OpenPage, open_window: Opener, served: Served, leaves: str
) -> None:
    page = await with_document(window, served, f"rooks-{leaves}")
    path = path_of(page)
    await edit_source(page)
    held = asyncio.Event()

    async def hold_first(route: Route) -> None:
        if '"op":"put"' in (route.request.post_data or "") and not held.is_set():
            held.set()  # and it never arrives
        else:
            await route.continue_()

    await page.route(f"{served.url}/", hold_first)
    await type_behind(page, FIRST, " Just typed.")
    await held.wait()
    await page.keyboard.type(" And not sent.")
    if leaves == "conversation":
        await page.get_by_role("button", name="New conversation").first.click()
    else:
        await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))")
    other = (await open_window(served.url, path)).page
    await expect(document(other).get_by_text(f"{FIRST} Just typed.")).to_be_visible()


async def test_what_there_is_no_room_for_stays_says_why_and_is_saved_when_there_is(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "newts")
    await edit_source(page)
    full = "Storage limit reached: you store 100 of 100 bytes, and this adds 20."

    async def refuse(route: Route) -> None:
        await route.fulfill(json={"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": full, "data": []}})

    await page.route(f"{served.url}/", refuse)
    await type_behind(page, FIRST, " Kept.")
    await expect(page.get_by_text(f"Not saved: {full}")).to_be_visible()
    await expect(page.locator(".cm-content")).to_contain_text(f"{FIRST} Kept.")
    await page.unroute(f"{served.url}/")
    await page.keyboard.type(" More.")
    await expect(saved(page)).to_be_visible()


async def test_what_is_typed_without_a_network_is_saved_when_it_is_back(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "mice")
    await edit_source(page)
    await window.disconnect()
    await type_behind(page, FIRST, " Offline.")
    await expect(page.get_by_text("Not saved:")).to_be_visible()
    await window.reconnect()
    await expect(saved(page)).to_be_visible()
    await page.get_by_role("button", name="Read", exact=True).click()
    await expect(document(page).get_by_text(f"{FIRST} Offline.")).to_be_visible()


async def test_while_the_agent_writes_the_whole_document_it_is_read_only(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "larks")
    source = await edit_source(page)
    served.gate.close()
    await say(page, "write larks")
    served.gate.let(10)
    await expect(page.get_by_text("It is read-only until it is finished.")).to_be_visible()
    await expect(source).to_have_attribute("aria-readonly", "true")
    served.gate.open()
    await expect(page.get_by_text("It is read-only until it is finished.")).to_be_hidden()
    await type_behind(page, "Line 40 of", " And one more.")
    await expect(saved(page)).to_be_visible()


READ_ONLY = "It is read-only until it is finished."


async def typed_while_the_agent_begins(window: OpenPage, served: Served, what: str, title: str) -> asyncio.Event:
    """A document in which something was typed, whose `put` is under way while the agent begins to write it anew.

    Returns: what lets the `put` go on.
    """
    page = await with_document(window, served, what)
    source = await edit_source(page)
    goes_on, held = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        if '"op":"put"' in (route.request.post_data or ""):
            held.set()
            await goes_on.wait()
        with suppress(Error):  # the page was loaded anew meanwhile
            await route.continue_()

    await page.route(f"{served.url}/", hold)
    await type_behind(page, f"About {what}", "hounds")
    await held.wait()
    await say(page, f"rework {what}: {title}")
    served.gate.let(12)
    await expect(page.get_by_text(READ_ONLY)).to_be_visible()
    await expect(page.get_by_text("Your changes are kept.")).to_be_visible()
    await expect(source).to_have_attribute("aria-readonly", "true")
    return goes_on


@pytest.mark.parametrize("reloads", [False, True], ids=["", "reloaded"])
async def test_what_was_typed_as_the_agent_begins_to_write_it_all_is_merged_with_it(
    window: OpenPage, served: Served, reloads: bool
) -> None:
    page, what = window.page, f"kept{reloads}".lower()
    goes_on = await typed_while_the_agent_begins(window, served, what, f"About {what}")
    if reloads:
        await page.reload()
        await expect(page.get_by_text(READ_ONLY)).to_be_visible()
    goes_on.set()
    served.gate.open()
    await expect(page.get_by_text(READ_ONLY)).to_be_hidden()
    await expect(page.get_by_role("article", name="Reply").last).to_contain_text("Reworked")
    await expect(saved(page)).to_be_visible()
    await expect(document(page)).to_contain_text(f"About {what}hounds")
    await expect(document(page)).to_contain_text("four")


@pytest.mark.parametrize("reloads", [False, True], ids=["", "reloaded"])
async def test_what_was_typed_where_the_agent_writes_something_else_is_decided(
    window: OpenPage, served: Served, reloads: bool
) -> None:
    page, what = window.page, f"decided{reloads}".lower()
    goes_on = await typed_while_the_agent_begins(window, served, what, f"About {what}cubs")
    if reloads:
        await page.reload()
    goes_on.set()
    served.gate.open()
    conflict = page.get_by_role("region", name="Conflict")
    await expect(conflict).to_contain_text(f"{what[-4:]}hounds")
    await expect(conflict).to_contain_text(f"{what[-4:]}cubs")
    text, save = conflict.get_by_role("textbox", name="Text to keep"), conflict.get_by_role("button", name="Save")
    below = "([text, save]) => save.getBoundingClientRect().top - text.getBoundingClientRect().bottom"
    assert 0 <= await page.evaluate(below, [await text.element_handle(), await save.element_handle()]) < 40
    await text.fill("wolfhounds and wolfcubs")
    await save.click()
    await expect(conflict).to_be_hidden()
    await expect(saved(page)).to_be_visible()
    await expect(document(page)).to_contain_text("wolfhounds and wolfcubs")


def version(page: Page, number: int) -> Locator:
    return page.get_by_text(f"Version {number}", exact=True)


async def with_agents_version_and_typed(window: OpenPage, served: Served, what: str) -> Locator:
    """Version 2 is the agent's, version 3 was typed and saved."""
    page = await with_document(window, served, what)
    await select(page, LONG)
    await quick_action(page, "Shorter")
    served.gate.open()
    await expect(document(page).get_by_text(SHORT)).to_be_visible()
    await page.get_by_role("button", name="Keep").click()
    source = await edit_source(page)
    await type_behind(page, FIRST, "!")
    await expect(version(page, 3)).to_be_visible()
    await expect(saved(page)).to_be_visible()
    return source


@pytest.mark.parametrize("view", ["source", "rendered"])
async def test_undo_goes_from_what_was_typed_on_into_the_versions_and_back(
    window: OpenPage, served: Served, view: str
) -> None:
    page = window.page
    await with_agents_version_and_typed(window, served, f"newts-{view}")
    if view == "rendered":
        await page.get_by_role("button", name="Read", exact=True).click()
        await document(page).locator(".document-scroller").focus()
    for _ in range(2):
        await page.keyboard.press("Control+z")
        await expect(document(page)).not_to_contain_text("stays.!")
        await expect(document(page)).to_contain_text(SHORT)
        await expect(version(page, 2)).to_be_visible()
        await page.keyboard.press("Control+z")
        await expect(document(page)).to_contain_text(LONG)
        await expect(version(page, 1)).to_be_visible()
        await page.keyboard.press("Control+Shift+z")
        await expect(document(page)).to_contain_text(SHORT)
        await expect(version(page, 2)).to_be_visible()
        await page.keyboard.press("Control+Shift+z")
        await expect(document(page)).to_contain_text("stays.!")
        await expect(version(page, 3)).to_be_visible()


async def test_undo_and_redo_of_what_was_typed_make_no_versions(window: OpenPage, served: Served) -> None:
    page = window.page
    source = await with_agents_version_and_typed(window, served, "toads")
    for _ in range(2):
        await page.keyboard.press("Control+z")
        await expect(source).not_to_contain_text("stays.!")
        await expect(version(page, 2)).to_be_visible()
        await page.keyboard.press("Control+Shift+z")
        await expect(source).to_contain_text("stays.!")
        await expect(version(page, 3)).to_be_visible()


async def test_what_is_typed_and_taken_back_is_not_sent(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "frogs")
    source = await edit_source(page)
    puts: list[str] = []
    page.on("request", lambda request: '"op":"put"' in (request.post_data or "") and puts.append(request.url))
    await select(page, FIRST)
    await page.keyboard.type("x")
    await page.keyboard.press("Control+z")
    await expect(source).to_contain_text(FIRST)
    await expect(saved(page)).to_be_visible()
    assert puts == []
    await expect(version(page, 1)).to_be_visible()


async def test_the_button_takes_back_what_is_not_saved_yet_and_redo_brings_it_again(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "efts")
    source = await edit_source(page)
    await type_behind(page, FIRST, " Not saved yet.")
    await page.get_by_role("button", name="Undo", exact=True).click()
    await expect(source).not_to_contain_text("Not saved yet.")
    await page.get_by_role("button", name="Redo", exact=True).click()
    await expect(source).to_contain_text(f"{FIRST} Not saved yet.")
    await expect(version(page, 2)).to_be_visible()


async def test_what_is_copied_is_what_is_shown_and_the_link_is_that_of_the_page(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "ducks")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await edit_source(page)
    await window.disconnect()
    await type_behind(page, FIRST, " Not saved yet.")
    await page.get_by_role("button", name="Copy", exact=True).click()
    await expect(page.get_by_text("Copied ducks.md.")).to_be_visible()
    assert f"{FIRST} Not saved yet." in await page.evaluate("navigator.clipboard.readText()")
    await window.reconnect()
    await page.get_by_role("button", name="Copy the link").click()
    await expect(page.get_by_text("Link copied.", exact=False)).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == page.url
    await expect(saved(page)).to_be_visible()


async def test_the_search_of_the_source_fits_and_speaks_as_the_page_does(window: OpenPage, served: Served) -> None:
    page = window.page
    await bring(page, "tides.md", "ebb and flow\n\nebb\n")
    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.locator(".cm-content").click()
    await page.keyboard.press("Control+f")
    await page.keyboard.type("ebb")
    await page.get_by_role("button", name="Next", exact=True).click()
    await expect(page.locator(".cm-searchMatch-selected")).to_have_text("ebb")
    for name in ("Match case", "Regular expression", "Whole words"):
        await expect(page.get_by_role("checkbox", name=name)).to_be_visible()
    parts = page.locator(".cm-search > :is(label, .cm-textfield, .cm-button)")
    middles = (
        "(all) => new Set(all.map((each) => Math.round(each.getBoundingClientRect().top + each.offsetHeight / 2))).size"
    )
    assert await parts.evaluate_all(middles) == 3
    await page.get_by_role("button", name="Close the search").click()
    await expect(page.locator(".cm-search")).to_have_count(0)
