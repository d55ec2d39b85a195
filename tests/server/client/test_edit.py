"""`edit`, `undo`, `redo`, `restore` and `put` against the whole application on loopback."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator
from io import StringIO
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette
from starlette.types import ASGIApp

from a2a_canvas.server.client.edit import operate
from a2a_canvas.server.client.operations import (
    REDO,
    UNDO,
    ArtifactOperation,
    ArtifactTarget,
    EditRequest,
    LineRange,
    TextMatch,
    put,
    restore,
)
from a2a_canvas.server.wire import CANVAS
from tests.server.app_server import Served, asking, serving
from tests.server.canvas_client import SCRIPT, Doc, made
from tests.server.client.client_harness import BREAK, Result, Screen, Script, card, card_route, unused_url, update
from tests.server.client.client_harness import serving as serving_app

TEXT = "one\ntwo\n🦀 three\ntwo\n"
RULE = "─" * 40 + "\n"
HEAD = "── doc.txt " + "─" * 29 + "\n"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(SCRIPT, grpc=False) as served:
        served.gate.open()
        yield served


@pytest.fixture
async def doc(served: Served) -> Doc:
    """Version 1 of `doc` is `TEXT`."""
    return await made(served, TEXT)


def where(doc: Doc, **more: Any) -> ArtifactTarget:
    return ArtifactTarget(**{"context": doc.context, "artifact": "doc", "url": doc.served.url} | more)


async def run(where: ArtifactTarget, wish: ArtifactOperation | EditRequest) -> Result:
    waited = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    out, err = StringIO(), StringIO()
    code = await operate(where, wish, out, err, pause=pause)
    return Result(code, out.getvalue(), err.getvalue())


async def do(doc: Doc, wish: ArtifactOperation | EditRequest, **more: Any) -> Result:
    return await run(where(doc, **more), wish)


# ------------------------------------------------------------------------------- edits


async def test_a_passage_goes_to_out_and_where_it_is_to_err(doc: Doc) -> None:
    got = await do(doc, EditRequest("say 2\n2", LineRange(2, 2)))
    assert got == Result(0, "2\n2\n", "Editing doc.txt…\nEdited doc.txt at line 2: version 2 is saved.\n")
    assert await doc.read() == (2, "one\n2\n2\n🦀 three\ntwo\n")


async def test_a_text_that_occurs_once_is_the_passage(doc: Doc) -> None:
    got = await do(doc, EditRequest("say four", TextMatch("three\ntwo")))
    assert (got.code, got.out) == (0, "four\n")
    assert await doc.read() == (2, "one\ntwo\n🦀 four\n")


async def test_something_new_is_written_before_or_after_the_passage(doc: Doc) -> None:
    before = await do(doc, EditRequest("say zero, ", TextMatch("one"), "insert_before"))
    after = await do(doc, EditRequest("say !", TextMatch("three"), "insert_after"))
    assert (before.out, after.out) == ("zero, \n", "!\n")
    assert await doc.read() == (3, "zero, one\ntwo\n🦀 three!\ntwo\n")


async def test_a_text_that_occurs_often_is_refused_and_nothing_is_sent(doc: Doc) -> None:
    tasks = await doc.tasks()
    often, never = [await do(doc, EditRequest("say 2", TextMatch(text))) for text in ("two", "2")]
    advice = "Match more of the text, or give --lines"
    assert often == Result(2, "", f'"two" occurs 2 times in version 1, on lines 2, 4. {advice}\n')
    assert never == Result(2, "", '"2" does not occur in version 1\n')
    assert await doc.tasks() == tasks


async def test_a_match_in_the_version_that_was_seen_lands_where_that_text_is_now(doc: Doc) -> None:
    await do(doc, put("zero\ntwo\none\n", None))
    got = await do(doc, EditRequest("say 1", TextMatch("one"), base=1))
    assert got.err.endswith("Edited doc.txt at line 3: version 3 is saved.\n")
    assert await doc.read() == (3, "zero\ntwo\n1\n")


async def test_an_edit_of_a_passage_that_is_gone_is_rejected(doc: Doc) -> None:
    await do(doc, put("gone\n", None))
    for place in (TextMatch("🦀 three"), LineRange(3, 3)):
        got = await do(doc, EditRequest("say 3", place, base=1))
        assert (got.code, got.out) == (1, "")
        assert got.err.startswith("Task rejected: ")
    assert await doc.read() == (2, "gone\n")


async def test_lines_that_there_are_not_are_refused_by_the_server(doc: Doc) -> None:
    got = await do(doc, EditRequest("say x", LineRange(9, 9)))
    assert (got.code, got.out) == (1, "")
    assert got.err.startswith("The server refused: selection.lineStart is 9 and must be 1 to 5")


async def test_on_a_terminal_the_passage_is_seen_while_it_is_written(doc: Doc) -> None:
    out, err = Screen("lon", tty=True), StringIO()
    doc.served.gate.close()
    editing = asyncio.create_task(operate(where(doc), EditRequest("slowly say long and", LineRange(1, 1)), out, err))
    await out.written.wait()
    assert (await doc.read())[0] == 1
    doc.served.gate.open()
    assert await editing == 0
    shown = out.getvalue()
    assert HEAD in shown
    assert shown.endswith(f"\n{RULE}Edited doc.txt at line 1: version 2 is saved.\n")
    assert err.getvalue() == ""


async def test_an_edit_that_breaks_off_and_succeeds_is_on_out_once(doc: Doc) -> None:
    got = await do(doc, EditRequest("break 1 times, then say wonderful", LineRange(1, 1)))
    assert (got.code, got.out) == (0, "wonderful\n")
    assert "The answer broke off, asking again…\n" in got.err


async def test_on_a_terminal_a_passage_that_broke_off_is_rewritten_below(doc: Doc) -> None:
    out = Screen(tty=True)
    assert (
        await operate(where(doc), EditRequest("break 1 times, then say wonderful", LineRange(1, 1)), out, StringIO())
        == 0
    )
    heads = [line for line in re.sub(r"\x1b\[\w+", "", out.getvalue()).splitlines() if line.startswith("── ")]
    assert [head.strip("─ ") for head in heads] == ["doc.txt", "doc.txt (rewritten)"]


async def test_an_edit_that_fails_leaves_nothing_on_out_and_exits_1(doc: Doc) -> None:
    got = await do(doc, EditRequest("fail", LineRange(1, 1)))
    assert (got.code, got.out) == (1, "")
    assert "Task failed: " in got.err.splitlines()[-1]
    assert "asking again" not in got.err
    assert await doc.read() == (1, TEXT)


async def test_an_artifact_that_is_being_written_is_not_searched(doc: Doc) -> None:
    gate = doc.served.gate
    gate.close()
    writing = doc.stream(asking("slowly append more", context=doc.context))
    await writing.next()
    while not (await doc.now())["open"]:
        gate.reached.clear()
        gate.let(1)
        await gate.reached.wait()
    match = await do(doc, EditRequest("say 1", TextMatch("one")))
    lines = await do(doc, EditRequest("say 1", LineRange(1, 1)))
    gate.open()
    await writing.rest()
    assert match == Result(1, "", "doc is being written just now. Try again when that task is done\n")
    assert lines.code == 1
    assert lines.err.startswith("Task rejected: ")


async def test_an_interrupt_says_that_the_task_goes_on_and_how_to_see_it(doc: Doc) -> None:
    out, err = Screen("lon", tty=True), StringIO()
    doc.served.gate.close()
    editing = asyncio.create_task(operate(where(doc), EditRequest("slowly say long and", LineRange(1, 1)), out, err))
    await out.written.wait()
    editing.cancel()
    assert await editing == 130
    said, advice = err.getvalue().splitlines()
    assert said.startswith("Interrupted; the task goes on (task ")
    assert advice == (f"See what became of it: a2a-canvas versions doc --context {doc.context} --url {doc.served.url}")
    doc.served.gate.open()


async def test_json_is_one_event_a_line_with_the_edit_in_it(doc: Doc) -> None:
    got = await do(doc, EditRequest("say 1", LineRange(1, 1)), json=True)
    events = [json.loads(line) for line in got.out.splitlines()]
    assert (got.code, got.err) == (0, "")
    metadata = [event.get("statusUpdate", {}).get("metadata", {}).get(CANVAS, {}) for event in events]
    assert [each["edit"]["phase"] for each in metadata if "edit" in each] == ["start", "chunk", "complete"]


async def test_a_passage_goes_to_a_pipe_byte_for_byte(doc: Doc) -> None:
    bytes_below = io.BytesIO()
    with io.TextIOWrapper(bytes_below, encoding="ascii") as out:
        assert await operate(where(doc), EditRequest("say é\x07🦀\n", LineRange(1, 1)), out, StringIO()) == 0
        assert bytes_below.getvalue() == "é\x07🦀\n".encode()


# ---------------------------------------------------------------------------- versions


async def test_versions_are_gone_back_and_forth_with_a_sentence_each(doc: Doc) -> None:
    assert await do(doc, put("new\n", 1)) == Result(0, "Saved doc.txt as version 2.\n", "")
    assert await do(doc, UNDO) == Result(0, "Undone: doc.txt is at version 1 again.\n", "")
    assert await do(doc, REDO) == Result(0, "Redone: doc.txt is at version 2 again.\n", "")
    assert await do(doc, restore(1)) == Result(0, "Restored version 1 of doc.txt as version 3.\n", "")
    assert await doc.read() == (3, TEXT)
    assert await doc.versions() == [("agent", 0), ("user", 1), ("user", 2)]


async def test_on_a_terminal_a_step_is_its_sentence_alone(doc: Doc) -> None:
    out = Screen(tty=True)
    assert await operate(where(doc), put("new\n", None), out, StringIO()) == 0
    assert out.getvalue() == "Saved doc.txt as version 2.\n"


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        (UNDO, "Task rejected: There is nothing to undo"),
        (REDO, "Task rejected: There is nothing to redo"),
        (restore(9), "The server refused: version is 9 and must be 1"),
        (put("x", 9), "The server refused: baseVersion is 9 and must be 1"),
    ],
)
async def test_what_cannot_be_done_is_a_line_on_err_and_exit_1(doc: Doc, wish: ArtifactOperation, line: str) -> None:
    got = await do(doc, wish)
    assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
    assert got.err.startswith(line)


async def test_a_text_for_a_version_that_is_no_longer_current_is_not_saved(doc: Doc) -> None:
    await do(doc, put("theirs", None))
    got = await do(doc, put("mine", 1))
    assert (got.code, got.out) == (1, "")
    assert got.err.startswith("Task rejected: ")
    assert await doc.read() == (2, "theirs")


async def test_an_artifact_that_is_not_known_is_told_in_the_same_words_whatever_is_asked(doc: Doc) -> None:
    said = "There is no artifact 'none' in this context. List the artifacts to see their ids.\n"
    tasks = await doc.tasks()
    for wish in (
        UNDO,
        REDO,
        restore(1),
        put("x", None),
        EditRequest("say x", LineRange(1, 1)),
        EditRequest("say x", TextMatch("x")),
    ):
        assert await do(doc, wish, artifact="none") == Result(1, "", said)
    assert await doc.tasks() == tasks


# ----------------------------------------------------------------------- other servers


async def test_an_agent_without_the_extension_is_sent_nothing() -> None:
    script = Script([], extension="urn:example:other")
    async with serving_app(script.app) as url:
        for wish in (UNDO, EditRequest("shorter", TextMatch("x"))):
            got = await run(ArtifactTarget("c", "doc", url), wish)
            said = f"The agent at {url} takes no edits: its card does not list {CANVAS}\n"
            assert got == Result(1, "", said)
    assert script.calls == []


async def test_no_server_and_no_card_are_told_as_by_send() -> None:
    url = unused_url()
    assert await run(ArtifactTarget("c", "doc", url), UNDO) == Result(1, "", f"No A2A server answers at {url}\n")
    async with serving_app(lambda _: Starlette()) as url:
        assert await run(ArtifactTarget("c", "doc", url), UNDO) == Result(1, "", f"No agent card at {url}: HTTP 404\n")


async def test_a_card_that_leads_nowhere_is_told() -> None:
    nowhere = unused_url()

    def app(url: str) -> ASGIApp:
        return Starlette(routes=[card_route(card(nowhere, extension=CANVAS))])

    async with serving_app(app) as url:
        for wish in (UNDO, EditRequest("shorter", TextMatch("x"))):
            got = await run(ArtifactTarget("c", "doc", url), wish)
            assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
            assert got.err.startswith(f"The agent's card leads to {nowhere}")


def canvas(event: pb.StreamResponse, **fields: Any) -> pb.StreamResponse:
    payload = event.task if event.HasField("task") else event.status_update
    payload.metadata.update({CANVAS: fields})
    return event


async def test_a_stream_that_breaks_is_taken_up_where_the_passage_is_by_then() -> None:
    selection = {"start": 0, "end": 1}
    begun = {"id": "e", "artifactId": "doc", "strategy": "insert_after", "selection": selection}
    snapshot = ParseDict(
        {"task": {"id": "t1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}, pb.StreamResponse()
    )
    script = Script(
        [
            [
                update("WORKING"),
                canvas(update("WORKING"), edit={**begun, "phase": "start"}),
                canvas(update("WORKING"), edit={"id": "e", "phase": "chunk", "chunk": "a"}),
                BREAK,
            ],
            [
                canvas(snapshot, openEdits=[{**begun, "text": "abc"}]),
                canvas(update("WORKING"), edit={"id": "e", "phase": "chunk", "chunk": "d"}),
                canvas(update("WORKING"), edit={**begun, "phase": "complete", "updatedContent": "xabcd"}),
                update("COMPLETED", "Edited."),
            ],
        ],
        extension=CANVAS,
    )
    async with serving_app(script.app) as url:
        got = await run(ArtifactTarget("c", "doc", url), EditRequest("more", LineRange(1, 1), "insert_after"))
    assert got == Result(0, "abcd\n", "Connection lost, trying again (1 of 6)…\nEdited.\n")
    assert [extensions for *_, extensions in script.calls] == [CANVAS, CANVAS]


async def test_a_connection_that_is_lost_for_good_tells_how_to_look() -> None:
    script = Script([[update("WORKING"), BREAK], *[500] * 6], extension=CANVAS)
    async with serving_app(script.app) as url:
        got = await run(ArtifactTarget("c 1", "doc", url, program="./a2a-canvas"), UNDO)
    *_, said, advice = got.err.splitlines()
    assert got.code == 1
    assert said.startswith(f"The connection to {url} was lost; the task may go on there (task t1, context c1)")
    assert advice == f"See what became of it: ./a2a-canvas versions doc --context 'c 1' --url {url}"
