"""docs/limits.md has every value that a caller can send, with a test of its bound."""

from __future__ import annotations

import ast

import pytest

from tests.docs.entrances import entrances, read_by
from tests.docs.limits_table import PAGE, REQUESTS, VALUES, Limit, page, row_of
from tests.docs.pages import ROOT

ENTRANCES = entrances()
WIRE = "a2a_canvas.server.wire"


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_value_that_a_caller_can_send_has_a_row(entrance: str) -> None:
    assert row_of(entrance), f"{entrance} is new: give it a bound, and a row in tests/docs/limits_table.py"


@pytest.mark.parametrize(
    ("code", "entrance"),
    [
        ("request.headers.get('X-New')", "header x-new"),
        ("headers.getlist(VERSION_HEADER)", "header a2a-version"),
        ("if OWN_PAGE in headers: pass", f"header OWN_PAGE in {WIRE}"),
        ("request.query_params['new']", "query new"),
        ("body.get('new', 1)", "body new"),
        ("if 'new' not in body: pass", "body new"),
    ],
)
def test_what_code_begins_to_read_is_an_entrance(code: str, entrance: str) -> None:
    assert [*read_by(code, WIRE)] == [entrance]


@pytest.mark.parametrize("row", VALUES, ids=lambda row: row.of[0])
def test_every_row_is_about_something_that_can_be_sent(row: Limit) -> None:
    assert any(row_of(each) is row for each in ENTRANCES)


@pytest.mark.parametrize("row", [*REQUESTS, *VALUES], ids=lambda row: row.of[0].strip())
def test_the_test_of_a_row_is_there(row: Limit) -> None:
    file, _, name = row.test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_page_is_the_one_that_is_generated() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.docs.limits_table"
