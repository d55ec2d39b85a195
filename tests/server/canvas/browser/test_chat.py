"""The conversation: what is said, what goes on, and how it is answered, stopped and asked for again."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import READ_LATE, bring, delay

pytestmark = pytest.mark.asyncio(loop_scope="module")

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cf500f000381018027a5b8c10000000049454e44ae426082"
)


COVERED = """(banner) => {
  const { left, right, top, bottom } = banner.getBoundingClientRect();
  return [...document.querySelectorAll("#shell, #contexts, #chat, #document, #tabs, .head, .document-head, .composer")]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.matches(".visually-hidden"))
    .filter((each) => {
      const box = each.getBoundingClientRect();
      return box.left < right && box.right > left && box.top < bottom && box.bottom > top;
    })
    .map((each) => each.outerHTML.slice(0, 90));
}"""


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message")


async def say(page: Page, words: str) -> None:
    await field(page).fill(words)
    await field(page).press("Enter")


async def test_an_example_is_sent_with_one_click(window: OpenPage) -> None:
    window.page.on("request", lambda request: None)
    async with window.page.expect_request(lambda request: "guide to tide pools" in (request.post_data or "")):
        await window.page.get_by_role("button", name="Write a guide to tide pools").click()
    await expect(window.page.locator(".message-user")).to_have_text("You: Write a guide to tide pools")


async def test_only_the_reply_remains(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.close()
    await say(page, "write hills")
    await expect(page.locator(".status")).to_be_visible()
    served.gate.let(1)
    await expect(page.locator(".message-agent")).to_have_text("Before the call.")
    served.gate.let(12)
    await expect(page.locator(".status")).to_have_text("Writing hills.md…")
    served.gate.open()

    await expect(page.locator(".message-agent")).to_have_text("I have written hills. Anything else?")
    await expect(page.locator(".status")).to_have_count(0)
    assert "Secret plan" not in await page.content()


async def test_enter_sends_and_shift_enter_breaks_the_line(window: OpenPage) -> None:
    page = window.page
    await field(page).focus()
    await page.keyboard.type("quickly")
    await page.keyboard.press("Shift+Enter")
    await expect(field(page)).to_have_value("quickly\n")
    await page.keyboard.press("Backspace")
    await page.keyboard.type(" tea")
    await page.keyboard.press("Enter")
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")
    await expect(field(page)).to_have_value("")


async def test_on_a_touch_screen_enter_breaks_the_line(open_window: Opener, served: Served) -> None:
    page = (await open_window(served.url, has_touch=True, is_mobile=True)).page
    await field(page).tap()
    await page.keyboard.type("quickly tea")
    await page.keyboard.press("Enter")
    await expect(field(page)).to_have_value("quickly tea\n")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")


async def test_what_is_not_sent_is_kept_for_each_conversation(window: OpenPage) -> None:
    page = window.page
    await say(page, "quickly tea")
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")
    await field(page).fill("of the first")
    await page.get_by_role("button", name="New conversation").first.click()
    await expect(field(page)).to_have_value("")
    await page.go_back()
    await expect(field(page)).to_have_value("of the first")
    await page.reload()
    await expect(field(page)).to_have_value("of the first")


async def test_a_question_is_answered_in_the_field(window: OpenPage) -> None:
    page = window.page
    await say(page, "ask")
    question = page.get_by_role("region", name="Question")
    await expect(question).to_contain_text("Which colour?")
    await expect(field(page)).to_be_focused()
    await say(page, "Green")
    await expect(page.locator(".message-agent").last).to_have_text("As you like it.")
    await expect(question).to_have_count(0)


async def test_answers_that_a_question_lists_are_shown_once_as_buttons(window: OpenPage) -> None:
    page = window.page
    await say(page, "choose")
    question = page.get_by_role("region", name="Question")
    await expect(question.get_by_role("button")).to_have_text(["Green", "Blue", "Cancel the task"])
    await expect(question.get_by_role("listitem")).to_have_count(0)
    await expect(question).to_contain_text("Which colour do you like?")
    await question.get_by_role("button", name="Blue").click()
    await expect(page.locator(".message-agent").last).to_have_text("As you like it.")
    await expect(page.locator(".message-agent").first).to_contain_text("Green")


async def test_a_login_elsewhere_is_confirmed_with_a_button(window: OpenPage) -> None:
    page = window.page
    await say(page, "secret")
    await expect(page.get_by_role("region", name="Question")).to_contain_text("The agent asks you to sign in")
    await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    await expect(page).to_have_title(re.compile(r"^\(1\) secret · a2a-canvas$"))
    await expect(page.get_by_role("link", name="Waiting for your answer: secret")).to_be_visible()
    await page.get_by_role("button", name="I have signed in").click()
    await expect(page.locator(".message-agent").last).to_have_text("The secret is out.")


async def test_a_question_can_be_dropped(window: OpenPage) -> None:
    page = window.page
    await say(page, "ask")
    await page.get_by_role("button", name="Cancel the task").click()
    await expect(page.locator(".outcome-note")).to_be_visible()


@pytest.mark.parametrize("what", ["pond", "lake"])
async def test_a_turn_that_failed_is_asked_for_again_and_does_all_of_it(window: OpenPage, what: str) -> None:
    """Before it wrote anything (pond), and in the middle of the document (lake). The request is shown once."""
    page = window.page
    await say(page, f"stumble over {what}")
    failed = page.locator(".outcome-failed")
    await expect(failed).to_contain_text("The model did not accept this request")
    await page.get_by_role("button", name="Retry").click()

    await expect(page.locator(".message-agent")).to_have_text(f"Here is {what}.")
    await expect(page.locator(".message-user")).to_have_text([f"You: stumble over {what}"])
    await expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    shown = page.get_by_role("region", name="Document", exact=True).locator(".prose-document").locator("h1, p")
    await expect(shown).to_have_text([f"About {what}", "The first paragraph.", "The second one."])
    read = await page.request.get(address_of(page, what))
    assert await read.text() == f"# About {what}\n\nThe first paragraph.\n\nThe second one.\n"


def address_of(page: Page, artifact: str) -> str:
    server, _, place = page.url.partition("#/")
    return f"{server}artifacts/{place.split('/')[0]}/{artifact}?raw=1"


@pytest.mark.parametrize(
    "error", [{"code": -32603, "message": "Too many requests: wait a minute."}, "Too many requests: wait a minute."]
)
async def test_a_message_that_was_refused_is_sent_again(window: OpenPage, error: object) -> None:
    page = window.page
    window.expects("429")

    async def refuse(route: Route) -> None:
        if "quickly moss" in (route.request.post_data or ""):
            await route.fulfill(status=429, json={"error": error})
        else:
            await route.continue_()

    await page.route("**/*", refuse)
    await say(page, "quickly moss")
    await expect(page.locator(".outcome-failed")).to_contain_text("Not sent: Too many requests")
    await page.unroute("**/*")
    await page.get_by_role("button", name="Retry").click()

    await expect(page.locator(".message-agent")).to_have_text("Here is moss.")
    await expect(page.locator(".outcome-failed")).to_have_count(0)
    await expect(page.locator(".message-user")).to_have_count(1)


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_message_whose_answer_was_lost_runs_once(window: OpenPage, arrives: bool) -> None:
    """The page sends it again by itself, and the user once more: the server knows it by its id."""
    page, what = window.page, "reed" if arrives else "rush"
    window.expects("net::ERR_")
    sent: list[str] = []

    async def lose(route: Route) -> None:
        request = route.request
        if f"quickly {what}" not in (request.post_data or "") or request.post_data_json["method"] == "ListTasks":
            await route.continue_()
            return
        sent.append(request.post_data_json["params"]["message"]["messageId"])
        if arrives:
            await route.fetch()
        await route.abort()

    await page.route("**/*", lose)
    await say(page, f"quickly {what}")
    await expect(page.locator(".outcome-failed")).to_contain_text("Not sent:")
    await page.unroute("**/*")
    async with page.expect_request(lambda request: f"quickly {what}" in (request.post_data or "")) as again:
        await page.get_by_role("button", name="Retry").click()
    sent.append((await again.value).post_data_json["params"]["message"]["messageId"])

    await expect(page.locator(".message-agent")).to_have_text(f"Here is {what}.")
    await expect(page.locator(".message-user")).to_have_count(1)
    await expect(page.locator(".outcome-failed")).to_have_count(0)
    assert len(sent) > 2
    assert len(set(sent)) == 1
    versions = await page.request.get(address_of(page, what).replace("?raw=1", "/versions"))
    assert len((await versions.json())["versions"]) == 1


async def test_each_task_links_to_its_document_after_a_reload(window: OpenPage) -> None:
    page = window.page
    links = page.get_by_role("list", name="Documents").get_by_role("button")
    for number in (1, 2, 3):
        await say(page, "quickly fern")
        await expect(links).to_have_text([f"fern.mdversion {each}" for each in range(1, number + 1)])
        await expect(page.locator(".message-agent")).to_have_count(number)
    await page.reload()
    await expect(links).to_have_text(["fern.mdversion 1", "fern.mdversion 2", "fern.mdversion 3"])


async def test_a_link_opens_its_version(window: OpenPage) -> None:
    page = window.page
    links = page.get_by_role("list", name="Documents").get_by_role("button")
    for number in (1, 2):
        await say(page, "quickly moss")
        await expect(links).to_have_count(number)
    await expect(links).to_have_text(["moss.mdversion 1", "moss.mdversion 2"])
    document = page.get_by_role("region", name="Document", exact=True)

    await links.first.click()
    await expect(document.get_by_text("This is version 1.")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"/moss/1$"))

    await links.last.click()
    await expect(document.get_by_text("This is version")).to_be_hidden()
    await expect(page).to_have_url(re.compile(r"/moss$"))


PASTE = """([place, name, type, base64]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(base64), (each) => each.charCodeAt(0))], name, { type }));
  place.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
}"""


async def test_pasted_files_are_attached_and_sent(window: OpenPage) -> None:
    page = window.page
    place = await field(page).element_handle()
    for name, kind, content in (("dot.png", "image/png", PIXEL), ("notes.txt", "text/plain", b"notes")):
        await page.evaluate(PASTE, [place, name, kind, base64.b64encode(content).decode()])
    attached = page.locator(".composer").get_by_role("listitem")
    await expect(attached).to_have_text(["dot.png70 bytes", "notes.txt5 bytes"])
    await expect(attached.first.locator("img")).to_have_js_property("naturalWidth", 1)
    await expect(field(page)).to_have_value("")
    await say(page, "quickly tea")

    await expect(page.locator(".message-user").get_by_role("listitem")).to_have_text(["dot.png", "notes.txt"])
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")


async def test_escape_stops(window: OpenPage, served: Served) -> None:
    page = window.page
    served.gate.close()
    await say(page, "write hills")
    served.gate.let(1)
    await expect(page.locator(".message-agent")).to_have_text("Before the call.")
    await field(page).press("Escape")
    await expect(page.locator(".outcome-note")).to_be_visible()
    await expect(page.get_by_role("button", name="Start again")).to_be_visible()
    served.gate.open()


async def test_files_are_attached_shown_and_removed(window: OpenPage) -> None:
    page = window.page
    files = [
        {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL},
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"notes"},
    ]
    await page.locator(".composer input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    attached = page.locator(".composer").get_by_role("listitem")
    await expect(attached).to_have_text(["dot.png70 bytes", "notes.txt5 bytes"])
    await page.get_by_role("button", name="Remove notes.txt").click()
    await expect(attached).to_have_count(1)
    await say(page, "quickly tea")
    await expect(page.locator(".message-user").get_by_role("listitem")).to_have_text("dot.png")
    await expect(attached).to_have_count(0)


async def test_a_message_whose_file_cannot_be_read_is_kept(window: OpenPage, tmp_path: Path) -> None:
    page = window.page
    file = tmp_path / "notes.txt"
    file.write_text("notes")
    await page.locator(".composer input[type=file]").set_input_files(file)
    file.unlink()
    await say(page, "quickly tea")

    await expect(page.get_by_role("alert")).to_contain_text("A file could not be read.")
    await expect(field(page)).to_have_value("quickly tea")
    await page.get_by_role("button", name="Remove notes.txt").click()
    await field(page).press("Enter")
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")


async def test_a_message_whose_files_are_read_does_not_go_to_another_conversation(window: OpenPage) -> None:
    page = window.page
    await say(page, "quickly tea")
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")
    path = page.url
    await page.evaluate(READ_LATE)
    files = [{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"notes"}]
    await page.locator(".composer input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    await say(page, "quickly rum")
    await page.get_by_role("button", name="New conversation").first.click()
    await page.evaluate("readNow()")

    await expect(page.get_by_role("alert")).to_contain_text("the message was not sent")
    await expect(page.locator(".message-user")).to_have_count(0)
    await page.goto(path)
    await expect(field(page)).to_have_value("quickly rum")


async def test_the_thread_follows_its_end_unless_it_was_left(window: OpenPage) -> None:
    page = window.page
    for each in range(8):
        await say(page, f"quickly tea{each}")
        await expect(page.locator(".message-agent")).to_have_count(each + 1)
    scroll = page.locator(".thread-scroll")
    at_end = "(each) => each.scrollHeight - each.scrollTop - each.clientHeight < 2"
    latest = page.get_by_role("button", name="Jump to latest")
    assert await scroll.evaluate(at_end)
    await expect(latest).to_be_hidden()

    await scroll.evaluate("(each) => each.scrollTo(0, 0)")
    await expect(latest).to_be_visible()
    # Not a click: for that the driver may scroll the thread, which is what the button does.
    await latest.press("Enter")

    await expect(latest).to_be_hidden()
    await page.wait_for_function("() => document.activeElement !== null")
    await expect(page.locator(".message-agent").last).to_be_in_viewport()


async def test_a_reply_is_markdown(window: OpenPage, served: Served) -> None:
    page = window.page
    await say(page, "quickly tea")
    await expect(page.locator(".message-agent .prose p")).to_have_text("Here is tea.")


async def test_what_is_entered_before_the_server_has_answered_is_sent_when_it_has(window: OpenPage) -> None:
    page = window.page
    answer = await delay(page, re.compile("agent-card.json"))
    await page.reload(wait_until="commit")
    await say(page, "quickly mo")
    await expect(page.get_by_text("Waiting for the server. Your message will then be sent")).to_be_visible()
    await expect(field(page)).to_have_value("quickly mo")
    await field(page).press("End")
    await field(page).press_sequentially("ss")
    await expect(page.get_by_text("Waiting for the server", exact=True)).to_be_visible()
    await field(page).press("Enter")
    answer.set()

    await expect(page.locator(".message-user")).to_have_text("You: quickly moss")
    await expect(field(page)).to_have_value("")
    await expect(page.locator(".message-user")).to_have_count(1)


async def test_a_lost_connection_is_told_and_comes_back(window: OpenPage) -> None:
    page = window.page
    await say(page, "quickly tea")
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")
    await window.disconnect()
    banner = page.locator(".connection")
    await expect(banner).to_contain_text("offline")
    await expect(page.get_by_role("status").filter(has_text="You are offline.")).to_have_count(1)
    await window.reconnect()
    await expect(banner).to_be_hidden()


@pytest.mark.parametrize("view", ["Conversation", "tea.md"])
@pytest.mark.parametrize("width", [1280, 820, 360])
async def test_what_says_that_the_connection_is_lost_covers_nothing(
    open_window: Opener, served: Served, width: int, view: str
) -> None:
    window = await open_window(served.url, viewport={"width": width, "height": 740})
    page = window.page
    await say(page, "quickly tea")
    await expect(page.locator(".message-agent")).to_have_text("Here is tea.")
    if width < 720:
        await page.get_by_role("tab", name=view).click()

    await window.disconnect()

    banner = page.locator(".connection")
    await expect(banner).to_be_visible()
    assert await banner.evaluate(COVERED) == []


async def test_edits_in_a_row_are_one_line_that_opens(window: OpenPage) -> None:
    page = window.page
    await bring(page, "note.md", "one\n")
    await bring(page, "note.md", "two\n")
    shown, messages = page.locator(".document-panel"), page.get_by_role("log", name="Messages")
    for step, text in (("Undo", "one"), ("Redo", "two"), ("Undo", "one")):
        await page.get_by_role("button", name=step, exact=True).click()
        await expect(shown).to_have_text(text)
    folded = messages.get_by_text("2 edits", exact=True)
    await expect(folded).to_be_visible()
    await expect(messages.get_by_text("Undo in note.md")).to_have_count(2)
    await expect(messages.get_by_text("Redo in note.md")).to_be_hidden()

    await folded.press("Enter")
    await expect(messages.get_by_text("Redo in note.md")).to_be_visible()
    await page.get_by_role("button", name="Redo", exact=True).click()
    await expect(messages.get_by_text("3 edits", exact=True)).to_be_visible()
    await expect(messages.get_by_text("Undo in note.md").first).to_be_visible()
