"""A page elsewhere shows the documents of a shared conversation in a frame, if the operator allows its origin."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote, urldefrag
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import FrameLocator, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.wire import CANVAS
from tests.loopback import serving_app
from tests.node_tools import installed_file
from tests.server.app_server import Served, serving
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import SCRIPT, Opener
from tests.server.canvas.browser.page_actions import document, step
from tests.server.canvas.browser.test_accessibility import VIOLATIONS

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANN = new_key("ann")
REFUSED = "frame-ancestors|net::ERR_BLOCKED_BY_RESPONSE|chrome-error"
NO_STORAGE = """
if (self !== top) {
  const refuse = () => { throw new DOMException("Storage is refused.", "SecurityError"); };
  for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches", "cookieStore"]) {
    Object.defineProperty(self, name, {get: refuse});
  }
  Object.defineProperty(Document.prototype, "cookie", {get: refuse, set: refuse});
  delete self.SharedWorker;
}
"""
"""What a browser that blocks storage of third parties does in a frame."""


def wiki(_: str) -> Starlette:
    """Somebody else's page: it frames the address in its query."""

    async def page(request: Request) -> HTMLResponse:
        source = html.escape(request.query_params["source"])
        return HTMLResponse(f"<!doctype html><title>Wiki</title><link rel=icon href=data:,><iframe src='{source}'>")

    return Starlette(routes=[Route("/", page)])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def allowed() -> AsyncIterator[str]:
    async with serving_app(wiki) as url:
        # Another name is another site for the browser, which another port is not.
        yield url.replace("127.0.0.1", "localhost")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stranger() -> AsyncIterator[str]:
    async with serving_app(wiki) as url:
        yield url


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def guarded(allowed: str) -> AsyncIterator[Served]:
    async with serving(SCRIPT, grpc=False, api_keys=f"ann={ANN}", embed_origins=allowed) as served:
        yield served


