"""What axe-core finds in each state of the page against WCAG 2, levels A and AA: nothing, in light and in dark."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from playwright.async_api import Page, expect

from tests.node_tools import installed_file
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, bring, quick_action
from tests.server.canvas.browser.test_passages import LONG, bar, edit_source, select, with_document
from tests.server.canvas.browser.test_typing import changed_by_two

pytestmark = pytest.mark.asyncio(loop_scope="module")

State = Callable[[OpenPage, Opener, Served], Awaitable[Page]]

PHONE: Final = {"width": 360, "height": 740}
WIDE: Final = {"width": 1280, "height": 800}
VIOLATIONS: Final = """async () => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const rules = { region: { enabled: true } };
  const { violations } = await axe.run(document, { runOnly: { type: "tag", values: tags }, rules });
  const told = (id) => ({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`;
  return violations.flatMap(({ id, nodes }) => nodes.map(told(id)));
}"""


async def start(window: OpenPage, _: Opener, served: Served) -> Page:
    await expect(window.page.get_by_role("list", name="Examples")).to_be_visible()
    return window.page


async def writing(window: OpenPage, _: Opener, served: Served) -> Page:
    page = window.page
    served.gate.close()
    await ask(page, "write hills")
    served.gate.let(12)
    await expect(page.locator(".status")).to_have_text("Writing hills.md…")
    await expect(page.locator(".document-panel")).to_contain_text("About hills")
    return page


async def thread(window: OpenPage, _: Opener, served: Served) -> Page:
    return await with_document(window, served, "herons")


async def source(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "storks")
    await edit_source(page)
    return page


async def search(window: OpenPage, opener: Opener, served: Served) -> Page:
    page = await source(window, opener, served)
    await page.get_by_role("button", name="Versions", exact=True).click()
    await page.locator(".cm-content").click()
    await page.keyboard.press("Control+f")
    await expect(page.locator(".cm-search")).to_be_visible()
    return page


async def selection(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "cranes")
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    return page


async def review(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "robins")
    for action, words in (("Comment", "Is it?"), ("Suggest", "It is not.")):
        await select(page, LONG)
        await bar(page).get_by_role("button", name=action).click()
        await bar(page).get_by_role("textbox").fill(words)
        await bar(page).get_by_role("button", name=action).click()
        await expect(bar(page)).to_be_hidden()
    await page.get_by_role("button", name=re.compile("^Comments and suggestions")).click()
    await expect(page.locator(".note-thread")).to_have_count(2)
    return page


async def rewritten(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "rooks")
    served.gate.open()
    await select(page, LONG)
    await quick_action(page, "Shorter")
    await expect(page.get_by_role("button", name="Keep")).to_be_visible()
    return page


async def compare(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "gulls")
    served.gate.open()
    await ask(page, "quickly gulls")
    await expect(page.get_by_role("button", name="gulls.md version 2")).to_be_visible()
    await page.get_by_role("button", name="Versions", exact=True).click()
    await page.get_by_role("button", name="Compare").click()
    await expect(page.get_by_role("region", name="Comparison of two versions").locator("ins, p").first).to_be_visible()
    return page


async def compare_source(window: OpenPage, opener: Opener, served: Served) -> Page:
    page = await compare(window, opener, served)
    await page.get_by_role("button", name="Source", exact=True).click()
    await expect(
        page.get_by_role("region", name="Comparison of two versions").locator(".cm-content").first
    ).to_be_visible()
    return page


async def conflict(window: OpenPage, open_window: Opener, served: Served) -> Page:
    page, other = await changed_by_two(window, open_window, served, "swans", ("one", "two"))
    found = page.get_by_role("region", name="Conflict")
    await expect(found.or_(page.get_by_text("Saved", exact=True))).to_be_visible()
    later = page if await found.is_visible() else other
    await expect(later.get_by_role("region", name="Conflict")).to_be_visible()
    await later.bring_to_front()
    return later


async def question(window: OpenPage, _: Opener, served: Served) -> Page:
    await ask(window.page, "choose")
    await expect(window.page.get_by_role("region", name="Question")).to_be_visible()
    return window.page


async def approval(window: OpenPage, _: Opener, served: Served) -> Page:
    await ask(window.page, "secret")
    await expect(window.page.get_by_role("button", name="I have signed in")).to_be_visible()
    return window.page


async def call_to_approve(window: OpenPage, _: Opener, served: Served) -> Page:
    await ask(window.page, "delete notes.txt")
    await expect(window.page.get_by_role("region", name="Approval")).to_be_visible()
    return window.page


async def approved_call(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await call_to_approve(window, _, served)
    await page.get_by_role("button", name="Approve").click()
    await page.get_by_text("Approved: delete_file").click()
    await expect(page.get_by_role("table")).to_be_visible()
    return page


async def failure(window: OpenPage, _: Opener, served: Served) -> Page:
    await ask(window.page, "no rule for this")
    await expect(window.page.get_by_role("button", name="Retry")).to_be_visible()
    return window.page


async def developer(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "terns")
    await page.get_by_role("button", name="Developer view").click()
    await expect(page.get_by_role("region", name="Developer view").get_by_role("listitem").first).to_be_visible()
    return page


async def keys(window: OpenPage, _: Opener, served: Served) -> Page:
    await window.page.evaluate("document.activeElement.blur()")
    await window.page.keyboard.press("?")
    await expect(window.page.get_by_role("dialog", name="Keys")).to_be_visible()
    return window.page


async def deletion(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "ducks")
    await page.locator(".context-link[aria-current=page]").focus()
    await page.keyboard.press("Delete")
    await expect(page.get_by_role("dialog")).to_be_visible()
    return page


async def lost(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "owls")
    await window.disconnect()
    await expect(page.locator(".connection")).to_be_visible()
    return page


async def conversation(window: OpenPage, _: Opener, served: Served) -> Page:
    return await with_document(window, served, "wrens")


async def phone_document(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "larks")
    await page.get_by_role("tab", name="larks.md").click()
    await expect(page.locator(".document-panel")).to_be_visible()
    return page


async def phone_review(window: OpenPage, opener: Opener, served: Served) -> Page:
    page = await phone_document(window, opener, served)
    await page.get_by_role("button", name=re.compile("^Comments and suggestions")).click()
    await expect(page.get_by_role("complementary", name="Comments and suggestions")).to_be_visible()
    return page


async def drawer(window: OpenPage, _: Opener, served: Served) -> Page:
    page = await with_document(window, served, "finches")
    await page.get_by_role("button", name="Conversations", exact=True).click()
    await expect(page.get_by_role("searchbox")).to_be_visible()
    return page


async def table(window: OpenPage, _: Opener, served: Served) -> Page:
    await bring(window.page, "pool.csv", "animal,legs\ncrab,10\n=1+1,5\n")
    await expect(window.page.get_by_role("gridcell", name="crab")).to_be_visible()
    return window.page


async def program(window: OpenPage, _: Opener, served: Served) -> Page:
    window.expects("Blocked script execution|'webrtc'|it failed")
    await bring(window.page, "fails.html", "<html lang=en><title>x</title><script>console.error('it failed')</script>")
    await window.page.get_by_role("button", name="Run", exact=True).click()
    await expect(window.page.get_by_role("log", name="Errors of the program")).to_contain_text("it failed")
    return window.page


ON_A_SCREEN: Final = (
    *(
        start,
        writing,
        thread,
        source,
        search,
        selection,
        review,
        rewritten,
        compare,
        compare_source,
        conflict,
        question,
        approval,
    ),
    *(failure, call_to_approve, approved_call, developer, keys, deletion, lost, table, program),
)
ON_A_PHONE: Final = (start, conversation, call_to_approve, phone_document, phone_review, drawer)
STATES: Final = [
    *(pytest.param(WIDE, state, id=state.__name__) for state in ON_A_SCREEN),
    *(pytest.param(PHONE, state, id=f"phone-{state.__name__}") for state in ON_A_PHONE),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("viewport", "state"), STATES)
async def test_nothing_is_out_of_reach(
    open_window: Opener, served: Served, viewport: dict[str, int], state: State, scheme: str
) -> None:
    axe = installed_file("axe-core", "axe.min.js")
    served.gate.open()
    window = await open_window(served.url, viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    page = await state(window, open_window, served)
    await page.evaluate(axe)
    assert await page.evaluate(VIOLATIONS) == []
    served.gate.open()


async def test_what_is_out_of_reach_is_found(window: OpenPage) -> None:
    await window.page.evaluate(installed_file("axe-core", "axe.min.js"))
    await window.page.evaluate("document.querySelector('#main').append(document.createElement('button'))")
    (found,) = await window.page.evaluate(VIOLATIONS)
    assert found.startswith("button-name: <button")
