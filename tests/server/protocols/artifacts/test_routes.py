"""Artifacts as resources: what a client gets for each path, and what it is refused."""

from threading import get_ident
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.protocols.artifacts import routes
from a2a_canvas.server.protocols.artifacts.raw_content import NoRawContent, RawContent, raw_content
from a2a_canvas.server.protocols.edge.http_requests import CALLER, conditional_response
from a2a_canvas.store.changes import AppendParts, ReplaceParts, Restore, Undo
from a2a_canvas.store.models import Content, DataPart, FilePart, text_of, text_part
from tests.server.protocols.artifacts.artifact_fixtures import ArtifactHarness

NOW = "2026-01-01T00:00:00.000Z"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def writing(text: str, name: str | None = None, media_type: str = "text/markdown") -> ReplaceParts:
    return ReplaceParts((text_part(text, media_type),), name=name, last_chunk=True)


@pytest.fixture
async def harness() -> ArtifactHarness:
    """`doc` with the versions one, two, three, of which two is the current one."""
    harness = ArtifactHarness()
    await harness.do(writing("one\n", "doc.md"))
    await harness.do(writing("two\n"), author="user")
    await harness.do(writing("three"), task="other")
    await harness.do(Undo(), task="other")
    return harness


def error_of(response: httpx.Response) -> tuple[int, str, str]:
    """(code, status, message) of a `google.rpc.Status`; its code is the answer's."""
    error = response.json()["error"]
    assert error["code"] == response.status_code
    assert error["details"][0]["domain"] == "a2a-protocol.org"
    return error["code"], error["status"], error["message"]


# ----------------------------------------------------------------------------- reading


async def test_the_list_has_each_artifact_without_its_content_the_last_changed_last(harness: ArtifactHarness) -> None:
    await harness.do(AppendParts((FilePart(b"123"), DataPart([1], size=3)), description="Numbers."), artifact="data")
    listing = (await harness.get("ctx")).json()
    assert listing == {
        "contextId": "ctx",
        "artifacts": [
            {
                "artifactId": "doc",
                "name": "doc.md",
                "description": "",
                "version": 2,
                "versions": 3,
                "open": False,
                "author": "user",
                "kinds": ["text"],
                "size": 4,
                "urls": {"artifact": "/artifacts/ctx/doc", "versions": "/artifacts/ctx/doc/versions"},
            },
            {
                "artifactId": "data",
                "name": "",
                "description": "Numbers.",
                "version": 0,
                "versions": 0,
                "open": True,
                "kinds": ["file", "data"],
                "size": 6,
                "urls": {"artifact": "/artifacts/ctx/data", "versions": "/artifacts/ctx/data/versions"},
            },
        ],
        "agentsSuggest": False,
        "urls": {"events": "/artifacts/ctx/events"},
    }


async def test_an_artifact_is_shown_as_it_stands_with_its_draft(harness: ArtifactHarness) -> None:
    assert (await harness.get("ctx/doc")).json() == {
        "artifactId": "doc",
        "name": "doc.md",
        "parts": [{"text": "two\n", "mediaType": "text/markdown"}],
        "version": 2,
        "open": False,
    }
    await harness.do(AppendParts((text_part("more"),)))
    shown = (await harness.get("ctx/doc")).json()
    assert (shown["parts"][0]["text"], shown["version"], shown["open"]) == ("two\nmore", 2, True)


async def test_parts_have_the_form_of_a2a_1_0() -> None:
    harness = ArtifactHarness()
    parts = (
        text_part("é", metadata={"lang": "fr"}),
        FilePart(b"\x00", name="a.bin", media_type="a/b"),
        FilePart(url="https://example.org/x"),
        DataPart({"a": [1.5, None]}),
    )
    await harness.do(ReplaceParts(parts))
    shown = (await harness.get("ctx/doc")).json()
    for ours in ("version", "open"):
        del shown[ours]
    artifact = ParseDict(shown, pb.Artifact())
    assert [part.WhichOneof("content") for part in artifact.parts] == ["text", "raw", "url", "data"]
    assert shown["parts"][0] == {"text": "é", "metadata": {"lang": "fr"}}
    assert artifact.parts[1].raw == b"\x00"


