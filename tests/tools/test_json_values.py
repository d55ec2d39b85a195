"""What can be stored as JSON, and how an error names the key of what cannot."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.tools.json_values import MAX_LEVELS, json_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_a_json_value_is_read_as_it_was_stored(value) -> None:
    assert json.loads(json_text(value, "state").encode()) == value


def test_a_tuple_is_stored_as_a_list() -> None:
    assert json_text({"pair": (1, 2)}, "state") == '{"pair":[1,2]}'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "state is bytes, which is no JSON value. Convert it first."),
        ({"a": [1, {"b c": {1}}]}, 'state["a"][1]["b c"] is set, which is no JSON value. Convert it first.'),
        ({"a": {1: "one"}}, 'state["a"] has the key 1, which is no str. Convert it first.'),
        ([math.nan], "state[0] is nan, which JSON has not. Store None or a text in its place."),
        ({"a": "\ud800"}, 'state["a"] has a lone surrogate, which UTF-8 cannot encode. Remove it.'),
    ],
)
def test_an_error_names_the_key(value, said) -> None:
    with pytest.raises(ValueError, match="state") as error:
        json_text(value, "state")
    assert str(error.value) == said


def test_deep_nesting_is_an_error() -> None:
    value: list = []
    for _ in range(MAX_LEVELS):
        value = [value]
    with pytest.raises(ValueError, match="nests deeper than 100 levels"):
        json_text(value, "state")
