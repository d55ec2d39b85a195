"""docs/artifacts.md: what its requests read is what the requests in docs/editing.md wrote."""

from __future__ import annotations

import json
import re

import pytest

from a2a_canvas.server.protocols.artifacts.paths import (
    ArtifactList,
    ArtifactStream,
    ArtifactVersion,
    ContextEvents,
    ContextList,
    ContextPresence,
    CurrentArtifact,
    OneShare,
    ShareList,
    VersionDiff,
    VersionList,
    parse_path,
)
from a2a_canvas.server.wire import CANVAS
from tests.docs.curl import Answer, Curl, curls, send_all
from tests.docs.pages import ADDRESS, blocks, page, rows, section

PAGE = page("artifacts")


@pytest.fixture(scope="module")
def read(address: str) -> dict[str, Answer]:
    """The answers, by path."""
    sent = send_all(address, [*curls(page("editing")), *curls(PAGE)])
    return {curl.path: answer for curl, answer in sent if curl.path.startswith("/artifacts") and not curl.headers}


def test_what_is_read_is_what_was_written(read: dict[str, Answer]) -> None:
    assert "notes" in [each["contextId"] for each in read["/artifacts"].results[0]["contexts"]]
    [entry] = read["/artifacts/notes"].results[0]["artifacts"]
    assert (entry["artifactId"], entry["version"], entry["versions"], entry["open"]) == ("tide-pools", 1, 2, False)
    assert read["/artifacts/notes/tide-pools?raw=1"].headers["content-type"].startswith("text/markdown")
    assert [each["number"] for each in read["/artifacts/notes/tide-pools/versions"].results[0]["versions"]] == [1, 2]
    diff = read["/artifacts/notes/tide-pools/versions/2/diff?raw=1"].text
    assert "-A tide pool is a piece of sea that the sea forgets twice a day.\n+A tide pool is" in diff
    [event] = read["/artifacts/notes/events"].events
    assert event["artifactUpdate"]["metadata"][CANVAS] == {"artifactVersion": 1, "author": "agent"}


def test_every_path_is_in_the_table() -> None:
    said = [row[0].strip("`") for row in rows(PAGE, "Paths")]
    below = [path.removeprefix("/artifacts").removeprefix("/").translate({123: None, 125: None}) for path in said]
    assert [type(parse_path(path)) for path in below] == [
        ContextList,
        ArtifactList,
        CurrentArtifact,
        VersionList,
        ArtifactVersion,
        VersionDiff,
        ArtifactStream,
        ShareList,
        OneShare,
        ContextEvents,
        ContextPresence,
    ]


def test_the_stream_is_what_the_page_says(read: dict[str, Answer]) -> None:
    whole, nothing = (read[f"/artifacts/notes/tide-pools/stream{query}"] for query in ("", "?offset=now"))
    [replacement], empty = json.loads(whole.text), json.loads(nothing.text)
    assert empty == []
    [[example, *_]] = [json.loads(block) for block in blocks(PAGE, "json") if '"replace"' in block]
    assert replacement.keys() == example.keys()
    assert whole.headers["stream-next-offset"] == nothing.headers["stream-next-offset"]
    kinds = set(
        re.findall(r"^\| `(\w+)` \| (?:adds|replaces|nothing)", section(PAGE, "Streams for caches"), re.MULTILINE)
    )
    assert kinds == {"replace", "append", "edit", "rollback", "close"}


def test_the_table_of_contexts_has_the_fields_of_one(read: dict[str, Answer]) -> None:
    said = [name.strip("` ") for row in rows(PAGE, "Contexts") for name in row[0].split(",")]
    assert said == [*read["/artifacts"].results[0]["contexts"][0], "shared"]


def test_a_search_in_texts_is_answered_as_the_page_says(read: dict[str, Answer]) -> None:
    [shown] = [json.loads(block) for block in blocks(section(PAGE, "Contexts"), "json")]
    answer = read["/artifacts?text=tide+pools"].results[0]
    assert answer.keys() == shown.keys()
    assert shown["found"][0] in answer["found"]


def test_a_missing_resource_is_answered_as_the_page_says(address: str) -> None:
    answer = Curl(f"{ADDRESS}/artifacts/nowhere", {}, "").send(address)
    assert answer.status == 404
    [detail] = json.loads(answer.text)["error"]["details"]
    assert f"`{detail['reason']}`" in section(page("errors"), "Under `/artifacts`")
