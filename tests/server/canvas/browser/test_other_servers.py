"""The page as a client of a server of another origin: an a2a-canvas, and any other server of A2A 1.0."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect
from starlette.applications import Starlette

from tests.free_port import free_port
from tests.loopback import serving_app
from tests.server.app_server import Served, serving
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import quick_action
from tests.server.canvas.browser.plain_server import TideWriter, WithItsOwnIds, WithoutList, cors, plain_server
from tests.server.client.client_harness import card, card_route

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = Path(__file__).parent / "scripts" / "page.yaml"
REFUSED = r"CORS policy|net::ERR_FAILED|Failed to load resource|ERR_CONNECTION_REFUSED"


BRING = """
(place) => {
  const data = new DataTransfer();
  data.items.add(new File(["mine"], "mine.md", { type: "text/markdown" }));
  document.body.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    const event = new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data });
    document.querySelector(place).dispatchEvent(event);
  }
}
"""
"""Pastes a file where nobody types, and drops it on the document."""


@dataclass(frozen=True)
class Servers:
    """The page's own server, and the others that it may talk to."""

    home: str
    canvas: Served
    plain: str
    agent: TideWriter
    unlisted: str
    renaming: str
    blocking: str
    closed: str
    cards: dict[str, str]


def with_card(content: Any, status: int, origin: str) -> Any:
    return lambda _: Starlette(routes=[card_route(content, status)], middleware=[cors(origin)])


