"""What the model is told before the conversation."""

from __future__ import annotations

import re

import pytest

from a2a_canvas.server.agent.intent import Converse, Focus
from a2a_canvas.server.agent.operation_forms import SelectionRequest
from a2a_canvas.server.agent.turn.history import note_of
from a2a_canvas.server.agent.turn.turn_requests import SYSTEM, TurnRequests
from a2a_canvas.server.agent.turn.window import WindowEstimates
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import FakeLLM

WORDS = " ".join(SYSTEM.split())


@pytest.mark.parametrize(
    ("case", "tool"),
    [
        ("to add at the end,", "artifact_update with append=true"),
        ("to change passages in the middle,", "artifact_edit"),
        ("when more than four places or a third of the text change,", "artifact_update with append=false"),
        ('to take back what was done last ("undo that"),', "artifact_restore without a version"),
        ("to go back to an older version,", "artifact_restore"),
    ],
)
def test_it_tells_which_tool_makes_which_change(case: str, tool: str) -> None:
    assert f"{case} {tool}" in WORDS


@pytest.mark.parametrize(
    "rule",
    [
        "longer than about 15 lines or is to be kept, reused",
        "without an artifact, what is a plain answer",
        "A new version keeps its artifact_id",
        "that the user has changed since, read it with artifact_read",
        'never "… rest unchanged …"',
        "never a note in square brackets that stands for a text that was left out",
        "more than about 5,000 words in several calls, one per answer",
    ],
)
def test_it_tells_what_is_good_practice(rule: str) -> None:
    assert rule in WORDS


def test_it_is_short() -> None:
    """It is paid for in every call."""
    assert len(SYSTEM) < 3000


def test_every_tool_that_it_names_is_there() -> None:
    named = set(re.findall(r"\b(?:artifact|ask|decline)_[a-z]+", SYSTEM))
    assert named - {"artifact_id"} <= {tool.name for tool in TOOLS}
    assert {"artifact_edit", "artifact_restore", "ask_user"} <= named


def test_which_artifact_is_meant_is_decided_in_an_order() -> None:
    order = ["the one they name", "looking at or have selected", "the one changed last", "call ask_user"]
    places = [WORDS.index(step) for step in order]
    assert places == sorted(places)


def test_the_note_that_it_shows_is_one_as_they_are_written() -> None:
    note = note_of(Converse(Focus("report", 3, SelectionRequest(line_start=2, line_end=3, text="…"))))
    assert note
    assert note in WORDS


# ------------------------------------------------------------------- the instructions of the agent


class SmallModel(FakeLLM):
    window = 50_000


def requests_with(instructions: str) -> TurnRequests:
    return TurnRequests(SmallModel([]), TOOLS, "c", WindowEstimates(), instructions)


def test_the_instructions_of_the_agent_stand_before_the_rules_which_stay() -> None:
    assert requests_with("You are Captain Reef.").next([]).system == f"You are Captain Reef.\n\n{SYSTEM}"
    assert requests_with("").next([]).system == SYSTEM


def test_the_instructions_count_in_the_budget() -> None:
    short, long = (requests_with(text).read_limit for text in ("", "Be brief. " * 5_000))
    assert long < short
