"""`edit`, `undo`, `redo` and `restore` against the whole application on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from a2a_canvas.server.client.commands.edit import edit, redo, restore, undo
from a2a_canvas.server.client.commands.files import put
from a2a_canvas.server.client.conversation.invocation import Invocation, await_command
from a2a_canvas.server.wire import CANVAS
from tests.loopback import serving_app
from tests.server.app_server import Served, asking
from tests.server.canvas_client import Doc, made
from tests.server.client.artifact_runs import do, run
from tests.server.client.client_harness import BREAK, Result, Screen, Script, update

TEXT = "one\ntwo\n🦀 three\ntwo\n"
NO_PLACE: dict[str, Any] = {"lines": None, "match": None, "before": False, "after": False, "base": None}


@pytest.fixture
async def doc(served: Served) -> Doc:
    """Version 1 of `doc` is `TEXT`."""
    return await made(served, TEXT)


async def edited(doc: Doc, instruction: str, **values: Any) -> Result:
    return await do(edit, doc, words=(instruction,), **NO_PLACE | values)


# ------------------------------------------------------------------------------- edits


async def test_a_passage_goes_to_out_and_where_it_is_to_err(doc: Doc) -> None:
    got = await edited(doc, "say 2\n2", lines=(2, 2))
    assert got == Result(0, "2\n2\n", "Editing doc.txt…\nEdited doc.txt at line 2: version 2 is saved.\n")
    assert await doc.read() == (2, "one\n2\n2\n🦀 three\ntwo\n")


async def test_a_text_that_occurs_once_is_the_passage(doc: Doc) -> None:
    got = await edited(doc, "say four", match="three\ntwo")
    assert (got.code, got.out) == (0, "four\n")
    assert await doc.read() == (2, "one\ntwo\n🦀 four\n")


async def test_something_new_is_written_before_or_after_the_passage(doc: Doc) -> None:
    before = await edited(doc, "say zero, ", match="one", before=True)
    after = await edited(doc, "say !", match="🦀 three", after=True)
    assert (before.out, after.out) == ("zero, \n", "!\n")
    assert await doc.read() == (3, "zero, one\ntwo\n🦀 three!\ntwo\n")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"match": "two"}, '"two" occurs 2 times in version 1, on lines 2, 4. Match more of the text, or give --lines'),
        ({"match": "2"}, '"2" does not occur in version 1. Copy it from what show prints, or give --lines'),
        ({}, "Use --lines or --match to select the passage\nAll of it: a2a-canvas send -c 'say 2' --url {url}"),
        ({"match": "one", "before": True, "after": True}, "Use --before or --after, not both"),
    ],
)
async def test_a_passage_that_is_not_clear_is_refused_and_nothing_is_sent(
    doc: Doc, values: dict[str, Any], said: str
) -> None:
    tasks = await doc.tasks()
    said = said.replace("{url}", doc.served.url)
    assert await edited(doc, "say 2", **values) == Result(2, "", f"a2a-canvas: {said}\n")
    assert await doc.tasks() == tasks


async def test_a_match_in_the_version_that_was_seen_lands_where_that_text_is_now_or_is_rejected(doc: Doc) -> None:
    await doc.run(doc.operation("put", text="zero\ntwo\none\n"))
    got = await edited(doc, "say 1", match="one", base=1)
    assert got.err.endswith("Edited doc.txt at line 3: version 3 is saved.\n")
    gone = await edited(doc, "say 3", match="🦀 three", base=1)
    assert (gone.code, gone.out) == (1, "")
    assert await doc.read() == (3, "zero\ntwo\n1\n")


async def test_on_a_terminal_the_passage_is_seen_while_it_is_written(doc: Doc) -> None:
    out = Screen("lon", tty=True)
    doc.served.gate.close()
    invocation = Invocation(url=doc.served.url, color="always", out=out, err=StringIO())
    values = NO_PLACE | {"lines": (1, 1)}
    command = edit(invocation, "doc", ("slowly say long and",), context=doc.context, **values)
    editing = asyncio.create_task(await_command(invocation, command))
    await out.written.wait()
    assert (await doc.read())[0] == 1
    doc.served.gate.open()
    assert await editing == 0
    assert "── doc.txt ──" in out.getvalue()
    assert "Edited doc.txt at line 1: version 2 is saved." in out.getvalue()


async def test_an_edit_that_breaks_off_and_succeeds_is_on_out_once(doc: Doc) -> None:
    got = await edited(doc, "break 1 times, then say wonderful", lines=(1, 1))
    assert (got.code, got.out) == (0, "wonderful\n")
    assert "The answer was interrupted; asking again…\n" in got.err


async def test_an_edit_that_fails_leaves_nothing_on_out_and_exits_1(doc: Doc) -> None:
    got = await edited(doc, "fail", lines=(1, 1))
    assert (got.code, got.out) == (1, "")
    assert await doc.read() == (1, TEXT)


async def test_lines_that_are_not_there_are_refused_in_the_words_that_were_typed(doc: Doc) -> None:
    got = await edited(doc, "say 1", lines=(999, 999))
    assert got.err.startswith("a2a-canvas: The server refused: --lines is 999 and must be 1 to ")


async def test_an_artifact_that_is_being_written_is_not_searched(doc: Doc) -> None:
    gate = doc.served.gate
    gate.close()
    writing = doc.stream(asking("slowly append more", context=doc.context))
    await writing.next()
    while not (await doc.now())["open"]:
        gate.reached.clear()
        gate.let(1)
        await gate.reached.wait()
    match = await edited(doc, "say 1", match="one")
    gate.open()
    await writing.rest()
    assert match == Result(1, "", "a2a-canvas: doc is being written. Try again when that task has ended\n")


async def test_json_is_one_event_a_line_with_the_edit_in_it(doc: Doc) -> None:
    got = await edited(doc, "say 1", lines=(1, 1), json=True)
    events = [json.loads(line) for line in got.out.splitlines()]
    assert (got.code, got.err) == (0, "")
    metadata = [event.get("statusUpdate", {}).get("metadata", {}).get(CANVAS, {}) for event in events]
    assert [each["edit"]["phase"] for each in metadata if "edit" in each] == ["start", "chunk", "complete"]


# ---------------------------------------------------------------------------- versions


async def test_versions_are_gone_back_and_forth_with_a_sentence_each(doc: Doc) -> None:
    await doc.run(doc.operation("put", text="new\n"))
    assert await do(undo, doc, step=False) == Result(0, "Undone: doc.txt is at version 1 again.\n", "")
    assert await do(redo, doc, step=True) == Result(0, "Redone: doc.txt is at version 2 again.\n", "")
    assert await do(restore, doc, version=1) == Result(0, "Restored version 1 of doc.txt as version 3.\n", "")
    assert await doc.read() == (3, TEXT)


@pytest.mark.parametrize(
    ("command", "values", "said"),
    [
        (undo, {"step": False}, "There is nothing to undo"),
        (redo, {"step": False}, "There is nothing to redo"),
        (restore, {"version": 9}, "The server refused: version is 9 and must be 1."),
    ],
)
async def test_what_cannot_be_done_is_a_line_on_err_and_exit_1(
    doc: Doc, command: Callable[..., Any], values: dict[str, Any], said: str
) -> None:
    got = await do(command, doc, **values)
    assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
    assert got.err.startswith(f"a2a-canvas: {said}")


# ----------------------------------------------------------------------- other servers


async def listed(_: Request) -> Response:
    return JSONResponse({"artifacts": [{"artifactId": "doc", "name": "doc.txt", "version": 1}]})


def with_listing(script: Script, url: str) -> ASGIApp:
    app = script.app(url)
    app.routes.append(Route("/artifacts/c", listed))  # type: ignore[attr-defined]
    return app


async def test_an_agent_without_the_extension_is_sent_nothing() -> None:
    script = Script([], extension="urn:example:other")
    async with serving_app(lambda url: with_listing(script, url)) as url:
        got = await run(undo, url, artifact="doc", context="c", step=False)
        assert got == Result(
            1, "", f"a2a-canvas: The agent at {url} does not support edits: its card does not list {CANVAS}\n"
        )
    assert script.calls == []


def canvas(event: pb.StreamResponse, **fields: Any) -> pb.StreamResponse:
    payload = event.task if event.HasField("task") else event.status_update
    payload.metadata.update({CANVAS: fields})
    return event


async def test_a_stream_that_breaks_is_taken_up_where_the_passage_is_by_then() -> None:
    begun = {"id": "e", "artifactId": "doc", "strategy": "insert_after", "selection": {"start": 0, "end": 1}}
    end = {**begun, "phase": "complete", "updatedContent": "xabcd", "written": {"start": 1, "end": 5}}
    snapshot = {"task": {"id": "t1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
    script = Script(
        [
            [update("WORKING"), canvas(update("WORKING"), edit={**begun, "phase": "start"}), BREAK],
            [
                canvas(ParseDict(snapshot, pb.StreamResponse()), openEdits=[{**begun, "text": "abc"}]),
                canvas(update("WORKING"), edit=end),
                update("COMPLETED", "Edited."),
            ],
        ],
        extension=CANVAS,
    )
    values = NO_PLACE | {"lines": (1, 1), "after": True}
    async with serving_app(lambda url: with_listing(script, url)) as url:
        got = await run(edit, url, steps=[None], artifact="doc", context="c", words=("more",), **values)
    assert got == Result(0, "abcd\n", "Connection lost, trying again (1 of 6)…\nEdited.\n")


async def test_put_of_a_text_for_a_version_that_is_no_longer_current_is_not_saved(doc: Doc, tmp_path: Any) -> None:
    await doc.run(doc.operation("put", text="theirs"))
    (tmp_path / "mine").write_text("mine")
    got = await do(put, doc, file=str(tmp_path / "mine"), base=1, follow=False)
    assert (got.code, got.out) == (1, "")
    assert await doc.read() == (2, "theirs")
