"""How the tools are described to a host's model, and how their arguments are read."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.mcp_server.tool_forms import (
    TOOLS,
    format_id,
    input_schema,
    parse_id,
    read_arguments,
)
from a2a_canvas.store.text.unicode import valid_id

CHARACTERS_OF_A_TOKEN = 3
"""Fewer than any tokenizer takes for English and JSON, so the count is an upper bound."""


def test_there_are_ten_tools_and_a_model_is_told_of_them_in_2500_tokens() -> None:
    assert len(TOOLS) <= 10
    told = [
        {"name": name, "description": " ".join((form.__doc__ or "").split()), "inputSchema": input_schema(form)}
        for name, form in TOOLS.items()
    ]
    assert len(json.dumps(told)) / CHARACTERS_OF_A_TOKEN <= 2500
    assert all(each["description"] for each in told)


@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_is_one_and_allows_no_other_arguments(name: str) -> None:
    schema = input_schema(TOOLS[name])
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"surprise": 1}, schema)


IDS = st.text(min_size=1, max_size=20).filter(lambda text: _is_valid(text))


def _is_valid(text: str) -> bool:
    try:
        return bool(valid_id(text).encode())
    except ValueError:
        return False


@given(IDS, IDS)
def test_an_id_names_its_context_and_its_artifact_whatever_they_are_called(context: str, artifact: str) -> None:
    assert parse_id(format_id(context, artifact)) == (context, artifact)


@pytest.mark.parametrize("given_id", ["", "report.md", "a/b/c", "a/%00", "a/%ff"])
def test_what_is_no_id_is_refused_with_what_one_looks_like(given_id: str) -> None:
    with pytest.raises(InvalidOperation, match="must be context/artifact, as list_artifacts shows it"):
        parse_id(given_id)


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("delete", {}, "must be list_artifacts, read_artifact"),
        ("read_artifact", {}, "id is missing: list_artifacts tells it"),
        ("read_artifact", {"id": "c/a", "artifact": "a"}, "artifact is no argument of this tool, which has id,"),
        ("read_artifact", {"id": "c/a", "lines": "9-"}, "lines is '9-' and must be like 12 or 12-40"),
        ("read_artifact", {"id": "c/a", "version": 0}, "version "),
        ("edit_artifact", {"id": "c/a", "new": "x", "base_version": 1}, "old or lines says what is replaced"),
        ("edit_artifact", {"id": "c/a", "old": "", "lines": "1", "new": "x", "base_version": 1}, "give one of them"),
        ("edit_artifact", {"id": "c/a", "old": "a", "new": "x"}, "base_version is missing: read_artifact tells it"),
        ("comment", {"id": "c/a", "text": "x"}, "quote or lines or reply_to says where"),
        ("ask_agent", {"text": "x", "id": "c/a", "context": "c"}, "context is in the id already"),
    ],
)
def test_wrong_arguments_are_refused_by_their_names(tool: str, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidOperation) as refused:
        read_arguments(tool, arguments)
    assert reason in str(refused.value)


def test_null_is_an_argument_that_is_not_given() -> None:
    assert read_arguments("list_artifacts", {"context": None, "query": "tide"}).model_dump() == {
        "context": None,
        "query": "tide",
    }


@pytest.mark.parametrize(
    "shown", ["canvas://c/a%20b", "http://127.0.0.1:8000/#/c/a%20b", "https://x.example/y/#/c/a%20b/3"]
)
def test_the_address_of_a_resource_and_of_the_page_are_ids(shown: str) -> None:
    assert parse_id(shown) == ("c", "a b")


def test_lines_are_a_number_or_a_range() -> None:
    for sent, lines in ((3, "3"), ("3", "3"), ("3-5", "3-5")):
        assert read_arguments("read_artifact", {"id": "c/a", "lines": sent}).model_dump()["lines"] == lines


def test_what_a_model_is_told_of_a_tool_begins_with_a_verb() -> None:
    first = {name: (form.__doc__ or "").split()[0] for name, form in TOOLS.items()}
    assert all(word.isalpha() and word.istitle() for word in first.values()), first
