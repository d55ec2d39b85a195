"""Nothing that an agent, a file or a person has written runs in the page, or has it ask another host for anything.

Every payload (payloads.yaml) is put into every place that shows something. Each is tried twice: with the policy of the
page, and without it, so that the page alone has to hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
import yaml
from playwright.async_api import Browser, expect

from tests.server.app_server import Served, envelope
from tests.server.canvas.browser.browser_harness import PATIENCE_MS, OpenPage, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")

CANVAS = "urn:a2a-canvas:canvas:v1"
PAYLOADS: dict[str, str] = yaml.safe_load((Path(__file__).parent / "payloads.yaml").read_text())
each_payload = pytest.mark.parametrize(
    ("policy", "payload"),
    [
        *(pytest.param(False, text, id=f"{name}-no policy") for name, text in PAYLOADS.items()),
        *(pytest.param(True, text, id=f"{name}-policy") for name, text in list(PAYLOADS.items())[::3]),
    ],
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
    // Nothing runs in it, whatever it may reach: it may not have scripts.
    const isStill = ["", "allow-same-origin"].includes(element.getAttribute("sandbox"));
    if (tag === "iframe" && (!isStill || element.src)) found.push("iframe");
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
      // A formula draws its lines itself.
      const isLine = element.closest(".katex") && !element.querySelector(":not(path, line)");
      const isPart = ["form", "input", "button", "textarea", "select"].includes(tag);
      if (isPart || (tag === "svg" && !isLine)) found.push(`${tag} in a text`);
    }
  }
  for (const name of ["ran", "shell", "chat", "currentScript", "cookie", "getElementById", "defaultView", "body"]) {
    if (["IMG", "A", "FORM"].includes(document[name]?.tagName)) found.push(`document.${name}`);
  }
  if (({}).srcdoc || ({}).onclick || document.body.localName !== "body") found.push("prototype");
  return found;
}
"""

# Shows an artifact, by its address, in each of its views, the source at last. Returns what is suspect in any of them,
# and what its tab and `content`, a part of the last view, say. What takes longer than `patience` ms is not shown.
SHOW = r"""
async ([address, name, content, patience]) => {
  const suspects = SUSPECTS;
  const found = [];
  const latest = performance.now() + patience;
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  async function shown(...selectors) {
    while (!isShown() || !selectors.every((selector) => document.querySelector(selector))) {
      if (performance.now() > latest) throw new Error(`${name} is not shown (${selectors})`);
      await frame();
    }
    await frame();
    found.push(...suspects());
  }

  const seen = (text) => (text ?? "").replace(/[\s\p{C}\p{Z}]/gu, "");
  const tab = ".document-tab[aria-selected=true]";
  const kinds = ["[aria-label]", "iframe", "img", ".document-parts"];
  function isShown() {
    const views = [...document.querySelectorAll(kinds.map((kind) => `#document ${kind}`))];
    return seen(document.querySelector(tab)?.textContent) === seen(name) && views.some((view) =>
      view.matches(".document-parts") ||
      [view.getAttribute("aria-label"), view.title, view.alt].some((text) =>
        [name, `Source of ${name}`, `Preview of ${name}`].some((label) => seen(text) === seen(label))));
  }

  location.hash = address;
  await shown();
  const modes = [...document.querySelectorAll(".document-modes button")].filter((mode) => mode.checkVisibility());
  const labels = modes.map((mode) => mode.textContent);
  const isSource = (label) => /Edit|Source/.test(label);
  for (const label of [...labels.filter((label) => !isSource(label)), ...labels.filter(isSource)]) {
    [...document.querySelectorAll(".document-modes button")].find((mode) => mode.textContent === label).click();
    await shown();
    const chosen = document.querySelector(".document-modes [aria-pressed=true]");
    if (chosen.textContent !== label) throw new Error(`${label} of ${name} is not shown`);
  }
  const closed = document.querySelectorAll("#document details:not([open]) > summary");
  closed.forEach((summary) => summary.click());
  await shown(content);
  const text = (selector) => document.querySelector(selector).innerText;
  return { found, tab: text(tab), content: text(content) };
}
""".replace("SUSPECTS", SUSPECTS)


SOURCE = "#document .cm-content"
PARTS = "#document .document-parts"


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


