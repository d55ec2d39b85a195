"""`ask_user` and `decline_task`: how a model gives the turn back."""

from __future__ import annotations

import json

import pytest

from a2a_canvas.tools.ask_user import ask_user, auth_required, decline_task
from a2a_canvas.tools.tool import Ask, Decline, Failed, Outcome, Tool
from tests.tools.tool_calls import call

BOTH: list[tuple[Tool, str, type[Ask] | type[Decline]]] = [
    (ask_user, "question", Ask),
    (decline_task, "reason", Decline),
]
both = pytest.mark.parametrize(("tool", "field", "outcome"), BOTH, ids=["ask_user", "decline_task"])


@both
async def test_the_outcome_carries_the_text_without_blanks_around_it(
    tool: Tool, field: str, outcome: type[Ask] | type[Decline]
) -> None:
    expected: Outcome = outcome("Which colour, é😀?")
    assert await call(tool, list(json.dumps({field: " Which colour, é😀?\n"}))) == expected


async def test_a_reason_to_authenticate_is_a_question_that_says_so_and_no_other_is() -> None:
    assert await call(ask_user, ['{"question": "Which?"}']) == Ask("Which?", authentication=False)
    assert await call(auth_required, ['{"reason": " Log in. "}']) == Ask("Log in.", authentication=True)


@both
@pytest.mark.parametrize("value", ["", " \n", None, 1, ["x"], "\ud83d"], ids=ascii)
async def test_a_text_that_no_user_can_read_is_a_failure_that_names_the_field(
    tool: Tool, field: str, outcome: object, value: object
) -> None:
    answer = await call(tool, [json.dumps({field: value})])
    assert isinstance(answer, Failed)
    assert f"{field}: " in answer.content
    assert f"Call {tool.name} again" in answer.content
    answer.content.encode()


@both
@pytest.mark.parametrize("input_", ["", "{}", '{"text": "x"}'])
async def test_the_text_is_needed(tool: Tool, field: str, outcome: object, input_: str) -> None:
    answer = await call(tool, [input_])
    assert isinstance(answer, Failed)
    assert f"{field}: is missing" in answer.content


@both
def test_they_act_after_all_other_calls_of_a_message(tool: Tool, field: str, outcome: object) -> None:
    assert tool.acts_last
    assert not tool.eager
    assert tool.input_schema["required"] == [field]
