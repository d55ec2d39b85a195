"""A passage is selected, and rewritten in place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.async_api import Locator, Page, expect

from a2a_canvas.server.wire import CANVAS
from tests.server.app_server import Served, serving
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener, Start
from tests.server.canvas.browser.page_actions import quick_action
from tests.server.canvas_client import Doc

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHONE = {"width": 360, "height": 740}
LONG = "The second one is too long for its own good."
SHORT = "The second one is short now."


async def say(page: Page, text: str) -> None:
    field = page.get_by_role("textbox", name="Message")
    await field.fill(text)
    await field.press("Enter")


async def with_document(window: OpenPage, served: Served, what: str) -> Page:
    served.gate.open()
    await say(window.page, f"quickly {what}")
    await expect(window.page.get_by_role("article", name="Reply")).to_have_text(f"Here is {what}.")
    served.gate.close()
    return window.page


def bar(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Change the selected passage")


def outcome(page: Page) -> Locator:
    return page.get_by_role("group", name="The passage was rewritten")


def document(page: Page) -> Locator:
    return page.locator(".document-panel")


async def select(page: Page, text: str) -> None:
    """As a person does with three clicks."""
    await document(page).get_by_text(text).click(click_count=3, position={"x": 20, "y": 8})


async def edit_source(page: Page) -> Locator:
    await page.get_by_role("button", name="Edit", exact=True).click()
    source = page.get_by_role("textbox", name=re.compile("^Source of"))
    await expect(source).to_be_visible()
    return source


async def test_a_selected_passage_is_rewritten_in_place_and_taken_back(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "bees")
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    await expect(page.locator(".composer-place")).to_contain_text("Line 5")
    await quick_action(page, "Shorter")
    await expect(bar(page)).to_be_hidden()
    served.gate.let(2)
    await expect(document(page).get_by_text("The second o")).to_be_visible()
    await expect(document(page).get_by_text("The first paragraph stays.")).to_be_visible()
    assert LONG not in await document(page).inner_text()
    served.gate.open()
    await expect(document(page).get_by_text(SHORT)).to_be_visible()
    await expect(outcome(page).get_by_role("deletion")).to_have_text(LONG)
    await outcome(page).get_by_role("button", name="Undo").click()
    await expect(document(page).get_by_text(LONG)).to_be_visible()
    await expect(outcome(page)).to_be_hidden()


async def test_a_rewritten_passage_is_kept_or_rewritten_once_more(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "hornets")
    served.gate.open()
    await select(page, LONG)
    await quick_action(page, "Shorter")
    await outcome(page).get_by_role("button", name="Try again").click()
    await expect(document(page).get_by_text(SHORT)).to_be_visible()
    await expect(page.get_by_role("log", name="Messages").get_by_text("Make it shorter")).to_have_count(2)
    await expect(outcome(page).get_by_role("deletion")).to_have_text(LONG)
    before = await outcome(page).get_by_role("deletion").bounding_box()
    keep = await outcome(page).get_by_role("button", name="Keep").bounding_box()
    assert before is not None
    assert keep is not None
    assert before["y"] < keep["y"]
    await outcome(page).get_by_role("button", name="Keep").press("Enter")
    await expect(outcome(page)).to_be_hidden()
    await expect(document(page).get_by_text(SHORT)).to_be_visible()
    await expect(page.locator(".document-scroller")).to_be_focused()


@pytest.mark.parametrize("goes_on", ["press", "Escape"])
async def test_who_goes_on_keeps_a_rewritten_passage(window: OpenPage, served: Served, goes_on: str) -> None:
    page = await with_document(window, served, f"midges-{goes_on.lower()}")
    served.gate.open()
    await select(page, LONG)
    await quick_action(page, "Shorter")
    await expect(outcome(page)).to_be_visible()
    if goes_on == "press":
        await document(page).get_by_text("two", exact=True).click()
    else:
        await page.locator(".document-scroller").press("Escape")
    await expect(outcome(page)).to_be_hidden()
    await expect(document(page).get_by_text(SHORT)).to_be_visible()


async def test_a_passage_is_edited_where_it_is_read(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "crows")
    await edit_text(page, LONG, "Written **here**.")
    await page.keyboard.press("Control+Enter")
    await expect(bar(page)).to_be_hidden()
    await expect(document(page).locator("strong")).to_have_text("here")
    await expect(page.get_by_text("Version 2", exact=True)).to_be_visible()
    await expect(page.get_by_role("log", name="Messages")).to_contain_text("Your changes to crows.md")
    await expect(page.get_by_role("alert").filter(has_text="not saved")).to_have_count(0)


async def test_an_item_is_edited_while_somebody_else_writes_elsewhere(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "rooks")
    await edit_text(page, "two", "2")
    await put(served, page, "rooks", "The first paragraph stays.", "The first one has changed.")
    await expect(document(page)).to_contain_text("The first one has changed.")
    await bar(page).get_by_role("button", name="Save").click()
    await expect(document(page).locator("li").last).to_have_text("2")
    await expect(document(page)).to_contain_text("The first one has changed.")


async def test_what_was_written_for_a_passage_that_somebody_changed_can_be_copied(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "jays")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await edit_text(page, LONG, "My own words.")
    await put(served, page, "jays", LONG, "Other words.")
    await expect(bar(page)).to_be_hidden()
    notice = page.get_by_role("alert").filter(has_text="Your text was not saved.")
    await notice.get_by_role("button", name="Copy").click()
    await page.wait_for_function("async () => (await navigator.clipboard.readText()) === 'My own words.'")


async def test_what_was_written_for_a_passage_is_not_lost_with_a_click_elsewhere(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "magpies")
    await edit_text(page, LONG, "My own words.")
    await document(page).get_by_role("listitem").last.click()
    await expect(bar(page)).to_be_hidden()
    notice = page.get_by_role("alert").filter(has_text="Your text was not saved.")
    await expect(notice.get_by_role("button", name="Copy")).to_be_visible()


async def edit_text(page: Page, passage: str, text: str) -> None:
    await select(page, passage)
    await bar(page).get_by_role("button", name="Edit text").click()
    field = bar(page).get_by_role("textbox", name="New text of the selected passage")
    await expect(field).to_have_value(passage)
    await field.fill(text)


async def put(served: Served, page: Page, what: str, old: str, new: str) -> None:
    """Somebody else writes into the document."""
    context = page.url.split("#/")[1].split("/")[0]
    text = (await served.http.get(f"/artifacts/{context}/{what}?raw=1")).text
    operation = {"op": "put", "artifactId": what, "baseVersion": 1, "text": text.replace(old, new)}
    message = {"messageId": str(uuid4()), "contextId": context, "role": "ROLE_USER", "parts": [{"text": "put"}]}
    answer = await served.rpc("SendMessage", {"message": message | {"metadata": {CANVAS: operation}}})
    assert "error" not in answer, answer


async def test_the_reference_of_a_message_to_a_passage_is_removed(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "flies")
    served.gate.open()
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    await page.get_by_role("button", name="Remove the reference").click()
    await expect(page.locator(".composer-place")).to_be_hidden()
    await expect(bar(page)).to_be_hidden()
    await say(page, "quickly gnats")  # would be an edit
    await expect(page.get_by_role("article", name="Reply").last).to_have_text("Here is gnats.")


async def test_the_offer_to_take_a_change_back_goes_when_it_was_taken_back_otherwise(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "wasps")
    await select(page, LONG)
    served.gate.open()
    await quick_action(page, "Shorter")
    await expect(outcome(page)).to_be_visible()
    await document(page).locator(".document-scroller").focus()
    await page.keyboard.press("Control+z")
    await expect(document(page).get_by_text(LONG)).to_be_visible()
    await expect(outcome(page)).to_be_hidden()


async def test_a_document_stays_linked_under_its_request_when_a_passage_is_rewritten_later(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "moles")
    await page.reload()
    link = page.get_by_role("list", name="Documents").get_by_role("button")
    await expect(link).to_have_text("moles.mdversion 1")
    await select(page, LONG)
    served.gate.open()
    await quick_action(page, "Shorter")
    await expect(page.get_by_role("log", name="Messages")).to_contain_text("version 2 is saved.")
    await expect(link).to_have_text("moles.mdversion 1")


async def test_the_bar_waits_for_the_pointer_and_leaves_the_focus(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "ants")
    line = document(page).get_by_text(LONG)
    box = await line.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 2, box["y"] + 8)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 120, box["y"] + 8, steps=6)
    await expect(bar(page)).to_be_hidden()
    await page.mouse.up()
    await expect(bar(page)).to_be_visible()
    field = bar(page).get_by_role("textbox")
    await expect(field).not_to_be_focused()
    await page.keyboard.press("Tab")
    await expect(field).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(bar(page)).to_be_hidden()
    await expect(page.locator(".document-scroller")).to_be_focused()


async def test_with_the_keyboard_alone(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "crows")
    source = await edit_source(page)
    await source.focus()
    await page.keyboard.press("Control+Home")
    for _ in range(4):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Shift+End")
    await expect(bar(page)).to_be_visible()
    await expect(source).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.type("make it shorter")
    await expect(page.locator(".cm-content .document-passage")).to_have_text(LONG)
    await page.keyboard.press("Enter")
    await expect(source).to_be_focused()
    await expect(page.locator(".cm-content .document-writing")).to_have_text("The ")
    served.gate.open()
    await expect(source).to_contain_text(SHORT)


async def test_a_failure_is_said_and_tried_again(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "dogs")
    await select(page, LONG)
    await bar(page).get_by_role("textbox").fill("fail, please")
    await bar(page).get_by_role("button", name="Rewrite").click()
    served.gate.open()
    notice = page.get_by_role("region", name="Notices").get_by_role("alert")
    await expect(notice).to_be_visible()
    await expect(document(page).get_by_text(LONG)).to_be_visible()
    await notice.get_by_role("button", name="Retry").click()
    await expect(
        page.get_by_role("log", name="Messages").get_by_text("The model did not accept this request")
    ).to_have_count(2)
    await expect(notice).to_be_visible()
    await page.get_by_role("button", name="New conversation").first.click()
    await expect(notice).to_have_count(0)


async def test_several_passages_at_once_while_the_rest_stays(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "elks")
    await select(page, LONG)
    await quick_action(page, "Shorter")
    served.gate.let(2)
    await expect(document(page).get_by_text("The second o", exact=True)).to_be_visible()
    await select(page, "The first paragraph stays.")
    await bar(page).get_by_role("textbox").fill("upper case")
    await bar(page).get_by_role("button", name="Rewrite").click()
    served.gate.let(100)
    await expect(document(page).get_by_text("UPPER CASE")).to_be_visible()
    await expect(document(page).get_by_text(SHORT)).to_be_visible()


async def test_a_selection_survives_an_edit_elsewhere(open_window: Opener, window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "foxes")
    other = (await open_window(served.url, "/" + page.url.split("/", 3)[3])).page
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    await select(other, "The first paragraph stays.")
    served.gate.open()
    await bar(other).get_by_role("textbox").fill("upper case")
    await bar(other).get_by_role("button", name="Rewrite").click()
    await expect(document(page).get_by_text("UPPER CASE")).to_be_visible()
    await expect(bar(page)).to_be_visible()
    await quick_action(page, "Shorter")
    await expect(document(page).get_by_text(SHORT)).to_be_visible()
    await expect(document(page).get_by_text("UPPER CASE")).to_be_visible()


async def test_code_is_offered_what_code_needs(window: OpenPage, served: Served) -> None:
    served.gate.open()
    await say(window.page, "many 3")
    page = window.page
    await page.get_by_role("tab", name=re.compile("two.py")).click()
    await page.locator(".cm-line", has_text="return 2").click(click_count=3)
    await expect(bar(page).get_by_text("Line 2", exact=True)).to_be_visible()
    await bar(page).get_by_role("button", name="Quick actions").click()
    offered = bar(page).get_by_role("group", name="Quick actions").get_by_role("button")
    await expect(offered).to_have_text(["Add comments", "Add types", "Make async", "Explain in chat"])
    await offered.last.click()
    await expect(page.get_by_role("article", name="Reply").last).to_have_text("That is what it does.")


async def test_the_bar_is_one_line_that_opens_without_moving_what_is_seen(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "newts")
    await select(page, LONG)
    actions = bar(page).get_by_role("group", name="Quick actions")
    more = bar(page).get_by_role("button", name="Quick actions")
    field = bar(page).get_by_role("textbox")
    await expect(actions).to_be_hidden()
    await expect(bar(page)).not_to_contain_text("Line")
    closed = await bar(page).bounding_box()
    assert closed is not None
    assert closed["height"] < 52
    await bar(page).evaluate("bar => Promise.all(bar.getAnimations({ subtree: true }).map((one) => one.finished))")
    before = await field.bounding_box()
    await more.click()
    await expect(more).to_have_attribute("aria-expanded", "true")
    await expect(actions.get_by_role("button")).to_have_count(6)
    assert await field.bounding_box() == before
    await more.click()
    await expect(actions).to_be_hidden()

    await field.click()
    await expect(actions).to_be_visible()
    await expect(bar(page).get_by_role("button", name="Rewrite")).to_be_hidden()
    await page.keyboard.type("Make it")
    await expect(bar(page).get_by_role("button", name="Rewrite")).to_be_visible()
    await field.fill("")
    await expect(bar(page).get_by_role("button", name="Suggest")).to_be_visible()


async def test_the_ring_is_where_a_key_writes(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "toads")
    ring = "element => getComputedStyle(element).boxShadow !== 'none'"
    composer = page.locator(".composer-box")
    await page.get_by_role("textbox", name="Message").focus()
    assert await composer.evaluate(ring)
    await select(page, LONG)
    field = bar(page).get_by_role("textbox")
    assert await field.evaluate(ring)
    assert not await composer.evaluate(ring)
    await page.keyboard.press("m")
    await expect(field).to_have_value("m")
    await page.keyboard.press("Escape")
    await page.get_by_role("textbox", name="Message").focus()
    assert await composer.evaluate(ring)


@pytest.mark.parametrize("width", [360, 390])
async def test_on_a_phone_all_of_the_bar_is_in_reach_of_a_finger(
    open_window: Opener, served: Served, width: int
) -> None:
    doc = Doc(served, str(uuid4()), LONG)
    await doc.run(doc.operation("put", text=f"# Efts\n\n{LONG}\n", name="efts.md"))
    size = {"width": width, "height": 740}
    address = f"/#/{doc.context}/{doc.artifact_id}"
    page = (await open_window(served.url, address, viewport=size, has_touch=True, is_mobile=True)).page
    await page.get_by_role("tab", name="efts.md").click()
    await select(page, LONG)
    await expect(bar(page).get_by_role("button", name="Comment")).to_be_visible()
    await bar(page).get_by_role("button", name="Quick actions").tap()
    targets = bar(page).get_by_role("button").or_(bar(page).get_by_role("textbox"))
    await expect(targets).to_have_count(11)
    for target in await targets.all():
        await target.scroll_into_view_if_needed()
        box = await target.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44, await target.inner_text()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    await bar(page).get_by_role("button", name="Suggest").tap()
    await expect(bar(page).get_by_role("textbox", name="Replacement for the selected passage")).to_be_focused()


async def test_on_a_phone_the_bar_is_at_the_bottom(open_window: Opener, served: Served) -> None:
    page = await with_document(await open_window(served.url, viewport=PHONE), served, "goats")
    await page.get_by_role("tab", name=re.compile("goats")).click()
    await select(page, LONG)
    box = await bar(page).bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, PHONE["width"])
    assert PHONE["height"] - 60 < box["y"] + box["height"] <= PHONE["height"]


async def test_where_edits_are_off_a_passage_is_only_commented_on_and_edited_by_hand(
    open_window: Opener, start: Start, app_options: dict, tmp_path: Path
) -> None:
    card = tmp_path / "agent_card.json"
    off = {"uri": "urn:a2a-canvas:canvas:v1", "params": {"edits": False}}
    card.write_text(json.dumps({"capabilities": {"extensions": [off]}}))
    served = await start(serving(**app_options, agent_card=card, database="memory"))
    page = await with_document(await open_window(served.url), served, "emus")
    await select(page, LONG)
    await expect(page.locator(".composer-place")).to_contain_text("Line 5")
    await expect(bar(page).get_by_role("button")).to_have_text(["", "Comment", "Suggest"])
    await expect(bar(page).get_by_role("button", name="Edit text")).to_be_visible()
    served.gate.open()
    await say(page, "quickly gnus")  # would be an edit
    await expect(page.get_by_role("article", name="Reply")).to_have_text(["Here is emus.", "Here is gnus."])
