"""The caller's contexts as a resource: listed."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest

from tests.server.protocols.artifacts.artifact_fixtures import ArtifactHarness
from tests.server.protocols.artifacts.test_routes import error_of, writing


@pytest.fixture
async def harness() -> ArtifactHarness:
    """`ctx` with an artifact, and after it `a/b`, whose task has only begun."""
    harness = ArtifactHarness()
    await harness.do(writing("one\n", "doc.md"))
    harness.clock.move(timedelta(seconds=1))
    harness.context = "a/b"
    await harness.begin("later")
    return harness


CTX = {
    "contextId": "ctx",
    "name": None,
    "request": "Do the work of task",
    "createdAt": "2026-01-01T00:00:00Z",
    "updatedAt": "2026-01-01T00:00:00Z",
    "tasks": 1,
    "working": 1,
    "artifacts": [{"artifactId": "doc", "name": "doc.md"}],
    "urls": {"artifacts": "/artifacts/ctx", "events": "/artifacts/ctx/events"},
}


@pytest.mark.parametrize("path", ["/artifacts", "/artifacts/"])
async def test_the_list_has_each_context_the_newest_first(harness: ArtifactHarness, path: str) -> None:
    listing = (await harness.get(path)).json()
    assert [each["contextId"] for each in listing["contexts"]] == ["a/b", "ctx"]
    assert listing["contexts"][1] == CTX
    assert listing["contexts"][0]["urls"]["artifacts"] == "/artifacts/a%2Fb"
    assert listing["nextPageToken"] == ""


async def test_urls_have_the_prefix_of_a_proxy(harness: ArtifactHarness) -> None:
    listing = (await harness.get("/artifacts", root="/there")).json()
    assert listing["contexts"][1]["urls"]["artifacts"] == "/there/artifacts/ctx"


async def test_a_page_names_the_next_one(harness: ArtifactHarness) -> None:
    first = (await harness.get("/artifacts?pageSize=1")).json()
    assert [each["contextId"] for each in first["contexts"]] == ["a/b"]
    rest = (await harness.get(f"/artifacts?pageSize=1&pageToken={quote(first['nextPageToken'])}")).json()
    assert [each["contextId"] for each in rest["contexts"]] == ["ctx"]
    assert rest["nextPageToken"] == ""


async def test_a_query_finds_words_of_the_request(harness: ArtifactHarness) -> None:
    listing = (await harness.get("/artifacts?query=LATER%20work")).json()
    assert [each["contextId"] for each in listing["contexts"]] == ["a/b"]


async def test_a_client_that_has_the_list_gets_304_until_it_changes(harness: ArtifactHarness) -> None:
    tag = (await harness.get("/artifacts")).headers["ETag"]
    assert (await harness.get("/artifacts", If_None_Match=tag)).status_code == 304
    await harness.begin("another")
    assert (await harness.get("/artifacts", If_None_Match=tag)).status_code == 200


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("pageSize=0", "pageSize is '0' and must be 1 to 100."),
        ("pageSize=many", "pageSize is 'many' and must be 1 to 100."),
        ("pageSize=101", "pageSize is '101' and must be 1 to 100."),
        ("pageToken=x", "pageToken is not one of this server's; leave it out for the first page."),
    ],
)
async def test_a_wrong_parameter_is_refused(harness: ArtifactHarness, query: str, sentence: str) -> None:
    answer = await harness.get(f"/artifacts?{query}")
    assert error_of(answer) == (400, "INVALID_ARGUMENT", sentence)


async def test_without_a_task_there_are_none() -> None:
    assert (await ArtifactHarness().get("/artifacts")).json() == {"contexts": [], "nextPageToken": ""}
