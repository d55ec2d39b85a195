"""Which texts may be ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.store.text.unicode import replace_unstorable, valid_id


@pytest.mark.parametrize("unfit", [*map(chr, range(32)), "\ud800"], ids=ascii)
def test_control_characters_and_lone_surrogates_are_refused_wherever_they_stand(unfit: str) -> None:
    for text in (unfit, f"a{unfit}", f"{unfit}b", f"a{unfit}b"):
        with pytest.raises(ValueError, match=r"^must not contain the (character NUL|.*U\+[0-9A-F]{4})$"):
            valid_id(text)


@given(st.text())
def test_what_is_let_in_is_what_a_database_gives_back(text: str) -> None:
    try:
        assert replace_unstorable(valid_id(text)) == text
    except ValueError:
        assert any(character < " " for character in text)
