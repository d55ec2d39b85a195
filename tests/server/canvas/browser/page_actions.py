"""What a person does on the page, and what they see there. The model is that of scripts/page.yaml."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Locator, Page, Route, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import PATIENCE_MS

REPLY = "I have written report. Anything else?"
LINES = [f"{number:02}" for number in range(1, 41)]
READ_LATE = """() => {
  const { arrayBuffer } = Blob.prototype;
  const now = new Promise((resolve) => (globalThis.readNow = resolve));
  Blob.prototype.arrayBuffer = async function () {
    await now;
    return arrayBuffer.call(this);
  };
}"""
"""Files are read once `readNow()` is called."""
BRING = """
([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  document.body.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
}
"""
"""Pastes a file where nobody types, so that it becomes a document."""


def messages(page: Page) -> Locator:
    return page.get_by_role("log", name="Messages")


def document(page: Page) -> Locator:
    return page.get_by_role("region", name="Document", exact=True)


async def lines_of(page: Page) -> list[str]:
    """The numbers of the lines that the document shows."""
    return re.findall(r"Line (\d\d) of report: ebb and flow\.", await text_of(document(page)))


async def check_lines(page: Page) -> None:
    """The document is exact. It has a stream of its own, which may be behind that of the task."""
    await expect(document(page)).to_contain_text(f"Line {LINES[-1]} of report: ebb and flow.")
    assert await lines_of(page) == LINES, await lines_of(page)


async def text_of(place: Locator) -> str:
    """What a person reads there now; nothing where there is no document yet."""
    return await place.inner_text() if await place.is_visible() else ""


async def ask(page: Page, text: str) -> None:
    field = page.get_by_role("textbox", name="Message")
    await field.fill(text)
    await field.press("Enter")


async def bring(page: Page, name: str, text: str) -> Locator:
    """A document of one's own, and where it is shown. Its name is shown without marks of direction."""
    await expect(page.get_by_role("button", name="Attach files")).to_be_enabled()
    await page.evaluate(BRING, [name, text])
    await expect(page.locator(".document-name")).to_have_text(name.replace("\u202e", ""))
    return page.locator(".document-panel")


async def quick_action(page: Page, name: str) -> None:
    """What the bar of the selected passage opens to."""
    bar = page.get_by_role("dialog", name="Change the selected passage")
    await bar.get_by_role("button", name="Quick actions").click()
    await bar.get_by_role("button", name=name, exact=True).click()


async def delay(page: Page, addresses: re.Pattern[str]) -> asyncio.Event:
    """Requests of these addresses are not answered until the event is set."""
    answer = asyncio.Event()

    async def late(route: Route) -> None:
        await answer.wait()
        await route.continue_()

    await page.route(addresses, late)
    return answer


async def grow_to(page: Page, served: Served, line: str) -> None:
    """Let the model write on until the document shows a line."""
    while line not in await lines_of(page):
        await step(page, served)


async def step(page: Page, served: Served) -> None:
    """Let the model say one piece more, and the page draw."""
    async with asyncio.timeout(PATIENCE_MS / 1000):
        await served.gate.reached.wait()
    served.gate.let(1)
    await frames(page)


async def frames(page: Page) -> None:
    """Let the page draw what it knows."""
    await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
