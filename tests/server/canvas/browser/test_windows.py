"""Several windows on one conversation: each shows what any of them does, and they share their streams, because a
browser opens six connections to a server over HTTP/1.1, for all of its windows together.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.database_fixtures import sqlite_url
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import ANN, JOE, Opener
from tests.server.canvas.browser.page_actions import REPLY, ask, check_lines, document, grow_to, messages
from tests.server.canvas.browser.test_approvals import DONE, approval
from tests.server.canvas.browser.test_reconnecting import LOST, check_written
from tests.server.canvas.browser.test_signing_in import shared_link, sign_in
from tests.server.faults.fault_scripts import WRITE
from tests.server.faults.server_processes import server_group

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUICK = 6
POST = (
    "() => fetch('.', {method: 'POST', headers: {'A2A-Version': '1.0', 'Content-Type': 'application/json'}, body: "
    "JSON.stringify({jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {}})}).then(({status}) => status)"
)
WINDOWS = 8


async def all_show(pages: list[Page], text: str) -> None:
    await asyncio.gather(*(expect(messages(page)).to_contain_text(text) for page in pages))


async def test_tasks_that_end_at_once_appear_in_the_other_windows(window: OpenPage) -> None:
    page = window.page
    await ask(page, "quickly kelp")
    await all_show([page], "Here is kelp.")
    other = await window.another_tab()
    await all_show([other], "Here is kelp.")
    await each_shows_what_the_first_does(page, other)


async def test_and_in_that_of_a_guest(visit: OpenPage, open_window: Opener) -> None:
    guest = await open_window("", await shared_link(visit, "kelp", "read"))
    guest.expects("request: |status of 40[13]")
    await all_show([guest.page], "Here is kelp.")
    await visit.page.keyboard.press("Escape")
    await each_shows_what_the_first_does(visit.page, guest.page)


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


async def several(window: OpenPage) -> list[Page]:
    """Windows of the conversation that is open in one."""
    return [window.page, *[await window.another_tab() for _ in range(WINDOWS - 1)]]


async def test_a_message_from_each_of_eight_windows_reaches_all(window: OpenPage, served: Served) -> None:
    await ask(window.page, "quickly kelp")
    await all_show([window.page], "Here is kelp.")
    pages = await several(window)
    await all_show(pages, "Here is kelp.")
    for number, page in enumerate(pages):
        await ask(page, f"quickly moss{number}")
        await all_show(pages, f"Here is moss{number}.")
    for page in pages:
        said = await messages(page).inner_text()
        assert [said.count(f"quickly moss{number}") for number in range(WINDOWS)] == [1] * WINDOWS
        assert [said.count(f"Here is moss{number}.") for number in range(WINDOWS)] == [1] * WINDOWS


async def test_eight_windows_show_a_document_while_it_is_written_and_a_message_still_passes(
    window: OpenPage, served: Served
) -> None:
    await ask(window.page, "write report")
    await grow_to(window.page, served, "05")
    pages = await several(window)
    for page in pages:
        await expect(document(page)).to_contain_text("Line 05")
    await grow_to(pages[-1], served, "10")
    for page in pages:
        await expect(document(page)).to_contain_text("Line 10")
    assert await pages[6].evaluate(POST) == 200
    await pages[0].close()
    await pages[3].close()
    left = [page for page in pages if not page.is_closed()]
    await grow_to(left[0], served, "15")
    served.gate.open()
    await all_show(left, REPLY)
    for page in left:
        await check_lines(page)


async def test_windows_with_two_credentials_are_not_mixed(visit: OpenPage) -> None:
    await sign_in(visit.page, ANN)
    await ask(visit.page, "quickly kelp")
    await all_show([visit.page], "Here is kelp.")
    visit.expects("status of 404")
    other = await visit.another_tab()
    await sign_in(other, JOE)
    await expect(other.get_by_role("alert")).to_contain_text("This conversation no longer exists.")
    await ask(visit.page, "quickly moss")
    await all_show([visit.page], "Here is moss.")
    assert "kelp" not in await other.locator("body").inner_text()


async def test_the_server_is_killed_and_started_again(open_window: Opener, tmp_path: Path) -> None:
    async with server_group(sqlite_url(tmp_path), tmp_path) as group:
        first = await group.start()
        window = await open_window(str(first.http.base_url))
        window.expects(LOST)
        await ask(window.page, WRITE)
        await expect(document(window.page)).to_contain_text("report 003: ebb and flow")
        pages = await several(window)
        await first.kill()
        await group.start(port=first.port)
        for page in pages:
            await check_written(page)
