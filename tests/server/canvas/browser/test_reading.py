"""A document as it is read: selected, ticked, printed, in the dark, and in every direction of writing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import Opener
from tests.server.canvas.browser.page_actions import ask, bring, messages
from tests.server.canvas.browser.test_passages import LONG, SHORT, bar, edit_source, select, with_document

pytestmark = pytest.mark.asyncio(loop_scope="module")

TABLET = {"width": 820, "height": 1180}


async def sent_by(page: Page, action: Any) -> dict[str, Any]:
    """The `canvas:v1` request that the page sends."""
    async with page.expect_request(lambda request: "SendStreamingMessage" in (request.post_data or "")) as request:
        await action
    message = json.loads((await request.value).post_data or "")["params"]["message"]
    found: dict[str, Any] = message.get("metadata", {}).get("urn:a2a-canvas:canvas:v1", {})
    return found


async def test_what_is_written_in_the_chat_under_a_selection_changes_that_passage(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "moths")
    served.gate.open()
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    asked = await sent_by(page, ask(page, "Make it shorter"))
    assert (asked["op"], asked["selection"]["text"]) == ("edit", LONG)
    await expect(page.locator(".document-panel").get_by_text(SHORT)).to_be_visible()
    await expect(bar(page)).to_be_hidden()


async def test_a_question_under_a_selection_changes_nothing_and_has_the_passage_with_it(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "flies")
    served.gate.open()
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    asked = await sent_by(page, ask(page, "Explain this passage"))
    assert "op" not in asked
    assert asked["selection"]["text"] == LONG
    await expect(messages(page).get_by_text("That is what it does.")).to_be_visible()


async def test_what_is_typed_under_a_selection_describes_the_change(window: OpenPage, served: Served) -> None:
    page = await with_document(window, served, "wasps")
    await select(page, LONG)
    await expect(bar(page)).to_be_visible()
    await page.keyboard.type("/ make it shorter?")
    await expect(bar(page).get_by_role("textbox")).to_have_value("/ make it shorter?")


async def test_the_document_has_no_ring_after_a_change_unless_the_keyboard_led_to_it(
    window: OpenPage, served: Served
) -> None:
    page = await with_document(window, served, "ants")
    outline = "element => getComputedStyle(element).outlineStyle"
    scroller = page.locator(".document-scroller")
    for key, style in (("m", "none"), ("Tab", "solid")):
        await select(page, LONG)
        await expect(bar(page)).to_be_visible()
        await page.keyboard.press(key)
        await expect(bar(page).get_by_role("textbox")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(scroller).to_be_focused()
        assert await scroller.evaluate(outline) == style


async def test_everything_that_is_selected_is_the_document(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "all.md", "# Title\n\nFirst.\n\n- **last**\n")
    await panel.get_by_text("First.").click()
    await page.keyboard.press("Control+a")
    assert (await page.evaluate("String(getSelection())")).split() == ["Title", "First.", "last"]
    await expect(page.locator(".composer-place")).to_contain_text("Lines 1–5")


async def test_a_task_is_ticked_and_the_tick_is_taken_away(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "tasks.md", "# Tasks\n\n- [ ] one\n- [x] two\n\ntext\n\n> - [ ] three\n")
    boxes = panel.get_by_role("checkbox")
    await boxes.nth(2).click()
    await expect(boxes.nth(2)).to_be_checked()
    await boxes.nth(1).focus()
    await page.keyboard.press("Space")
    await expect(boxes.nth(1)).not_to_be_checked()
    await expect(page.get_by_text("Version 3", exact=True)).to_be_visible()
    source = await edit_source(page)
    await expect(source).to_contain_text(re.compile(r"\[ \] one.*\[ \] two.*> - \[x\] three"))


MORE = """\
# Notes

