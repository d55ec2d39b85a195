import base64
import json
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.tool_sources.mcp_servers.tool_results import contents_of, result_of
from a2a_canvas.tools.functions.results import File, ToolError

PNG = b"\x89PNG..."
DATA = base64.b64encode(PNG).decode()


RECORDED = json.loads(Path(__file__).with_name("recorded_results.json").read_text())
"""Results of two servers of the MCP project, which repeat their content in `structuredContent`."""


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (text("Hello"), "Hello"),
        ({"type": "image", "data": DATA, "mimeType": "image/png"}, File("t-20bb52.png", "image/png", PNG)),
        ({"type": "audio", "data": DATA, "mimeType": "audio/x-unknown"}, File("t-20bb52", "audio/x-unknown", PNG)),
        ({"type": "image", "data": "?", "mimeType": "image/png"}, "(image/png that is not valid base64)"),
        ({"type": "resource", "resource": {"uri": "a://b/c.md", "text": "T"}}, "a://b/c.md:\nT"),
        (
            {"type": "resource", "resource": {"uri": "a://b/c.pdf", "blob": DATA, "mimeType": "application/pdf"}},
            File("c.pdf", "application/pdf", PNG),
        ),
        ({"type": "resource", "resource": {"uri": "a://b/c.png", "blob": DATA}}, File("c.png", "image/png", PNG)),
        (
            {"type": "resource_link", "uri": "https://h/x.csv", "name": "x.csv", "mimeType": "text/csv"},
            File("x.csv", "text/csv", url="https://h/x.csv"),
        ),
        (
            {"type": "resource_link", "uri": "a://b", "name": "B", "description": "All of it"},
            "Resource B (a://b, which s__read_resource reads): All of it",
        ),
        ({"type": "hologram"}, "(content of a kind that this agent does not know: hologram)"),
    ],
)
def test_content_becomes_text_and_files(block: dict[str, Any], part: str | File) -> None:
    assert result_of("t", {"content": [block]}, "s__read_resource") == [part]


def test_structured_content_becomes_json() -> None:
    assert result_of("t", {"content": [text("It is mild.")], "structuredContent": {"°C": 12}}) == [
        "It is mild.",
        '{"°C": 12}',
    ]
    assert result_of("t", {"content": [], "structuredContent": []}) == ["[]"]


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (['{"a": 1}'], {"a": 1}),
        (["5"], {"result": 5}),
        (["five"], {"result": "five"}),
        (["1", "2"], {"result": [1, 2]}),
        (["one", "two"], {"result": ["one", "two"]}),
        (["five"], {"content": "five"}),
        (['["five"]'], {"values": ["five"]}),
    ],
)
def test_what_is_said_twice_is_passed_on_once(texts: list[str], structured: Any) -> None:
    result = {"content": [text(each) for each in texts], "structuredContent": structured}
    assert result_of("t", result) == texts


@pytest.mark.parametrize("name", sorted(set(RECORDED) - {"memory delete_entities", "filesystem read_media_file"}))
def test_a_result_of_the_file_and_the_memory_server_is_passed_on_once(name: str) -> None:
    assert result_of("t", RECORDED[name]) == [RECORDED[name]["content"][0]["text"]]


def test_what_is_structured_and_said_in_other_words_is_passed_on_too() -> None:
    told = "Entities deleted successfully"
    assert result_of("t", RECORDED["memory delete_entities"]) == [
        told,
        json.dumps({"success": True, "message": told}),
    ]


def test_an_image_is_a_file_and_not_text_as_well() -> None:
    [image] = result_of("t", RECORDED["filesystem read_media_file"])
    assert isinstance(image, File)
    assert image.media_type == "image/png"


IMAGE = {"type": "image", "data": DATA, "mimeType": "image/png"}
FILE = {"type": "resource", "resource": {"uri": "a://b/c.png", "blob": DATA}}


@pytest.mark.parametrize(
    ("content", "structured", "rest"),
    [
        ([IMAGE], {"image": IMAGE}, None),
        ([IMAGE], [IMAGE], None),
        ([IMAGE], {"images": [{"data": DATA}], "count": 1}, {"count": 1}),
        ([IMAGE], {"blocks": [IMAGE, text("A dot.")]}, {"blocks": [text("A dot.")]}),
        ([IMAGE], {"images": [], "note": None}, {"images": [], "note": None}),
        ([FILE], {"files": [{"blob": DATA}]}, None),
        ([text("x" * 200)], {"content": "x" * 200, "path": "a.txt"}, {"path": "a.txt"}),
        ([text("5")], {"least": "5", "most": "9"}, {"least": "5", "most": "9"}),
        ([], {}, {}),
    ],
)
def test_only_what_the_content_does_not_say_is_passed_on_as_json(content: Any, structured: Any, rest: Any) -> None:
    once = result_of("t", {"content": content})
    told = result_of("t", {"content": content, "structuredContent": structured})
    assert told == [*once, *([] if rest is None else [json.dumps(rest)])]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([text("No such city."), {"type": "image", "data": DATA, "mimeType": "image/png"}], "No such city."),
        ([], "t failed, and its server did not say why."),
        ([text("x" * 9_000)], "x" * 4_000),
    ],
)
def test_an_error_is_told_to_the_model_in_the_words_of_the_server(content: list[Any], told: str) -> None:
    with pytest.raises(ToolError) as error:
        result_of("t", {"content": content, "isError": True})
    assert str(error.value) == told


def test_a_resource_that_was_read_is_its_text_or_a_file() -> None:
    one, two = {"uri": "a://1", "text": "One"}, {"uri": "a://b/2.txt", "blob": DATA}
    assert contents_of("t", [one]) == ["One"]
    assert contents_of("t", [one, two]) == ["a://1:\nOne", File("2.txt", "text/plain", PNG)]