Windows = Callable[[str, bool], Awaitable[OpenPage]]
"""The window of a name, with the policy of the page or without it."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def windows(browser: Browser, server: Served) -> AsyncIterator[Windows]:
    """All payloads are shown in the same few windows: to open one takes longer than to show one."""
    known: dict[tuple[str, bool], OpenPage] = {}
    async with AsyncExitStack() as stack:

        async def window(name: str, policy: bool) -> OpenPage:
            if (name, policy) not in known:
                opening = opened(browser, server.url, bypass_csp=not policy)
                known[name, policy] = window = await stack.enter_async_context(opening)
                await window.page.add_init_script(WATCH + HOSTILE_SERVER)
                window.page.on("dialog", lambda dialog: window.faults.append(f"a dialog: {dialog.message}"))
            known[name, policy].faults.clear()
            return known[name, policy]

        yield window


@pytest_asyncio.fixture(loop_scope="module")
async def hostile_window(windows: Windows, policy: bool) -> OpenPage:
    """A window whose previews may ask for other hosts; none of them answers with anything."""
    window = await windows("documents", policy)
    if not window.frames_load:
        window.frames_load = True
        if policy:  # it is asked for every address of a preview, and refuses it
            window.page.on("requestfinished", lambda done: loaded(window, done.url))
        await window.page.route("**://evil.example/**", lambda route: route.fulfill(body=""))
        # What the preview of HTML would run or load is refused, and the browser says so.
        window.expects(r"about:srcdoc|Blocked script execution.*'allow-scripts'")
        if not policy:
            window.expects(r"^error: Failed to load resource.*evil\.example")
        await window.page.reload()
    return window


def loaded(window: OpenPage, url: str) -> None:
    if url.startswith("https://evil.example/"):
        window.faults.append(f"loaded: {url}")


async def show(window: OpenPage, context: str, artifact: str, name: str, content: str = "#document") -> dict[str, str]:
    """What the artifact's tab and its content say, once nothing suspect was in any of its views."""
    address = f"#/{quote(context, safe='')}/{quote(artifact, safe='')}"
    shown: dict[str, Any] = await window.page.evaluate(SHOW, [address, name, content, PATIENCE_MS])
    assert shown.pop("found") == [], artifact
    window.check()
    return {place: seen(text) for place, text in shown.items()}


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
    page = hostile_window.page
    context = HostileContext(served.http, payload)
    await context.fill()

    for name in ("text.md", "code.js", "page.html", "image.svg", "plain.txt"):
        shown = await show(hostile_window, context.id, name, name, SOURCE)
        assert seen(payload) in shown["content"], name

    assert seen(context.word) in (await show(hostile_window, context.id, context.word, context.word))["tab"]
    files = (await show(hostile_window, context.id, "files", payload, PARTS))["content"]
    assert files.count(seen(context.word)) >= 2
    await show(hostile_window, context.id, "typed", "typed")
    parts = (await show(hostile_window, context.id, "parts", "parts", PARTS))["content"]
    assert seen(json.dumps(payload, ensure_ascii=False)) in parts

    assert seen(payload) in seen(await page.locator("#chat .message-user").first.inner_text())
    assert seen(context.word) in seen(await page.locator(".context[data-current]").inner_text())
    assert seen(context.word) in seen(await page.locator(".chat-title").inner_text())


# What the server of the address ?hostile=… says, in place of the real one. Playwright's routes would do the same, but
# without the browser's cache, and the whole page is loaded for each payload.
HOSTILE_SERVER = """
const hostile = JSON.parse(new URLSearchParams(location.search).get("hostile"));
const ask = window.fetch;
if (hostile) window.fetch = async (url, options) => {
  const answered = (value) => new Response(JSON.stringify(value), { headers: { "Content-Type": "application/json" } });
  if (options?.method === "POST") return answered(hostile.error);
  return String(url).endsWith("/agent-card.json") ? answered(hostile.card) : ask(url, options);
};
"""


@pytest_asyncio.fixture(loop_scope="module")
async def asking_window(windows: Windows, policy: bool) -> OpenPage:
    return await windows("servers", policy)


@each_payload
async def test_a_hostile_server_does_nothing_and_its_words_are_shown(
    asking_window: OpenPage, served: Served, payload: str
) -> None:
    """Its card and its errors, in the page and in the developer view."""
    page = asking_window.page
    card = (await served.http.get("/.well-known/agent-card.json")).json()
    skill = {"id": payload, "name": payload, "description": payload, "tags": [payload]}
    card |= {"name": payload, "description": payload, "skills": [skill], "provider": {payload: payload}}
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": payload}}
    await page.goto(f"{served.url}/?hostile={quote(json.dumps({'card': card, 'error': error}))}")
    await page.locator(".composer-field").fill("hello")
    await page.keyboard.press("Enter")
    await page.locator(".outcome").first.wait_for()
    await clean(asking_window)
    assert seen(payload) in seen(await page.locator(".outcome").first.inner_text())
    assert seen(payload) in seen(await page.locator(".contexts-brand").inner_text())

    await page.get_by_role("button", name="Developer view").click()
    view = page.get_by_role("region", name="Developer view")
    await view.locator(".developer-line").first.wait_for()
    await view.locator(".developer-line").evaluate_all("(lines) => lines.forEach((line) => line.click())")
    await clean(asking_window)
    await view.get_by_role("tab", name="Agent card").click()
    await clean(asking_window)
    shown = seen(await view.locator("#developer-agent-card").inner_text())
    assert seen(json.dumps(payload, ensure_ascii=False)) in shown