class Conversation:
    """One of Ann's, with a link to read it."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._context = str(uuid4())
        self._path = f"/artifacts/{self._context}"
        self._share = ""
        self.token = ""

    async def ask(self, words: str, **operation: Any) -> None:
        message = {"messageId": str(uuid4()), "contextId": self._context, "role": "ROLE_USER"}
        message |= {"parts": [{"text": words}], "metadata": {CANVAS: operation} if operation else {}}
        params = {"message": message, "configuration": {"returnImmediately": not operation}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        answer = await self._send("POST", "/", body)
        assert "error" not in answer, answer

    async def put(self, name: str, text: str) -> None:
        await self.ask("put", op="put", artifactId=name, name=name, text=text)

    async def share(self) -> str:
        """Its address for a frame."""
        made = await self._send("POST", f"{self._path}/shares", {"link": True, "level": "read"})
        self._share, self.token = made["shareId"], made["token"]
        return f"{self._served.url}/embed#share={self.token}"

    async def revoke(self) -> None:
        await self._send("DELETE", f"{self._path}/shares/{self._share}")

    async def _send(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {ANN}", "A2A-Version": "1.0"}
        answer: httpx.Response = await self._served.http.request(method, path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


@pytest.fixture
def conversation(guarded: Served) -> Conversation:
    return Conversation(guarded)


class Framing:
    """Opens a page that frames an address of the server."""

    def __init__(self, open_window: Opener, served: Served) -> None:
        self._open, self._served = open_window, served

    async def at(self, site: str, address: str) -> tuple[OpenPage, FrameLocator]:
        window = await self._open("", "about:blank", others=(site, self._served.url))
        await window.page.add_init_script(NO_STORAGE)
        await window.page.goto(f"{site}/?source={quote(address, safe='')}")
        return window, window.page.frame_locator("iframe")


@pytest.fixture
def framing(open_window: Opener, guarded: Served) -> Framing:
    return Framing(open_window, guarded)


async def test_a_page_elsewhere_shows_the_document_while_it_grows(
    conversation: Conversation, framing: Framing, guarded: Served, allowed: str
) -> None:
    guarded.gate.close()
    await conversation.ask("write report")
    window, frame = await framing.at(allowed, await conversation.share())
    line = frame.get_by_text("Line 05 of report")
    while not await line.is_visible():
        await step(window.page, guarded)
    await expect(frame.get_by_text("Writing…")).to_be_visible()
    await expect(frame.get_by_role("heading", name="About report")).to_be_visible()
    await expect(frame.get_by_text("Line 40 of report")).to_have_count(0)

    guarded.gate.open()
    await expect(frame.get_by_text("Line 40 of report")).to_be_in_viewport()
    await expect(frame.get_by_text("Version 1", exact=True)).to_be_visible()


async def test_a_passage_that_is_rewritten_is_shown_as_it_streams(
    conversation: Conversation, framing: Framing, guarded: Served, allowed: str
) -> None:
    guarded.gate.open()
    await conversation.put("pools.md", "Pools are small. They are deep.\n")
    window, frame = await framing.at(allowed, await conversation.share())
    await expect(frame.get_by_text("Pools are small. They are deep.")).to_be_visible()
    guarded.gate.close()
    selection = {"start": 0, "end": 16}
    edit = {"op": "edit", "artifactId": "pools.md", "baseVersion": 1, "selection": selection, "strategy": "replace"}
    asked = asyncio.create_task(conversation.ask("becomes Tide pools are tiny and cold.", **edit))
    growing = frame.get_by_text("Tide pools are")
    while not await growing.is_visible():
        await step(window.page, guarded)
    await expect(frame.get_by_text("Rewriting a passage…")).to_be_visible()
    await expect(frame.locator(".document-markdown")).to_contain_text("They are deep.")
    guarded.gate.open()
    await asked
    await expect(frame.get_by_text("Tide pools are tiny and cold. They are deep.")).to_be_visible()
    await expect(frame.get_by_text("Version 2", exact=True)).to_be_visible()


async def test_it_can_only_be_read(conversation: Conversation, framing: Framing, guarded: Served, allowed: str) -> None:
    guarded.gate.open()
    await conversation.put("list.md", "- [ ] one\n")
    _, frame = await framing.at(allowed, await conversation.share())
    await frame.get_by_role("checkbox").click()
    await expect(frame.get_by_role("checkbox")).not_to_be_checked()
    await expect(frame.get_by_role("textbox")).to_have_count(0)
    await expect(frame.get_by_role("button")).to_have_count(0)


async def test_several_documents_are_tabs_and_each_is_shown_as_what_it_is(
    conversation: Conversation, framing: Framing, allowed: str
) -> None:
    await conversation.put("cells.csv", "name,age\nann,42\n")
    await conversation.put("page.html", "<p>a preview</p><script>document.body.textContent = 'run'</script>")
    await conversation.put("two.py", "def two():\n    return 2\n")
    window, frame = await framing.at(allowed, await conversation.share())
    window.expects("Blocked script execution")
    await expect(frame.get_by_role("tab")).to_have_count(3)
    await expect(frame.get_by_text("def two()")).to_be_visible()
    await frame.get_by_role("tab", name="cells.csv").click()
    await expect(frame.get_by_role("gridcell", name="42")).to_be_visible()
    await frame.get_by_role("tab", name="page.html").click()
    await expect(frame.frame_locator("iframe").get_by_text("a preview")).to_be_visible()
    await expect(frame.get_by_role("button", name="Run")).to_have_count(0)
    await conversation.put("two.py", "def two():\n    return 3\n")
    await expect(frame.get_by_role("tab", name="page.html")).to_have_attribute("aria-selected", "true")


async def test_it_opens_the_whole_conversation_beside_the_page_around_it(
    conversation: Conversation, framing: Framing, allowed: str
) -> None:
    await conversation.put("list.md", "Sea urchins.")
    window, frame = await framing.at(allowed, await conversation.share())
    async with window.page.expect_popup() as opening:
        await frame.get_by_role("link", name="Open in a2a-canvas").click()
    page = await opening.value
    await expect(document(page)).to_contain_text("Sea urchins.")
    assert await page.evaluate("opener") is None


async def test_the_token_is_in_no_address_that_is_requested(
    conversation: Conversation, framing: Framing, allowed: str, open_window: Opener, guarded: Served
) -> None:
    await conversation.put("list.md", "Sea urchins.")
    address = await conversation.share()
    window = await open_window("", "about:blank", others=(guarded.url,))
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(urldefrag(request.url).url))
    await window.page.goto(address)
    await expect(window.page.get_by_text("Sea urchins.")).to_be_visible()
    assert f"{guarded.url}/embed" in asked
    assert not [each for each in asked if conversation.token in each]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_in_a_narrow_frame_the_text_has_the_room_and_nothing_is_out_of_reach(
    conversation: Conversation, open_window: Opener, guarded: Served, scheme: str
) -> None:
    await conversation.put("cells.csv", "name,age\nann,42\n")
    await conversation.put("a-report-with-a-long-name-of-many-words.md", "# Sea urchins\n\nThey graze.")
    narrow = {"width": 320, "height": 400}
    address = await conversation.share()
    page = (await open_window("", address, others=(guarded.url,), viewport=narrow, color_scheme=scheme)).page
    top = await page.get_by_role("heading", name="Sea urchins").bounding_box()
    assert top
    assert top["y"] < 130
    assert await page.evaluate("document.documentElement.scrollWidth") == 320
    await page.evaluate(installed_file("axe-core", "axe.min.js"))
    assert await page.evaluate(VIOLATIONS) == []


async def test_a_revoked_link_ends_it_with_a_sentence(
    conversation: Conversation, framing: Framing, allowed: str
) -> None:
    await conversation.put("list.md", "Sea urchins.")
    window, frame = await framing.at(allowed, await conversation.share())
    window.expects("status of 401")
    await expect(frame.get_by_text("Sea urchins.")).to_be_visible()
    await conversation.revoke()
    await expect(frame.get_by_text("This link is no longer valid. Ask for a new one.")).to_be_visible()
    await expect(frame.get_by_text("Sea urchins.")).to_have_count(0)
    await expect(frame.get_by_role("link")).to_have_count(0)


async def test_an_address_without_a_link_says_so(framing: Framing, guarded: Served, allowed: str) -> None:
    _, frame = await framing.at(allowed, f"{guarded.url}/embed")
    await expect(frame.get_by_text("This address has no link to a conversation")).to_be_visible()


async def test_a_page_of_an_origin_that_is_not_listed_cannot_frame_it(
    conversation: Conversation, framing: Framing, stranger: str
) -> None:
    await conversation.put("list.md", "Sea urchins.")
    window, frame = await framing.at(stranger, await conversation.share())
    await window.noticed("frame-ancestors")
    window.expects(REFUSED)
    await expect(frame.locator("#embed")).to_have_count(0)


async def test_the_page_itself_cannot_be_framed_by_anyone(framing: Framing, guarded: Served, allowed: str) -> None:
    window, frame = await framing.at(allowed, f"{guarded.url}/")
    await window.noticed("frame-ancestors")
    window.expects(REFUSED)
    await expect(frame.locator("#shell")).to_have_count(0)
