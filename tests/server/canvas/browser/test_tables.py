"""CSV and TSV as a grid, JSON as a tree: seen, scrolled, edited by cell, and taken to a spreadsheet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.page_actions import bring, document
from tests.server.canvas.browser.test_hostile_content import PAYLOADS, SUSPECTS

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY = "number,square,note\r\n" + "".join(f'{n},{n * n},"row, {n}"\r\n' for n in range(1, 10_000))


def grid(page: Page) -> Locator:
    return document(page).get_by_role("grid")


def cell(page: Page, text: str) -> Locator:
    return grid(page).get_by_role("gridcell", name=text, exact=True)


async def saved_text(page: Page, served: Served, name: str) -> str:
    context = (await page.evaluate("location.hash")).split("/")[1]
    answer = await served.http.get(f"/artifacts/{context}/{quote(name)}", headers={"Accept": "text/*"})
    return answer.content.decode()


async def test_ten_thousand_rows_scroll_and_few_of_them_are_there(window: OpenPage) -> None:
    page = window.page
    await bring(page, "many.csv", MANY)
    await expect(grid(page)).to_have_attribute("aria-rowcount", "10000")
    await expect(cell(page, "row, 1")).to_be_visible()
    await grid(page).evaluate("(element) => { element.scrollTop = element.scrollHeight }")
    await expect(cell(page, "row, 9999")).to_be_visible()
    await expect(grid(page).get_by_role("columnheader", name="square")).to_be_visible()
    assert await grid(page).get_by_role("row").count() < 100


async def test_an_edit_of_a_cell_leaves_all_other_bytes_as_they_are(window: OpenPage, served: Served) -> None:
    page = window.page
    text = 'name;note\r\n"crab";5" long\r\nstar;"a ""b"""\r\n'
    await bring(page, "pool.csv", text)
    await cell(page, "star").dblclick()
    await page.keyboard.type("sea; star")
    await page.keyboard.press("Enter")
    await expect(document(page).get_by_text("Version 2", exact=True)).to_be_visible()
    assert await saved_text(page, served, "pool.csv") == text.replace("star;", '"sea; star";')
    await expect(cell(page, "sea; star")).to_be_visible()
    await document(page).get_by_role("button", name="Undo", exact=True).click()
    await expect(cell(page, "star")).to_be_visible()


async def test_the_keys_move_edit_and_clear(window: OpenPage, served: Served) -> None:
    page = window.page
    await bring(page, "keys.tsv", "a\tb\tc\n1\t2\t3\n4\t5\t6\n7\t8\t9\n")
    await grid(page).focus()
    chosen = grid(page).locator("[aria-selected=true]")
    for key, text in (
        *(("ArrowDown", "1"), ("ArrowRight", "2"), ("End", "3"), ("ArrowRight", "3"), ("Home", "1")),
        *(("Control+End", "9"), ("PageUp", "c"), ("Control+Home", "a"), ("ArrowUp", "a"), ("PageDown", "7")),
    ):
        await page.keyboard.press(key)
        await expect(chosen).to_have_text(text)
    await page.keyboard.press("Delete")
    await expect(document(page).get_by_text("Version 2", exact=True)).to_be_visible()
    await page.keyboard.type("70")
    await page.keyboard.press("Tab")
    await expect(chosen).to_have_text("8")
    await page.keyboard.press("F2")
    await page.keyboard.type("lost")
    await page.keyboard.press("Escape")
    await expect(chosen).to_have_text("8")
    await page.keyboard.type("80")
    await page.keyboard.press("Enter")
    await expect(document(page).get_by_text("Version 4", exact=True)).to_be_visible()
    assert await saved_text(page, served, "keys.tsv") == "a\tb\tc\n1\t2\t3\n4\t5\t6\n70\t80\t9\n"


async def test_cells_edited_one_after_the_other_are_all_saved(window: OpenPage, served: Served) -> None:
    page = window.page
    await bring(page, "quick.csv", "n\n" + "x\n" * 5)
    await grid(page).focus()
    await page.keyboard.press("ArrowDown")
    for number in range(5):
        await page.keyboard.type(str(number))
        await page.keyboard.press("Enter")
    await expect(document(page).get_by_text("Version 6", exact=True)).to_be_visible()
    assert await saved_text(page, served, "quick.csv") == "n\n0\n1\n2\n3\n4\n"


async def test_what_is_no_table_is_shown_as_source_with_the_reason(window: OpenPage) -> None:
    page = window.page
    await bring(page, "broken.csv", 'a,b\n1,"open\n')
    await expect(page.locator(".cm-content")).to_contain_text('1,"open')
    told = "Shown as source: a quote that begins in line 2 is not closed."
    await expect(document(page).get_by_text(told)).to_be_visible()
    await document(page).get_by_role("button", name="Table", exact=True).click()
    await expect(document(page).get_by_text(told)).to_be_visible()
    await bring(page, "broken.json", '{"a": ')
    await expect(page.locator(".cm-content")).to_contain_text('{"a":')
    await expect(document(page).get_by_text("Shown as source: Unexpected end of JSON input.")).to_be_visible()


