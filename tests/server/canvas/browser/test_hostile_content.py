"""Nothing that an agent, a file or a person has written runs in the page, or has it ask another host for anything.

Every payload (payloads.yaml) is put into every place that shows something. Each is tried twice: with the policy of the
page, and without it, so that the page alone has to hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
import yaml
from playwright.async_api import Browser, Page, Route

from tests.server.app_server import Served, envelope
from tests.server.canvas.browser.browser_harness import OpenPage, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")

CANVAS = "urn:a2a-canvas:canvas:v1"
PAYLOADS: dict[str, str] = yaml.safe_load((Path(__file__).parent / "payloads.yaml").read_text())
each_payload = pytest.mark.parametrize(
    ("hostile_window", "payload"),
    [
        *(pytest.param("no policy", text, id=f"{name}-no policy") for name, text in PAYLOADS.items()),
        *(pytest.param("policy", text, id=f"{name}-policy") for name, text in list(PAYLOADS.items())[::3]),
    ],
    indirect=["hostile_window"],
)
"""All without the policy, as the page itself must hold; a third of them with it, as the policy refuses more."""
NOT_IN_IDS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")

WATCH = """
window.ran = () => console.error("Something ran.");
for (const name of ["alert", "confirm", "prompt", "open", "print"]) window[name] = () => window.ran();
"""

# What must not be in the page. A text may have links, and an image only as data.
SUSPECTS = r"""
() => {
  const found = [];
  const all = [...document.querySelectorAll("*")];
  for (const element of all) {
    const tag = element.localName;
    const place = element.closest("#document, #chat, #contexts, .developer, .notices, dialog");
    if (["object", "embed", "base", "frame", "marquee", "audio", "video", "math"].includes(tag)) found.push(tag);
    if (place && ["script", "link", "meta", "style", "template", "title"].includes(tag)) found.push(`${tag} in a pane`);
    if (tag === "script" && !element.src.startsWith(location.origin)) found.push("script");
    if (tag === "iframe" && (element.getAttribute("sandbox") !== "" || element.src)) found.push("iframe");
    for (const { name, value } of element.attributes) {
      const address = value.replace(/[\s\u0000-\u001f]/g, "").toLowerCase();
      if (name.startsWith("on")) found.push(`${tag} ${name}`);
      if (["href", "src", "action", "formaction", "xlink:href", "srcset", "data", "poster"].includes(name)) {
        if (/^(javascript|vbscript|file):/.test(address)) found.push(`${tag} ${name}=${value}`);
        if (tag === "a" && /^(data|blob):/.test(address)) found.push(`${tag} ${name}=${value}`);
        if (tag === "a" && /^(\/\/|\\\\)/.test(address)) found.push(`${tag} ${name}=${value}`);
        if (tag === "img" && !/^(data:image\/|blob:)/.test(address)) found.push(`${tag} ${name}=${value}`);
        if (tag === "img" && /^data:image\/svg/.test(address)) found.push(`${tag} ${name}=${value}`);
      }
      if (name === "style" && /url\(|position:\s*fixed.*inset/.test(address)) found.push(`${tag} ${name}=${value}`);
    }
    if (element.closest(".prose")) {
      if (element.id || element.getAttribute("name")) found.push(`${tag} with a name`);
      if (tag === "a" && element.hasAttribute("href") && !/noopener/.test(element.rel)) found.push("link without rel");
      if (["form", "input", "button", "svg", "textarea", "select"].includes(tag)) found.push(`${tag} in a text`);
    }
  }
  for (const name of ["ran", "shell", "chat", "currentScript", "cookie", "getElementById", "defaultView", "body"]) {
    if (["IMG", "A", "FORM"].includes(document[name]?.tagName)) found.push(`document.${name}`);
  }
  if (({}).srcdoc || ({}).onclick || document.body.localName !== "body") found.push("prototype");
  return found;
}
"""

# Whether the document of this name is shown, in whatever view.
SHOWN = r"""
(name) => {
  const seen = (text) => (text ?? "").replace(/[\s\p{C}\p{Z}]/gu, "");
  const tab = document.querySelector(".document-tab[aria-selected=true]");
  if (seen(tab?.textContent) !== seen(name)) return false;
  const kinds = ["[aria-label]", "iframe", "img", ".document-parts"];
  const views = [...document.querySelectorAll(kinds.map((kind) => `#document ${kind}`))];
  return views.some((view) =>
    view.matches(".document-parts") ||
    [view.getAttribute("aria-label"), view.title, view.alt].some((text) =>
      [name, `Source of ${name}`, `Preview of ${name}`].some((label) => seen(text) === seen(label))));
}
"""


class HostileContext:
    """A context with one payload in every place.

    Attributes:
        word: the payload as an id can have it.
    """

    def __init__(self, http: httpx.AsyncClient, payload: str) -> None:
        self.payload = payload
        self.word = NOT_IN_IDS.sub("", payload)[:200].strip() or "x"
        self.id = f"{self.word} {uuid4()}"
        self._http = http

    async def fill(self) -> None:
        await self._send({"parts": [{"text": f"files {self.payload}"}]})
        for name in ("text.md", "code.js", "page.html", "image.svg", "plain.txt", self.word):
            await self._put(name, [{"text": "put"}], text=self.payload)
        parts = [
            {
                "data": {
                    self.payload: self.payload,
                    "nested": {self.payload: [self.payload, {self.payload: self.payload}]},
                }
            },
            {"data": [{self.payload: self.payload, "b": 1}, {self.payload: None}]},
        ]
        await self._put("parts", parts)
        answer = await self._http.patch(f"/artifacts/{quote(self.id, safe='')}", json={"name": self.word})
        assert answer.status_code == 200, answer.text

    async def _put(self, name: str, parts: list[dict[str, Any]], **fields: Any) -> None:
        operation = {"op": "put", "artifactId": name, "name": name, **fields}
        task = await self._send({"parts": parts, "metadata": {CANVAS: operation}})
        assert task["status"]["state"] == "TASK_STATE_COMPLETED", task["status"]

    async def _send(self, fields: dict[str, Any]) -> dict[str, Any]:
        message = {"messageId": str(uuid4()), "role": "ROLE_USER", "contextId": self.id, **fields}
        headers = {"A2A-Version": "1.0", "A2A-Extensions": CANVAS}
        answer = (
            await self._http.post("/", json=envelope("SendMessage", {"message": message}), headers=headers)
        ).json()
        assert "result" in answer, answer
        return answer["result"]["task"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def hostile_window(request: pytest.FixtureRequest, browser: Browser, server: Served) -> AsyncIterator[OpenPage]:
    async with opened(browser, server.url, bypass_csp=request.param == "no policy") as window:
        policy = request.param == "policy"
        window.frames_load = True
        if policy:  # it is asked for every address of a preview, and refuses it
            window.page.on("requestfinished", lambda done: loaded(window, done.url))
        await window.page.route("**://evil.example/**", lambda route: route.fulfill(body=""))
        await window.page.add_init_script(WATCH)
        window.page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        # What the preview of HTML would run or load is refused, and the browser says so.
        window.expects(r"about:srcdoc|Blocked script execution.*'allow-scripts'")
        if not policy:
            window.expects(r"^error: Failed to load resource.*evil\.example")
        await window.page.reload()
        yield window


def loaded(window: OpenPage, url: str) -> None:
    if url.startswith("https://evil.example/"):
        window.faults.append(f"loaded: {url}")


async def show(page: Page, context: str, artifact: str, name: str) -> None:
    address = f"#/{quote(context, safe='')}/{quote(artifact, safe='')}"
    await page.evaluate("(address) => { location.hash = address }", address)
    await page.wait_for_function(SHOWN, arg=name)


def seen(text: str) -> str:
    """What is left of a text on the screen: white space does not count, nor do invisible characters or their dots."""
    return "".join(char for char in text if char.isprintable() and not char.isspace() and char != "•")


async def clean(window: OpenPage) -> None:
    await window.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert await window.page.evaluate(SUSPECTS) == []
    window.check()


@each_payload
async def test_a_payload_does_nothing_and_is_shown_as_it_is(
    hostile_window: OpenPage, served: Served, payload: str
) -> None:
    served.gate.open()
    hostile_window.faults.clear()
    page = hostile_window.page
    context = HostileContext(served.http, payload)
    await context.fill()

    for name in ("text.md", "code.js", "page.html", "image.svg", "plain.txt"):
        await show(page, context.id, name, name)
        modes = page.locator(".document-modes button:visible")
        for mode in await modes.all():
            await mode.click()
            await page.wait_for_function(SHOWN, arg=name)
            await clean(hostile_window)
        source = modes.filter(has_text=re.compile("Edit|Source"))
        if await source.count():
            await source.click()
        shown = await page.locator("#document .cm-content").inner_text()
        assert seen(payload) in seen(shown)

    await show(page, context.id, context.word, context.word)
    await clean(hostile_window)
    assert seen(context.word) in seen(await page.locator(".document-tab[aria-selected=true]").inner_text())

    await show(page, context.id, "files", payload)
    await clean(hostile_window)
    files = seen(await page.locator("#document .document-parts").inner_text())
    assert files.count(seen(context.word)) >= 2

    await show(page, context.id, "typed", "typed")
    await clean(hostile_window)

    await show(page, context.id, "parts", "parts")
    for details in await page.locator("#document details:not([open]) > summary").all():
        await details.click()
    await clean(hostile_window)
    parts = seen(await page.locator("#document .document-parts").inner_text())
    assert seen(json.dumps(payload, ensure_ascii=False)) in parts

    assert seen(payload) in seen(await page.locator("#chat .message-user").first.inner_text())
    assert seen(context.word) in seen(await page.locator(".context[data-current]").inner_text())
    assert seen(context.word) in seen(await page.locator(".chat-title").inner_text())


@each_payload
async def test_a_hostile_server_does_nothing_and_its_words_are_shown(
    hostile_window: OpenPage, served: Served, payload: str
) -> None:
    """Its card and its errors, in the page and in the developer view."""
    hostile_window.faults.clear()
    page = hostile_window.page
    card = (await served.http.get("/.well-known/agent-card.json")).json()
    skill = {"id": payload, "name": payload, "description": payload, "tags": [payload]}
    card |= {"name": payload, "description": payload, "skills": [skill], "provider": {payload: payload}}
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": payload}}
    await page.route("**/.well-known/agent-card.json", lambda route: route.fulfill(json=card))
    await page.route(served.url + "/", lambda route: answered_by(route, error))
    try:
        await page.goto(f"{served.url}/?hostile={uuid4()}")
        await page.locator(".composer-field").fill("hello")
        await page.keyboard.press("Enter")
        await page.locator(".outcome").first.wait_for()
        await clean(hostile_window)
        assert seen(payload) in seen(await page.locator(".outcome").first.inner_text())
        assert seen(payload) in seen(await page.locator(".contexts-brand").inner_text())

        await page.get_by_role("button", name="Developer view").click()
        view = page.get_by_role("region", name="Developer view")
        await view.locator(".developer-line").first.wait_for()
        for line in await view.locator(".developer-line").all():
            await line.click()
        await clean(hostile_window)
        await view.get_by_role("tab", name="Agent card").click()
        await clean(hostile_window)
        shown = seen(await view.locator("#developer-agent-card").inner_text())
        assert seen(json.dumps(payload, ensure_ascii=False)) in shown
    finally:
        await page.unroute_all()
        await page.route("**://evil.example/**", lambda route: route.fulfill(body=""))


async def answered_by(route: Route, error: dict[str, Any]) -> None:
    await (route.fulfill(json=error) if route.request.method == "POST" else route.fallback())
