"""docs/own-loop.md: its programs run as shown, and its tables are complete."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from a2a_canvas import Turn
from a2a_canvas.server.agent.loops.passage_edit import Edit
from a2a_canvas.testing import agent
from a2a_canvas.tools.annotations.listed_annotation import ListedAnnotation, ListedRemark
from a2a_canvas.tools.functions.recorded_call import RecordedCall
from tests.docs.pages import blocks, page, rows
from tests.server.test_own_loop import served

PAGE = page("own-loop")
FIRST, GENERATOR, DURABILITY, TOOLS, EDITS, REVIEW, STATE, AGUI = blocks(PAGE, "python")
ENGINE = {"calls", "enter", "output", "reply_stream", "run_tool", "settle", "within"}
"""What adapters and the server itself use of a turn."""


def names_of(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_the_first_function_answers_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(FIRST)
    with agent(tmp_path) as it:
        it.send("tide pools")
        answer = it.send("tide pools")
    assert (answer.state, answer.text) == ("completed", "Done.")
    assert answer.artifacts["report"].endswith("# tide pools\n\nThere were 2 messages before.\n\n")


def test_a_generator_yields_text_and_files() -> None:
    with agent(loop=names_of(GENERATOR)["agent"]) as it:
        answer = it.send("Go")
    assert (answer.text, answer.files) == ("Here is the table: one port.", {"tides.csv": b"port,high\nBrest,5.9\n"})


def test_steps_run_at_the_same_time_and_write_an_artifact_each() -> None:
    with agent(loop=names_of(DURABILITY)["agent"]) as it:
        answer = it.send("Go")
    assert answer.artifacts == {"report": "# Tides\n\n2 ports.\n", "brest": "# Brest\n", "dover": "# Dover\n"}


def test_a_function_gives_the_tools_of_its_folder_to_a_model(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(TOOLS)
    (tmp_path / "tools.py").write_text(
        "from a2a_canvas import tool\n\n\n@tool\ndef shout(text: str) -> str:\n"
        '    """Shouts."""\n    return text.upper()\n'
    )
    with agent(tmp_path) as it:
        assert it.send("Go").text == "shout: HIGH TIDE"


def members(kind: type) -> set[str]:
    """The attributes of a class that its docstring names, and its methods above those that are for the engine."""
    methods = re.split("# -+ for ", inspect.getsource(kind))[0]
    listed = inspect.getdoc(kind).partition("Attributes:")[2]
    names = re.findall(r"^ {4}([a-z_, ]+): ", listed, re.MULTILINE)
    return {*re.findall(r"^    (?:async )?def ([a-z]\w*)", methods, re.MULTILINE), *", ".join(names).split(", ")}


def test_the_table_of_the_turn_is_complete() -> None:
    cells = [name for cell, *_ in rows(PAGE, "The turn") for name in re.findall(r"`(\w+)[(`]", cell)]
    assert len(cells) == len({*cells})
    assert {*cells} == (members(Turn) | members(RecordedCall)) - ENGINE


def test_a_passage_is_changed_by_the_function_that_is_shown() -> None:
    with agent(loop=names_of(EDITS)["agent"]) as it:
        it.send("high tide")
        assert it.edit("note", "louder", "high tide").artifacts == {"note": "# HIGH TIDE\n"}


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


def test_a_function_answers_comments_and_suggests() -> None:
    names = names_of(REVIEW)

    async def agent_(turn: Turn) -> None:
        if turn.text == "write":
            await turn.artifact("report").append("High tide is at noon.\n")
        else:
            await turn.comment("report", "noon", "Every day?")
            await names["agent"](turn)
            thread = (await turn.comments("report"))[0].thread
            assert [each.text for each in thread] == ["Every day?", "Thanks, I suggest a change."]

    with agent(loop=agent_) as it:
        it.send("write")
        assert it.send("review").text == "See suggestion 2."


def test_the_list_of_an_annotations_fields_is_complete() -> None:
    shown = PAGE.partition("## Comments and suggestions")[2].partition("\n## ")[0].rpartition("```")[2]
    named = {*re.findall(r"`(\w+)`", shown)}
    assert named >= {field.name for kind in (ListedAnnotation, ListedRemark) for field in fields(kind)}