CARDS: dict[str, tuple[Any, int]] = {
    "none": ({}, 404),
    "other": (["no card"], 200),
    "0.3": ({"name": "old", "protocolVersion": "0.3.0", "url": "http://127.0.0.1/"}, 200),
    "grpc": (card("127.0.0.1:1", "GRPC"), 200),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def servers() -> AsyncIterator[Servers]:
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        canvas = await enter(serving(SCRIPT, grpc=False, cors_origin=origin))
        closed = await enter(serving(SCRIPT, grpc=False))
        plain, agent = await enter(plain_server(origin))
        unlisted, _ = await enter(plain_server(origin, handler=WithoutList))
        renaming, _ = await enter(plain_server(origin, handler=WithItsOwnIds))
        blocking, _ = await enter(plain_server(origin, streaming=False))
        cards = {name: await enter(serving_app(with_card(*given, origin))) for name, given in CARDS.items()}
        others = (canvas.url, closed.url, plain, unlisted, renaming, blocking, *cards.values(), "http://127.0.0.1:1")
        home = await enter(serving(SCRIPT, grpc=False, port=port, page=",".join(others)))
        yield Servers(home.url, canvas, plain, agent, unlisted, renaming, blocking, closed.url, cards)


async def visit(open_window: Opener, servers: Servers, other: str, **options: Any) -> OpenPage:
    """The page as a client of another server."""
    return await open_window(servers.home, f"/?server={quote(other, safe='')}", others=[other], **options)


async def send(page: Page, text: str) -> None:
    await page.locator(".composer-field").fill(text)
    await page.keyboard.press("Enter")


def reply(page: Page, text: str) -> Any:
    return page.get_by_role("article", name="Reply").get_by_text(text)


async def test_an_a2a_canvas_of_another_origin_is_used_like_the_own_one(open_window: Opener, servers: Servers) -> None:
    servers.canvas.gate.open()
    page = (await visit(open_window, servers, servers.canvas.url)).page
    await send(page, "quickly bees")
    await expect(reply(page, "Here is bees.")).to_be_visible()
    paragraph = page.locator("#document p").get_by_text("The second one is too long for its own good.")
    await paragraph.click(click_count=3)
    await quick_action(page, "Shorter")
    await expect(page.locator("#document").get_by_text("The second one is short now.")).to_be_visible()
    await page.locator(".version-controls").get_by_role("button", name="Undo", exact=True).click()
    await expect(paragraph).to_be_visible()

    row = page.locator(".context[data-current]")
    await row.get_by_role("link").focus()
    await page.keyboard.press("F2")
    await page.keyboard.type("Hives")
    await page.keyboard.press("Enter")
    await expect(row).to_contain_text("Hives")

    await page.reload()
    await expect(page.locator("#document").get_by_text("The first paragraph stays.")).to_be_visible()
    await expect(page.locator(".chat-title")).to_have_text("Hives")


async def test_a_document_of_a_plain_server_grows_and_stays(open_window: Opener, servers: Servers) -> None:
    servers.agent.goes_on.clear()
    page = (await visit(open_window, servers, servers.plain)).page
    await expect(page.get_by_role("button", name="open a document of your own")).to_be_hidden()
    await send(page, "tides")
    document = page.locator("#document")
    await expect(document.get_by_role("heading", name="Tides", exact=True)).to_be_visible()
    await expect(document.get_by_text("They come")).to_be_visible()
    about = page.locator(".document-about")
    await expect(about).to_have_text(re.compile("^Writing"))
    await expect(reply(page, "I look at the sea.")).to_be_visible()
    servers.agent.goes_on.set()
    await expect(document.get_by_text("They come and go.")).to_be_visible()
    await expect(reply(page, "Wrote it: tides.")).to_be_visible()
    await expect(reply(page, "I look at the sea.")).to_have_count(0)
    await expect(about).to_have_text("")

    await page.reload()
    await expect(document.get_by_text("They come and go.")).to_be_visible()
    await expect(reply(page, "Wrote it: tides.")).to_be_visible()
    await expect(page.locator(".context[data-current]")).to_contain_text("tides")


async def test_a_server_may_give_a_conversation_an_id_of_its_own(open_window: Opener, servers: Servers) -> None:
    page = (await visit(open_window, servers, servers.renaming)).page
    goes_on = asyncio.Event()

    async def hold(route: Route) -> None:
        await goes_on.wait()
        await route.continue_()

    await page.route(servers.renaming + "/", hold)
    await send(page, "ask")
    await expect(page).to_have_url(re.compile("#/.+"))
    field = page.locator(".composer-field")
    await field.fill("The North Sea")
    goes_on.set()

    await expect(page).to_have_url(re.compile("#/theirs-.+"))
    question = page.get_by_role("region", name="Question")
    await expect(question).to_contain_text("Which sea?")
    await expect(field).to_have_value("The North Sea")
    await expect(page.locator(".context[data-current]")).to_contain_text("ask")
    await page.unroute(servers.renaming + "/")
    await page.reload()
    await expect(question).to_contain_text("Which sea?")
    await expect(field).to_have_value("The North Sea")
    await expect(page.locator(".message-user")).to_have_text(["You: ask"])


async def test_what_only_a_canvas_can_do_is_not_offered(open_window: Opener, servers: Servers) -> None:
    servers.agent.goes_on.set()
    page = (await visit(open_window, servers, servers.plain)).page
    await send(page, "waves")
    await expect(reply(page, "Wrote it: waves.")).to_be_visible()
    await page.locator("#document").get_by_text("They come and go.").click(click_count=3)

    await expect(page.locator(".passage-bar:visible")).to_have_count(0)
    for name in ("Undo", "Redo", "Versions"):
        await expect(page.get_by_role("button", name=re.compile(f"^{name}"))).to_have_count(0)
    await expect(page.locator(".document-about")).to_have_text("")
    await expect(page.locator(".context-menu")).to_have_count(0)


async def test_a_document_of_a_plain_server_is_read_only(open_window: Opener, servers: Servers) -> None:
    servers.agent.goes_on.set()
    page = (await visit(open_window, servers, servers.plain)).page
    await send(page, "reeds")
    await expect(reply(page, "Wrote it: reeds.")).to_be_visible()
    sent: list[str] = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request.post_data or ""))
    await page.get_by_role("button", name="Edit", exact=True).click()
    source = page.get_by_role("textbox", name="Source of tides.md")
    await expect(source).to_have_attribute("aria-readonly", "true")
    await source.click()
    await page.keyboard.type("x")
    await page.evaluate(BRING, "#document .document-panel")
    await expect(page.get_by_text("This server does not accept documents.")).to_be_visible()
    await expect(source).to_contain_text("They come and go.")
    await expect(source).not_to_contain_text("x")
    assert not any("put" in each or "undo" in each for each in sent)


