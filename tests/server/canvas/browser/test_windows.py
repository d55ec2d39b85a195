"""Several windows on one conversation: each shows what any of them does, without a reload."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.server.app_server import serving
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, messages
from tests.server.canvas.browser.test_approvals import DONE, approval
from tests.server.canvas.browser.test_signing_in import ANN, REFUSED, SCRIPT, shared_link

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUICK = 6


async def all_show(pages: list[Page], text: str) -> None:
    await asyncio.gather(*(expect(messages(page)).to_contain_text(text) for page in pages))


async def test_tasks_that_end_at_once_appear_in_the_other_windows(window: OpenPage) -> None:
    page = window.page
    await ask(page, "quickly kelp")
    await all_show([page], "Here is kelp.")
    other = await window.another_tab()
    await all_show([other], "Here is kelp.")
    await each_shows_what_the_first_does(page, other)


async def test_and_in_that_of_a_guest(open_window: Opener) -> None:
    async with serving(SCRIPT, grpc=False, api_keys=f"ann={ANN}") as guarded:
        window = await open_window(guarded.url)
        window.expects(REFUSED)
        guest = await open_window("", await shared_link(window, "kelp", "read"))
        guest.expects("request: |status of 40[13]")
        await all_show([guest.page], "Here is kelp.")
        await window.page.keyboard.press("Escape")
        await each_shows_what_the_first_does(window.page, guest.page)


async def each_shows_what_the_first_does(page: Page, other: Page) -> None:
    words = [f"moss{number}" for number in range(QUICK)]
    for word in words:
        await ask(page, f"quickly {word}")
        await all_show([page], f"Here is {word}.")
    for word in words:
        await all_show([other], f"Here is {word}.")
    said = await messages(other).inner_text()
    assert [said.count(f"quickly {word}") for word in words] == [1] * QUICK
    assert [said.count(f"Here is {word}.") for word in words] == [1] * QUICK


async def test_an_approval_that_is_answered_in_one_window_is_answered_in_all(window: OpenPage) -> None:
    page = window.page
    await ask(page, "delete notes.txt")
    await expect(approval(page)).to_be_visible()
    other = await window.another_tab()
    await expect(approval(other)).to_be_visible()
    await approval(page).get_by_role("button", name="Approve").click()
    await all_show([page, other], DONE)
    await expect(approval(other)).to_have_count(0)
