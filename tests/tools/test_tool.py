"""Tools that take their whole input at once: what the model did wrong is answered, with how to do it right."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from a2a_canvas.store.errors import ArtifactTooLarge
from a2a_canvas.store.models import Ref
from a2a_canvas.tools.tool import Done, Failed, Outcome, Workspace, explain, invalid_json_message, whole_input_tool
from tests.store.artifact_builders import JSON, result
from tests.tools.tool_calls import call, dumped, fragments, workspace


class Order(BaseModel):
    what: str = Field(description="What is ordered.")
    count: Annotated[int, Field(ge=1)] = 1
    rest: list[Any] = []


async def take(order: Order, place: Workspace) -> Outcome:
    return Done(f"{order.what} x {order.count} for {place.task_id}: {order.rest}")


ORDER = whole_input_tool("order", "Orders.", Order, take)


@given(st.data(), JSON)
def test_the_input_may_be_cut_anywhere(draw: st.DataObject, value: Any) -> None:
    whole = {"what": "é😀", "count": 2, "rest": [value]}
    pieces = draw.draw(fragments(draw.draw(dumped(whole))))
    assert result(call(ORDER, pieces)) == Done(f"é😀 x 2 for t1: {[value]}")


@pytest.mark.parametrize(
    "input_", ["{", '{"what": "x"', "what", '{"what": "x"} {}', "[" * 100_000, '"\\', '{"what": ' + "1" * 5000 + "}"]
)
async def test_what_is_not_json_is_answered_with_what_to_do(input_: str) -> None:
    assert await call(ORDER, [input_]) == Failed(invalid_json_message("order"))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "what: is missing"),
        ({"what": 1}, "what: is "),
        ({"what": "x", "count": 0}, "count: is 0 and must be at least 1"),
        ({"count": "many"}, "what: is missing; count: is "),
        (None, "input: is "),
        ([], "input: is "),
        ("x", "input: is "),
    ],
)
async def test_what_does_not_fit_the_schema_is_answered_field_by_field(value: Any, says: str) -> None:
    outcome = await call(ORDER, [json.dumps(value)])
    assert isinstance(outcome, Failed)
    assert outcome.content.startswith("The input of order is not valid, nothing was changed. " + says)
    assert outcome.content.endswith("Call order again with these corrected.")


class Nothing(BaseModel):
    pass


async def answer(_: Nothing, __: Workspace) -> Outcome:
    return Done("yes")


@pytest.mark.parametrize("pieces", [[], [""], ["{}"], ["{", "}"], ['{"unknown": 1}']])
async def test_a_tool_without_parameters_may_be_called_without_input(pieces: list[str]) -> None:
    assert await call(whole_input_tool("ping", "", Nothing, answer), pieces) == Done("yes")


async def test_no_input_is_missing_its_fields_where_there_are_some() -> None:
    outcome = await call(ORDER, [])
    assert isinstance(outcome, Failed)
    assert "what: is missing" in outcome.content


async def test_a_limit_passes() -> None:
    async def too_much(_: Nothing, __: Workspace) -> Outcome:
        raise ArtifactTooLarge(2, 1)

    with pytest.raises(ArtifactTooLarge):
        await call(whole_input_tool("grow", "", Nothing, too_much), ["{}"])


async def test_a_call_that_is_aborted_has_done_nothing() -> None:
    ran: list[Order] = []

    async def run(order: Order, _: Workspace) -> Outcome:
        ran.append(order)
        return Done("")

    stream = whole_input_tool("order", "", Order, run).open(workspace())
    await stream.feed('{"what": "x"}')
    assert stream.label == ""
    await stream.abort()
    assert ran == []


def test_a_tool_waits_for_its_input_and_for_no_other_call_unless_told() -> None:
    assert (ORDER.eager, ORDER.acts_last) == (False, False)


def test_the_schema_is_that_of_the_model() -> None:
    assert ORDER.input_schema == Order.model_json_schema()
    assert ORDER.input_schema["required"] == ["what"]


def test_a_workspace_names_artifacts_for_its_task() -> None:
    assert workspace(task="t9").ref("a") == Ref("c", "a", "t9")


def errors_of(value: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(value)
    return caught.value


class Numbers(BaseModel):
    numbers: list[int]


def test_at_most_ten_faults_are_explained() -> None:
    with pytest.raises(ValidationError) as caught:
        Numbers.model_validate({"numbers": ["x"] * 12})
    assert [f"numbers.{n}:" in explain("order", caught.value) for n in (0, 9, 10)] == [True, True, False]


def test_faults_are_named_from_where_the_value_stands() -> None:
    error = errors_of({"what": 1})
    assert "artifact.parts.3.what: is " in explain("order", error, ("artifact", "parts", 3))
    assert "artifact.note: is wrong." in explain("order", ValueError("is wrong"), ("artifact", "note"))
    assert "changed. input: is wrong." in explain("order", ValueError("is wrong"))


def test_what_is_wrong_with_the_json_is_told_where_it_is_known() -> None:
    assert "valid JSON (expected ':' at character 3), nothing" in invalid_json_message(
        "order", "expected ':' at character 3"
    )
    assert "valid JSON, nothing was changed. Call it again, with all of it." in invalid_json_message("order")
