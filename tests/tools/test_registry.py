"""The tools the model has."""

from __future__ import annotations

import json

from a2a_canvas.tools.registry import SCRIPT_TOOLS, TOOLS


def test_each_tool_has_a_name_of_its_own_a_description_and_an_object_as_schema() -> None:
    names = [tool.name for tool in TOOLS]
    assert names == [
        "artifact_update",
        "artifact_edit",
        "artifact_restore",
        "artifact_read",
        "artifact_list",
        "comments",
        "comment",
        "reply",
        "resolve",
        "suggest",
        "ask_user",
        "decline_task",
    ]
    for tool in TOOLS:
        assert tool.description
        assert json.loads(json.dumps(tool.input_schema))["type"] == "object"


def test_only_what_is_written_is_streamed_and_only_what_ends_or_pauses_the_turn_acts_last() -> None:
    assert [tool.name for tool in TOOLS if tool.eager] == ["artifact_update", "artifact_edit", "suggest"]
    assert [tool.name for tool in TOOLS if tool.acts_last] == ["ask_user", "decline_task"]


def test_a_script_can_require_authentication_which_no_other_model_is_offered() -> None:
    assert [tool.name for tool in SCRIPT_TOOLS if tool not in TOOLS] == ["auth_required"]
    assert SCRIPT_TOOLS[-1].acts_last
