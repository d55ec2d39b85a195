"""Arguments by JSON path: their text, piece by piece, is the JSON of the whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.frameworks.partial_arguments import ArgumentWriter, UnorderedArguments, parse_path

LEAVES = st.one_of(st.text(max_size=6), st.integers(-9, 9), st.booleans(), st.none())
NAMES = st.text("abc_", min_size=1, max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3), st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def leaves(value, path=()):
    match value:
        case dict():
            for key, inner in value.items():
                yield from leaves(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from leaves(inner, (*path, index))
        case _:
            yield path, value


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.integers(1, 4))
def test_the_pieces_are_the_json_of_the_arguments(arguments, size) -> None:
    writer, text = ArgumentWriter(), ""
    for path, value in leaves(arguments):
        pieces = [value[at : at + size] for at in range(0, len(value), size)] if isinstance(value, str) else []
        for number, piece in enumerate(pieces or [value], start=1):
            text += writer.add(path, piece, more=number < len(pieces))
    assert json.loads(text + writer.end()) == arguments


def test_a_path_is_names_and_indexes() -> None:
    assert parse_path("$.artifact.parts[0]['media type']") == ("artifact", "parts", 0, "media type")
    for path in ("text", "$..text", "$.parts[*]"):
        with pytest.raises(UnorderedArguments):
            parse_path(path)


def test_a_place_that_is_written_cannot_be_written_again() -> None:
    writer = ArgumentWriter()
    writer.add(("a", "b"), 1)
    writer.add(("c",), 2)
    with pytest.raises(UnorderedArguments):
        writer.add(("a", "d"), 3)


def test_a_string_left_open_ends_with_the_next_value() -> None:
    writer = ArgumentWriter()
    text = writer.add(("a",), "x", more=True) + writer.add(("b",), 1) + writer.end()
    assert json.loads(text) == {"a": "x", "b": 1}
