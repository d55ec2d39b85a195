"""`--only page`: the page in Chromium with documents of 2 MB, while 50 deltas a second arrive.

The agent appends to a document, or rewrites a passage of it; meanwhile somebody scrolls through it and types: into the
document where its source is shown and can be typed into, else a message. A frame is the time between two callbacks of
`requestAnimationFrame`, so that it cannot be shorter than 16.7 ms; the time of a key is what the browser's event timing
says, from the key to the picture that shows it. The first paint counts what a browser without a cache has transferred
by then, headers included, as the performance API has it: on a slow network, because on a fast one scripts arrive while
the browser prepares the paint, which does not wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Locator, Page, async_playwright

from a2a_canvas.server.wire import CANVAS
from bench.client import COMPLETED, HOST, ClientError
from bench.report import Check, Report, quantile
from bench.servers import SHIPPED_FRAME_MS, ours, running, script
from tests.server.canvas.browser.browser_harness import FLAGS, chromium

RATE = 50
PIECE = 12
"""Characters of a delta, about two words."""
SIZE = 2_000_000
VIEWPORT = {"width": 1360, "height": 820}
FRAME_MS = 50
PAINT_KB = 20
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 63_000, "uploadThroughput": -1}
"""A slow mobile network: milliseconds, and bytes a second."""
SLOW_PAINT_MS = 1500
TIMEOUT = 120
STEPS = 8
"""Turns of the wheel in one direction."""

SCRIPT = """\
rules:
  - match: {text: "^go on for (?P<n>[0-9]+) with (?P<id>.+)$"}
    rounds:
      - chunk: 12
        delay: 0.02
        tools:
          - name: artifact_update
            input:
              append: true
              last_chunk: true
              artifact: {artifact_id: "{id}", parts: [{kind: text, text: {repeat: "one more, ", times: "{n}"}}]}
      - text: ""
  - match: {text: "^rewrite (?P<n>[0-9]+)$", selection: "."}
    rounds:
      - {text: {repeat: "one more, ", times: "{n}"}, chunk: 12, delay: 0.02}
