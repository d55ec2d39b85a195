"""`make screenshots`: the pictures of the page in docs/screenshots/, from a real server with a scripted model.

Texts and times are the same in every run, and nothing moves: the model writes when a picture is to show the next piece.
The pictures are made small; their limits are tested (test_screenshots.py).
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from PIL import Image
from playwright.async_api import Browser, Locator, Page, expect

from tests.docs.pages import ROOT
from tests.server.app_server import Served, serving
from tests.server.canvas.browser.browser_harness import opened, running_browser
from tests.server.canvas.browser.page_actions import document, frames

FOLDER: Final = ROOT / "docs" / "screenshots"
SCRIPT: Final = Path(__file__).with_suffix(".yaml")
MOVING: Final = "canvas.webp"
DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 360, "height": 740}
BESIDE: Final = ({"width": 860, "height": 620}, {"width": 360, "height": 620})
"""The two windows of the moving picture."""
MARGIN: Final = 16
GROUND: Final = "#dfe3e8"
COLOURS: Final = 192
REQUEST: Final = "Write a guide to tide pools"
EARLIER: Final = (
    "Release notes for version 2.4",
    "Write a Python function that reverses a string",
    "Minutes of Monday",
)
PASSAGE: Final = "Tide pools are there to be seen"
PATIENCE: Final = 200
NOTHING_MORE: Final = 5
"""Seconds after which the model has nothing more to say."""
CALM: Final = """
Date.prototype.toLocaleString = Date.prototype.toLocaleTimeString = () => "10:24";
document.addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.nonce = document.querySelector("style[nonce]").nonce;
  style.textContent =
    "*, ::before, ::after { animation: none !important; transition: none !important; caret-color: #0000 !important }";
  document.head.append(style);
});
"""

Draw = Callable[["Studio"], Awaitable[Page]]


@dataclass(frozen=True, slots=True)
class Studio:
    """A browser, and a server that knows some conversations."""

    browser: Browser
    served: Served
    open: Callable[..., Awaitable[Page]]

    async def let(self, pieces: int) -> None:
        """Let the model say so many pieces more, if it has as many."""
        for _ in range(pieces):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.served.gate.reached.wait(), NOTHING_MORE)
                self.served.gate.let(1)

    async def written(self, **options: Any) -> Page:
        """A window in which the document is written and the reply said."""
        page = await self.open(**options)
        self.served.gate.open()
        await ask(page, REQUEST)
        await expect(page.get_by_role("article")).to_contain_text("The guide is there")
        await expect(page.get_by_role("list", name="People here")).to_be_hidden()
        self.served.gate.close()
        return page

    async def rewriting(self, **options: Any) -> Page:
        """A window in which a passage is selected and “Shorter” has been pressed."""
        page = await self.written(**options)
        await select(page)
        await quick_actions(page).click()
        await page.get_by_role("button", name="Shorter", exact=True).click()
        return page


# ------------------------------------------------------------------------------------------------------ the states


async def empty(studio: Studio) -> Page:
    return await studio.open()


async def writing(studio: Studio) -> Page:
    page = await studio.open()
    await ask(page, REQUEST)
    await studio.let(62)
    await expect(page.locator(".status")).to_contain_text("Writing tide-pools.md")
    await expect(document(page)).to_contain_text("leave as soon")
    return page


async def selection(studio: Studio) -> Page:
    page = await studio.written()
    await select(page)
    await quick_actions(page).click()
    await expect(page.get_by_role("button", name="Shorter", exact=True)).to_be_visible()
    return page


async def rewriting(studio: Studio) -> Page:
    page = await studio.rewriting()
    await studio.let(9)
    await expect(document(page)).to_contain_text("around low tide: look")
    return page


async def review(studio: Studio) -> Page:
    page = await studio.written()
    notes = (
        (PASSAGE, "Suggest", "See tide pools within an hour of low tide; leave when the water turns."),
        ("Limpets find the way", "Comment", "Is that true of all limpets? It needs a source."),
    )
    for passage, action, words in notes:
        await document(page).get_by_text(passage).click(click_count=3)
        bar = page.get_by_role("dialog", name="Change the selected passage")
        await bar.get_by_role("button", name=action).click()
        await bar.get_by_role("textbox").fill(words)
        await bar.get_by_role("button", name=action).click()
        await expect(bar).to_be_hidden()
    await page.get_by_role("button", name="Comments and suggestions").click()
    await expect(page.locator(".note-thread")).to_have_count(2)
    await page.get_by_role("button", name="Hide conversations").click()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("]")
    await expect(page.locator("ins.note-chosen")).to_be_visible()
    return page


async def compare(studio: Studio) -> Page:
    page = await studio.rewriting()
    await finish(page, studio)
    await page.get_by_role("button", name="Keep").click()
    await document(page).get_by_role("button", name="Versions", exact=True).click()
    await document(page).get_by_role("button", name="Compare", exact=True).click()
    await expect(page.get_by_role("insertion").first).to_be_visible()
    return page


async def conflict(studio: Studio) -> Page:
    page = await studio.written()
    other = await studio.open(path=f"/{await page.evaluate('location.hash')}")
    for each in (page, other):
        await document(each).get_by_role("button", name="Edit", exact=True).click()
        await each.locator(".cm-line", has_text="A hand lens").click()
        await each.keyboard.press("End")
    await other.keyboard.type(" with a cord")
    await page.keyboard.type(" for each child")
    later = page
    for _ in range(PATIENCE):
        later = page if await page.get_by_role("region", name="Conflict").is_visible() else other
        if await later.get_by_role("region", name="Conflict").is_visible():
            break
        await asyncio.sleep(0.1)
    return later


async def question(studio: Studio) -> Page:
    page = await studio.open()
    await ask(page, "Write a plan for 7 days in Japan")
    await expect(page.get_by_role("region", name="Question")).to_be_visible()
    return page


async def phone(studio: Studio) -> Page:
    page = await studio.written(viewport=PHONE, has_touch=True, is_mobile=True)
    await page.get_by_role("tab", name="tide-pools.md").click()
    return page


async def dark(studio: Studio) -> Page:
    return await studio.written(color_scheme="dark")


async def developer(studio: Studio) -> Page:
    page = await studio.written()
    await page.get_by_role("button", name="Developer view").click()
    return page


STATES: Final[tuple[Draw, ...]] = (
    empty,
    writing,
    selection,
    rewriting,
    review,
    compare,
    conflict,
    question,
    phone,
    dark,
    developer,
)


# ------------------------------------------------------------------------------------------------- the moving picture


@dataclass(slots=True)
class Film:
    """The frames so far, of two windows side by side, and how many milliseconds each is shown."""

    windows: tuple[Page, Page]
    frames: list[Image.Image] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    async def take(self, milliseconds: int) -> None:
        shots = [Image.open(io.BytesIO(await settled(page))) for page in self.windows]
        width = sum(shot.width for shot in shots) + 3 * MARGIN
        frame = Image.new("RGB", (width, shots[0].height + 2 * MARGIN), GROUND)
        left = MARGIN
        for shot in shots:
            frame.paste(shot, (left, MARGIN))
            left += shot.width + MARGIN
        self.frames.append(frame)
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        first, *others = self.frames
        first.save(path, save_all=True, append_images=others, duration=self.times, loop=0, quality=85, method=5)


async def film(studio: Studio) -> Film:
    """Text grows in two windows; a passage is selected and made shorter; that is undone."""
    one = await studio.open(viewport=BESIDE[0])
    await ask(one, REQUEST)
    await studio.let(18)
    await expect(document(one).get_by_role("heading", name="Tide pools", exact=True)).to_be_visible()
    path = await one.evaluate("location.hash")
    two = await studio.open(path=f"/{path}", viewport=BESIDE[1])
    await two.get_by_role("tab", name="tide-pools.md").click()
    taken = Film((one, two))
    await taken.take(500)
    await film_growing(taken, studio, "mussel", step=2)
    studio.served.gate.open()
    await expect(one.get_by_role("article")).to_contain_text("The guide is there")
    studio.served.gate.close()
    for page in taken.windows:
        await document(page).get_by_role("heading", name="When to go").scroll_into_view_if_needed()
    await taken.take(900)
    await select(one)
    await taken.take(900)
    await quick_actions(one).click()
    await one.get_by_role("button", name="Shorter", exact=True).hover()
    await taken.take(400)
    await one.get_by_role("button", name="Shorter", exact=True).click()
    await film_growing(taken, studio, "when the water", step=1)
    await finish(one, studio)
    await taken.take(1400)
    await one.get_by_role("button", name="Keep").click()
    await expect(one.get_by_role("button", name="Keep")).to_be_hidden()
    await document(one).get_by_role("button", name="Undo", exact=True).click()
    for page in taken.windows:
        await expect(document(page)).to_contain_text(PASSAGE)
    await expect(document(one).get_by_role("button", name="Redo", exact=True)).to_be_enabled()
    await taken.take(1600)
    return taken


async def film_growing(taken: Film, studio: Studio, end: str, step: int) -> None:
    """A frame for every few pieces, until both documents show the end."""
    while end not in await document(taken.windows[1]).inner_text():
        await studio.let(step)
        await taken.take(100)


# ----------------------------------------------------------------------------------------------------------- the tools


async def ask(page: Page, text: str) -> None:
    await page.get_by_role("textbox", name="Message").fill(text)
    await page.get_by_role("button", name="Send", exact=True).click()


async def select(page: Page) -> None:
    await document(page).get_by_text(PASSAGE).click(click_count=3)
    await expect(quick_actions(page)).to_be_visible()


def quick_actions(page: Page) -> Locator:
    return page.get_by_role("button", name="Quick actions")


async def finish(page: Page, studio: Studio) -> None:
    """Let the rewriting end."""
    studio.served.gate.open()
    await expect(document(page)).to_contain_text("when the water turns.")
    await expect(page.get_by_role("button", name="Keep")).to_be_visible()
    studio.served.gate.close()


async def settled(page: Page) -> bytes:
    """A picture of what the page shows when nothing is left to draw."""
    await frames(page)
    return await page.screenshot(animations="disabled", caret="hide", scale="css")


def small(png: bytes) -> Image.Image:
    """With a palette: a page has few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    return image.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