See [the end](#the-end), [data](data.md), [nothing](no.md), ![dot](dot.svg) and a note.[^1]

```python
def tide(): return 1
```

## The end

[^1]: The note itself.
"""
DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"><circle cx="12" cy="12" r="9"/></svg>'


async def test_links_and_pictures_lead_to_what_the_conversation_has(window: OpenPage) -> None:
    page = window.page
    for name, content in (("data.md", "# Data\n"), ("dot.svg", DOT)):
        await bring(page, name, content)
    panel = await bring(page, "more.md", MORE)
    await expect(panel.get_by_role("img", name="dot")).to_have_js_property("naturalWidth", 24)
    await expect(panel.locator("pre .tok-keyword").first).to_have_text("def")
    await expect(panel.get_by_role("link", name="nothing")).to_have_count(0)
    address = page.url
    for inside in ("the end", "1"):
        await panel.get_by_role("link", name=inside, exact=True).click()
    assert page.url == address
    await panel.get_by_role("link", name="data").press("Enter")
    await expect(page.locator(".document-name")).to_have_text("data.md")


async def test_the_bar_stays_in_the_pane_of_the_document_on_a_tablet(open_window: Opener, served: Served) -> None:
    window = await open_window(served.url, viewport=TABLET)
    page = window.page
    panel = await bring(page, "near.md", "A passage near the top.\n\nAnother one.\n")
    await panel.get_by_text("A passage near").click(click_count=3)
    await expect(bar(page)).to_be_visible()
    inside = """() => {
      const place = (name) => document.querySelector(name).getBoundingClientRect();
      const [bar, pane] = [place(".passage-bar"), place(".document-panel")];
      return bar.top >= pane.top && bar.left >= pane.left && bar.right <= pane.right && bar.bottom <= pane.bottom;
    }"""
    assert await page.evaluate(inside)
    for name in ("Edit", "Versions"):
        await page.get_by_role("button", name=name, exact=True).click(trial=True)


async def test_a_preview_is_on_white_paper_in_the_dark(open_window: Opener, served: Served) -> None:
    window = await open_window(served.url, color_scheme="dark")
    page = window.page
    panel = await bring(page, "plain.html", "<p>black on white</p>")
    await page.get_by_role("button", name="Preview").click()
    await expect(panel.locator("iframe")).to_have_css("background-color", "rgb(255, 255, 255)")
    await expect(panel.locator("iframe")).to_have_css("color-scheme", "light")


async def test_each_paragraph_has_the_direction_of_its_words(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "rtl.md", "מבוא קצר.\n\nLatin.\n\n- ראשון\n- שני\n")
    paragraph = panel.locator("p", has_text="מבוא")
    sides = (
        "element => { const range = document.createRange(); range.selectNodeContents(element);"
        " const [text, box] = [range, element].map((each) => each.getBoundingClientRect());"
        " return [text.left - box.left < 1, box.right - text.right < 1]; }"
    )
    assert await paragraph.evaluate(sides) == [False, True]
    assert await panel.locator("p", has_text="Latin").evaluate(sides) == [True, False]
    await expect(panel.locator(".document-block", has_text="ראשון")).to_have_css("direction", "rtl")


async def test_a_name_turns_no_words_around(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "a\u202egnp.html", "<p>Text</p>")
    await page.get_by_role("button", name="Preview").click()
    await expect(panel.locator("iframe")).to_have_attribute("title", "Preview of agnp.html")
    await ask(page, "files \u202egnp.exe")
    await expect(page.locator("bdi", has_text="gnp.exe").first).to_be_visible()
    await bring(page, "b\u202egnp.md", "Text")
    await expect(page.get_by_role("tab", name="bgnp.md")).to_have_text("bgnp.md")
    names = await page.locator("bdi, h2, [role=tab]").all_text_contents()
    names += await page.locator("[title], [aria-label]").evaluate_all("all => all.flatMap(e => [e.title, e.ariaLabel])")
    assert [name for name in names if "\u202e" in (name or "")] == []


async def test_on_paper_there_is_the_document_alone(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "paper.md", "# Paper\n\nText.\n")
    await panel.get_by_text("Text.").click(click_count=3)
    await expect(bar(page)).to_be_visible()
    await page.emulate_media(media="print")
    for hidden in (bar(page), page.get_by_role("button", name="Edit", exact=True), page.locator(".notices")):
        await expect(hidden).to_be_hidden()
    await expect(page.locator(".document-name")).to_be_visible()
    await expect(panel.get_by_text("Text.")).to_be_visible()


FORMATTED = "# Tides\n\n- [x] **high** at [noon](https://x.example/)\n\n| a | b |\n|---|--:|\n| 1 | $x^2$ |\n"
COPIED = """
async () => {
  const [item] = await navigator.clipboard.read();
  return Promise.all(["text/plain", "text/html"].map(async (type) => (await item.getType(type)).text()));
}
"""


@pytest.mark.parametrize("mode", ["Read", "Edit"])
async def test_a_copy_of_the_document_has_its_formatting_beside_its_source(window: OpenPage, mode: str) -> None:
    page = window.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await bring(page, "tides.md", FORMATTED)
    await page.get_by_role("button", name=mode, exact=True).click()
    await page.get_by_role("button", name="Copy", exact=True).click()
    await expect(page.get_by_text("Copied tides.md.").first).to_be_visible()
    text, html = await page.evaluate(COPIED)
    assert text == FORMATTED
    for part in (
        "<h1>Tides</h1>",
        "☑ ",
        "<strong>high</strong>",
        '<a href="https://x.example/"',
        '<td align="right"',
    ):
        assert part in html
    assert "$x^2$" in html
    assert not re.search(r"class=|data-|tabindex|role=", html)


async def test_a_copy_has_its_formatting_where_there_is_no_clipboard_for_the_page(window: OpenPage) -> None:
    page = window.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await bring(page, "tides.md", FORMATTED)
    await page.evaluate("() => { navigator.clipboard.write = () => Promise.reject(new Error('not here')); }")
    await page.get_by_role("button", name="Copy", exact=True).click()
    await expect(page.get_by_text("Copied tides.md.").first).to_be_visible()
    text, html = await page.evaluate(COPIED)
    assert text == FORMATTED
    assert "<strong>high</strong>" in html


def pages_of(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


async def test_one_button_prints_all_of_the_document_once_it_is_drawn(window: OpenPage) -> None:
    page = window.page
    text = "# Paper\n\n" + "A paragraph of words.\n\n" * 300 + "$x^2$\n\n```mermaid\nflowchart LR\n  A --> B\n```\n"
    panel = await bring(page, "paper.md", text)
    await expect(panel.get_by_role("heading", name="Paper")).to_be_visible()
    await page.evaluate(
        "() => { window.print = () => { window.printed ="
        " ['.katex', 'img.document-diagram'].map((each) => document.querySelectorAll(`#document ${each}`).length); }; }"
    )
    await page.get_by_role("button", name="Print or save as PDF").click()
    await page.wait_for_function("() => window.printed")
    assert await page.evaluate("window.printed") == [1, 1]
    assert pages_of(await page.pdf()) > 5


async def test_all_lines_of_a_program_are_printed(window: OpenPage) -> None:
    page = window.page
    await bring(page, "long.py", "".join(f"line_{number} = {number}\n" for number in range(600)))
    await expect(page.locator(".cm-content")).to_be_visible()
    assert pages_of(await page.pdf()) > 5
    await expect(page.locator(".document-paper")).to_be_empty()


async def test_a_page_ends_where_nothing_is_cut(window: OpenPage) -> None:
    page = window.page
    panel = await bring(page, "breaks.md", "# Title\n\n```\ncode\n```\n\n| a |\n|---|\n| 1 |\n\n> quoted\n")
    await expect(panel.locator("h1")).to_be_visible()
    await page.emulate_media(media="print")
    await expect(panel.locator("h1")).to_have_css("break-after", "avoid")
    for part in ("pre", "tr >> nth=0", "blockquote"):
        await expect(panel.locator(part)).to_have_css("break-inside", "avoid")
    await expect(panel.locator("table")).to_have_css("display", "table")
    await expect(panel.locator("thead")).to_have_css("display", "table-header-group")
    await expect(panel.locator("pre")).to_have_css("overflow-x", "visible")


async def test_a_row_of_the_conversations_is_one_step_of_many(window: OpenPage) -> None:
    page = window.page
    for name in ("cod", "eel"):
        await ask(page, f"quickly {name}")
        await expect(page.get_by_role("article", name="Reply").filter(has_text=name)).to_be_visible()
        await page.get_by_role("button", name="New conversation").click()
    stops = page.locator(".contexts-list [tabindex='0']")
    await expect(stops).to_have_count(1)
    await stops.focus()
    await page.keyboard.press("Home")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator(".context-link").nth(1)).to_be_focused()
    await expect(stops).to_have_count(1)
    await page.keyboard.press("ArrowRight")
    await expect(page.locator(".context-menu").nth(1)).to_be_focused()
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Tab")
    assert await page.evaluate("!document.activeElement.closest('.contexts-list')")