"""

WATCH = """
() => {
  const watched = { frames: [], inputs: [], on: true };
  let last = performance.now();
  const frame = (now) => {
    watched.frames.push(now - last);
    last = now;
    watched.on && requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => {
    watched.inputs.push(...list.getEntries().filter((each) => each.name === "keydown").map((each) => each.duration));
  }).observe({ type: "event", durationThreshold: 16 });
  globalThis.watched = watched;
}
"""
PAINTED = """
() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  const read = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return [paint, read.filter((each) => each.responseEnd <= paint).reduce((sum, each) => sum + each.transferSize, 0)];
}
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure.

    Attributes:
        seconds: of each document.
        paints: how often the page is opened.
    """

    seconds: float
    paints: int
    size: int = SIZE


FULL = Plan(15, 5)
QUICK = Plan(5, 1)


@dataclass(frozen=True, slots=True)
class Case:
    """A document that changes.

    Attributes:
        name: of the document; its extension decides how it is shown.
        rewritten: whether a passage is rewritten; else the agent appends.
        source: whether the source is shown, where there is another view.
    """

    name: str
    rewritten: bool = False
    source: bool = False

    @property
    def typed(self) -> bool:
        """Whether the document is typed into."""
        return self.rewritten and (self.source or self.name.endswith(".py"))

    def __str__(self) -> str:
        return (
            f"{self.name}{' source' if self.source else ''}, {'a passage rewritten' if self.rewritten else 'appended'}"
        )


CASES = (
    Case("guide.md"),
    Case("guide.md", rewritten=True),
    Case("guide.md", source=True),
    Case("guide.md", source=True, rewritten=True),
    Case("program.py"),
    Case("program.py", rewritten=True),
)


@dataclass(frozen=True, slots=True)
class Watched:
    """Milliseconds of every frame, and of every key until it was seen."""

    frames: list[float]
    inputs: list[float]


async def run(plan: Plan) -> Report:
    """Each document in a window of its own, one after the other."""
    table = Report(
        "page",
        f"frames with {plan.size / 1e6:.1f} MB and {RATE} deltas a second",
        ("document", "shown after ms", "frames", "p50 ms", "p95 ms", "max ms", "keys p50 ms", "keys max ms"),
    )
    with script(SCRIPT) as path:
        async with running(ours(SHIPPED_FRAME_MS, path)) as server, _browser() as browser:
            await _first_paint(browser, server.port, plan, table)
            for case in CASES:
                await _measure(browser, server.port, plan, case, table)
    return table


@asynccontextmanager
async def _browser() -> AsyncIterator[Browser]:
    program = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        await browser.close()


@asynccontextmanager
async def _window(
    browser: Browser, port: int, path: str = "/", network: dict[str, Any] | None = None
) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport=VIEWPORT)  # type: ignore[arg-type]
    context.set_default_timeout(1000 * TIMEOUT)
    page = await context.new_page()
    if network:
        await (await context.new_cdp_session(page)).send("Network.emulateNetworkConditions", network)
    await page.goto(f"http://{HOST}:{port}{path}")
    yield page
    await context.close()


async def _first_paint(browser: Browser, port: int, plan: Plan, table: Report) -> None:
    near = [await _painted(browser, port) for _ in range(plan.paints)]
    slow = [await _painted(browser, port, SLOW) for _ in range(plan.paints)]
    table.checks += [
        Check("first paint transfer", max(size for _, size in slow) / 1000, "at most", PAINT_KB, "KB"),
        Check("first paint at 400 ms and 63 kB/s", median(time for time, _ in slow), "at most", SLOW_PAINT_MS, "ms"),
    ]
    table.notes.append(f"first paint after {median(time for time, _ in near):.0f} ms")


async def _painted(browser: Browser, port: int, network: dict[str, Any] | None = None) -> tuple[float, float]:
    """The time of the first paint, and what was transferred by then."""
    async with _window(browser, port, network=network) as page:
        await page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
        time, size = await page.evaluate(PAINTED)
        return time, size


async def _measure(browser: Browser, port: int, plan: Plan, case: Case, table: Report) -> None:
    context, document = str(uuid4()), case.name
    text = (markdown if document.endswith(".md") else code)(plan.size)
    await _send(port, context, "put", {"op": "put", "artifactId": document, "name": document, "text": text})
    async with _window(browser, port, f"/#/{context}/{document}") as page:
        await page.wait_for_selector(".document-block p, .cm-line")
        if case.source:
            await page.get_by_role("button", name="Edit", exact=True).click()
            await page.wait_for_selector(".cm-line")
        shown = await page.evaluate("performance.now()")
        watched = await _watch(page, port, context, case, plan.seconds, text)
    frames, inputs = watched.frames, watched.inputs or [0.0]
    p95 = quantile(frames, 0.95)
    row = (str(case), shown, len(frames), median(frames), p95, max(frames), median(inputs), max(inputs))
    table.rows.append(row)
    table.checks.append(Check(f"{case}: p95", p95, "at most", FRAME_MS, "ms"))


async def _watch(page: Page, port: int, context: str, case: Case, seconds: float, text: str) -> Watched:
    times = str(int(seconds * RATE * PIECE / len("one more, ")))
    if case.rewritten:
        at = text.index("passage", len(text) // 2)
        selection = {"start": at, "end": at + len("passage")}
        fields = {"op": "edit", "artifactId": case.name, "baseVersion": 1, "selection": selection}
        working = asyncio.create_task(_send(port, context, f"rewrite {times}", fields))
    else:
        working = asyncio.create_task(_send(port, context, f"go on for {times} with {case.name}"))
    await page.wait_for_selector("text=/Writing…|Rewriting/")
    await page.evaluate(WATCH)
    while not working.done():
        await _use(page, page.locator(".document-panel"), ".cm-content" if case.typed else "#message")
    await working
    await page.evaluate("watched.on = false")
    return Watched(**{key: value for key, value in (await page.evaluate("watched")).items() if key != "on"})


async def _use(page: Page, panel: Locator, field: str) -> None:
    """Scroll away from the end and back to it, and type in between."""
    await panel.hover()
    for step in (-1, 1):
        for _ in range(STEPS):
            await page.mouse.wheel(0, step * 400)
            await asyncio.sleep(0.02)
        await page.focus(field)
        await page.keyboard.type("typed ", delay=30)


async def _send(port: int, context: str, text: str, operation: dict[str, Any] | None = None) -> None:
    """A message and its task, to the end."""
    message = {"messageId": str(uuid4()), "contextId": context, "role": "ROLE_USER", "parts": [{"text": text}]}
    metadata = {"metadata": {CANVAS: operation}} if operation else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {**message, **metadata}}}
    headers = {"A2A-Version": "1.0", "A2A-Extensions": CANVAS}
    async with httpx.AsyncClient(timeout=TIMEOUT) as client:
        answer = (await client.post(f"http://{HOST}:{port}/", json=body, headers=headers)).json()
    state = answer.get("result", {}).get("task", {}).get("status", {}).get("state")
    if state != COMPLETED:
        raise ClientError(f"{text}: {answer}"[:500])


def markdown(size: int) -> str:
    """A text with everything that Markdown has, about as long as that."""
    sections: list[str] = []
    while size > 0:
        number = len(sections) + 1
        sections.append(
            f"## Section {number}\n\nA *passage* with **bold** words, `code` and [links](https://example.com/). "
            + "It goes on for a while, as sentences do, and ends here. " * 8
            + f"\n\n- one of {number}\n- two\n  - nested\n\n| a | b |\n|---|---|\n| {number} | 2 |\n\n"
            + f"```python\ndef section_{number}():\n    return {number}\n```\n\n> Somebody said so.\n\n"
        )
        size -= len(sections[-1])
    return "".join(sections)


def code(size: int) -> str:
    """A Python module about as long as that."""
    functions: list[str] = []
    while size > 0:
        number = len(functions) + 1
        functions.append(
            f'def passage_{number}(values: list[int]) -> int:\n    """Number {number}."""\n    total = {number}\n'
            "    for value in values:\n        if value % 2 == 0:\n            total += value\n    return total\n\n\n"
        )
        size -= len(functions[-1])
    return "".join(functions)
