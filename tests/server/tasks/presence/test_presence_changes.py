"""What replicas tell each other, and what others may send on their channel."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tasks.presence.presence_changes import (
    AgentMoved,
    CursorMoved,
    PersonCame,
    PersonLeft,
    PresenceChange,
    RosterAsked,
    change_from_json,
    change_to_json,
)
from a2a_canvas.server.tasks.presence.roster import CursorPlace

words = st.text(min_size=1, max_size=20)
numbers = st.integers(0, 2**31 - 1)
places = st.one_of(st.none(), st.builds(CursorPlace, words, numbers, numbers, numbers))
changes: st.SearchStrategy[PresenceChange] = st.one_of(
    st.builds(PersonCame, words, words),
    st.builds(PersonLeft, words, words),
    st.builds(CursorMoved, words, words, words, places),
    st.builds(AgentMoved, words, words, places),
    st.builds(RosterAsked, words),
)


@given(changes)
def test_a_change_is_the_same_after_its_way_as_json(change: PresenceChange) -> None:
    assert change_from_json(json.loads(json.dumps(change_to_json(change)))) == change


@pytest.mark.parametrize("item", [None, [], ["+"], ["+", 1, "a"], ["x", "c"], {"+": "c"}, "+", ["?", "c", "d"]])
def test_what_is_no_change_is_none(item: object) -> None:
    assert change_from_json(item) is None
