"""The developer view: what was sent and received, the agent card, the selected text, and requests as programs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def send(page: Page, text: str) -> None:
    await page.locator(".composer-field").fill(text)
    await page.keyboard.press("Enter")


async def developer_view(page: Page) -> Locator:
    """Opened by the keyboard."""
    button = page.get_by_role("button", name="Developer view")
    await button.focus()
    await page.keyboard.press("Enter")
    view = page.get_by_role("region", name="Developer view")
    await expect(view).to_be_visible()
    return view


async def test_it_shows_the_events_of_the_open_conversation(window: OpenPage, served: Served) -> None:
    served.gate.open()
    page = window.page
    view = await developer_view(page)
    await send(page, "quickly bees")
    await expect(page.get_by_role("article", name="Reply").get_by_text("Here is bees.")).to_be_visible()

    lines = view.get_by_role("listitem")
    sent = lines.filter(has_text="SendStreamingMessage").filter(has_text="request").first
    await expect(sent).to_be_visible()
    delta = lines.filter(has_text="text_delta").last
    await expect(delta.locator(".developer-time")).to_have_text(re.compile(r"^\+[\d.]+ m?s$"))
    await expect(delta.locator(".developer-block")).to_have_text(re.compile(r"^\d+$"))
    await expect(delta.locator(".developer-place")).to_have_text(re.compile(r"^1/\d+$"))

    await view.get_by_label("Kind of event").select_option("Artifacts")
    await expect(delta).to_have_count(0)
    await expect(lines.first).to_contain_text("artifact")
    await view.get_by_label("Text in the events").fill("no such text")
    await expect(view.get_by_text("Nothing matches.")).to_be_visible()
    await view.get_by_label("Text in the events").fill("the first PARAGRAPH")
    await lines.first.locator("summary").first.press("Enter")
    await expect(lines.first.get_by_text("artifactUpdate").first).to_be_visible()

    await page.get_by_role("button", name="New conversation").first.click()
    await expect(view.get_by_text("Nothing has been sent in this conversation yet.")).to_be_visible()


async def test_it_closes_with_escape_and_gives_the_focus_back(window: OpenPage) -> None:
    view = await developer_view(window.page)
    await window.page.keyboard.press("Escape")

    await expect(view).to_be_hidden()
    await expect(window.page.get_by_role("button", name="Developer view")).to_be_focused()


async def test_it_shows_the_agent_card(window: OpenPage) -> None:
    view = await developer_view(window.page)
    await window.page.keyboard.press("ArrowRight")

    await expect(view.get_by_role("tab", name="Agent card")).to_be_focused()
    await expect(view.get_by_text("urn:a2a-canvas:canvas:v1").first).to_be_visible()


async def test_a_copied_request_is_a_program_that_runs(open_window: Opener, served: Served, tmp_path: Path) -> None:
    served.gate.open()
    window = await open_window(served.url, permissions=["clipboard-read", "clipboard-write"])
    page = window.page
    await send(page, "quickly '; touch pwned; echo '$(touch pwned)")
    view = await developer_view(page)
    sent = view.get_by_role("listitem").filter(has_text="SendStreamingMessage").filter(has_text="request").first
    await sent.locator("summary").click()

    for button, command in (("Copy as curl", ["sh", "-s"]), ("Copy as Python", [sys.executable, "-"])):
        await sent.get_by_role("button", name=button).click()
        await expect(page.get_by_text(button.replace("Copy", "Copied") + ".").last).to_be_visible()
        program = await page.evaluate("() => navigator.clipboard.readText()")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdin=pipe, stdout=pipe)
        printed, _ = await process.communicate(program.encode())
        assert b"touch pwned" in printed
        assert b'"task"' in printed
        assert os.listdir(tmp_path) == []


async def test_the_selected_text_has_the_fields_that_a_request_has(window: OpenPage, served: Served) -> None:
    """What the view shows is sent as it is to `POST /canvas/stream`, and the passage is edited."""
    served.gate.open()
    page = window.page
    view = await developer_view(page)
    await send(page, "quickly moss")
    paragraph = page.locator("#document").get_by_text("The second one is too long for its own good.")
    await expect(paragraph).to_be_visible()
    await expect(page.get_by_role("article", name="Reply").get_by_text("Here is moss.")).to_be_visible()
    await view.get_by_role("tab", name="Selected text").click()
    await paragraph.click(click_count=3)

    shown = json.loads(await view.get_by_role("tabpanel").locator("pre").inner_text())
    text = "The second one is too long for its own good."
    assert shown == {"selectedText": {"start": 42, "end": 86, "text": text, "lineStart": 5, "lineEnd": 5}}

    thread = page.url.split("#/")[1].split("/")[0]
    asked = {"message": "make it shorter", "thread_id": thread, **shown}
    response = await served.http.post("/canvas/stream", json=asked)
    assert response.status_code == 200
    await expect(page.locator("#document").get_by_text("The second one is short now.")).to_be_visible()
    await expect(paragraph).to_have_count(0)
