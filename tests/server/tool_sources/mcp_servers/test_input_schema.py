from typing import Any

import pytest

from a2a_canvas.server.tool_sources.mcp_servers.input_schema import ANYTHING, Schema, normalise

TEXT = {"type": "string"}


def test_a_plain_schema_is_passed_on_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": TEXT}, "required": ["a"], "$defs": {"X": {"type": "object"}}}
    assert normalise(schema).json == schema
    assert normalise(schema).original({"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    "given",
    [None, [], True, {}, {"type": "object"}, {"type": "nonsense"}, {"type": "object", "properties": {"a": 3}}],
)
def test_what_is_no_schema_becomes_any_object(given: object) -> None:
    assert normalise(given).json == {"type": "object", "properties": {}}


def test_a_schema_that_is_too_large_or_too_deep_becomes_any_object() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(5_000):
        deep = {"type": "object", "properties": {"a": deep}}
    large = {"type": "object", "properties": {f"p{n}": TEXT for n in range(10_000)}}
    assert normalise(deep).json == normalise(large).json == {"type": "object", "properties": {}}


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_choices_at_the_root_are_put_together(key: str) -> None:
    one = {"properties": {"a": TEXT, "c": TEXT}, "required": ["a", "c"]}
    two = {"properties": {"b": TEXT, "c": TEXT}, "required": ["b", "c"]}
    assert normalise({"type": "object", key: [one, two]}).json == {
        "type": "object",
        "properties": {"b": TEXT, "c": TEXT, "a": TEXT},
        "required": ["c"],
    }


def test_parts_and_references_at_the_root_are_put_together() -> None:
    schema = {
        "$defs": {"A": {"properties": {"a": TEXT}, "required": ["a"]}},
        "allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": TEXT}, "required": ["b"]}],
    }
    mended_schema = normalise(schema).json
    assert mended_schema["required"] == ["a", "b"]
    assert mended_schema["properties"] == {"a": TEXT, "b": TEXT}
    assert "allOf" not in mended_schema


def test_a_reference_to_itself_ends() -> None:
    assert normalise({"$ref": "#", "properties": {"a": TEXT}}).json["properties"] == {"a": TEXT}
    assert normalise({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}).json["type"] == "object"


def test_names_that_providers_refuse_are_replaced_and_given_back() -> None:
    schema = normalise({"type": "object", "properties": {"the city": TEXT, "b": TEXT}, "required": ["the city"]})
    assert schema.json == {"type": "object", "properties": {"the_city": TEXT, "b": TEXT}, "required": ["the_city"]}
    assert schema.original({"the_city": "Rom", "b": "x"}) == {"the city": "Rom", "b": "x"}


def test_a_root_of_several_types_is_an_object() -> None:
    assert normalise({"type": ["object", "null"]}).json == {"type": "object", "properties": {}}


FORM = normalise(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "depth": {"type": ["integer", "null"]},
            "any": {},
        },
        "required": ["path"],
    }
)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"path": "a", "depth": 2, "any": [1], "more": 1}, ""),
        ({"path": "a", "depth": None}, ""),
        ({"path": "a", "depth": 2.0}, ""),
        ({}, "path: is missing"),
        (
            {"path": 1, "depth": True},
            "path: is 1 and must be a string; depth: is true and must be a whole number or null",
        ),
        ({"path": "a", "depth": 2.5}, "depth: is 2.5 and must be a whole number or null"),
    ],
)
def test_an_input_of_wrong_names_or_types_is_told(given: dict[str, object], fault: str) -> None:
    told = f"The input of write is not valid, nothing was changed. {fault}. Call write again with these corrected."
    assert FORM.fault("write", given) == (told if fault else "")


@pytest.mark.parametrize(
    "unchecked",
    [
        {"required": 5},
        {"required": [["a"]]},
        {"properties": 5},
        {"properties": [1]},
        {"properties": {"a": {"type": "any"}}},
        {"properties": {"a": {"type": [["string"]]}}},
        {"properties": {"a": {"type": 5}}},
    ],
    ids=str,
)
@pytest.mark.parametrize("at", ["root", "allOf", "anyOf"])
def test_a_reference_to_what_is_no_schema_allows_any_object(unchecked: dict[str, object], at: str) -> None:
    reference = {"$ref": "#/x-unchecked"}
    given = {**(reference if at == "root" else {at: [reference]}), "x-unchecked": unchecked}
    assert normalise(given) == Schema(ANYTHING)
    assert normalise(given).fault("write", {"a": 1}) == ""


@pytest.mark.parametrize("kind", ["array", "boolean", "integer", "null", "number", "object", "string"])
def test_a_value_of_another_type_is_told_for_every_type_of_json_schema(kind: str) -> None:
    schema = normalise({"type": "object", "properties": {"a": {"type": kind}}})
    assert "a: is " in schema.fault("write", {"a": 1 if kind == "string" else "text"})


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1.5])
def test_a_number_that_is_not_whole_is_told_where_an_integer_is_due(value: float) -> None:
    schema = normalise({"type": "object", "properties": {"count": {"type": "integer"}}})
    assert "must be a whole number" in schema.fault("write", {"count": value})
