"""Comments and suggestions on the page: made on a passage, read beside it, decided with the pointer and with keys."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import Locator, Page, expect

from a2a_canvas.server.wire import CANVAS
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import document as document_region
from tests.server.canvas.browser.page_actions import frames
from tests.server.canvas.browser.test_passages import LONG, PHONE, bar, edit_source, select, with_document
from tests.server.canvas.browser.test_signing_in import shared_link

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIRST = "The first paragraph stays."
BETTER = "The second one is right."


def pane(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Comments and suggestions")


def button(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("^Comments and suggestions"))


def thread(page: Page, words: str) -> Locator:
    return pane(page).get_by_role("listitem").filter(has_text=words)


def text(page: Page) -> Locator:
    return page.locator(".document-panel")


async def comment(page: Page, passage: str, words: str) -> None:
    await select(page, passage)
    await bar(page).get_by_role("button", name="Comment").click()
    await bar(page).get_by_role("textbox", name="Comment on the selected passage").fill(words)
    await page.keyboard.press("Enter")
    await expect(bar(page)).to_be_hidden()


async def suggest(page: Page, passage: str, words: str) -> None:
    await select(page, passage)
    await bar(page).get_by_role("button", name="Suggest").click()
    field = bar(page).get_by_role("textbox", name="Replacement for the selected passage")
    await expect(field).to_have_value(passage)
    await field.fill(words)
    await bar(page).get_by_role("button", name="Suggest").click()
    await expect(bar(page)).to_be_hidden()


def context_of(page: Page) -> str:
    return page.url.split("#/")[1].split("/")[0]


async def annotate(served: Served, page: Page, what: str, **replacements: str) -> None:
    """Somebody else suggests to replace words of the document, each of which it has once."""
    written = f"# About {what}\n\n{FIRST}\n\n{LONG}\n\n- one\n- two\n"
    for words, replacement in replacements.items():
        start = written.index(words)
        asked = {"op": "annotate", "artifactId": what, "baseVersion": 1, "replacement": replacement}
        await operate(served, page, asked | {"selection": {"start": start, "end": start + len(words)}}, "annotate")


async def operate(served: Served, page: Page, asked: dict[str, Any], words: str) -> None:
    parts = [{"text": words}]
    message = {"messageId": str(uuid4()), "contextId": context_of(page), "role": "ROLE_USER", "parts": parts}
    answer = await served.rpc("SendMessage", {"message": message | {"metadata": {CANVAS: asked}}})
    assert "error" not in answer, answer


# ------------------------------------------------------------------------------------------------------------ comments


async def test_a_passage_is_commented_on_answered_and_resolved(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "bees")
    await comment(page, LONG, "Is it?")
    await expect(button(page)).to_have_accessible_name("Comments and suggestions, 1 open")
    await button(page).click()
    await expect(thread(page, "Is it?")).to_contain_text("Line 5")
    await thread(page, "Is it?").get_by_role("textbox", name="Reply…").fill("It is.")
    await page.keyboard.press("Enter")
    await expect(thread(page, "Is it?")).to_contain_text("It is.")
    await thread(page, "Is it?").get_by_role("button", name="Resolve").click()
    await expect(pane(page)).to_contain_text("Nothing is open.")
    await pane(page).get_by_text("Closed: 1").click()
    await expect(thread(page, "Is it?")).to_contain_text("Resolved by You")
    await expect(page.get_by_role("log", name="Messages").get_by_role("article")).to_have_count(1)


async def test_what_was_said_while_nobody_looked_is_there(
    window: OpenPage, open_window: Opener, served: Served
) -> None:
    page = await with_document(window, served, "wrens")
    other = await open_window(served.url, page.url.removeprefix(served.url))
    await comment(page, FIRST, "Before.")
    await button(other.page).click()
    await expect(thread(other.page, "Before.")).to_be_visible()
    await expect(page.get_by_title("2 people are viewing")).to_be_visible()
    await other.turn(other.page, "hidden")
    await expect(page.get_by_title("2 people are viewing")).to_be_hidden()
    await comment(page, LONG, "Meanwhile.")
    await other.turn(other.page, "visible")
    await expect(thread(other.page, "Meanwhile.")).to_be_visible()


async def test_a_reply_can_ask_the_agent_who_answers_in_the_thread(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "herons")
    await comment(page, LONG, "Why?")
    await button(page).click()
    served.gate.open()
    await thread(page, "Why?").get_by_role("textbox", name="Reply…").fill("Answer this thread")
    await thread(page, "Why?").get_by_role("button", name="Ask the agent").click()
    await expect(thread(page, "Why?")).to_contain_text("Because it is.")


async def ask(page: Page, passage: str, words: str) -> None:
    """Comments on a passage, for the agent to answer."""
    await select(page, passage)
    await bar(page).get_by_role("button", name="Comment").click()
    await bar(page).get_by_role("textbox", name="Comment on the selected passage").fill(words)
    await bar(page).get_by_role("button", name="Ask the agent").click()
    await expect(bar(page)).to_be_hidden()


async def test_a_comment_can_ask_the_agent_and_everybody_sees_that_it_answers(
    window: OpenPage, open_window: Opener, served: Served
) -> None:
    page = await with_document(window, served, "egrets")
    served.gate.close()
    await ask(page, LONG, "Think first")
    other = (await open_window(served.url, f"/#/{context_of(page)}")).page
    await button(other).click()
    await other.reload()
    await button(other).click()
    for each in (page, other):
        await expect(thread(each, "Think first")).to_contain_text("The agent is answering…")
    served.gate.open()
    for each in (page, other):
        await expect(thread(each, "Think first")).to_contain_text("After some thought.")
        await expect(thread(each, "Think first")).not_to_contain_text("answering")


async def test_a_suggestion_on_the_passage_answers_a_comment(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "storks")
    served.gate.close()
    await ask(page, LONG, "Improve storks")
    await expect(thread(page, BETTER)).to_contain_text("Agent suggests")
    await expect(thread(page, "Improve storks")).not_to_contain_text("answering")
    await thread(page, BETTER).get_by_role("button", name="Accept").click()
    served.gate.open()
    await expect(text(page)).to_contain_text(BETTER)


async def test_a_question_that_failed_says_so_in_its_thread_and_is_asked_again(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "cranes")
    served.gate.open()
    await ask(page, LONG, "Break down")
    await expect(thread(page, "Break down")).to_contain_text("No answer. The model did not accept this request.")
    await page.reload()
    await button(page).click()
    await thread(page, "Break down").get_by_role("button", name="Try again").click()
    await expect(thread(page, "Break down").get_by_text("Break down")).to_have_count(2)
    await expect(thread(page, "Break down").get_by_text("No answer.")).to_have_count(1)


async def test_an_answer_is_stopped_in_its_thread(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "ibises")
    served.gate.close()
    await ask(page, LONG, "Think first")
    await thread(page, "Think first").get_by_role("button", name="Stop").click()
    await expect(thread(page, "Think first")).to_contain_text("Stopped.")
    served.gate.open()


async def test_who_may_only_comment_is_not_offered_the_agent(
    visit: OpenPage, open_window: Opener, guarded: Served
) -> None:
    link = await shared_link(visit, "papaya", "comment")
    guest = await open_window("", link)
    guest.expects("request: |status of 40[13]")
    await select(guest.page, LONG)
    await bar(guest.page).get_by_role("button", name="Comment").click()
    await expect(bar(guest.page).get_by_role("button")).to_have_text(["Back", "Comment"])


async def test_what_is_written_in_a_reply_has_the_whole_width_of_its_thread(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "gulls")
    await comment(page, LONG, "Why?")
    await button(page).click()
    reply = thread(page, "Why?").get_by_role("textbox", name="Reply…")
    empty = await reply.bounding_box()
    await reply.fill("Because")
    await expect(thread(page, "Why?").get_by_role("button", name="Ask the agent")).to_be_visible()
    written = await reply.bounding_box()
    assert empty
    assert written
    assert written["width"] == empty["width"]


async def test_a_comment_is_deleted_after_a_question(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "wasps")
    await comment(page, LONG, "Oh?")
    await button(page).click()
    await thread(page, "Oh?").get_by_role("button", name="Delete the comment").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(pane(page)).to_contain_text("Select a passage to comment on it")


async def test_a_thread_stands_at_its_line_and_follows_it(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "ants")
    await comment(page, LONG, "Is it?")
    await button(page).click()
    await expect(thread(page, "Is it?")).to_be_visible()
    await expect_beside(page, LONG, "Is it?")
    await edit_source(page)
    await page.locator(".cm-line").first.click()
    await page.keyboard.press("Home")
    await page.keyboard.type("A line.\n\n\n\n")
    await expect_beside(page, LONG, "Is it?")


async def expect_beside(page: Page, passage: str, words: str) -> None:
    """Their tops are at most a line apart."""
    await page.wait_for_function(
        """([passage, words]) => {
          const found = (selector, text) =>
            [...document.querySelectorAll(selector)].findLast((each) => each.textContent.includes(text));
          const top = (selector, text) => found(selector, text)?.getBoundingClientRect().top;
          const there = top(".document-panel p, .document-panel .cm-line", passage);
          return Math.abs(there - top(".note-thread", words)) < 30;
        }""",
        arg=[passage, words],
    )


async def test_pressing_a_mark_in_the_text_shows_its_thread(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "moths")
    await comment(page, LONG, "Is it?")
    await page.wait_for_function("() => CSS.highlights.has('note-comment')")
    await text(page).get_by_text(LONG).click(position={"x": 30, "y": 8})
    await expect(thread(page, "Is it?")).to_have_class(re.compile("chosen"))
    await thread(page, "Is it?").get_by_role("textbox").press("Escape")
    await expect(pane(page)).to_be_hidden()
    await expect(button(page)).to_be_focused()


# --------------------------------------------------------------------------------------------------------- suggestions


async def test_a_suggestion_stands_in_the_text_and_is_accepted(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "elks")
    await suggest(page, LONG, BETTER)
    inserted = text(page).get_by_role("insertion")
    await expect(inserted).to_have_attribute("data-words", BETTER)
    await expect(text(page)).to_contain_text(LONG)
    await edit_source(page)
    await expect(text(page).get_by_role("insertion")).to_have_text(BETTER)
    await expect(text(page).locator(".note-suggestion")).to_have_text(LONG)
    await page.get_by_role("button", name="Read", exact=True).click()
    await button(page).click()
    await thread(page, BETTER).get_by_role("button", name="Accept").click()
    await expect(text(page)).to_contain_text(BETTER)
    await expect(text(page).get_by_role("insertion")).to_have_count(0)
    await expect(document_region(page).get_by_text("Version 2", exact=True)).to_be_visible()
    await document_region(page).get_by_role("button", name="Undo", exact=True).click()
    await expect(inserted).to_have_attribute("data-words", BETTER)


async def test_a_suggestion_is_no_text_of_the_document(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "frogs")
    await suggest(page, FIRST, "The first one goes.")
    await expect(text(page).get_by_role("insertion")).to_have_count(1)
    await select(page, LONG)
    await expect(page.locator(".composer-place")).to_contain_text("Line 5")
    await page.keyboard.press("Escape")
    await edit_source(page)
    await page.locator(".cm-line", has_text=LONG).click()
    await page.keyboard.press("End")
    await page.keyboard.type(" Really.")
    await expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    saved = await served.http.get(f"/artifacts/{context_of(page)}/frogs?raw=1")
    assert saved.text == f"# About frogs\n\n{FIRST}\n\n{LONG} Really.\n\n- one\n- two\n"


async def test_suggestions_are_decided_with_keys(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "owls")
    await annotate(served, page, "owls", first="1st", second="2nd", two="2")
    await expect(text(page).get_by_role("insertion")).to_have_count(3)
    chosen = text(page).locator("ins.note-chosen")
    await page.evaluate("document.activeElement.blur()")
    for key, words in (("]", "1st"), ("]", "2nd"), ("[", "1st"), ("a", "2nd"), ("r", "2")):
        await page.keyboard.press(key)
        await expect(chosen).to_have_attribute("data-words", words)
    await expect(text(page)).to_contain_text("The 1st paragraph stays.")
    await expect(text(page)).to_contain_text(LONG)
    await page.get_by_role("textbox", name="Message").press("a")
    await expect(page.get_by_role("textbox", name="Message")).to_have_value("a")
    await expect(chosen).to_have_attribute("data-words", "2")


async def test_all_suggestions_are_one_version(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "gnus")
    await annotate(served, page, "gnus", first="1st", second="2nd")
    await button(page).click()
    await pane(page).get_by_role("button", name="Accept all 2").click()
    await expect(text(page)).to_contain_text("The 1st paragraph stays.")
    await expect(text(page)).to_contain_text("The 2nd one")
    await expect(document_region(page).get_by_text("Version 2", exact=True)).to_be_visible()
    await expect(page.get_by_role("region", name="Notices")).to_contain_text("Accepted 2 suggestions")


async def test_of_a_conflict_both_texts_are_shown_and_what_lost_its_passage_is_listed_apart(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "newts")
    served.gate.open()
    await annotate(served, page, "newts", **{LONG: BETTER, "two": "2"})
    written = f"# About newts\n\n{FIRST}\n\n{LONG}\n\n- one\n- two\n"
    for words, becomes in (("two", "three"), ("too long", "far too long")):
        start = written.index(words)
        selection = {"start": start, "end": start + len(words), "text": words}
        asked = {"op": "edit", "artifactId": "newts", "selection": selection}
        await operate(served, page, asked, f"becomes {becomes}")
    await button(page).click()
    await expect(pane(page).get_by_text("Without a place: 1")).to_be_visible()
    await thread(page, BETTER).get_by_role("button", name="Accept").click()
    await expect(thread(page, BETTER).get_by_role("alert")).to_contain_text("far too long")
    await expect(text(page)).to_contain_text("far too long")
    await thread(page, BETTER).get_by_role("button", name="Reject").click()
    await expect(pane(page).get_by_text("Closed: 1")).to_be_visible()


# ------------------------------------------------------------------------------------------------------------ together


async def test_what_others_write_is_counted_until_it_was_seen_and_moves_nothing(
    window: OpenPage, open_window: Opener, served: Served
) -> None:
    page = await with_document(window, served, "larks")
    other = (await open_window(served.url, f"/{await page.evaluate('location.hash')}")).page
    await expect(text(other)).to_contain_text(LONG)
    before = await text(other).get_by_text(LONG).bounding_box()
    await comment(page, LONG, "Is it?")
    await expect(button(page)).to_have_accessible_name("Comments and suggestions, 1 open")
    await expect(button(other)).to_have_accessible_name("Comments and suggestions, 1 open, 1 new")
    await frames(other)
    assert await text(other).get_by_text(LONG).bounding_box() == before
    await button(other).click()
    await expect(thread(other, "Is it?")).to_be_visible()
    await other.reload()
    await expect(button(other)).to_have_accessible_name("Comments and suggestions, 1 open")


async def test_from_a_link_to_an_accepted_suggestion(visit: OpenPage, open_window: Opener, guarded: Served) -> None:
    link = await shared_link(visit, "kiwi", "comment")
    guest = await open_window("", link)
    guest.expects("request: |status of 40[13]")
    theirs = guest.page
    await expect(theirs.get_by_text("You can comment and suggest changes.")).to_be_visible()
    await select(theirs, LONG)
    await expect(bar(theirs).get_by_role("button")).to_have_text(["Comment", "Suggest"])
    await suggest(theirs, LONG, BETTER)
    await button(theirs).click()
    await expect(thread(theirs, BETTER)).to_contain_text("You suggest")
    await expect(thread(theirs, BETTER).get_by_role("button", name="Accept")).to_have_count(0)
    await expect(thread(theirs, BETTER).get_by_role("button", name="Delete the suggestion")).to_be_visible()

    page = visit.page
    await page.get_by_role("dialog").get_by_role("button", name="Close").click()
    await expect(button(page)).to_have_accessible_name("Comments and suggestions, 1 open, 1 new")
    await button(page).click()
    await expect(thread(page, BETTER)).to_contain_text("Guest suggests")
    await thread(page, BETTER).get_by_role("button", name="Accept").click()
    for each in (page, theirs):
        await expect(text(each)).to_contain_text(BETTER)
    await expect(pane(theirs)).to_contain_text("Nothing is open.")


async def test_the_threads_of_one_author_are_shown_and_accepted(
    visit: OpenPage, open_window: Opener, guarded: Served
) -> None:
    link = await shared_link(visit, "mango", "comment")
    guest = await open_window("", link)
    guest.expects("request: |status of 40[13]")
    await expect(text(guest.page)).to_contain_text(LONG)
    await suggest(guest.page, LONG, BETTER)
    await suggest(guest.page, "two", "2")
    page = visit.page
    await page.get_by_role("dialog").get_by_role("button", name="Close").click()
    await suggest(page, FIRST, "My own.")
    await button(page).click()
    await expect(pane(page).get_by_role("button", name="Accept all 3")).to_be_visible()
    await pane(page).get_by_role("combobox", name="Author").select_option("Guest")
    await expect(thread(page, "My own.")).to_have_count(0)
    await pane(page).get_by_role("button", name="Accept all 2").click()
    await expect(text(page)).to_contain_text(BETTER)
    await expect(text(page)).to_contain_text(FIRST)


async def test_on_a_phone_the_threads_are_a_sheet_below_the_text(open_window: Opener, served: Served) -> None:
    window = await open_window(served.url, viewport=PHONE, has_touch=True, is_mobile=True)
    page = window.page
    served.gate.open()
    await page.get_by_role("textbox", name="Message").fill("quickly goats")
    await page.get_by_role("button", name="Send").tap()
    await expect(page.get_by_role("article", name="Reply")).to_have_text("Here is goats.")
    await page.get_by_role("tab", name=re.compile("goats")).click()
    await annotate(served, page, "goats", **{LONG: BETTER})
    await button(page).tap()
    await expect(thread(page, BETTER)).to_be_visible()
    sheet, panel = await pane(page).bounding_box(), await text(page).bounding_box()
    assert sheet is not None
    assert panel is not None
    assert sheet["width"] == PHONE["width"]
    assert panel["y"] + panel["height"] <= sheet["y"]
    for target in await pane(page).get_by_role("button").all():
        box = await target.bounding_box()
        assert box is None or box["height"] >= 44, await target.inner_text()
    await thread(page, BETTER).get_by_role("button", name="Accept").tap()
    await expect(text(page)).to_contain_text(BETTER)


async def test_a_stranger_on_a_phone_accepts_a_suggestion_and_comments(
    visit: OpenPage, open_window: Opener, guarded: Served
) -> None:
    """From the link on: three taps to accept, and three to comment."""
    link = await shared_link(visit, "loquat", "edit")
    await visit.page.get_by_role("dialog").get_by_role("button", name="Close").click()
    await suggest(visit.page, LONG, BETTER)
    size = {"width": 390, "height": 844}
    window = await open_window("", link, viewport=size, has_touch=True, is_mobile=True)
    window.expects("request: |status of 40[13]")
    page = window.page
    # Who comes by a link comes for the document.
    await expect(text(page)).to_be_visible()
    more = await page.locator(".document-head").get_by_role("button", name="More").bounding_box()
    mark = await button(page).bounding_box()
    assert more is not None
    assert mark is not None
    assert more["y"] == mark["y"], "what can be done has one row"
    await button(page).tap()
    await thread(page, BETTER).get_by_role("button", name="Accept").tap()
    await expect(text(page)).to_contain_text(BETTER)
    await pane(page).get_by_role("button", name="Close comments and suggestions").tap()
    await text(page).get_by_text(FIRST).select_text()
    await bar(page).get_by_role("button", name="Comment").tap()
    await bar(page).get_by_role("textbox").fill("Does it have to?")
    await bar(page).get_by_role("button", name="Comment", exact=True).tap()
    await expect(button(page)).to_have_accessible_name("Comments and suggestions, 1 open")