async def test_json_is_a_tree(window: OpenPage) -> None:
    page = window.page
    await bring(page, "pool.json", '{"pool": {"animals": ["crab", "star"]}, "deep": true}')
    await expect(document(page).get_by_text('"crab"')).to_be_visible()
    await document(page).get_by_role("button", name="Edit", exact=True).click()
    await expect(page.locator(".cm-content")).to_contain_text('"deep": true')


def value(page: Page, text: str) -> Locator:
    return document(page).locator(".document-value, td").get_by_text(text, exact=True)


async def test_an_edit_of_a_value_leaves_the_rest_of_the_json_as_it_is(window: OpenPage, served: Served) -> None:
    page = window.page
    text = '{ "pool":\t{"depth": 1.50e0 , "names": ["crab","st\\u0061r"]},\r\n "rows": [{"n": 1, "note": "low"}] }\n'
    await bring(page, "edited.json", text)
    await value(page, "1.5").dblclick()
    field = document(page).locator(".value-field")
    await expect(field).to_have_value("1.50e0")
    await field.fill("2.50")
    await field.press("Enter")
    await expect(document(page).get_by_text("Version 2", exact=True)).to_be_visible()
    await value(page, "low").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.type("null")
    await page.keyboard.press("Enter")
    await expect(document(page).get_by_text("Version 3", exact=True)).to_be_visible()
    changed = text.replace("1.50e0", "2.50").replace('"low"', "null")
    assert await saved_text(page, served, "edited.json") == changed
    await expect(value(page, "2.5")).to_be_visible()
    await document(page).get_by_role("button", name="Undo", exact=True).click()
    await expect(value(page, "low")).to_be_visible()
    assert await saved_text(page, served, "edited.json") == text.replace("1.50e0", "2.50")


async def test_what_is_no_json_value_says_so_in_its_place_and_is_not_saved(window: OpenPage, served: Served) -> None:
    page = window.page
    text = '{"animal": "crab", "legs": 10}'
    await bring(page, "wrong.json", text)
    await value(page, '"crab"').dblclick()
    field = document(page).locator(".value-field")
    for wrong in ("crab", '{"a": 1}', "", '"open'):
        await field.fill(wrong)
        await field.press("Enter")
        told = document(page).get_by_role("alert")
        await expect(told).to_have_text("Write text in quotation marks, a number, true, false or null.")
        await expect(field).to_have_value(wrong)
    await field.press("Escape")
    await expect(value(page, '"crab"')).to_be_focused()
    await expect(document(page).get_by_role("alert")).to_have_count(0)
    assert await saved_text(page, served, "wrong.json") == text


async def test_what_was_opened_stays_open_when_another_value_changes(window: OpenPage) -> None:
    page = window.page
    await bring(page, "open.json", '{"many": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}, "other": "x"}')
    await document(page).locator("summary").click()
    await value(page, "6").dblclick()
    await page.keyboard.type("60")
    await page.keyboard.press("Enter")
    await expect(document(page).get_by_text("Version 2", exact=True)).to_be_visible()
    await document(page).get_by_role("button", name="Undo", exact=True).click()
    await expect(value(page, "6")).to_be_visible()


async def test_a_spreadsheet_gets_no_formulas_and_the_page_says_so(window: OpenPage) -> None:
    page = window.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await bring(page, "sums.csv", "name,value\n=1+1,-5\n@sum,ok\n")
    await expect(document(page).get_by_text("2 cells would run as a formula in a spreadsheet")).to_be_visible()
    async with page.expect_download() as download:
        await document(page).get_by_role("button", name="Download for spreadsheets").click()
    found = await download.value
    assert found.suggested_filename == "sums-spreadsheet.csv"
    assert await asyncio.to_thread(Path(await found.path()).read_bytes) == b"name,value\r\n'=1+1,-5\r\n'@sum,ok\r\n"
    await document(page).get_by_role("button", name="Copy for spreadsheets").click()
    await expect(document(page).get_by_text("Copied.", exact=True)).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "name\tvalue\r\n'=1+1\t-5\r\n'@sum\tok"
    await cell(page, "@sum").click()
    await page.keyboard.press("Control+c")
    await page.wait_for_function('async () => (await navigator.clipboard.readText()) === "\'@sum"')


async def test_hostile_cells_are_text(window: OpenPage) -> None:
    page = window.page
    cells = [text.replace('"', '""') for text in PAYLOADS.values()]
    await bring(page, "hostile.csv", "payload\n" + "".join(f'"{text}"\n' for text in cells))
    await expect(grid(page)).to_have_attribute("aria-rowcount", str(len(cells) + 1))
    for row in range(0, len(cells), 10):
        await grid(page).evaluate("(element, top) => { element.scrollTop = top }", row * 30)
        await expect(grid(page).locator(f"[aria-rowindex='{row + 2}']")).to_be_visible()
        assert await page.evaluate(SUSPECTS) == []


async def test_a_cell_that_its_row_does_not_have_cannot_be_edited(window: OpenPage) -> None:
    page = window.page
    await bring(page, "ragged.csv", "a,b\n1\n")
    await grid(page).focus()
    await page.keyboard.press("Control+End")
    await page.keyboard.press("Enter")
    await expect(grid(page).locator("textarea")).to_have_count(0)
    await expect(grid(page).locator("[aria-selected=true]")).to_have_attribute("aria-readonly", "true")
