"""What a tool may return, and what the model reads of it; and `File`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from a2a_canvas import File
from a2a_canvas.tools.functions.results import digest


class Tide(BaseModel):
    port: str
    high: float


@dataclass
class Berth:
    number: int
    free: date


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("at five", "at five"),
        ("", "Done; it returned nothing."),
        (None, "Done; it returned nothing."),
        (Tide(port="Brest", high=5.9), '{"port":"Brest","high":5.9}'),
        ({"port": "Höfn", "high": 5.9}, '{"port":"Höfn","high":5.9}'),
        (5, "5"),
        (0.5, "0.5"),
        (True, "true"),
        (Berth(3, date(2026, 5, 1)), '{"number":3,"free":"2026-05-01"}'),
        ({"tides": [Tide(port="Brest", high=5.9)]}, '{"tides":[{"port":"Brest","high":5.9}]}'),
        (["at five", "at six"], "at five\nat six"),
        ([Tide(port="Brest", high=5.9), "at five"], '{"port":"Brest","high":5.9}\nat five'),
        ([{"port": "Brest"}, {"port": "Höfn"}], '[{"port":"Brest"},{"port":"Höfn"}]'),
        ([1, 2], "[1,2]"),
        (["at", 5], '["at",5]'),
    ],
)
def test_the_model_reads_a_text_as_it_is_and_other_values_as_json(result: Any, text: str) -> None:
    assert digest(result, "tides", "c-1").text == text


def test_a_file_in_a_list_becomes_an_artifact_and_the_rest_is_read() -> None:
    made = digest([{"port": "Brest"}, File("tides.csv", "text/csv", "Brest,5.9")], "tides", "c-1")
    assert made.text == "{\"port\":\"Brest\"}\n[The file 'tides.csv' (text/csv, 9 bytes) is in artifact 'tides.csv'.]"
    assert made.files == (("tides.csv", File("tides.csv", "text/csv", b"Brest,5.9")),)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (b"\x89PNG", r"returned bytes: return them as a File, such as File\("),
        (object(), "returned object: a tool returns str, a JSON value, a pydantic model, a File, or a list of these"),
        ({"when": object()}, "returned dict: a tool returns str"),
    ],
)
def test_what_can_be_no_result_is_told(result: Any, why: str) -> None:
    with pytest.raises(TypeError, match=f"^tides {why}"):
        digest(result, "tides", "c-1")


# ---------------------------------------------------------------------------- File


@pytest.mark.parametrize(
    ("file", "media_type", "content"),
    [
        (File("a.txt", content="Höfn"), "text/plain", "Höfn".encode()),
        (File("a.csv", "text/csv", "a,b"), "text/csv", b"a,b"),
        (File("empty.txt", content=""), "text/plain", b""),
        (File("a.bin", content=b"\x00"), "application/octet-stream", b"\x00"),
        (File("a.png", "image/png", url="https://example.com/a.png"), "image/png", None),
    ],
)
def test_a_file_has_bytes_a_text_or_an_address(file: File, media_type: str, content: bytes | None) -> None:
    assert (file.media_type, file.content) == (media_type, content)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "A File has content or a url, exactly one of them; 'a.txt' has none."),
        ({"content": "a", "url": "https://example.com"}, "exactly one of them; 'a.txt' has both."),
        ({"content": 5}, "The content of a File is bytes or str, not int."),
        ({"url": 5}, "The url of a File is a str, not int."),
        ({"media_type": None, "content": "a"}, "The media_type of a File is a str, not NoneType."),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_the_reason(given: dict[str, Any], why: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        File("a.txt", **given)
    assert str(refused.value).endswith(why)
