"""Point 1: a person types a request, sees the document grow while it is written, and at the end the reply alone."""

from __future__ import annotations

import re
from itertools import groupby

import pytest
from playwright.async_api import expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.page_actions import (
    LINES,
    REPLY,
    ask,
    check_lines,
    document,
    grow_to,
    lines_of,
    messages,
    step,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_empty_page_has_three_examples_that_are_sent_as_they_stand(window: OpenPage) -> None:
    examples = window.page.get_by_role("list", name="Examples").get_by_role("button")
    await expect(examples).to_have_count(3)
    await examples.nth(0).click()
    await expect(messages(window.page)).to_contain_text("Write a guide to tide pools")
    await expect(messages(window.page)).to_contain_text("As you wish.")
    assert re.search(r"#/[^/]+$", window.page.url)


async def test_a_request_becomes_a_document_before_ones_eyes_and_ends_with_one_reply(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    await ask(page, "write report")
    await expect(messages(page)).to_contain_text("write report")
    await expect(messages(page)).to_contain_text("Working…")
    await grow_to(page, served, "05")
    await expect(messages(page)).to_contain_text("Writing report.md…")
    seen = await lines_of(page)
    assert seen == LINES[: len(seen)] != LINES
    await grow_to(page, served, "40")
    await check_lines(page)
    while REPLY[:12] not in await messages(page).inner_text():
        await step(page, served)
    assert REPLY not in await messages(page).inner_text()
    await expect(messages(page)).not_to_contain_text("Before the call.")
    served.gate.open()
    await expect(messages(page)).to_contain_text(REPLY)
    await expect(messages(page)).not_to_contain_text("Writing")
    said = await messages(page).inner_text()
    assert said.count(REPLY) == 1
    assert not re.search(r"Secret|Before the call|Working|artifact_update|<", said)
    await check_lines(page)


async def test_the_document_is_followed_to_its_last_line(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "write report")
    await grow_to(page, served, "20")
    await expect(document(page).get_by_text("Line 19")).to_be_in_viewport()
    served.gate.open()
    await expect(messages(page)).to_contain_text(REPLY)
    await expect(document(page).get_by_text("Line 40")).to_be_in_viewport()


async def test_the_document_is_followed_to_its_end_unless_the_reader_has_scrolled_away(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    await ask(page, "write report")
    await grow_to(page, served, "25")
    await expect(document(page).get_by_text("Line 24")).to_be_in_viewport()
    await document(page).get_by_text("Line 10").hover()
    await page.mouse.wheel(0, -5000)
    await expect(document(page).get_by_text("Line 01")).to_be_in_viewport()
    await grow_to(page, served, "35")
    await expect(document(page).get_by_text("Line 01")).to_be_in_viewport()
    served.gate.open()
    await expect(messages(page)).to_contain_text(REPLY)
    await expect(document(page).get_by_text("Line 01")).to_be_in_viewport()


async def test_there_is_one_status_line_and_it_is_overwritten(window: OpenPage, served: Served) -> None:
    page, seen = window.page, []
    await ask(page, "write report")
    await expect(messages(page)).to_contain_text("Working…")
    while REPLY[:-7] not in (said := await messages(page).inner_text()):
        seen.append(re.findall(r"^(?:Working|Writing .*)…$", said, re.MULTILINE))
        await step(page, served)
    served.gate.open()
    assert max(map(len, seen)) == 1
    assert [line for line, _ in groupby(line for lines in seen for line in lines)] == [
        "Working…",
        "Writing reply…",
        "Writing report.md…",
        "Writing reply…",
    ]
