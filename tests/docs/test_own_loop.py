"""docs/own-loop.md: its programs run as shown, and its tables are complete."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from a2a_canvas.server.agent.loops.passage_edit import Edit
from a2a_canvas.testing import agent
from tests.docs.pages import blocks, page, rows
from tests.server.test_own_loop import served

PAGE = page("own-loop")
EDITS, STATE, AGUI = blocks(PAGE, "python")


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


def test_agui_clients_are_sent_what_the_functions_of_both_pages_send() -> None:
    [of_agui] = blocks(page("ag-ui"), "python")
    assert agent_state(AGUI) == {"stage": "reading"}
    assert agent_state(of_agui) == {"stage": "reading", "sources": ["Tide tables"]}


def agent_state(code: str) -> Any:
    """The agent's state, for a client that joins in the end."""
    run = {"threadId": "tides", "runId": "run", "messages": [{"id": "u", "role": "user", "content": "Go"}]}
    with served(names_of(code)["agent"]) as client:
        client.post("/canvas/stream", json=run)
        events = client.post("/canvas/stream", json=run).text.splitlines()
    [snapshot] = [json.loads(each.removeprefix("data: ")) for each in events if '"STATE_SNAPSHOT"' in each]
    return snapshot["snapshot"]["agent"]
