"""Several documents, new ones from files and the clipboard, what is no text, and what is saved."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.pandoc_program import need_pandoc, text_in
from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.page_actions import READ_LATE, ask, delay, document

pytestmark = pytest.mark.asyncio(loop_scope="module")

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c636060f8ff1f0003020 1ffa759b8a10000000049454e44ae426082".replace(" ", "")
)

DROP = """
([place, name, type, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    place.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data }));
  }
}
"""


async def menu(page: Page, item: str) -> None:
    await document(page).get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name=item, exact=True).click()


async def saved(page: Page, item: str) -> tuple[str, bytes]:
    """The name and the content of a file that the menu saves."""
    async with page.expect_download() as download:
        await menu(page, item)
    found = await download.value
    return found.suggested_filename, await asyncio.to_thread(Path(await found.path()).read_bytes)


async def test_several_documents_are_tabs(window: OpenPage) -> None:
    page = window.page
    await ask(page, "many 3")
    tabs = page.get_by_role("tablist", name="Documents").get_by_role("tab")
    await expect(tabs).to_have_text(["one.md", "two.py", "three.json"])
    await tabs.nth(0).click()
    await expect(document(page).get_by_role("heading", name="One", exact=True)).to_be_visible()

    await tabs.nth(0).press("ArrowRight")

    await expect(tabs.nth(1)).to_be_focused()
    await expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    await expect(document(page)).to_contain_text("def two():")
    await page.go_back()
    await expect(document(page).get_by_role("heading", name="One", exact=True)).to_be_visible()


async def test_one_is_copied_and_saved_and_all_are_a_zip_file(window: OpenPage) -> None:
    page = window.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await ask(page, "many 3")
    await page.get_by_role("tab", name="two.py").click()
    await document(page).get_by_role("button", name="Copy", exact=True).click()
    await expect(page.get_by_text("Copied two.py.")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "def two():\n    return 2\n"
    assert await page.evaluate("async () => (await navigator.clipboard.read())[0].types") == ["text/plain"]

    assert await saved(page, "Download") == ("two.py", b"def two():\n    return 2\n")
    _, content = await saved(page, "Download all as a ZIP file")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert sorted(archive.namelist()) == ["one.md", "three.json", "two.py"]
        assert archive.read("one.md").decode() == "# One\n\nThe first.\n"


async def test_markdown_is_saved_in_the_formats_that_the_server_offers(window: OpenPage) -> None:
    need_pandoc()
    page = window.page
    await ask(page, "many 3")
    await page.get_by_role("tab", name="one.md").click()
    name, content = await saved(page, "Download as Word")
    assert (name, text_in(content, "docx").split()) == ("one.docx", ["One", "The", "first."])
    await page.get_by_role("tab", name="two.py").click()
    await document(page).get_by_role("button", name="More", exact=True).click()
    await expect(page.get_by_role("menuitem", name="Download", exact=True)).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Download as Word")).to_have_count(0)


async def test_a_server_that_offers_no_formats_has_none_in_the_menu(window: OpenPage) -> None:
    page = window.page

    async def without(route: Route) -> None:
        answer = await route.fetch()
        card = await answer.json()
        for each in card["capabilities"]["extensions"]:
            each.get("params", {}).pop("formats", None)
        await route.fulfill(response=answer, json=card)

    await page.route("**/.well-known/agent-card.json", without)
    await page.reload()
    await ask(page, "many 3")
    await page.get_by_role("tab", name="one.md").click()
    await document(page).get_by_role("button", name="More", exact=True).click()
    await expect(page.get_by_role("menuitem", name="Download", exact=True)).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Download as Word")).to_have_count(0)


@pytest.mark.parametrize("early", [False, True])
async def test_a_pasted_text_is_a_document(window: OpenPage, early: bool) -> None:
    """`early`: before the page knows the server, and has loaded what shows documents."""
    page = window.page
    if early:
        answer = await delay(page, re.compile("agent-card.json|document/pane.js"))
        await page.reload(wait_until="commit")
        await expect(page.get_by_role("heading", name="What shall we write?")).to_be_visible()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.evaluate("navigator.clipboard.writeText('# Tide tables\\n\\nHigh at noon.\\n')")
    await page.get_by_role("link", name="Skip to the message field").focus()
    await page.keyboard.press("Control+v")
    if early:
        answer.set()

    await expect(document(page).get_by_role("heading", name="tide-tables.md")).to_be_visible()
    await expect(document(page)).to_contain_text("High at noon.")


async def test_a_dropped_file_is_a_document_and_a_new_version_of_one_that_has_its_name(window: OpenPage) -> None:
    page = window.page
    await ask(page, "quickly tea")
    await expect(document(page)).to_be_visible()
    place = await document(page).locator(".document-panel").element_handle()
    for version, text in enumerate(("a,b\n1,2\n", "a,b\n3,4\n"), 1):
        await page.evaluate(DROP, [place, "table.csv", "text/csv", text])
        await expect(document(page).get_by_role("heading", name="table.csv")).to_be_visible()
        await expect(document(page).get_by_text(f"Version {version}", exact=True)).to_be_visible()
        await expect(document(page).get_by_role("gridcell")).to_have_text(text.split()[-1].split(","))


async def test_a_chosen_picture_is_seen_and_saved_as_it_was(window: OpenPage, served: Served) -> None:
    page = window.page
    await ask(page, "quickly tea")
    async with page.expect_file_chooser() as chooser:
        await menu(page, "Add documents…")
    await (await chooser.value).set_files([{"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL}])

    await expect(document(page).get_by_role("img", name="dot.png")).to_have_js_property("naturalWidth", 1)
    assert await saved(page, "Download") == ("dot.png", PIXEL)


async def test_a_picture_that_cannot_be_read_is_told_and_saved(window: OpenPage) -> None:
    page = window.page
    await ask(page, "quickly tea")
    async with page.expect_file_chooser() as chooser:
        await menu(page, "Add documents…")
    await (await chooser.value).set_files([{"name": "torn.png", "mimeType": "image/png", "buffer": PIXEL[:20]}])

    await expect(document(page).get_by_text("This picture cannot be displayed.")).to_be_visible()
    await expect(document(page).get_by_role("img", name="torn.png")).to_have_count(0)
    async with page.expect_download() as download:
        await document(page).get_by_role("button", name="torn.png").click()
    assert (await download.value).suggested_filename == "torn.png"


async def test_a_file_of_ones_own_begins_a_conversation(window: OpenPage) -> None:
    page = window.page
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="open a document of your own").click()
    await (await chooser.value).set_files([{"name": "own.md", "mimeType": "text/markdown", "buffer": b"# Mine\n"}])

    await expect(document(page).get_by_role("heading", name="Mine", exact=True)).to_be_visible()
    conversations = page.get_by_role("navigation", name="Conversations")
    await expect(
        conversations.get_by_role("link", name="own.md").or_(conversations.get_by_text("own.md")).first
    ).to_be_visible()


async def test_files_that_are_being_added_do_not_go_to_another_conversation(window: OpenPage) -> None:
    page = window.page
    await ask(page, "quickly tea")
    await expect(document(page)).to_be_visible()
    await page.evaluate(READ_LATE)
    async with page.expect_file_chooser() as chooser:
        await menu(page, "Add documents…")
    names = ("one.md", "two.md")
    await (await chooser.value).set_files(
        [{"name": n, "mimeType": "text/markdown", "buffer": b"# Own\n"} for n in names]
    )
    await page.get_by_role("button", name="New conversation").first.click()
    await page.evaluate("readNow()")

    await expect(page.locator("#notices")).to_contain_text(
        "You opened another conversation before all files were added."
    )
    await expect(document(page)).to_be_hidden()


async def test_a_file_that_cannot_be_read_is_not_added_and_the_others_are(window: OpenPage, tmp_path: Path) -> None:
    page = window.page
    files = [tmp_path / name for name in ("gone.md", "own.md")]
    for file in files:
        file.write_text(f"# {file.stem}\n")
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="open a document of your own").click()
    await page.evaluate(READ_LATE)
    await (await chooser.value).set_files(files)
    files[0].unlink()
    await page.evaluate("readNow()")

    await expect(document(page).get_by_role("heading", name="own", exact=True)).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("gone.md could not be read.")


async def test_what_is_no_text_is_shown_as_what_it_is(window: OpenPage) -> None:
    page = window.page
    await ask(page, "show")
    shown = document(page)
    for row, words in enumerate((("tide", "metres"), ("low", "0.4"), ("high", "3.1"))):
        for word in words:
            await expect(shown.get_by_role("row").nth(row)).to_contain_text(word)
    await expect(shown.get_by_text("crab")).to_be_visible()
    await expect(shown.get_by_role("img", name="dot.png")).to_have_js_property("naturalWidth", 1)
    async with page.expect_download() as download:
        await shown.get_by_role("button", name="paper.pdf").click()
    assert (await download.value).suggested_filename == "paper.pdf"
