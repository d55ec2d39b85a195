"""`artifacts`, `show`, `versions` and `diff` against the whole application on loopback."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from a2a_canvas.server.client.commands.artifacts import artifacts, diff, mark_line_breaks, show, versions
from a2a_canvas.server.client.conversation.canvas_session import resource_path
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.conversation.state_file import remember
from a2a_canvas.server.client.screen.display import short
from a2a_canvas.server.protocols.artifacts.paths import (
    ArtifactList,
    ArtifactVersion,
    CurrentArtifact,
    VersionDiff,
    VersionList,
    parse_path,
)
from tests.loopback import serving_app
from tests.server.app_server import Served
from tests.server.canvas_client import Doc, made, say
from tests.server.client.artifact_runs import do, run
from tests.server.client.client_harness import Result, card, card_route, typed, unused_url


@pytest.fixture
async def doc(served: Served) -> Doc:
    """The agent's `one, two`, to which the user put a line, and which was undone."""
    doc = await made(served, "one\ntwo")
    await doc.run(doc.operation("put", "I add a crab", text="one\n🦀\ntwo"))
    await doc.run(doc.operation("undo"))
    return doc


# ----------------------------------------------------------------------------- reading


async def test_versions_tell_when_by_whom_and_for_which_request(doc: Doc) -> None:
    long = "I add a crab " * 10
    await doc.run(doc.operation("put", long, text="crab"))
    got = await do(versions, doc)
    assert re.sub(r"\d\d:\d\d", "13:01", got.out).splitlines() == [
        "   version  made   author  of  size  request",
        "   1        13:01  agent   –   7 B   make doc doc.txt text/plain one two",
        "   2        13:01  user    1   12 B  I add a crab",
        f"*  3        13:01  user    1   4 B   {long.strip()}",
    ]
    shown = (await do(versions, doc, tty=True)).out.splitlines()
    assert (shown[-1][-1], max(map(len, shown[1:]))) == ("…", 80)


async def test_the_artifacts_are_a_table(doc: Doc) -> None:
    got = await run(artifacts, doc.served.url, context=doc.context)
    table = "artifact  name     version  author  size\ndoc       doc.txt  1 of 2   agent   7 B\n"
    assert got == Result(0, table, "")


async def test_a_conversation_without_artifacts_says_so(doc: Doc) -> None:
    await say(Doc(doc.served, "other"), "write a poem")
    got = await run(artifacts, doc.served.url, context="other")
    assert got == Result(0, "", "There are no artifacts yet.\n")


async def test_a_version_is_compared_with_what_it_was_made_of_or_with_any_other(doc: Doc) -> None:
    await doc.run(doc.operation("redo"))
    made = "--- version 1\n+++ version 2\n@@ -1,2 +1,3 @@\n one\n+🦀\n two\n\\ No newline at end of file\n"
    back = "--- version 2\n+++ version 1\n@@ -1,3 +1,2 @@\n one\n-🦀\n two\n\\ No newline at end of file\n"
    for numbers, text in (((), made), ((2,), made), ((1, 2), made), ((2, 1), back)):
        assert await do(diff, doc, numbers=numbers) == Result(0, text, "")
    assert (await do(diff, doc, numbers=(0, 1))).out.startswith("--- version 0\n+++ version 1\n@@ -0,0 +1,2 @@\n+one\n")
    assert await do(diff, doc, numbers=(2, 2)) == Result(0, "", "Version 2 and version 2 have the same text.\n")


@pytest.mark.parametrize("command", ["show", "versions", "diff", "diff 1 2"])
async def test_the_only_artifact_of_a_conversation_need_not_be_named(doc: Doc, command: str) -> None:
    name, *words = command.split()
    at = ("--context", doc.context, "--url", doc.served.url, "--json")
    got = await typed(name, *words, *at)
    assert (got.code, got) == (0, await typed(name, "doc", *words, *at))


async def test_the_only_artifact_of_a_conversation_is_the_one_that_is_changed(doc: Doc) -> None:
    for command, text in (("redo", "one\n🦀\ntwo"), ("undo", "one\ntwo")):
        assert (await typed(command, "--context", doc.context, "--url", doc.served.url)).code == 0
        assert (await doc.read())[1] == text


