"""Rows that cannot be decoded: left out, and logged now and then."""

from __future__ import annotations

import logging

import pytest

from a2a_canvas.store.sql.readable_rows import INTERVAL, ReadableRows
from tests.fakes import Seconds

ROWS = [("a", "1"), ("b", "x"), ("c", "3"), ("d", "y")]


def test_what_cannot_be_decoded_is_left_out_and_the_rest_keeps_its_order() -> None:
    assert [*ReadableRows("number").decode_all(ROWS, int)] == [1, 3]


def test_a_log_line_names_the_first_row_and_later_ones_count_the_others(caplog: pytest.LogCaptureFixture) -> None:
    clock = Seconds()
    rows = ReadableRows("number", clock)
    with caplog.at_level(logging.ERROR):
        [*rows.decode_all(ROWS, int)]
        clock.now = INTERVAL - 1
        [*rows.decode_all(ROWS, int)]
        assert len(caplog.records) == 1
        clock.now = INTERVAL
        [*rows.decode_all(ROWS, int)]
    first, second = caplog.records
    assert "stored number cannot be read and is skipped (1 " in first.getMessage()
    assert vars(first)["fields"] == {"row": "b"}
    assert "(4 since" in second.getMessage()