async def test_all_versions_are_listed_with_who_made_them_of_what_when_and_why(harness: ArtifactHarness) -> None:
    answer = (await harness.get("ctx/doc/versions")).json()
    common = {"incomplete": False, "timestamp": NOW, "request": "Do the work of task"}
    other = common | {"request": "Do the work of other"}
    assert answer == {
        "artifactId": "doc",
        "versions": [
            common | {"number": 1, "author": "agent", "parent": 0, "taskId": "task", "size": 4, "current": False},
            common | {"number": 2, "author": "user", "parent": 1, "taskId": "task", "size": 4, "current": True},
            other | {"number": 3, "author": "agent", "parent": 2, "taskId": "other", "size": 5, "current": False},
        ],
    }


async def test_the_request_of_another_owner_is_not_told() -> None:
    harness = ArtifactHarness()
    await harness.begin("mine")
    await harness.begin("theirs", "somebody")
    await harness.do(writing("one"), task="theirs")
    [version] = (await harness.get("ctx/doc/versions")).json()["versions"]
    assert (version["taskId"], "request" in version) == ("theirs", False)


async def test_a_version_has_its_content_and_its_facts(harness: ArtifactHarness) -> None:
    version = (await harness.get("ctx/doc/versions/3")).json()
    assert version == {
        "artifactId": "doc",
        "name": "doc.md",
        "parts": [{"text": "three", "mediaType": "text/markdown"}],
        "number": 3,
        "author": "agent",
        "parent": 2,
        "taskId": "other",
        "incomplete": False,
        "size": 5,
        "current": False,
        "timestamp": NOW,
        "request": "Do the work of other",
    }


@pytest.mark.parametrize(
    ("path", "before", "diff"),
    [
        ("1/diff", 0, "--- version 0\n+++ version 1\n@@ -0,0 +1 @@\n+one\n"),
        ("2/diff", 1, "--- version 1\n+++ version 2\n@@ -1 +1 @@\n-one\n+two\n"),
        ("3/diff?from=1", 1, "--- version 1\n+++ version 3\n@@ -1 +1 @@\n-one\n+three\n\\ No newline at end of file\n"),
        ("1/diff?from=2", 2, "--- version 2\n+++ version 1\n@@ -1 +1 @@\n-two\n+one\n"),
        ("2/diff?from=2", 2, ""),
        ("2/diff?from=0", 0, "--- version 0\n+++ version 2\n@@ -0,0 +1 @@\n+two\n"),
    ],
)
async def test_a_diff_is_from_the_parent_or_any_other_version(
    harness: ArtifactHarness, path: str, before: int, diff: str
) -> None:
    answer = await harness.get(f"ctx/doc/versions/{path}")
    assert answer.json() == {"from": before, "to": int(path[0]), "diff": diff}
    raw = await harness.get(f"ctx/doc/versions/{path}", Accept="text/x-diff")
    assert (raw.text, raw.headers["content-type"]) == (diff, "text/x-diff; charset=utf-8")
    assert (await harness.get(f"ctx/doc/versions/{path}{'&' if '?' in path else '?'}raw=1")).text == diff


async def test_the_parent_is_the_version_it_was_made_from_not_the_one_before(harness: ArtifactHarness) -> None:
    await harness.do(Restore(1))
    assert (await harness.get("ctx/doc/versions/4/diff")).json()["from"] == 2


# ------------------------------------------------------------------------- raw content


@pytest.mark.parametrize("path", ["ctx/doc", "ctx/doc/versions/2"])
@pytest.mark.parametrize(
    ("query", "accept", "media_type"),
    [
        ("?raw=1", "application/json", "text/markdown; charset=utf-8"),
        ("", "text/markdown", "text/markdown; charset=utf-8"),
        ("?raw=0", "text/plain", "text/plain; charset=utf-8"),
        ("", BROWSER, "application/json"),
        ("", "*/*", "application/json"),
        ("", "application/a2a+json", "application/a2a+json"),
    ],
)
async def test_who_asks_for_the_raw_content_gets_it(
    harness: ArtifactHarness, path: str, query: str, accept: str, media_type: str
) -> None:
    answer = await harness.get(path + query, Accept=accept)
    assert answer.headers["content-type"] == media_type
    assert (answer.text == "two\n") is not ("json" in media_type)
    assert answer.headers["vary"] == "Accept"


async def test_html_is_never_given_a_browser_to_run(harness: ArtifactHarness) -> None:
    await harness.do(writing("<script>alert(1)</script>", media_type="text/html"), artifact="page")
    for answer in (await harness.get("ctx/page", Accept=BROWSER), await harness.get("ctx/page?raw=1")):
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"