async def test_a_question_of_a_plain_server_is_answered(open_window: Opener, servers: Servers) -> None:
    servers.agent.goes_on.set()
    page = (await visit(open_window, servers, servers.plain)).page
    await send(page, "ask")
    await expect(page.get_by_role("group", name="Question").or_(page.locator(".question"))).to_contain_text(
        "Which sea?"
    )
    await send(page, "the North Sea")
    await expect(reply(page, "Wrote it: the North Sea.")).to_be_visible()


@pytest.mark.parametrize("kind", ["plain", "unlisted", "blocking"])
async def test_a_message_in_place_of_a_task_is_the_reply(open_window: Opener, servers: Servers, kind: str) -> None:
    page = (await visit(open_window, servers, getattr(servers, kind))).page
    await send(page, "message")
    await expect(reply(page, "Just words.")).to_be_visible()
    await expect(page.locator(".message-user")).to_have_count(1)
    await expect(page.locator(".message-user")).to_have_text(re.compile("message$"))


async def test_without_a_list_of_tasks_the_conversations_of_this_page_are_listed(
    open_window: Opener, servers: Servers
) -> None:
    page = (await visit(open_window, servers, servers.unlisted)).page
    await send(page, "message")
    await expect(reply(page, "Just words.")).to_be_visible()
    await page.get_by_role("button", name="New conversation").first.click()
    await send(page, "ask")
    await expect(page.get_by_text("Which sea?").first).to_be_visible()

    await expect(page.locator(".context-name")).to_have_text(["ask", "message"])
    await expect(page.locator(".connection")).to_be_hidden()


async def test_a_server_without_streams_is_asked_and_waited_for(open_window: Opener, servers: Servers) -> None:
    page = (await visit(open_window, servers, servers.blocking)).page
    await send(page, "ask")
    await expect(page.get_by_text("Which sea?").first).to_be_visible()


async def test_a_server_is_chosen_from_those_that_the_operator_names(open_window: Opener, servers: Servers) -> None:
    window = await open_window(servers.home, others=[servers.plain])
    page = window.page
    await page.get_by_role("button", name="Choose a server").click()
    await page.get_by_role("menuitem", name=servers.plain.removeprefix("http://")).click()
    await page.wait_for_url(f"**/?server={quote(servers.plain + '/', safe='')}")
    await expect(page.locator(".contexts-brand")).to_contain_text("test")
    await page.get_by_role("button", name="Choose a server").click()
    await page.get_by_role("menuitem", name=re.compile("^This server")).click()
    await page.wait_for_url(servers.home + "/")


async def test_without_other_servers_there_is_nothing_to_choose(window: OpenPage) -> None:
    await expect(window.page.locator(".contexts-brand")).to_be_visible()
    await expect(window.page.get_by_role("button", name="Choose a server")).to_be_hidden()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            "closed",
            "does not allow requests from this page. Start an a2a-canvas server with --cors-origin http://127.0.0.1:",
        ),
        ("http://127.0.0.1:1", "http://127.0.0.1:1 does not answer. Check that it is running."),
        ("http://127.0.0.1:2", "To allow it, start its server with --page http://127.0.0.1:2."),
        ("none", "There is no agent card at "),
        ("other", "is not an agent card."),
        ("0.3", "This server speaks A2A 0.3.0 only. This page needs 1.0."),
        ("grpc", "This server speaks A2A 1.0 over GRPC only. This page needs JSON-RPC."),
        (
            "javascript:alert(1)",
            "javascript:alert(1) is not a server address. Server addresses begin with http:// or https://.",
        ),
    ],
)
async def test_it_is_told_why_a_server_cannot_be_used(
    open_window: Opener, servers: Servers, other: str, said: str
) -> None:
    url = servers.closed if other == "closed" else servers.cards.get(other, other)
    window = await visit(open_window, servers, url)
    window.expects(REFUSED + "|policy|Policy")
    await expect(window.page.get_by_role("alert").filter(has_text=said).first).to_be_visible()
