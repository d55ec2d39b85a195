"""`artifacts`, `show`, `versions` and `diff` against the whole application on loopback."""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from io import StringIO
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from a2a_canvas.server.client.artifacts import (
    address,
    aligned,
    artifacts,
    coloured,
    diff,
    line_breaks_marked,
    resource_path,
    show,
    versions,
)
from a2a_canvas.server.client.display import cells
from a2a_canvas.server.client.operations import ArtifactTarget
from a2a_canvas.server.protocols.artifacts.diff import unified_diff
from a2a_canvas.server.protocols.artifacts.paths import (
    ArtifactList,
    ArtifactVersion,
    CurrentArtifact,
    VersionDiff,
    VersionList,
    parse_path,
)
from tests.server.app_server import Served, serving
from tests.server.canvas_client import SCRIPT, Doc, made, say
from tests.server.client.client_harness import Result, Screen, card, card_route, unused_url
from tests.server.client.client_harness import serving as serving_app

Reading = Callable[..., Awaitable[int]]


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(SCRIPT, grpc=False) as served:
        served.gate.open()
        yield served


@pytest.fixture
async def doc(served: Served) -> Doc:
    """The agent's `one, two`, to which the user put a line, and which was undone."""
    doc = await made(served, "one\ntwo")
    await doc.run(doc.operation("put", text="one\n🦀\ntwo"))
    await doc.run(doc.operation("undo"))
    return doc


async def read(reading: Reading, where: ArtifactTarget, *options: Any, tty: bool = False) -> Result:
    out, err = Screen(tty=tty), StringIO()
    code = await reading(where, *options, out, err)
    return Result(code, out.getvalue(), err.getvalue())


def at(doc: Doc, **more: Any) -> ArtifactTarget:
    return ArtifactTarget(**{"context": doc.context, "artifact": "doc", "url": doc.served.url} | more)


# ----------------------------------------------------------------------------- reading


async def test_the_versions_are_a_table_with_the_current_one_marked(doc: Doc) -> None:
    for tty in (False, True):
        got = await read(versions, at(doc), tty=tty)
        assert (got.code, got.err) == (0, "")
        assert got.out.splitlines() == [
            "   version  author  made of  size",
            "*  1        agent   –        7 B",
            "   2        user    1        12 B",
        ]


async def test_the_artifacts_are_a_table(doc: Doc) -> None:
    got = await read(artifacts, at(doc))
    assert got.out.splitlines() == [
        "artifact  name     version  author  size",
        "doc       doc.txt  1 of 2   agent   7 B",
    ]


async def test_a_conversation_without_artifacts_says_so(doc: Doc) -> None:
    await say(Doc(doc.served, "other"), "write a poem")
    assert await read(artifacts, at(doc, context="other")) == Result(0, "There are no artifacts yet.\n", "")


async def test_the_current_version_is_compared_with_what_it_was_made_of(doc: Doc) -> None:
    await doc.run(doc.operation("redo"))
    expected = "--- version 1\n+++ version 2\n@@ -1,2 +1,3 @@\n one\n+🦀\n two\n\\ No newline at end of file\n"
    assert await read(diff, at(doc), None, None) == Result(0, expected, "")


async def test_any_version_is_compared_with_any_other(doc: Doc) -> None:
    back = "--- version 2\n+++ version 1\n@@ -1,3 +1,2 @@\n one\n-🦀\n two\n\\ No newline at end of file\n"
    assert (await read(diff, at(doc), 1, 2)).out == back
    assert (await read(diff, at(doc), 2, 0)).out.startswith("--- version 0\n+++ version 2\n@@ -0,0 +1,3 @@\n+one\n")


async def test_versions_with_the_same_text_are_told_apart_from_a_failure(doc: Doc) -> None:
    said = "Version 2 and version 2 have the same text.\n"
    assert await read(diff, at(doc), 2, 2) == Result(0, "", said)
    assert await read(diff, at(doc), 2, 2, tty=True) == Result(0, said, "")


async def test_only_a_terminal_gets_colours(doc: Doc) -> None:
    assert "\x1b" not in (await read(diff, at(doc), 2, None)).out
    assert "\x1b[32m+🦀\x1b[0m\n" in (await read(diff, at(doc), 2, None, tty=True)).out


async def test_line_breaks_that_differ_are_seen_on_a_terminal_and_only_there(doc: Doc) -> None:
    for text in ("one\r\ntwo\r\n", "one\ntwo\r\n"):
        await doc.run(doc.operation("put", text=text))
    shown, plain = [await read(diff, at(doc), None, None, tty=tty) for tty in (True, False)]
    lines = re.sub(r"\x1b\[\d*m", "", shown.out).splitlines()
    assert lines[3:] == ["-one␍", "+one", " two␍"]
    assert plain.out.endswith("\n-one\r\n+one\n two\r\n")


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\r\n", "a\r\nb", "a\nb"])
@pytest.mark.parametrize("last", ["", "\n\\ No newline at end of file"])
def test_line_breaks_are_not_marked_where_all_are_alike(text: str, last: str) -> None:
    alike = "--- version 1\n+++ version 2\n@@ -0,0 +1 @@\n" + text.replace("a", "+a").replace("b", f"+b{last}")
    assert line_breaks_marked(alike) == alike


async def test_an_artifact_is_shown_under_its_name_on_a_terminal(doc: Doc) -> None:
    got = await read(show, at(doc), None, tty=True)
    assert got == Result(0, "── doc.txt ─────────────────────────────\none\ntwo\n", "")