async def test_what_cannot_be_given_is_refused_with_406_and_what_to_do(harness: ArtifactHarness) -> None:
    await harness.do(ReplaceParts((FilePart(b"a", media_type="image/png"), FilePart(b"b"))), artifact="files")
    several = (await harness.get("ctx/files?raw=1"), await harness.get("ctx/files", Accept="image/png"))
    sentence = "The artifact has several parts and no text. Ask for application/json to get them all."
    assert [error_of(answer) for answer in several] == [(406, "INVALID_ARGUMENT", sentence)] * 2
    assert (await harness.get("ctx/files")).status_code == 200
    names = "application/json, application/a2a+json, text/markdown; charset=utf-8 or text/plain; charset=utf-8"
    other = await harness.get("ctx/doc", Accept="image/png")
    assert error_of(other)[::2] == (
        406,
        f"Accept is 'image/png', and this is {names}. Ask for one of them, or for anything (*/*).",
    )


@pytest.mark.parametrize(
    "path", ["ctx/doc", "ctx/doc/versions/1", "ctx/doc/versions/1?raw=1", "ctx/doc/versions/1/diff"]
)
async def test_a_large_artifact_is_encoded_in_a_thread_which_has_texts_of_its_own(
    path: str, harness: ArtifactHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Content] = []
    threads: list[int] = []

    def watched(content: Content) -> tuple[RawContent, ...] | NoRawContent:
        seen.append(content)
        return raw_content(content)

    def answered(*args: Any) -> Response:
        threads.append(get_ident())
        return conditional_response(*args)

    monkeypatch.setattr(routes, "raw_content", watched)
    monkeypatch.setattr(routes, "conditional_response", answered)
    small = await harness.get(path)
    monkeypatch.setattr(routes, "THREAD_THRESHOLD", 1)
    large = await harness.get(path)
    assert (large.content, large.headers) == (small.content, small.headers)
    assert threads[-1] != get_ident()
    if not path.endswith("diff"):
        assert [thread == get_ident() for thread in threads] == [True, False]
        shown, apart = seen
        assert apart == shown
        assert text_of(apart.parts).body is not text_of(shown.parts).body


# ---------------------------------------------------------------------------- caching

DOCUMENTS = ["ctx", "ctx/doc", "ctx/doc?raw=1", "ctx/doc/versions", "ctx/doc/versions/1", "ctx/doc/versions/2/diff"]


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_who_has_the_answer_is_not_sent_it_again(harness: ArtifactHarness, path: str) -> None:
    first = await harness.get(path)
    again = await harness.get(path, If_None_Match=f'"x", W/{first.headers["etag"]}')
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert first.headers["cache-control"] == again.headers["cache-control"] == "private, no-cache"


async def test_a_change_and_another_form_have_another_etag(harness: ArtifactHarness) -> None:
    async def etags() -> list[str]:
        forms: list[dict[str, str]] = [{}, {"Accept": "text/markdown"}, {"Accept": "text/plain"}]
        return [(await harness.get("ctx/doc", **form)).headers["etag"] for form in forms]

    before = await etags()
    await harness.do(AppendParts((text_part("more"),)))
    assert len({*before, *await etags()}) == 6


@pytest.mark.parametrize("path", [*DOCUMENTS, "ctx/events"])
async def test_head_is_get_without_the_body(harness: ArtifactHarness, path: str) -> None:
    head = await harness.get(path, "HEAD")
    assert head.status_code == 200
    if path != "ctx/events":
        got = await harness.get(path)
        assert (head.headers["etag"], head.headers["content-type"]) == (
            got.headers["etag"],
            got.headers["content-type"],
        )


# ----------------------------------------------------------------------------- refusing


