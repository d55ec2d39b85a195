"""Formulas in a document: drawn while it is written, and selected as their source."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.page_actions import ask, document, messages, step, text_of
from tests.server.canvas.browser.test_passages import bar
from tests.server.canvas.browser.test_reading import bring, sent_by

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = """\
# Areas

The area of a circle is $\\pi r^2$ of its radius, and it costs $5.

$$
\\sqrt{
a + b
- c
}
$$

The end, as it *should* be.
"""


def formulas(page: Page) -> Locator:
    return page.get_by_role("math")


def requests(page: Page) -> list[str]:
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url))
    return found


async def drag(page: Page, start: Locator, end: Locator, *, to: float = 1) -> None:
    """Selects from the left edge of one element to a part of the width of another one."""
    first, last = await start.bounding_box(), await end.bounding_box()
    assert first
    assert last
    await page.mouse.move(first["x"] + 1, first["y"] + first["height"] / 2)
    await page.mouse.down()
    await page.mouse.move(last["x"] + last["width"] * to - 1, last["y"] + last["height"] / 2, steps=8)
    await page.mouse.up()


async def test_formulas_are_drawn_with_their_own_fonts_which_nothing_else_loads(window: OpenPage) -> None:
    page = window.page
    asked = requests(page)
    panel = await bring(page, "plain.md", "# Plain\n\nIt costs $5 and $10.\n")
    await expect(panel.get_by_role("heading", name="Plain")).to_be_visible()
    assert [url for url in asked if "katex" in url.lower()] == []
    await bring(page, "areas.md", TEXT)
    await expect(formulas(page)).to_have_count(2)
    await expect(formulas(page).first).to_have_attribute("aria-label", r"\pi r^2")
    await page.wait_for_function("() => document.fonts.check('12px KaTeX_Math')")
    assert any(re.search(r"/vendor/fonts/KaTeX_Math-Italic\.woff2$", url) for url in asked)
    width = "(element) => element.querySelector('.katex-html').getBoundingClientRect().width"
    assert await formulas(page).first.evaluate(width) > 10
    await expect(panel.get_by_text("it costs $5.")).to_be_visible()


async def test_a_formula_is_drawn_while_the_document_is_written_and_nothing_of_it_is_seen_before(
    window: OpenPage, served: Served
) -> None:
    page = window.page
    served.gate.close()
    await ask(page, f"note down areas: {TEXT}")
    while "costs" not in await text_of(document(page)):
        assert "$" not in (await text_of(document(page))).replace("$5", "")
        await step(page, served)
    await expect(formulas(page)).to_have_count(1)
    await formulas(page).evaluate("(element) => { element.isFirst = true; }")
    while "The end" not in await text_of(document(page)):
        assert "sqrt" not in await text_of(document(page))
        await step(page, served)
    await expect(formulas(page)).to_have_count(2)
    await expect(formulas(page).first).to_have_js_property("isFirst", True)
    served.gate.open()
    await expect(messages(page)).to_contain_text("Noted.")


async def test_a_formula_without_its_end_stays_text(window: OpenPage) -> None:
    panel = await bring(window.page, "open.md", "So $$\\frac{a}{b} is\n\n$$\nx\n\nand $y")
    await expect(panel.locator(".document-markdown")).to_contain_text(
        re.compile(r"So \$\$\\frac\{a\}\{b\} is.*and \$y", re.DOTALL)
    )
    await expect(formulas(window.page)).to_have_count(0)


BLOCK = TEXT[TEXT.index("$$") : TEXT.index(" be.")]


@pytest.mark.parametrize(
    ("start", "end", "to", "text"),
    [
        pytest.param("[role=math] >> nth=0", "[role=math] >> nth=0", 0.6, r"\pi r^2", id="within"),
        pytest.param("[role=math] >> nth=1", "[role=math] >> nth=1", 1, BLOCK.split("\n$$")[0][3:], id="all of it"),
        pytest.param("[role=math] >> nth=1", "em", 1, BLOCK, id="from a formula"),
        pytest.param(
            "text=The area", "[role=math] >> nth=0", 0.5, r"The area of a circle is $\pi r^2$", id="to a formula"
        ),
    ],
)
async def test_what_is_selected_in_and_across_formulas_is_their_source(
    window: OpenPage, served: Served, start: str, end: str, to: float, text: str
) -> None:
    page = window.page
    served.gate.open()
    panel = await bring(page, "areas.md", TEXT)
    await expect(formulas(page)).to_have_count(2)
    await drag(page, panel.locator(start), panel.locator(end), to=to)
    await expect(bar(page)).to_be_visible()
    asked = await sent_by(page, ask(page, "Explain this passage"))
    assert asked["selection"]["text"] == text


async def test_a_formula_that_is_selected_is_marked_as_a_whole(window: OpenPage) -> None:
    page = window.page
    await bring(page, "areas.md", TEXT)
    await expect(formulas(page)).to_have_count(2)
    await drag(page, formulas(page).first, formulas(page).first, to=0.6)
    await expect(bar(page)).to_be_visible()
    marked = "() => [...CSS.highlights.get('document-passage')].map(String).join()"
    assert await page.evaluate(marked) == "πr2"


async def test_a_wrong_formula_stays_as_it_is_written(window: OpenPage) -> None:
    panel = await bring(window.page, "wrong.md", "Right $a$, wrong $\\frac{b$.\n")
    await expect(formulas(window.page)).to_have_count(1)
    await expect(panel.locator(".document-math[title*=error]")).to_have_text(r"\frac{b")
