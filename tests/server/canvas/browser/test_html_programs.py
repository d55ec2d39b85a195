"""An HTML document runs behind a click, in a frame that reaches neither the page nor anything else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from playwright.async_api import Locator, Page, expect

from a2a_canvas.server.protocols.page import routes
from tests.loopback import listening
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import PATIENCE_MS, OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, bring, document, messages

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAYLOADS: dict[str, str] = yaml.safe_load((Path(__file__).parent / "payloads.yaml").read_text())
EVIL = "evil.example"

# How a program may try to reach URL (http), or HOST by another protocol; UDP is a port of 127.0.0.1.
ATTEMPTS = {
    "fetch": "<script>fetch('URL', {mode: 'no-cors'}).catch(() => {})</script>",
    "request": "<script>const x = new XMLHttpRequest(); x.open('GET', 'URL'); x.send()</script>",
    "beacon": "<script>navigator.sendBeacon('URL', 'x')</script>",
    "event source": "<script>new EventSource('URL')</script>",
    "web socket": "<script>new WebSocket('ws://HOST')</script>",
    "image": "<img src=URL>",
    "picture of a script": "<script>new Image().src = 'URL'</script>",
    "media": "<video src=URL poster=URL></video><audio src=URL></audio><svg><image href=URL /></svg>",
    "script": "<script src=URL></script><script type=module>import 'URL'</script>",
    "style": "<link rel=stylesheet href=URL><style>@import url(URL); p { background: url(URL) }</style><p>x",
    "font": "<style>@font-face { font-family: x; src: url(URL) } p { font-family: x }</style><p>x",
    "prefetch": "<link rel=prefetch href=URL><link rel=preload as=image href=URL><link rel=modulepreload href=URL>",
    "connection in advance": "<link rel=preconnect href=URL><link rel=dns-prefetch href=URL>",
    "speculation": '<script type=speculationrules>{"prefetch": [{"urls": ["URL"]}]}</script>',
    "form": "<form id=f action=URL><input name=q></form><script>f.submit()</script>",
    "ping": "<a id=a href=# ping=URL>x</a><script>a.click()</script>",
    "popup": "<script>window.open('URL')</script><a id=a href=URL target=_blank>x</a><script>a.click()</script>",
    "the page": "<a id=a href=URL target=_top>x</a><script>a.click(); try { top.location = 'URL' } catch {}</script>",
    "location": "<script>location = 'URL'</script>",
    "location later": "<script>setTimeout(() => location.replace('URL'))</script>",
    "link": "<a id=a href=URL>x</a><script>a.click()</script>",
    "refresh": '<meta http-equiv=refresh content="0;url=URL">',
    "frame": "<iframe src=URL></iframe><object data=URL></object><embed src=URL>",
    "frame that goes": "<iframe srcdoc=\"<script>location = 'URL'</script>\"></iframe>",
    "frame with a document": "<iframe srcdoc=\"<img src=URL><script>fetch('URL')</script>\"></iframe>",
    "blob": "<script>location = URL.createObjectURL(new Blob(['<img src=URL>'], {type: 'text/html'}))</script>",
    "worker": "<script>try { new Worker('data:text/javascript,fetch(`URL`)') } catch {}</script>",
    "worker of a blob": "<script>new Worker(window.URL.createObjectURL(new Blob(['fetch(`URL`)'])))</script>",
    "report": '<meta http-equiv=Content-Security-Policy content="img-src data:; report-uri URL"><img src=URL>',
    "webrtc": (
        "<script>const rtc = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'}]});"
        " rtc.createDataChannel('x'); rtc.createOffer().then((offer) => rtc.setLocalDescription(offer))</script>"
    ),
    "webrtc of a frame": (
        "<iframe srcdoc=\"<script>const rtc = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'}]});"
        " rtc.createDataChannel('x'); rtc.createOffer().then((offer) => rtc.setLocalDescription(offer))</script>\">"
        "</iframe>"
    ),
}
REACH = ("fetch", "web socket", "image", "location", "webrtc of a frame")
"""Those that reach the server as soon as the frame has no policy, so that the tests are known to see it."""
NOTED = "Blocked script execution|directive 'webrtc'"
"""What the browser says of every preview, and of every program."""
END = "<script>setTimeout(() => console.error('the end'), 300)</script>"


@dataclass
class Listener(asyncio.DatagramProtocol):
    """A server that records each connection, and each packet over UDP."""

    address: str = ""
    udp: int = 0
    heard: list[str] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, what: str) -> None:
        self.heard.append(what)
        self.news.set()

    def datagram_received(self, data: bytes, _: object) -> None:
        self.note(f"UDP {data.decode(errors='replace')}")

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.note(f"TCP {(await reader.readline()).decode(errors='replace').strip()}")
        writer.close()

    async def until_now(self) -> list[str]:
        """What was heard before something that is sent now."""
        self.news.clear()
        _, writer = await asyncio.open_connection(*self.address.split(":"))
        writer.write(b"now\n")
        while not any(each == "TCP now" for each in self.heard):
            self.news.clear()
            await self.news.wait()
        writer.close()
        return [each for each in self.heard if each != "TCP now"]

    def aimed(self, program: str) -> str:
        program = program.replace("URL.create", "window.U.create").replace("URL", f"http://{self.address}/x")
        return program.replace("window.U.", "URL.").replace("HOST", self.address).replace("UDP", str(self.udp))


@asynccontextmanager
async def hearing() -> AsyncIterator[Listener]:
    listener = Listener()
    with listening() as (taken, port):
        server = await asyncio.start_server(listener.accept, sock=taken)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: listener, local_addr=("127.0.0.1", 0))
        listener.address, listener.udp = f"127.0.0.1:{port}", transport.get_extra_info("sockname")[1]
        yield listener
        transport.close()
        server.close()


@pytest_asyncio.fixture(loop_scope="module")
async def listener() -> AsyncIterator[Listener]:
    async with hearing() as found:
        yield found


async def run(page: Page, program: str, name: str = "page.html") -> None:
    await bring(page, name, program)
    await document(page).get_by_role("button", name="Run", exact=True).click()


def errors(page: Page) -> Locator:
    return page.get_by_role("log", name="Errors of the program")


def frame_of(page: Page) -> Locator:
    return page.locator("iframe[title^='Program ']")


# ------------------------------------------------------------------------------------------------- a program


async def test_a_page_is_previewed_and_runs_once_the_user_says_so(window: OpenPage) -> None:
    page = window.page
    window.expects(NOTED)
    await bring(page, "count.html", "<p id=p>still</p><script>p.textContent = 'it runs'</script>")
    preview = page.frame_locator("iframe[title='Preview of count.html']")
    await expect(preview.get_by_text("still")).to_be_visible()
    await document(page).get_by_role("button", name="Run", exact=True).click()
    program = page.frame_locator("iframe[title='Program count.html']")
    await expect(program.get_by_text("it runs")).to_be_visible()
    await expect(errors(page)).to_be_hidden()
    await document(page).get_by_role("button", name="Stop", exact=True).click()
    await expect(preview.get_by_text("still")).to_be_visible()
    await expect(frame_of(page)).to_have_count(0)


async def test_a_program_that_loads_itself_again_runs_again(window: OpenPage) -> None:
    page = window.page
    window.expects(NOTED)
    await run(
        page,
        "<p id=p></p><button onclick='location.reload()'>Again</button><script>p.textContent = Math.random()</script>",
    )
    program = page.frame_locator("iframe[title^='Program ']")
    first = await program.locator("p").inner_text()
    await program.get_by_role("button", name="Again").click()
    await expect(program.locator("p")).not_to_have_text(first)


async def test_what_goes_wrong_is_shown_and_the_agent_fixes_it(window: OpenPage, served: Served) -> None:
    page = window.page
    window.expects(f"{NOTED}|nothing is there|a warning|no answer")
    served.gate.open()
    program = """<script>
      console.error("a warning", {of: "mine"});
      Promise.reject(new Error("no answer"));
      throw new TypeError("nothing is there");</script>"""
    await run(page, program, "broken.html")
    for text in (
        'a warning {"of":"mine"}',
        "Unhandled rejection: Error: no answer",
        "Uncaught TypeError: nothing is there",
    ):
        await expect(errors(page).get_by_text(text)).to_be_visible()
    wrong = errors(page).get_by_role("listitem").filter(has_text="nothing is there")
    await wrong.get_by_role("button", name="Fix it").click()
    await expect(messages(page)).to_contain_text("broken.html reports this error when it runs. Fix it.")
    await expect(messages(page)).to_contain_text("Uncaught TypeError: nothing is there (line 4)")
    await expect(wrong.get_by_role("button", name="Fix it")).to_be_disabled()


async def test_a_program_keeps_running_when_its_document_changes_until_the_user_runs_it_again(window: OpenPage) -> None:
    page = window.page
    window.expects(NOTED)
    await run(page, "<p>first</p><script></script>")
    program = page.frame_locator("iframe[title^='Program ']")
    await expect(program.get_by_text("first")).to_be_visible()
    await bring(page, "page.html", "<p>second</p><script></script>")
    await expect(document(page).get_by_text("The document has changed since it was started.")).to_be_visible()
    await expect(program.get_by_text("first")).to_be_visible()
    await document(page).get_by_role("button", name="Run again").click()
    await expect(program.get_by_text("second")).to_be_visible()


async def test_an_endless_loop_leaves_the_page_as_it_is(window: OpenPage) -> None:
    page = window.page
    window.expects(NOTED)
    await run(page, "<script>for (;;);</script>")
    await expect(frame_of(page)).to_be_visible()
    await ask(page, "quickly tea")
    await page.get_by_role("tab", name="tea.md").click()
    await expect(document(page).get_by_role("heading", name="About tea")).to_be_visible()
    await expect(frame_of(page)).to_have_count(0)


async def test_a_program_that_floods_the_page_is_stopped(window: OpenPage) -> None:
    page = window.page
    window.expects(NOTED)
    await run(page, "<script>setInterval(() => { for (let i = 0; i < 999; i++) parent.postMessage(i, '*') })</script>")
    await expect(errors(page)).to_have_text("The program was stopped: it sends too many messages.Fix it")
    await expect(frame_of(page)).to_have_count(0)


async def test_errors_are_limited_and_shown_as_text(window: OpenPage) -> None:
    page = window.page
    window.expects(f"{NOTED}|x{20}|<img")
    await run(
        page,
        "<script>for (let i = 0; i < 99; i++) console.error(i, '<img src=x onerror=ran()>', 'x'.repeat(999))</script>",
    )
    rows = errors(page).get_by_role("listitem")
    await expect(rows).to_have_count(20)
    assert [len(text) for text in await rows.locator("code").all_inner_texts()] == [500] * 20
    await expect(errors(page).locator("img")).to_have_count(0)


# ------------------------------------------------------------------------------------------------ no way out


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_a_program_reaches_no_server(window: OpenPage, listener: Listener, attempt: str) -> None:
    page = window.page
    window.expects("")
    crashed = asyncio.Event()
    page.on("crash", lambda _: crashed.set())
    await run(page, listener.aimed(ATTEMPTS[attempt]) + END)
    # Chromium ends the process of a program whose frames use WebRTC; Playwright takes that for the end of the page.
    ended = errors(page).get_by_text("the end").or_(errors(page).get_by_text("The program was stopped")).first
    waiting = [asyncio.create_task(ended.wait_for()), asyncio.create_task(crashed.wait())]
    done, pending = await asyncio.wait(waiting, timeout=PATIENCE_MS / 1000, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    assert done
    assert await listener.until_now() == []


@pytest.mark.parametrize("attempt", REACH)
async def test_without_the_policies_it_would(
    open_window: Opener, served: Served, listener: Listener, attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "PROGRAM_HEADERS", {routes.POLICY: "sandbox allow-scripts"})
    monkeypatch.setattr(routes, "program_sources", lambda *_: "*")
    window = await open_window(served.url, others=[f"http://{listener.address}"])
    window.expects("")
    await run(window.page, listener.aimed(ATTEMPTS[attempt]))
    async with asyncio.timeout(PATIENCE_MS / 1000):
        await listener.news.wait()


async def test_a_program_that_leaves_its_frame_is_stopped_and_the_user_is_told(
    window: OpenPage, listener: Listener
) -> None:
    page = window.page
    window.expects(f"{NOTED}|frame-src|Framing")
    await run(page, listener.aimed("<script>location = 'URL'</script>"))
    told = f"The program was stopped: it tried to open http://{listener.address}."
    await expect(errors(page).get_by_text(told)).to_be_visible()
    await expect(frame_of(page)).to_have_count(0)


@pytest.mark.parametrize("address", ["/", "/artifacts", "page/program/x", "/.well-known/agent-card.json"])
async def test_a_program_opens_nothing_of_this_server_either(window: OpenPage, address: str) -> None:
    page = window.page
    window.expects(f"{NOTED}|frame-src|Framing")
    await run(page, f"<script>location = new URL({json.dumps(address)}, document.baseURI)</script>")
    await expect(errors(page).get_by_text("The program was stopped: it tried to open")).to_be_visible()


async def test_a_program_does_not_reach_the_page_or_what_the_browser_keeps_for_it(window: OpenPage) -> None:
    page = window.page
    window.expects("")
    await page.evaluate("sessionStorage.secret = document.cookie = 'secret=1'")
    program = """<script>
      const tries = {
        page: () => parent.document.title, top: () => top.document.body, frames: () => parent.frames[0].document,
        frame: () => window.frameElement.id, local: () => localStorage.length, session: () => sessionStorage.length,
        cookie: () => document.cookie, sign: () => parent.app, write: () => (parent.taken = true),
      };
      for (const [name, attempt] of Object.entries(tries)) {
        let said;
        try { said = `reached ${attempt()}`; } catch (error) { said = error.constructor.name; }
        console.error(name, said);
      }
      const database = (said) => console.error("database", said);
      indexedDB.databases().then(() => database("reached"), (error) => database(error.name));
      console.error("origin", origin);
    </script>"""
    await run(page, program)
    await expect(errors(page).get_by_text("origin null")).to_be_visible()
    said = await errors(page).locator("code").all_inner_texts()
    own = "frames"  # the first frame of the page is the program
    assert [each for each in said if "reached" in each and not each.startswith(own)] == []
    assert "database SecurityError" in said
    assert await page.evaluate("window.taken") is None


async def test_no_hostile_document_finds_a_way_out(window: OpenPage, listener: Listener) -> None:
    """All payloads of the tests of hostile content, run at once in frames of their own."""
    page = window.page
    window.expects("")
    await page.evaluate("() => { window.ran = () => (window.taken = true); }")
    programs = [
        text.replace("https://" + EVIL, f"http://{listener.address}").replace(EVIL, listener.address)
        for text in PAYLOADS.values()
    ]
    await bring(page, "notes.md", "# Notes")
    started = """async (programs) => {
      const base = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "");
      const { createProgram } = await import(`${base}document/program/program.js`);
      const running = programs.map((text) => createProgram({ text, name: "x.html" }));
      const ended = (frame) => new Promise((done) => frame.addEventListener("load", () => setTimeout(done, 300)));
      const frames = running.map(({ element }) => element.querySelector("iframe"));
      const all = Promise.all(frames.map(ended));
      document.body.append(...running.map(({ element }) => element));
      await all;
      return document.querySelectorAll("iframe[sandbox=allow-scripts]").length;
    }"""
    for at in range(0, len(programs), 20):
        await page.evaluate(started, programs[at : at + 20])
    assert await listener.until_now() == []
    assert await page.evaluate("window.taken") is None
    assert page.url.startswith(await page.evaluate("location.origin"))
    await expect(document(page).get_by_role("heading", name="notes.md")).to_be_visible()
