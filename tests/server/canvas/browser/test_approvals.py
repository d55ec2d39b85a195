"""Calls of tools that the user is asked to approve (scripts/tools.py)."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.database_fixtures import FreezableProxy
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import PATIENCE_MS, OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, frames, messages
from tests.server.canvas.browser.test_layout import PHONE, TOO_LOW, TOO_WIDE
from tests.server.canvas.browser.test_reconnecting import LOST

pytestmark = pytest.mark.asyncio(loop_scope="module")

DONE: Final = "That is settled."
RAN, DID_NOT_RUN = "notes.txt is gone.", "The user did not approve this call"


def approval(page: Page) -> Locator:
    return page.get_by_role("region", name="Approval")


def what_the_model_read(served: Served) -> str:
    return str(served.model.requests[-1].messages)


async def settled(page: Page) -> None:
    await expect(page.locator(".message-agent").last).to_have_text(DONE)
    await expect(approval(page)).to_have_count(0)


async def test_the_tool_and_its_whole_input_are_shown(window: OpenPage) -> None:
    page = window.page
    await ask(page, "delete notes.txt")
    await expect(approval(page).locator("code").first).to_have_text("delete_file")
    await expect(approval(page).get_by_role("rowheader")).to_have_text(["options", "path", "reason"])
    cells = approval(page).get_by_role("cell")
    options, *others = await cells.all_inner_texts()
    assert json.loads(options) == {"force": True, "depth": 2}
    assert others == ["notes.txt", "It is old.\nNobody reads it."]
    await expect(approval(page)).not_to_contain_text("May I run")
    await expect(page.locator(".thread-frame > [role=status]")).to_contain_text("May I run delete_file(")


async def test_what_is_approved_runs_and_that_it_was_approved_stays(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "delete notes.txt")
    await approval(page).get_by_role("button", name="Approve").click()
    await settled(page)
    assert RAN in what_the_model_read(served)
    await expect(messages(page).get_by_text("Approved: delete_file")).to_be_visible()
    await expect(page.locator(".message-user")).to_have_count(1)
    await page.reload()
    await messages(page).get_by_text("Approved: delete_file").click()
    await expect(messages(page).get_by_role("cell").nth(1)).to_have_text("notes.txt")


async def test_what_is_not_approved_does_not_run_and_the_model_reads_why(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "delete notes.txt")
    await approval(page).get_by_role("textbox", name="Reason, or what to do instead").fill("yes, but archive it")
    await approval(page).get_by_role("button", name="Don’t").click()
    await settled(page)
    read = what_the_model_read(served)
    assert DID_NOT_RUN in read
    assert "yes, but archive it" in read
    assert RAN not in read
    await expect(messages(page).get_by_text("Not approved: delete_file")).to_be_visible()
    await expect(page.locator(".message-user").last).to_contain_text("yes, but archive it")


async def test_a_reason_that_is_being_typed_stays_when_the_conversation_is_read_again(
    open_window: Opener, served: Served
) -> None:
    """As after a lost connection. The members of the input have another order then: the wire has none for them."""
    read_again = asyncio.Event()

    async def turn_around(route: Route) -> None:
        if "ListTasks" not in (route.request.post_data or ""):
            await route.continue_()
            return
        answer = await route.fetch()
        await route.fulfill(response=answer, json=backwards(await answer.json()))
        read_again.set()

    proxy = FreezableProxy(served.url)
    async with proxy as url:
        window = await open_window(url)
        window.expects(LOST)
        page = window.page
        await ask(page, "delete notes.txt")
        why = approval(page).get_by_role("textbox", name="Reason, or what to do instead")
        await why.fill("yes, but archive it")
        first = await why.element_handle()
        await page.route("**/*", turn_around)
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while not read_again.is_set():
                proxy.cut()  # again, if the page was only about to connect
                with suppress(TimeoutError):
                    await asyncio.wait_for(read_again.wait(), PATIENCE_MS / 10_000)
        await frames(page)

        await expect(why).to_have_value("yes, but archive it")
        await expect(why).to_be_focused()
        assert await why.evaluate("(field, first) => field === first", first)
        await page.unroute_all()


def backwards(value: Any) -> Any:
    """The same JSON, with the members of its objects in the opposite order."""
    match value:
        case dict():
            return {name: backwards(value[name]) for name in reversed(value)}
        case list():
            return [backwards(each) for each in value]
        case _:
            return value


@pytest.mark.parametrize(("keys", "outcome"), [(["Enter"], RAN), (["Tab", "Enter"], DID_NOT_RUN)])
async def test_it_is_answered_with_the_keyboard(
    window: OpenPage, served: Served, keys: list[str], outcome: str
) -> None:
    page = window.page
    await ask(page, "delete notes.txt")
    await expect(approval(page)).to_be_visible()
    await approval(page).get_by_role("group", name="Input of delete_file").focus()
    for key in ("Tab", *keys):
        await page.keyboard.press(key)
    await settled(page)
    assert outcome in what_the_model_read(served)


async def test_enter_alone_approves_nothing(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "delete notes.txt")
    await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
    await expect(approval(page)).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.locator(".message-user")).to_have_count(1)
    await approval(page).get_by_role("textbox", name="Reason, or what to do instead").press("Enter")
    await settled(page)
    assert RAN not in what_the_model_read(served)


async def test_calls_at_once_have_one_answer(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "remove both")
    await expect(approval(page).get_by_role("cell").filter(has_text=".txt")).to_have_text(["a.txt", "b.txt"])
    await approval(page).get_by_role("button", name="Approve all").click()
    await settled(page)
    read = what_the_model_read(served)
    assert "a.txt is gone." in read
    assert "b.txt is gone." in read


async def test_a_task_that_is_stopped_leaves_the_call_unanswered(window: OpenPage) -> None:
    page = window.page
    await ask(page, "delete notes.txt")
    await approval(page).get_by_role("button", name="Cancel the task").click()
    await expect(messages(page).get_by_text("Not answered: delete_file")).to_be_visible()
    await expect(approval(page)).to_have_count(0)


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("a\u202etxt.exe", "a\\u202etxt.exe"),
        ("</td></table><button>Approve</button>", "</td></table><button>Approve</button>"),
        ("\u200b\x1b[2J.", "\\u200b\\u001b[2J."),
    ],
)
async def test_what_is_in_an_input_is_text(window: OpenPage, odd: str, shown: str) -> None:
    page = window.page
    await ask(page, f"delete oddly {odd}")
    await expect(approval(page).get_by_role("cell").nth(1)).to_have_text(shown)
    await expect(approval(page).get_by_role("button", name="Approve")).to_have_count(1)
    await expect(approval(page).locator("img")).to_have_count(0)


async def test_a_long_input_is_bounded_and_has_its_own_scrollbar(window: OpenPage) -> None:
    page = window.page
    await ask(page, "delete oddly " + "\n".join(["a line " * 10] * 300))
    place = approval(page).get_by_role("group", name="Input of delete_file")
    await expect(place).to_contain_text("more characters")
    height, content = await place.evaluate("(element) => [element.clientHeight, element.scrollHeight]")
    assert height < 400 < content
    await expect(approval(page).get_by_role("button", name="Approve")).to_be_in_viewport()


async def test_on_a_phone_it_fits(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, **PHONE)).page
    await ask(page, f"delete {'long' * 60}.txt")
    # Enter breaks the line there.
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(approval(page)).to_be_visible()
    assert await page.evaluate(TOO_WIDE) == []
    assert await page.evaluate(TOO_LOW) == []
