import re

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tool_sources.mcp_servers.tool_names import unique_names


def test_a_name_is_the_prefix_and_the_name_of_the_tool() -> None:
    assert unique_names({"a": ("files", "read")}) == {"a": "files__read"}


def test_other_characters_are_replaced() -> None:
    assert unique_names({"a": ("my files", "read.it/ü")}) == {"a": "my_files__read_it_"}


def test_names_that_would_be_the_same_are_told_apart() -> None:
    names = unique_names({1: ("f", "read file"), 2: ("f", "read.file"), 3: ("f", "read_file")})
    assert names[1] == "f__read_file"
    assert len(set(names.values())) == 3


def test_a_long_name_is_cut_and_keeps_its_own_hash() -> None:
    one, two = "x" * 80 + "1", "x" * 80 + "2"
    names = unique_names({1: ("f", one), 2: ("f", two)})
    assert names[1] != names[2]
    assert unique_names({2: ("f", two)})[2] == names[2]


@given(st.lists(st.tuples(st.text(), st.text()), unique=True))
def test_every_name_is_unique_and_one_that_providers_take(parts: list[tuple[str, str]]) -> None:
    names = unique_names({part: part for part in parts})
    assert len(set(names.values())) == len(parts)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in names.values())