@pytest.mark.parametrize("command", ["show", "versions", "diff 1", "undo", "redo", "open"])
async def test_of_several_artifacts_or_none_one_is_to_be_named(doc: Doc, command: str) -> None:
    at = ("--context", doc.context, "--url", doc.served.url)
    await typed("put", "notes.md", "-", *at, stdin="x")
    several = "a2a-canvas: Which artifact? Type one of: doc (doc.txt), notes.md\n"
    assert await typed(*command.split(), *at) == Result(2, "", several)
    await say(Doc(doc.served, "other"), "write a poem")
    none = await typed(*command.split(), "--context", "other", "--url", doc.served.url)
    assert none == Result(2, "", "a2a-canvas: The conversation has no artifacts yet\n")


async def test_a_diff_has_colours_on_a_terminal(doc: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[32m+🦀\x1b[0m\n" in (await do(diff, doc, numbers=(2,), tty=True)).out


async def test_line_breaks_that_differ_are_seen_on_a_terminal_and_only_there(doc: Doc) -> None:
    for text in ("one\r\ntwo\r\n", "one\ntwo\r\n"):
        await doc.run(doc.operation("put", text=text))
    shown, plain = [await do(diff, doc, numbers=(), tty=tty) for tty in (True, False)]
    assert [mark for mark in ("-one␍", "+one", " two␍") if mark not in shown.out] == []
    assert plain.out.endswith("\n-one\r\n+one\n two\r\n")


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\r\n", "a\r\nb", "a\nb"])
@pytest.mark.parametrize("last", ["", "\n\\ No newline at end of file"])
def test_line_breaks_are_not_marked_where_all_are_alike(text: str, last: str) -> None:
    alike = "--- version 1\n+++ version 2\n@@ -0,0 +1 @@\n" + text.replace("a", "+a").replace("b", f"+b{last}")
    assert mark_line_breaks(alike) == alike


async def test_markdown_is_styled_on_a_terminal(doc: Doc) -> None:
    note = await made(doc.served, "# Tea\n\n- green\n", "tea.md", "text/markdown")
    shown = (await do(show, note, version=None, tty=True)).out
    assert "tea.md" in shown
    assert " • " in shown


async def test_a_terminal_is_shown_no_control_characters(doc: Doc) -> None:
    await doc.run(doc.operation("put", text="\x1b[2J\x07bell"))
    for shown in (await do(show, doc, version=None, tty=True), await do(diff, doc, numbers=(), tty=True)):
        assert "bell" in shown.out
        assert not {"\x07", "\x1b[2J"} & {each for each in ("\x07", "\x1b[2J") if each in shown.out}


@pytest.mark.parametrize(("version", "text"), [(None, "one\ntwo"), (1, "one\ntwo"), (2, "one\n🦀\ntwo")])
async def test_a_pipe_gets_the_content_byte_for_byte(doc: Doc, version: int | None, text: str) -> None:
    below = io.BytesIO()
    with io.TextIOWrapper(below, encoding="ascii") as out:
        await show(Invocation(url=doc.served.url, out=out), "doc", doc.context, version)
        assert below.getvalue() == text.encode()


async def test_what_has_no_bare_content_is_to_be_had_as_json(doc: Doc) -> None:
    files = Doc(doc.served, "files", artifact_id="f")
    await say(files, "file")
    [name] = [each["artifactId"] for each in (await doc.served.http.get("/artifacts/files")).json()["artifacts"]]
    got = await do(show, files, artifact=name, version=None)
    assert (got.code, got.out) == (1, "")
    assert got.err.splitlines()[1] == "--json shows it all"
    assert "[file f https://example.com/f]" in (await do(show, files, artifact=name, version=None, tty=True)).out
    assert json.loads((await do(show, files, artifact=name, version=None, json=True)).out)["parts"]


@pytest.mark.parametrize(
    ("command", "values", "path"),
    [
        (show, {"version": None}, ""),
        (show, {"version": 2}, "/versions/2"),
        (versions, {}, "/versions"),
        (diff, {"numbers": (0, 2)}, "/versions/2/diff?from=0"),
    ],
)
async def test_json_is_what_the_server_says_in_one_line(
    doc: Doc, command: Callable[..., Any], values: dict[str, Any], path: str
) -> None:
    got = await do(command, doc, json=True, **values)
    assert (got.code, got.err, got.out.count("\n")) == (0, "", 1)
    assert json.loads(got.out) == (await doc.served.http.get(f"/artifacts/{doc.context}/doc{path}")).json()


# ----------------------------------------------------------------------------- which one


async def test_beginnings_of_artifact_and_conversation_are_enough(doc: Doc) -> None:
    for artifact in ("doc", "doc.txt", "DO"):
        got = await do(show, doc, artifact=artifact, context=doc.context[:9], version=None)
        assert got == Result(0, "one\ntwo", "")


async def test_what_is_not_there_is_told_with_what_is_near(doc: Doc) -> None:
    artifact = await do(versions, doc, artifact="dok")
    told, others = artifact.err.splitlines()
    assert artifact.code == 2
    assert re.fullmatch(
        f"a2a-canvas: There is no artifact 'dok' in conversation {short(doc.context)}, \".*\"\\. "
        r"Did you mean doc \(doc\.txt\)\?",
        told,
    )
    assert others.startswith("For another conversation use --context. To list them: a2a-canvas contexts ")
    context = await do(versions, doc, context="zzz")
    assert context == Result(2, "", f"a2a-canvas: There is no context 'zzz'. There are: {short(doc.context)}\n")
    version = await do(show, doc, version=9)
    assert (version.code, "no version 9" in version.err) == (1, True)


async def test_an_artifact_of_another_conversation_is_told_with_that_conversation(doc: Doc) -> None:
    await say(Doc(doc.served, "another"), "make reef reef.md text/markdown\none")
    remember(doc.served.url, doc.context)
    told, there = (await do(versions, doc, artifact="reef", context=None)).err.splitlines()
    assert told.startswith(
        f"a2a-canvas: There is no artifact 'reef' in the last conversation ({short(doc.context)}, \""
    )
    assert there == 'It is in conversation another, "make reef reef.md text/markdown one". Add: --context another'


async def test_without_a_conversation_it_is_the_last_one_or_a_question(doc: Doc) -> None:
    got = await do(show, doc, context=None, version=None)
    assert (got.code, got.err.splitlines()[0]) == (2, "a2a-canvas: Which conversation? Use --context ID")
    remember(doc.served.url, doc.context)
    assert await do(show, doc, context=None, version=None) == Result(0, "one\ntwo", "")


async def test_ids_may_hold_any_character(served: Served) -> None:
    odd = Doc(served, "a/b?c#d %é", artifact_id="events/../50%")
    await say(odd, f"make {odd.artifact_id} n text/plain\nx")
    assert await do(show, odd, version=None) == Result(0, "x", "")


# -------------------------------------------------------------------------- other servers


async def _answer_plain(request: Request) -> Response:
    return PlainTextResponse("no such page", status_code=404)


async def _answer_other_json(request: Request) -> Response:
    return JSONResponse(["no", "such"], status_code=200)


@pytest.mark.parametrize(
    ("answer", "why"), [(_answer_plain, "HTTP 404"), (_answer_other_json, "what it says is not JSON")]
)
async def test_a_server_that_is_not_ours_is_told(answer: Any, why: str) -> None:
    def app(url: str) -> ASGIApp:
        return Starlette(routes=[card_route(card(url)), Route("/artifacts/{rest:path}", answer)])

    async with serving_app(app) as url:
        got = await run(versions, url, artifact="doc", context="c")
    said = f"a2a-canvas: The server at {url} has no artifacts to read: it is not an a2a-canvas server ({why})\n"
    assert got == Result(1, "", said)


async def test_the_card_says_where_the_artifacts_are(doc: Doc) -> None:
    elsewhere = f"{doc.served.url}/"
    async with serving_app(lambda _: Starlette(routes=[card_route(card(elsewhere))])) as url:
        assert (await run(show, url, artifact="doc", context=doc.context, version=None)).out == "one\ntwo"


async def test_a_card_that_leads_nowhere_is_told() -> None:
    nowhere = unused_url()
    async with serving_app(lambda _: Starlette(routes=[card_route(card(nowhere))])) as url:
        got = await run(versions, url, artifact="doc", context="c")
    assert got == Result(
        1,
        "",
        f"a2a-canvas: The agent's card leads to {nowhere}, where no server answers: "
        "its server sets the address with A2A_CANVAS_PUBLIC_URL\n",
    )


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"), min_size=1))
@example("c", "events")
@example(".", "..")
@example("a/b", "50%")
def test_a_path_names_the_resource_that_it_was_made_for(context: str, artifact: str) -> None:
    assert parse_path(resource_path(context)) == ArtifactList(context)
    assert parse_path(resource_path(context, artifact)) == CurrentArtifact(context, artifact)
    assert parse_path(resource_path(context, artifact, "versions")) == VersionList(context, artifact)
    assert parse_path(resource_path(context, artifact, "versions", "3")) == ArtifactVersion(context, artifact, "3")
    assert parse_path(resource_path(context, artifact, "versions", "3", "diff")) == VersionDiff(context, artifact, "3")