DIAGRAMS = [
    'flowchart LR\n  a["SAID"] --> b',
    "sequenceDiagram\n  A->>B: SAID",
    'pie title SAID\n  "SAID" : 1',
    'classDiagram\n  class A\n  note for A "SAID"',
]
OWN = [
    'flowchart LR\n  a --> b\n  click a "javascript:ran()"\n  click b href "https://evil.example/" "SAID"',
    "flowchart LR\n  a --> b\n  click a call ran()\n  click b ran",
    "flowchart LR\n  a --> b\n  style a fill:url(https://evil.example/f),background-image:url(//evil.example/b.png)",
    "flowchart LR\n  a --> b\n  classDef c cursor:url(//evil.example/c),fill:\\75rl(//evil.example/d);\n  class a c",
    'flowchart LR\n  a@{ img: "https://evil.example/i.png", label: "x", w: 60, h: 60 } --> b',
    'flowchart LR\n  a@{ icon: "fa:user" } --> b[fa:fa-x y]',
    '%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}}}%%\n'
    "flowchart LR\n  a[\"<img src=x onerror=ran()><iframe srcdoc='<script>parent.ran()</script>'></iframe>\"] --> b",
    '%%{init: {"themeCSS": "@import url(//evil.example/t.css); * { background: url(//evil.example/t) }"}}%%\n'
    "flowchart LR\n  a --> b",
    '%%{init: {"fontFamily": "x; } * { background: url(https://evil.example/u) }"}}%%\nflowchart LR\n  a --> b',
    '---\nconfig:\n  themeVariables:\n    primaryColor: "url(https://evil.example/v)"\n---\nflowchart LR\n  a --> b',
    'flowchart LR\n  a["$$\\\\href{javascript:ran()}{x}\\\\includegraphics{https://evil.example/m.png}$$"] --> b',
]
"""What Mermaid itself offers: links, calls, styles, pictures, settings and formulas."""

PICTURES = r"""
async () => Promise.all([...document.querySelectorAll("#document img.document-diagram")].map(async (image) => {
  const svg = await (await fetch(image.src)).text();
  const all = [...new DOMParser().parseFromString(svg, "text/html").querySelectorAll("*")];
  const loads = (text) => /url\((?!["']?#)|@import|javascript:/i.test(text);
  const tags = all.map(({ localName }) => localName);
  const attributes = all.flatMap((each) => [...each.attributes]).map(({ name, value }) => [name, value]);
  return {
    tags: tags.filter((name) => /^(script|iframe|img|image|a|link|object|embed)$/.test(name)),
    attributes: attributes.filter(([name, value]) => /^on|^srcdoc|href$/.test(name) || loads(value)),
    styles: all.filter(({ localName }) => localName === "style").map((style) => style.textContent).filter(loads),
  };
}))
"""


@pytest.mark.parametrize("policy", [False, True], ids=["no policy", "policy"])
@pytest.mark.parametrize("of", ["every payload", "Mermaid itself"])
async def test_a_diagram_does_nothing_and_its_picture_names_no_address(
    windows: Windows, served: Served, policy: bool, of: str
) -> None:
    """A label with each payload, as one document; without the policy its pictures can be read, too."""
    served.gate.open()
    window = await windows("diagrams", policy)
    page = window.page
    await page.reload()
    # The policy says so when DOMPurify reads a label, in a document of its own: the page has none of it.
    window.expects(r"Executing inline event handler violates|refuses inline \(script-src-attr\)|base-uri")
    label = [re.sub(r"[\n\r]+", " ", text.replace('"', "#quot;")) for text in PAYLOADS.values()]
    sources = OWN if of == "Mermaid itself" else [one.replace("SAID", said) for said in label for one in DIAGRAMS[:1]]
    sources += (
        [] if of == "Mermaid itself" else [one.replace("SAID", label[at]) for at in range(9) for one in DIAGRAMS[1:]]
    )
    text = "\n\n".join(f"~~~~mermaid\n{source}\n~~~~" for source in sources)
    context = HostileContext(served.http, "diagrams")
    await context._put("text.md", [{"text": "put"}], text=text)
    await page.goto(f"{served.url}/#/{quote(context.id, safe='')}/text.md")
    drawn = page.locator("#document img.document-diagram, #document .document-diagram-wrong")
    await expect(drawn).to_have_count(len(sources), timeout=60_000)
    assert await page.locator("#document img.document-diagram").count() > len(sources) / 2
    await clean(window)
    if not policy:
        nothing: dict[str, list[Any]] = {"tags": [], "attributes": [], "styles": []}
        assert [each for each in await page.evaluate(PICTURES) if each != nothing] == []
