import base64
from typing import Any

import pytest

from a2a_canvas.server.tool_sources.mcp_servers.tool_results import contents_of, result_of
from a2a_canvas.tools.functions.results import File, ToolError

PNG = b"\x89PNG..."
DATA = base64.b64encode(PNG).decode()


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
    ],
)
def test_what_is_said_twice_is_passed_on_once(texts: list[str], structured: Any) -> None:
    result = {"content": [text(each) for each in texts], "structuredContent": structured}
    assert result_of("t", result) == texts


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