@asynccontextmanager
async def studio(browser: Browser) -> AsyncIterator[Studio]:
    """A server for one picture, with the conversations that were held before."""
    windows: list[Any] = []

    async with serving(SCRIPT, grpc=False, database="memory") as served:
        for text in reversed(EARLIER):
            message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
            await served.rpc("SendMessage", {"message": message})

        async def open_window(path: str = "/", **options: Any) -> Page:
            window = opened(browser, served.url, path, **{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
            windows.append(window)
            page = (await window.__aenter__()).page
            await page.add_init_script(CALM)
            await page.reload()
            await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
            return page

        try:
            yield Studio(browser, served, open_window)
        finally:
            served.gate.open()
            for window in reversed(windows):
                await window.__aexit__(None, None, None)


async def main(names: list[str]) -> None:
    """All pictures, or those that are named."""
    FOLDER.mkdir(exist_ok=True)
    async with running_browser() as browser:
        for draw in STATES:
            name = draw.__name__
            if names and name not in names:
                continue
            async with studio(browser) as place:
                small(await settled(await draw(place))).save(FOLDER / f"{name}.png", optimize=True)
        if not names or "film" in names:
            async with studio(browser) as place:
                (await film(place)).save(FOLDER / MOVING)


if __name__ == "__main__":
    import sys

    asyncio.run(main(sys.argv[1:]))
