"""What the model is told before the conversation."""

from __future__ import annotations

import re

import pytest

from server.agent.notes import note_of
from server.agent.operations import Converse, Focus, Marked
from server.agent.prompt import SYSTEM
from tools.registry import TOOLS

WORDS = " ".join(SYSTEM.split())


@pytest.mark.parametrize(
    ("case", "tool"),
    [
        ("to add at the end,", "artifact_update with append=true"),
        ("to change a passage in the middle,", "artifact_edit"),
        ("when most of the text changes,", "artifact_update with append=false"),
        ("to go back to an older version,", "artifact_restore"),
    ],
)
def test_it_tells_which_tool_makes_which_change(case: str, tool: str) -> None:
    assert f"{case} {tool}" in WORDS


def test_every_tool_that_it_names_is_there() -> None:
    named = set(re.findall(r"\b(?:artifact|ask|decline)_[a-z]+", SYSTEM))
    assert named - {"artifact_id"} <= {tool.name for tool in TOOLS}
    assert {"artifact_edit", "artifact_restore", "ask_user"} <= named


def test_which_artifact_is_meant_is_decided_in_an_order() -> None:
    order = ["the one they name", "looking at or have selected", "the one changed last", "call ask_user"]
    places = [WORDS.index(step) for step in order]
    assert places == sorted(places)


def test_the_note_that_it_shows_is_one_as_they_are_written() -> None:
    note = note_of(Converse(Focus("report", 3, Marked(line_start=2, line_end=3, text="…"))))
    assert note
    assert note in WORDS
