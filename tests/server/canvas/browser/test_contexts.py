"""Point 7: the list of conversations; a link shows the same live document to everyone; and who else is looking."""

from __future__ import annotations

from uuid import uuid4

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import (
    REPLY,
    ask,
    check_lines,
    document,
    grow_to,
    messages,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


def contexts(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Conversations")


def named(page: Page, name: str) -> Locator:
    return contexts(page).get_by_role("link").filter(has_text=name)


async def names(page: Page) -> list[str]:
    return [name.partition("\n")[0] for name in await contexts(page).get_by_role("link").all_inner_texts()]


async def begin(page: Page, text: str) -> None:
    """A new conversation."""
    await contexts(page).get_by_role("button", name="New conversation").click()
    await ask(page, text)
    await expect(named(page, text)).to_be_visible()


async def choose(page: Page, name: str, action: str) -> None:
    await named(page, name).hover()
    await contexts(page).get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name=action).click()


async def test_they_are_named_by_their_first_request_and_listed_newest_first(window: OpenPage, served: Served) -> None:
    served.gate.open()
    one, two = f"quickly {uuid4()}", f"quickly {uuid4()}"
    await begin(window.page, one)
    await expect(messages(window.page)).to_contain_text("Here is")
    await begin(window.page, two)
    await expect(messages(window.page)).to_contain_text("Here is")
    assert (await names(window.page))[:2] == [two, one]
    await named(window.page, one).click()
    await expect(messages(window.page)).to_contain_text(one)
    await window.page.go_back()
    await expect(messages(window.page)).to_contain_text(two)


async def test_they_are_searched(window: OpenPage, served: Served) -> None:
    served.gate.open()
    one, two = f"quickly {uuid4()}", f"quickly {uuid4()}"
    await begin(window.page, one)
    await begin(window.page, two)
    await window.page.get_by_role("searchbox", name="Search conversations").fill(one[8:20])
    await expect(named(window.page, two)).to_have_count(0)
    assert await names(window.page) == [one]


async def test_one_is_renamed_and_stays_so(window: OpenPage, served: Served) -> None:
    served.gate.open()
    old, new = f"quickly {uuid4()}", f"The name {uuid4()}"
    await begin(window.page, old)
    await choose(window.page, old, "Rename")
    field = window.page.get_by_role("textbox", name="Name of the conversation")
    await field.fill(new)
    await field.press("Enter")
    await expect(named(window.page, new)).to_be_visible()
    await window.page.reload()
    await expect(named(window.page, new)).to_be_visible()
    assert old not in await names(window.page)


async def test_its_owner_has_agents_suggest_and_write_again(window: OpenPage, served: Served) -> None:
    served.gate.open()
    name = f"quickly {uuid4()}"
    await begin(window.page, name)
    await expect(messages(window.page)).to_contain_text("Here is")
    await choose(window.page, name, "Have agents suggest")
    await expect(window.page.get_by_text("Agents now suggest changes")).to_be_visible()
    await window.page.reload()
    await choose(window.page, name, "Let agents write")
    await expect(window.page.get_by_text("Agents change documents directly again.")).to_be_visible()


async def test_one_is_deleted_for_everyone(window: OpenPage, open_window: Opener, served: Served) -> None:
    served.gate.open()
    name = f"quickly {uuid4()}"
    await begin(window.page, name)
    await expect(messages(window.page)).to_contain_text("Here is")
    link = window.page.url
    await choose(window.page, name, "Delete…")
    await window.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(named(window.page, name)).to_have_count(0)
    other = await open_window(served.url, link.removeprefix(served.url))
    other.expects("404")
    await expect(other.page.get_by_role("alert")).to_contain_text("This conversation no longer exists.")
    assert name not in await names(other.page)


async def test_one_that_works_is_not_deleted(window: OpenPage, served: Served) -> None:
    name = f"write {uuid4()}"
    await begin(window.page, name)
    await served.gate.reached.wait()
    window.expects("409")
    await choose(window.page, name, "Delete…")
    await window.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(window.page.get_by_role("alert")).to_be_visible()
    await expect(named(window.page, name)).to_be_visible()
    served.gate.open()


async def test_another_browser_on_the_same_link_shows_the_same_live_document(
    window: OpenPage, open_window: Opener, served: Served
) -> None:
    page = window.page
    await ask(page, "write report")
    await grow_to(page, served, "08")
    other = await open_window(served.url, page.url.removeprefix(served.url))
    await expect(document(other.page)).to_contain_text("Line 08")
    await grow_to(page, served, "15")
    await expect(document(other.page)).to_contain_text("Line 15")
    await expect(messages(other.page)).to_contain_text("Writing report.md…")
    served.gate.open()
    for each in (page, other.page):
        await expect(messages(each)).to_contain_text(REPLY)
        await check_lines(each)


async def test_it_says_how_many_people_are_looking(window: OpenPage, open_window: Opener, served: Served) -> None:
    served.gate.open()
    await ask(window.page, "quickly tides")
    await expect(messages(window.page)).to_contain_text("Here is tides.")
    two = "2 people are viewing"
    await expect(window.page.get_by_title(two)).to_be_hidden()
    other = await open_window(served.url, window.page.url.removeprefix(served.url))
    for each in (window, other):
        await expect(each.page.get_by_title(two)).to_be_visible()
    await other.turn(other.page, "hidden")
    await expect(window.page.get_by_title(two)).to_be_hidden()
    await other.turn(other.page, "visible")
    for each in (window, other):
        await expect(each.page.get_by_title(two)).to_be_visible()
    await other.page.goto("about:blank")
    await expect(window.page.get_by_title(two)).to_be_hidden()


async def test_a_browser_can_have_many_tabs(window: OpenPage, served: Served) -> None:
    """It has six connections to a server of HTTP/1.1, and each tab has streams: hidden ones let them go."""
    await ask(window.page, "write report")
    await grow_to(window.page, served, "03")
    tabs = [window.page]
    for _ in range(7):
        await window.turn(tabs[-1], "hidden")
        tabs.append(await window.another_tab())
        await expect(document(tabs[-1])).to_contain_text("Line 03")
    served.gate.open()
    await expect(messages(tabs[-1])).to_contain_text(REPLY)
    await window.turn(tabs[-1], "hidden")
    await window.turn(window.page, "visible")
    await expect(messages(window.page)).to_contain_text(REPLY)
    await check_lines(window.page)