@pytest.mark.parametrize(
    ("path", "says", "reason"),
    [
        ("none", "There is no context 'none'", "CONTEXT_NOT_FOUND"),
        ("none/doc", "There is no context 'none'", "CONTEXT_NOT_FOUND"),
        ("none/events", "There is no context 'none'", "CONTEXT_NOT_FOUND"),
        ("ctx/none", "no artifact 'none'", "ARTIFACT_NOT_FOUND"),
        ("ctx/none/versions", "no artifact 'none'", "ARTIFACT_NOT_FOUND"),
        ("ctx/none/versions/1", "no artifact 'none'", "ARTIFACT_NOT_FOUND"),
        ("ctx/none/versions/1/diff", "no artifact 'none'", "ARTIFACT_NOT_FOUND"),
        ("ctx/doc/versions/4", "it has the versions 1 to 3", "VERSION_NOT_FOUND"),
        ("ctx/doc/versions/0", "it has the versions 1 to 3", "VERSION_NOT_FOUND"),
        ("ctx/doc/versions/4/diff", "it has the versions 1 to 3", "VERSION_NOT_FOUND"),
        ("ctx/doc/versions/01", "is not the number of a version", "VERSION_NOT_FOUND"),
        ("ctx/doc/versions/-1", "is not the number of a version", "VERSION_NOT_FOUND"),
        ("ctx/doc/versions/latest", "is not the number of a version", "VERSION_NOT_FOUND"),
        ("ctx/doc/versions/%D9%A1", "is not the number of a version", "VERSION_NOT_FOUND"),
        ("ctx/doc/draft", "There is nothing at", "PATH_NOT_FOUND"),
        ("ctx/", "There is nothing at", "PATH_NOT_FOUND"),
        ("%FF", "There is nothing at", "PATH_NOT_FOUND"),
    ],
)
async def test_what_is_not_there_is_404_with_a_sentence(
    harness: ArtifactHarness, path: str, says: str, reason: str
) -> None:
    answer = await harness.get(path)
    code, status, message = error_of(answer)
    assert (code, status) == (404, "NOT_FOUND")
    assert says in message
    assert answer.json()["error"]["details"][0]["reason"] == reason


@pytest.mark.parametrize("wrong", ["4", "-1", "x", "", "1.0", "99999999999999999999"])
async def test_a_diff_from_no_version_is_400_and_names_the_range(harness: ArtifactHarness, wrong: str) -> None:
    answer = await harness.get(f"ctx/doc/versions/2/diff?from={wrong}")
    sentence = f"from is {wrong!r} and must be a version, 1 to 3, or 0 for the empty text."
    assert error_of(answer) == (400, "INVALID_ARGUMENT", sentence)
    assert answer.json()["error"]["details"][1]["fieldViolations"][0]["field"] == "from"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["ctx/doc", "ctx/events", "ctx/doc/versions"])
async def test_other_methods_are_405_and_told_which_ones_there_are(
    harness: ArtifactHarness, method: str, path: str
) -> None:
    answer = await harness.get(path, method)
    assert error_of(answer)[0] == 405
    assert answer.headers["allow"] == "GET, HEAD"


async def test_a_context_with_a_task_and_no_artifacts_is_an_empty_list() -> None:
    harness = ArtifactHarness()
    await harness.begin("task")
    assert (await harness.get("ctx")).json()["artifacts"] == []


class Users:
    """Middleware: the header `user` names the caller."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope | {CALLER: Caller(Headers(scope=scope).get("user", ""))}, receive, send)


async def test_a_context_is_known_only_to_its_owner() -> None:
    harness = ArtifactHarness()
    await harness.begin("task", owner="ann")
    app = Starlette(routes=harness.app.routes, middleware=[Middleware(Users)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        answers = [
            await client.get("/artifacts/ctx", headers={"user": name} if name else {}) for name in ("ann", "bob", "")
        ]
    assert [answer.status_code for answer in answers] == [200, 404, 404]


# ---------------------------------------------------------------------------------- ids

ODD = [
    "a/b",
    "a?b",
    "a#b",
    "50%",
    "%2F",
    "two words",
    "é 😀",
    "events",
    "versions",
    "diff",
    "..a",
    "a;b",
    "a+b",
]


@pytest.mark.parametrize("root", ["", "/behind/a/proxy"])
@pytest.mark.parametrize("id", ODD)
async def test_an_artifact_with_any_id_is_reached_by_the_urls_of_the_list(id: str, root: str) -> None:
    harness = ArtifactHarness(context=id)
    await harness.do(writing(f"This is {id}."), artifact=id)
    listing = (await harness.get(quote(id, safe=""), root=root)).json()
    assert [artifact["artifactId"] for artifact in listing["artifacts"]] == [id]
    urls = listing["artifacts"][0]["urls"]
    paths = {name: url.removeprefix(f"{root}/artifacts/") for name, url in urls.items()}
    assert urls == {name: f"{root}/artifacts/{path}" for name, path in paths.items()}
    assert (await harness.get(paths["artifact"], root=root)).json()["artifactId"] == id
    assert (await harness.get(paths["versions"], root=root)).json()["versions"][0]["number"] == 1
    assert (await harness.get(paths["versions"] + "/1?raw=1", root=root)).text == f"This is {id}."