async def test_a_terminal_is_shown_no_control_characters(doc: Doc) -> None:
    await doc.run(doc.operation("put", text="\x1b[2J\x07bell"))
    assert "\x07" not in (await read(show, at(doc), None, tty=True)).out
    assert "\x1b[2J" not in (await read(show, at(doc), None, tty=True)).out
    assert "\x07" not in (await read(diff, at(doc), None, None, tty=True)).out


@pytest.mark.parametrize(("version", "text"), [(None, "one\ntwo"), (1, "one\ntwo"), (2, "one\n🦀\ntwo")])
async def test_a_pipe_gets_the_content_byte_for_byte(doc: Doc, version: int | None, text: str) -> None:
    below = io.BytesIO()
    with io.TextIOWrapper(below, encoding="ascii") as out:
        assert await show(at(doc), version, out, StringIO()) == 0
        assert below.getvalue() == text.encode()


async def test_what_has_no_bare_content_is_to_be_had_as_json(doc: Doc) -> None:
    await say(Doc(doc.served, "files"), "file")
    where = at(doc, context="files")
    got = await read(show, where, None)
    assert (got.code, got.out) == (1, "")
    assert got.err.splitlines()[1] == "--json shows it all."
    assert "[file f https://example.com/f]" in (await read(show, where, None, tty=True)).out
    assert json.loads((await read(show, at(doc, context="files", json=True), None)).out)["parts"]


@pytest.mark.parametrize(
    ("reading", "options", "path"),
    [
        (artifacts, (), ""),
        (show, (None,), "/doc"),
        (show, (2,), "/doc/versions/2"),
        (versions, (), "/doc/versions"),
        (diff, (2, 0), "/doc/versions/2/diff?from=0"),
    ],
)
async def test_json_is_what_the_server_says_in_one_line(
    doc: Doc, reading: Reading, options: tuple[Any, ...], path: str
) -> None:
    got = await read(reading, at(doc, json=True), *options)
    assert (got.code, got.err, got.out.count("\n")) == (0, "", 1)
    assert json.loads(got.out) == (await doc.served.http.get(f"/artifacts/{doc.context}{path}")).json()


async def test_ids_may_hold_any_character(served: Served) -> None:
    odd = Doc(served, "a/b?c#d %é", artifact_id="events/../50%")
    await say(odd, f"make {odd.artifact_id} n text/plain\nx")
    got = await read(show, ArtifactTarget(odd.context, odd.artifact_id, served.url), None)
    assert got == Result(0, "x", "")


# ----------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"artifact": "none"}, "There is no artifact 'none' in this context."),
        ({"context": "none"}, "There is no context 'none'."),
    ],
)
async def test_what_is_not_there_is_the_servers_sentence_and_exit_1(doc: Doc, more: Any, said: str) -> None:
    for reading, options in ((versions, ()), (show, (None,)), (show, (1,)), (diff, (None, None))):
        got = await read(reading, at(doc, **more), *options)
        assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
        assert got.err.startswith(said)


async def test_a_version_that_is_not_there_is_told(doc: Doc) -> None:
    for reading, options in ((show, (9,)), (diff, (9, None)), (diff, (1, 9))):
        got = await read(reading, at(doc), *options)
        assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
        assert "9" in got.err or "1 to 2" in got.err


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
        for reading, options in ((artifacts, ()), (versions, ()), (diff, (1, None))):
            got = await read(reading, ArtifactTarget("c", "doc", url), *options)
            said = f"The server at {url} has no artifacts to read: it is no a2a-canvas server ({why})\n"
            assert got == Result(1, "", said)


async def test_the_card_says_where_the_artifacts_are(doc: Doc) -> None:
    elsewhere = doc.served.url

    def app(url: str) -> ASGIApp:
        return Starlette(routes=[card_route(card(f"{elsewhere}/"))])

    async with serving_app(app) as url:
        assert (await read(show, at(doc, url=url), None)).out == "one\ntwo"


async def test_without_json_rpc_in_the_card_they_are_where_the_user_says() -> None:
    known = pb.AgentCard()
    known.supported_interfaces.add(url="127.0.0.1:7", protocol_binding="GRPC")
    assert address(known, "http://here/") == "http://here"


async def test_a_card_that_leads_nowhere_is_told() -> None:
    nowhere = unused_url()
    async with serving_app(lambda _: Starlette(routes=[card_route(card(nowhere))])) as url:
        got = await read(versions, ArtifactTarget("c", "doc", url))
    assert got == Result(1, "", f"The agent's card leads to {nowhere}, where no server answers\n")


# ------------------------------------------------------------------------------ as text


@given(st.lists(st.tuples(st.text(max_size=5), st.text("a界\n\t", max_size=5), st.just("x")), min_size=1))
def test_a_table_has_its_columns_below_each_other_one_line_a_row(rows: list[tuple[str, ...]]) -> None:
    lines = aligned(rows)
    assert len(lines) == len(rows)
    assert len({cells(line) for line in lines}) == 1
    assert not any("\n" in line or "\x1b" in line for line in lines)


@given(st.text("-+@ a\n"), st.text("-+@ a\n"))
def test_colours_take_nothing_away_from_a_diff(old: str, new: str) -> None:
    plain = unified_diff(old, new, "old", "new")
    shown = coloured(plain)
    for code in ("1", "31", "32", "36", "0"):
        shown = shown.replace(f"\x1b[{code}m", "")
    assert shown == plain


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
