"""docs/own-loop.md: its programs run as shown, and its tables are complete."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from a2a_canvas.server.agent.loops.passage_edit import Edit
from a2a_canvas.testing import agent
from tests.docs.pages import blocks, page, rows

PAGE = page("own-loop")
EDITS, STATE = blocks(PAGE, "python")


def names_of(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_a_passage_is_changed_by_the_function_that_is_shown() -> None:
    with agent(loop=names_of(EDITS)["agent"]) as it:
        it.send("high tide")
        assert it.edit("note", "louder", "high tide").artifacts == {"note": "# HIGH TIDE \n"}


def test_the_table_has_what_an_edit_has() -> None:
    shown = {name.strip("` ") for name, _ in rows(PAGE, "turn.edit") for name in name.split(",")}
    assert shown >= {field.name for field in fields(Edit)} - {"system_prompt", "user_prompt"} | {"prompt"}


def test_the_state_has_the_messages_of_the_tasks_before() -> None:
    with agent(loop=names_of(STATE)["agent"]) as it:
        assert [it.send("Hello").text for _ in range(3)] == [f"I have {count} messages." for count in (1, 3, 5)]
