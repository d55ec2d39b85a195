"""What providers send is taken for what it should be, or not at all."""

from __future__ import annotations

import pytest

from a2a_canvas.server.agent.models.unchecked_json import number_of
from tests.extreme_values import VALUES


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:40])
def test_a_number_is_one_that_can_be_counted(value: object) -> None:
    assert 0 <= number_of(value, 7) < 2**40


def test_a_plain_number_is_taken_and_anything_else_is_not() -> None:
    assert [number_of(value, 7) for value in (0, 3, -1, 2**63, "3", None)] == [0, 3, 7, 7, 7, 7]
