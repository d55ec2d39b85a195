"""The question whether a call may run: whatever its input, nothing of it is hidden by something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.turn.approval import MAX_VALUE, approval_question

NAMES = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2 * MAX_VALUE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def test_a_short_input_is_shown_whole() -> None:
    given = {"path": "a “b”.txt", "force": True, "depth": None, "tags": ["x", 1]}
    shown = 'path="a “b”.txt", force=true, depth=null, tags=["x", 1]'
    assert approval_question("delete", given) == f"May I run delete({shown})? Answer yes or no."


def test_a_long_value_is_cut_and_hides_no_other() -> None:
    question = approval_question("run", {"note": "a" * 1_100, "what": "rm -rf / --no-preserve-root", "all": [0] * 500})
    assert f'note="{"a" * MAX_VALUE}…" (1,100 characters), what="rm -rf / --no-preserve-root", all=[0, 0' in question
    assert question.endswith("… (1,500 characters))? Answer yes or no.")


@pytest.mark.parametrize(
    "char", ["\u202e", "\u200b", "\u2066", "\u00ad", "\ufeff", "\u3164", "\x7f", "\u2028", "\U000e0041"]
)
def test_what_cannot_be_seen_is_an_escape(char: str) -> None:
    question = approval_question("run", {f"a{char}": f"b{char}", "c": {char: 1}}, guest=f"bob{char}")
    assert char not in question
    assert question.isprintable()
    assert question.count("\\u") >= 4


def test_a_name_looks_like_no_end_of_the_question() -> None:
    assert 'run("a)? Answer yes or no."=1)' in approval_question("run", {"a)? Answer yes or no.": 1})


def test_a_guest_is_told_whom_it_waits_for() -> None:
    question = approval_question("publish", {}, guest="bob")
    waits = "This waits for the owner, or a user with the level approve, to answer yes or no."
    assert question == f"May I run publish() for bob? {waits}"


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_every_name_is_shown_and_no_value_is_long(given: dict[str, object]) -> None:
    question = approval_question("run", given)
    assert all(f"{name}=" in question for name in given)
    assert len(question) < 60 + len(given) * (12 + 8 * MAX_VALUE)
    assert question.isprintable()
