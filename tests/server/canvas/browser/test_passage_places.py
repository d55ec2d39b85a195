"""What is selected with the mouse is the passage that is rewritten, wherever it stands; all other text stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage, opened
from tests.server.canvas.browser.test_passages import bar, edit_source
from tests.server.canvas_client import Doc, utf16

pytestmark = pytest.mark.asyncio(loop_scope="module")

DRAG = (Path(__file__).parent / "scripts" / "drag.js").read_text()
WORDS = "ebb and flow"
TEXT = """\
# The ebb and flow

See ebb and flow, ebb and flow, and once more ebb and flow.

It is **ebb and flow** in bold, *ebb and flow* in emphasis, `ebb and flow` in code
and [ebb and flow](https://tides.example/) in a link.

| tide | what |
|------|------|
| low | ebb and flow |
| high | **ebb and flow** |

- ebb and flow
  - ebb and flow
    1. ebb and flow
- one **two

> ebb and flow
> and ebb and flow

```text
ebb and flow
  ebb and flow
```

First,\x20\x20
ebb and flow,\\
ebb and flow.

&copy; &amp; ebb and flow &lt;ebb and flow&gt; &#42;

\N{GRINNING FACE} 潮の満ち引き ebb and flow 潮の満ち引き
\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET} ebb and flow \N{GRINNING FACE}

The last ebb and flow
"""


@dataclass(frozen=True)
class Passage:
    """A passage of the text.

    Attributes:
        seen: the words that are selected in the rendered text.
        nth: which of those that are seen, from 0.
        source: what of the source that is, if it differs.
        source_nth: which of those in the source, if it differs.
    """

    where: str
    nth: int
    seen: str = WORDS
    source: str = ""
    source_nth: int | None = None

    @property
    def text(self) -> str:
        return self.source or self.seen

    @property
    def start(self) -> int:
        return place(TEXT, self.text, self.nth if self.source_nth is None else self.source_nth)


PASSAGES = [
    *(
        Passage(where, nth)
        for nth, where in enumerate(
            [
                *("a heading", "a line", "a line, again", "the end of a line", "bold", "emphasis", "code", "a link"),
                *("a cell", "bold in a cell", "an item", "a nested item", "an item nested twice", "a quote"),
                *("a quote, next line", "a code block", "an indented line of code", "behind a hard break"),
                *("behind a backslash", "among entities", "between entities", "behind CJK", "between emoji", "the end"),
            ]
        )
    ),
    Passage("across a border of bold", 0, "flow in bold", "**ebb and flow** in bold"),
    Passage("bold and what is beside it", 0, "is ebb and flow in bold", "is **ebb and flow** in bold"),
    Passage("a link and a word", 0, "flow in a link", "[ebb and flow](https://tides.example/) in a link"),
    Passage("an entity", 0, "© &", "&copy; &amp;"),
    Passage("an escaped sign", 0, "ebb and flow> *", "ebb and flow&gt; &#42;"),
    Passage("CJK", 1, "満ち引"),
    Passage("an emoji of several characters", 0, "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}"),
    Passage("an emoji", 1, "\N{GRINNING FACE}"),
]


def place(text: str, words: str, nth: int) -> int:
    """Where the words are there for the nth time."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(words, at + 1)
    return at


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def window(browser: Browser, server: Served) -> AsyncIterator[OpenPage]:
    """One for all tests of the module."""
    async with opened(browser, server.url, viewport={"width": 1360, "height": 820}) as window:
        yield window


async def with_text(page: Page, served: Served, text: str) -> Doc:
    """A document with this text, of a context and a name of its own, is open."""
    context = str(uuid4())
    doc = Doc(served, context, text, context)
    await doc.run(doc.operation("put", text=text, name=f"{context}.md"))
    await page.goto(f"{served.url}/#/{doc.context}/{doc.artifact_id}")
    await expect(rendered(page, doc)).to_contain_text(text.rstrip().rsplit("\n")[-1])
    return doc


def rendered(page: Page, doc: Doc) -> Locator:
    return page.locator(f".document-markdown[aria-label='{doc.context}.md']")


async def drag_over(page: Page, root: Locator, start: int, end: int, lines: str = "") -> None:
    x, y, to_x, to_y = await root.evaluate(DRAG, {"start": start, "end": end, "lines": lines})
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move((x + to_x) / 2, (y + to_y) / 2)
    await page.mouse.move(to_x, to_y)
    await page.mouse.up()


async def select_rendered(page: Page, doc: Doc, passage: Passage) -> None:
    seen: str = await rendered(page, doc).evaluate("element => element.textContent")
    start = place(seen, passage.seen, passage.nth)
    at = utf16(seen[:start]), utf16(seen[: start + len(passage.seen)])
    if passage.where.startswith("a link"):
        await rendered(page, doc).evaluate(DRAG, {"start": at[0], "end": at[1], "alone": True})
    else:
        await drag_over(page, rendered(page, doc), *at)


async def select_in_source(page: Page, doc: Doc, passage: Passage) -> None:
    source = await edit_source(page)
    end = passage.start + len(passage.text)
    await drag_over(page, source, utf16(TEXT[: passage.start]), utf16(TEXT[:end]), ".cm-line")


def told(passage: Passage) -> dict[str, Any]:
    """The passage as the older form of AG-UI has it."""
    end = passage.start + len(passage.text)
    return {
        "start": utf16(TEXT[: passage.start]),
        "end": utf16(TEXT[:end]),
        "lineStart": 1 + TEXT[: passage.start].count("\n"),
        "lineEnd": 1 + TEXT[:end].count("\n"),
    }


CASES = [
    *(pytest.param(passage, select_rendered, id=f"{passage.where}, rendered") for passage in PASSAGES),
    *(pytest.param(passage, select_in_source, id=f"{passage.where}, source") for passage in PASSAGES[1::3]),
]


@pytest.mark.parametrize(("passage", "select"), CASES)
async def test_what_is_selected_is_rewritten_and_nothing_else(
    window: OpenPage, served: Served, passage: Passage, select: Any
) -> None:
    served.gate.open()
    page = window.page
    doc = await with_text(page, served, TEXT)
    await select(page, doc, passage)
    await expect(bar(page)).to_be_visible()
    at = told(passage)
    lines = (
        f"Line {at['lineStart']}" if at["lineStart"] == at["lineEnd"] else f"Lines {at['lineStart']}–{at['lineEnd']}"
    )
    await expect(page.locator(".passage-place")).to_have_attribute("title", f"Characters {at['start']}–{at['end']}")
    await expect(page.locator(".composer-place")).to_contain_text(f"{lines} of ")

    await bar(page).get_by_role("textbox").fill("becomes the TIDE")
    await bar(page).get_by_role("textbox").press("Enter")
    await expect(page.get_by_text("Version 2", exact=True)).to_be_visible()

    end = passage.start + len(passage.text)
    assert await doc.read() == (2, TEXT[: passage.start] + "the TIDE" + TEXT[end:])
