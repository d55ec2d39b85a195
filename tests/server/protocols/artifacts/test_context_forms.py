"""The caller's contexts as a resource: listed, renamed and deleted."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from io import BytesIO
from threading import get_ident
from urllib.parse import quote
from zipfile import ZipFile

import httpx
import pytest
from starlette.types import Message

from a2a_canvas.server.accounts.access import Caller, Share
from a2a_canvas.server.agent.events import State, StatusChanged
from a2a_canvas.server.protocols.artifacts import routes
from a2a_canvas.server.tasks.journal import owned_contexts, text_search
from a2a_canvas.server.tasks.journal.owned_contexts import ContextPage, ContextQuery
from a2a_canvas.server.tasks.journal.text_search import SearchProgress, TextPage, TextQuery, search_slice
from tests.server.protocols.artifacts.artifact_fixtures import ArtifactHarness
from tests.server.protocols.artifacts.test_routes import BROWSER, error_of, writing


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
    "agentsSuggest": False,
    "request": "Do the work of task",
    "createdAt": "2026-01-01T00:00:00.000Z",
    "updatedAt": "2026-01-01T00:00:00.000Z",
    "tasks": 1,
    "working": 1,
    "waiting": 0,
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


async def test_a_page_of_a_search_may_be_empty_and_name_the_next_one(
    harness: ArtifactHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_contexts, "MAX_SEARCHED", 1)
    first = (await harness.get("/artifacts?query=task")).json()
    assert first["contexts"] == []
    rest = (await harness.get(f"/artifacts?query=task&pageToken={quote(first['nextPageToken'])}")).json()
    assert rest == {"contexts": [CTX], "nextPageToken": ""}


@pytest.mark.parametrize(
    ("paths", "at_once"),
    [
        (("/artifacts?query=a", "/artifacts?query=b", "/artifacts?query=c"), 1),
        (("/artifacts?text=a", "/artifacts?text=b", "/artifacts?text=c"), 1),
        (("/artifacts?query=a", "/artifacts?text=b", "/artifacts?text=c"), 2),
        (("/artifacts?query=a", "/artifacts", "/artifacts"), 3),
    ],
)
async def test_searches_of_one_account_run_one_at_a_time(
    harness: ArtifactHarness, paths: tuple[str, ...], at_once: int
) -> None:
    counts: list[int] = []
    running = 0

    async def run() -> None:
        nonlocal running
        running += 1
        counts.append(running)
        for _ in range(100):
            await asyncio.sleep(0)
        running -= 1

    async def listing(caller: Caller, query: ContextQuery) -> tuple[ContextPage, dict[str, Share]]:
        await run()
        return ContextPage((), None), {}

    async def searching(caller: Caller, query: TextQuery) -> tuple[TextPage, dict[str, Share]]:
        await run()
        return TextPage((), None), {}

    harness.contexts.list = listing  # type: ignore[method-assign]
    harness.contexts.search = searching  # type: ignore[method-assign]
    app = harness.app
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        await asyncio.gather(*(client.get(path) for path in paths))
    assert max(counts) == at_once


FOUND = {
    "contextId": "ctx",
    "title": "Do the work of task",
    "artifactId": "doc",
    "name": "doc.md",
    "version": 1,
    "lines": [{"line": 1, "text": "one"}],
    "urls": {"artifact": "/artifacts/ctx/doc"},
}


async def test_a_search_in_texts_names_artifacts_and_their_lines(harness: ArtifactHarness) -> None:
    assert (await harness.get("/artifacts?text=ONE")).json() == {"found": [FOUND], "nextPageToken": ""}
    for nothing in ("two", "one+two", "", "+"):
        assert (await harness.get(f"/artifacts?text={nothing}")).json() == {"found": [], "nextPageToken": ""}


async def test_a_search_in_texts_continues_with_its_token(
    harness: ArtifactHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, "MAX_TEXTS", 1)
    harness.context = "ctx"
    await harness.do(writing("two\n"), "a new/one", task="task")
    first = (await harness.get("/artifacts?text=one")).json()
    assert first["found"] == []
    path = f"/artifacts?text=one&pageToken={quote(first['nextPageToken'])}"
    assert (await harness.get(path)).json() == {"found": [FOUND], "nextPageToken": ""}
    of_the_list = (await harness.get("/artifacts?pageSize=1")).json()["nextPageToken"]
    for wrong in (f"text=one&pageToken={quote(of_the_list)}", f"pageToken={quote(first['nextPageToken'])}"):
        assert (await harness.get(f"/artifacts?{wrong}")).status_code == 400


async def test_a_search_whose_client_has_left_ends_after_its_step(
    harness: ArtifactHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, left = asyncio.Event(), asyncio.Event()
    release, loop = threading.Event(), asyncio.get_running_loop()
    steps: list[tuple[str, ...]] = []

    def step(words: tuple[str, ...], text: str, progress: SearchProgress) -> SearchProgress:
        steps.append(words)
        if words == ("abandoned",):
            loop.call_soon_threadsafe(started.set)
            release.wait()
        return search_slice(words, text, progress)

    async def leave() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Message] = []
    monkeypatch.setattr(text_search, "search_slice", step)
    monkeypatch.setattr(text_search, "SLICE", 1)
    app = harness.app
    path = {"path": "/artifacts", "raw_path": b"/artifacts", "query_string": b"text=abandoned", "headers": []}
    abandoned = asyncio.create_task(app({"type": "http", "method": "GET", **path}, leave, send))
    await started.wait()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        assert (await client.get("/artifacts?query=task")).status_code == 200
        next_one = asyncio.create_task(client.get("/artifacts?text=one"))
        left.set()
        release.set()
        assert (await next_one).json()["found"] == [FOUND]
    await abandoned
    assert sent[0]["status"] == 204
    assert steps.count(("abandoned",)) == 1


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
        ("text=a&pageSize=0", "pageSize is '0' and must be 1 to 100."),
        ("text=a&pageToken=x", "pageToken is not one of this server's; leave it out for the first page."),
        (f"text={'a+' * 21}", "text has 21 words and may have 20."),
    ],
)
async def test_a_wrong_parameter_is_refused(harness: ArtifactHarness, query: str, sentence: str) -> None:
    answer = await harness.get(f"/artifacts?{query}")
    assert error_of(answer) == (400, "INVALID_ARGUMENT", sentence)


async def test_without_a_task_there_are_none() -> None:
    assert (await ArtifactHarness().get("/artifacts")).json() == {"contexts": [], "nextPageToken": ""}


# ---------------------------------------------------------------------------- renaming


async def rename(harness: ArtifactHarness, body: str, path: str = "ctx", **headers: str) -> httpx.Response:
    return await harness.get(path, "PATCH", content=body, **({"Content_Type": "application/json"} | headers))


async def test_a_context_takes_a_name_and_gives_it_back(harness: ArtifactHarness) -> None:
    answer = await rename(harness, '{"name": "  Tide pools "}')
    assert (answer.status_code, answer.json()) == (200, CTX | {"name": "Tide pools"})
    listing = (await harness.get("/artifacts?query=pools")).json()
    assert listing["contexts"] == [answer.json()]
    for nothing in ("null", '""', '" "'):
        assert (await rename(harness, f'{{"name": {nothing}}}')).json()["name"] is None


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("[]", """The body is a list; send one JSON object, such as {"name": "Tide pools"}."""),
        ("{}", "name is missing: send a text, or null to remove the name."),
        ('{"name": 7}', "name is 7 and must be a text, or null."),
        ('{"name": "a\\nb"}', "name must not contain the control character U+000A."),
        (f'{{"name": "{201 * "x"}"}}', "name has 201 characters and may have 200."),
        (
            '{"name": "a", "title": "b"}',
            "title cannot be changed; send only the name of the context, or agentsSuggest.",
        ),
        ('{"": null}', '"" cannot be changed; send only the name of the context, or agentsSuggest.'),
        ('{"agentsSuggest": "yes"}', "agentsSuggest is 'yes' and must be true or false."),
        ('{"agentsSuggest": true, "name": 7}', "name is 7 and must be a text, or null."),
        ('{"agentsSuggest": 1, "name": "a"}', "agentsSuggest is 1 and must be true or false."),
    ],
)
async def test_what_is_no_name_is_refused(harness: ArtifactHarness, body: str, sentence: str) -> None:
    assert error_of(await rename(harness, body)) == (400, "INVALID_ARGUMENT", sentence)
    assert (await harness.get("/artifacts")).json()["contexts"][1] == CTX


async def test_the_owner_lets_agents_suggest_and_takes_it_back(harness: ArtifactHarness) -> None:
    answer = await rename(harness, '{"agentsSuggest": true}')
    assert (answer.status_code, answer.json()) == (200, CTX | {"agentsSuggest": True})
    assert (await harness.get("ctx")).json()["agentsSuggest"] is True
    both = await rename(harness, '{"agentsSuggest": false, "name": "Tide pools"}')
    assert both.json() == CTX | {"name": "Tide pools"}


async def test_a_body_that_is_no_json_is_refused(harness: ArtifactHarness) -> None:
    assert error_of(await rename(harness, "{"))[0] == 400
    assert error_of(await rename(harness, "name=x", Content_Type="text/plain"))[0] == 400


async def test_what_is_not_the_callers_is_neither_renamed_nor_deleted(harness: ArtifactHarness) -> None:
    harness.context = "others"
    await harness.begin("theirs", owner="ann")
    for path in ("others", "nowhere"):
        assert error_of(await rename(harness, '{"name": "Mine"}', path))[1] == "NOT_FOUND"
        assert error_of(await harness.get(path, "DELETE"))[1] == "NOT_FOUND"


# ---------------------------------------------------------------------------- deleting


async def test_a_deleted_context_is_404_with_all_below_it(harness: ArtifactHarness) -> None:
    await harness.journal.append("task", StatusChanged(State.COMPLETED))
    answer = await harness.get("ctx", "DELETE")
    assert (answer.status_code, answer.content) == (204, b"")
    for path in ("ctx", "ctx/doc", "ctx/doc/versions", "ctx/events"):
        assert error_of(await harness.get(path))[1] == "NOT_FOUND"
    assert error_of(await harness.get("ctx", "DELETE"))[1] == "NOT_FOUND"
    assert [each["contextId"] for each in (await harness.get("/artifacts")).json()["contexts"]] == ["a/b"]


async def test_a_context_is_not_deleted_while_a_task_works_in_it(harness: ArtifactHarness) -> None:
    said = "Task 'task' works in context 'ctx'. Wait until it is done, or cancel it; then delete again."
    answer = await harness.get("ctx", "DELETE")
    assert error_of(answer) == (409, "FAILED_PRECONDITION", said)
    assert answer.json()["error"]["details"][0]["reason"] == "CONTEXT_IN_USE"
    assert (await harness.get("ctx/doc")).status_code == 200


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/artifacts", "DELETE", "GET, HEAD"),
        ("/artifacts", "PATCH", "GET, HEAD"),
        ("ctx", "POST", "GET, HEAD, PATCH, DELETE"),
        ("ctx/doc", "DELETE", "GET, HEAD"),
        ("ctx/events", "PATCH", "GET, HEAD"),
    ],
)
async def test_another_method_is_refused_with_those_there_are(
    harness: ArtifactHarness, path: str, method: str, allowed: str
) -> None:
    answer = await harness.get(path, method)
    assert error_of(answer)[0] == 405
    assert answer.headers["Allow"] == allowed


# ------------------------------------------------------------------------- as a ZIP file


@pytest.mark.parametrize(("path", "accept"), [("ctx?format=zip", "*/*"), ("ctx", "application/zip")])
async def test_a_context_is_a_zip_file_for_who_asks_for_one(harness: ArtifactHarness, path: str, accept: str) -> None:
    answer = await harness.get(path, Accept=accept)
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="Do the work of task.zip"')
    with ZipFile(BytesIO(answer.content)) as file:
        assert {name: file.read(name) for name in file.namelist()} == {"doc.md": b"one\n"}
    assert (await harness.get(path, Accept=accept, If_None_Match=answer.headers["ETag"])).status_code == 304


async def test_the_zip_file_has_the_name_of_the_context(harness: ArtifactHarness) -> None:
    await rename(harness, '{"name": "Été/2026"}')
    disposition = (await harness.get("ctx?format=zip")).headers["Content-Disposition"]
    assert disposition == "attachment; filename=\"Ete_2026.zip\"; filename*=UTF-8''%C3%89t%C3%A9_2026.zip"


@pytest.mark.parametrize("accept", ["*/*", "", "application/json, application/zip;q=0.9", BROWSER, "image/png"])
async def test_nobody_else_gets_one(harness: ArtifactHarness, accept: str) -> None:
    assert (await harness.get("ctx", Accept=accept)).headers["Content-Type"] == "application/json"


async def test_another_format_is_refused(harness: ArtifactHarness) -> None:
    answer = await harness.get("ctx?format=tar")
    assert error_of(answer) == (400, "INVALID_ARGUMENT", "format is 'tar' and must be json or zip.")


async def test_a_zip_file_is_made_in_a_thread(harness: ArtifactHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    monkeypatch.setattr(routes, "archive", lambda _: threads.append(get_ident()) or b"")
    await harness.get("ctx?format=zip")
    assert threads != [get_ident()]


@pytest.mark.parametrize("path", ["ctx/doc", "ctx/doc/versions/1"])
async def test_raw_content_is_saved_under_its_name_where_that_is_asked_for(harness: ArtifactHarness, path: str) -> None:
    saved = await harness.get(f"{path}?raw=1&download=1")
    assert saved.headers["Content-Disposition"] == "attachment; filename=\"doc.md\"; filename*=UTF-8''doc.md"
    for shown in ("?raw=1", "?raw=1&download=0", "?download=1"):
        assert "Content-Disposition" not in (await harness.get(path + shown)).headers
