"""Undo, redo, restore and put, over the whole application: tasks that need no model and finish at once."""

from typing import Any
from uuid import uuid4

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_canvas.server.agent.model import ModelRequest, ToolResult
from tests.server.app_server import WAYS, Served, Way, asking, every_way, said, text_of
from tests.server.canvas_client import CANVAS, SCRIPT, Doc, canvas_of, folded, made, names, say, selected

pytestmark = pytest.mark.asyncio(loop_scope="module")
COMPLETED, REJECTED = pb.TASK_STATE_COMPLETED, pb.TASK_STATE_REJECTED


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"script": SCRIPT}


async def three(served: Served) -> Doc:
    """An artifact with the versions one, two, three."""
    doc = await made(served, "one", "doc.md", "text/markdown")
    for text in ("two", "three"):
        await doc.run(doc.operation("put", text=text))
    served.model.requests.clear()
    return doc


async def done(doc: Doc, op: str, way: Way = WAYS[0], **fields: Any) -> tuple[str, int, str]:
    """(what is said, current version, text) after an operation that succeeds."""
    task = await doc.run(doc.operation(op, **fields), way)
    assert task.status.state == COMPLETED, said(task.status)
    version, text = await doc.read()
    assert text_of(task) == text
    assert doc.served.model.requests == []
    return said(task.status), version, text


async def refused(doc: Doc, op: str, way: Way = WAYS[0], **fields: Any) -> str:
    """What is said of an operation that is rejected; nothing has changed."""
    before = await doc.now()
    task = await doc.run(doc.operation(op, **fields), way)
    assert task.status.state == REJECTED, said(task.status)
    now = {"artifactId": "doc", "artifactVersion": before["version"]}
    assert MessageToDict(task.status.message.metadata) == {CANVAS: now}
    assert await doc.now() == before
    return said(task.status)


@every_way
@pytest.mark.transports
async def test_undo_walks_back_and_redo_forward_again(served: Served, way: Way) -> None:
    doc = await three(served)
    assert await done(doc, "undo", way) == ("Undone: doc.md is at version 2 again.", 2, "two")
    assert await done(doc, "undo", way) == ("Undone: doc.md is at version 1 again.", 1, "one")
    assert "nothing to undo" in await refused(doc, "undo", way)
    assert await done(doc, "redo", way) == ("Redone: doc.md is at version 2 again.", 2, "two")
    assert await done(doc, "redo", way) == ("Redone: doc.md is at version 3 again.", 3, "three")
    assert "nothing to redo" in await refused(doc, "redo", way)
    assert await doc.versions() == [("agent", 0), ("user", 1), ("user", 2)]


@every_way
async def test_a_wish_that_made_several_edits_is_undone_and_redone_at_once(served: Served, way: Way) -> None:
    doc = await made(served, "one", "doc.md", "text/markdown")
    await doc.run(doc.operation("put", text="mine"))
    await say(doc, "change mine to two to three to four")
    served.model.requests.clear()
    assert await doc.read() == (5, "four")
    assert await done(doc, "undo", way, group=True) == ("Undone: doc.md is at version 2 again.", 2, "mine")
    assert await done(doc, "redo", way, group=True) == ("Redone: doc.md is at version 5 again.", 5, "four")
    assert await done(doc, "undo", way) == ("Undone: doc.md is at version 4 again.", 4, "three")
    assert await done(doc, "undo", way, group=True) == ("Undone: doc.md is at version 2 again.", 2, "mine")
    assert await done(doc, "undo", way, group=True) == ("Undone: doc.md is at version 1 again.", 1, "one")
    assert "nothing to undo" in await refused(doc, "undo", way, group=True)


@every_way
async def test_restore_makes_a_new_version_of_an_old_one(served: Served, way: Way) -> None:
    doc = await three(served)
    assert await done(doc, "restore", way, version=1) == ("Restored version 1 of doc.md as version 4.", 4, "one")
    assert await doc.versions() == [("agent", 0), ("user", 1), ("user", 2), ("user", 3)]
    assert (await done(doc, "undo", way))[1:] == (3, "three")


@every_way
async def test_put_is_a_persons_own_edit(served: Served, way: Way) -> None:
    doc = await made(served, "one 😀\r\ntwo\n", "doc.md", "text/markdown")
    served.model.requests.clear()
    before = await doc.now()
    put = await done(doc, "put", way, text="one 🎉\r\ntwo\n", baseVersion=1)
    assert put == ("Saved doc.md as version 2.", 2, "one 🎉\r\ntwo\n")
    assert await doc.versions() == [("agent", 0), ("user", 1)]
    after = await doc.now()
    before["parts"][0]["text"] = "one 🎉\r\ntwo\n"
    assert after == before | {"version": 2}


@every_way
async def test_put_with_merge_keeps_what_others_have_changed_elsewhere(served: Served, way: Way) -> None:
    doc = await made(served, "one two\r\nthree 😀 four\r\n", "doc.md", "text/markdown")
    await doc.run(doc.operation("put", text="1 two\r\nthree 😀 four\r\n"), way)
    served.model.requests.clear()
    put = await done(doc, "put", way, text="one two\r\nthree 😀 4\r\n", baseVersion=1, merge=True)
    assert put == ("Merged with version 2: version 3 is saved.", 3, "1 two\r\nthree 😀 4\r\n")
    assert await doc.versions() == [("agent", 0), ("user", 1), ("user", 2)]


@every_way
@pytest.mark.parametrize("fields", [{}, {"baseVersion": 2}, {"baseVersion": 1, "merge": True}], ids=str)
async def test_put_of_what_the_current_version_is_already_makes_none_and_says_so(
    served: Served, way: Way, fields: dict[str, Any]
) -> None:
    doc = await made(served, "one", "doc.md", "text/markdown")
    await doc.run(doc.operation("put", text="two"), way)
    before = await doc.now()
    task = await doc.run(doc.operation("put", text="two", **fields), way)
    assert (task.status.state, list(task.artifacts), await doc.now()) == (COMPLETED, [], before)
    assert said(task.status) == "Nothing has changed: all of it is in version 2 of doc.md already."
    now = {"artifactId": "doc", "artifactVersion": 2}
    assert MessageToDict(task.status.message.metadata) == {CANVAS: now}
    assert await doc.versions() == [("agent", 0), ("user", 1)]


@every_way
async def test_put_with_merge_is_rejected_with_both_texts_of_every_place_that_others_have_changed_too(
    served: Served, way: Way
) -> None:
    doc = await made(served, "one 😀 two three", "doc.md", "text/markdown")
    await doc.run(doc.operation("put", text="one 😀 2 three"), way)
    before = await doc.now()
    request = doc.operation("put", text="one 😀 deux three!", baseVersion=1, merge=True)
    task = await doc.run(request, way)
    assert (task.status.state, await doc.now()) == (REJECTED, before)
    assert "change the same place, line 1 of version 1. Nothing was saved." in said(task.status)
    place = {"start": 7, "end": 10, "base": "two", "current": "2", "yours": "deux"}
    now = {"artifactId": "doc", "artifactVersion": 2, "conflicts": [place]}
    assert MessageToDict(task.status.message.metadata) == {CANVAS: now}


@every_way
async def test_put_with_a_name_makes_an_artifact_that_is_not_there(served: Served, way: Way) -> None:
    doc = Doc(served, str(uuid4()), artifact_id="notes")
    put = await done(doc, "put", way, name="notes.md", text="# Notes\n")
    assert put == ("Saved notes.md as version 1.", 1, "# Notes\n")
    [part] = (made := await doc.now())["parts"]
    assert (made["name"], part["mediaType"]) == ("notes.md", "text/markdown")
    assert await done(doc, "put", way, name="other.txt", text="mine") == ("Saved notes.md as version 2.", 2, "mine")
    assert await doc.versions() == [("user", 0), ("user", 1)]


@every_way
async def test_put_without_a_text_stores_the_files_and_data_of_its_message(served: Served, way: Way) -> None:
    doc = Doc(served, str(uuid4()), artifact_id="picture")
    request = doc.operation("put", name="picture.png")
    request.message.parts.add(raw=b"\x89PNG", filename="photo.png", media_type="image/png")
    task = await doc.run(request, way)
    assert (task.status.state, said(task.status)) == (COMPLETED, "Saved picture.png as version 1.")
    made = await doc.now()
    picture = {"raw": "iVBORw==", "filename": "photo.png", "mediaType": "image/png"}
    assert (made["name"], made["parts"]) == ("picture.png", [picture])
    request = doc.operation("put", baseVersion=1)
    ParseDict({"a": [1, "x"]}, request.message.parts.add().data)
    assert (await doc.run(request, way)).status.state == COMPLETED
    assert (await doc.now())["parts"] == [picture, {"data": {"a": [1, "x"]}}]
    request = doc.operation("put")
    ParseDict({"a": [1, "x"]}, request.message.parts.add().data)
    again = await doc.run(request, way)
    assert said(again.status) == "Nothing has changed: all of it is in version 2 of picture.png already."
    assert await doc.versions() == [("user", 0), ("user", 1)]
    raw = await served.http.get(f"/artifacts/{doc.context}/picture/versions/1", params={"raw": "1"})
    assert (raw.content, raw.headers["content-type"]) == (b"\x89PNG", "image/png")
    assert served.model.requests == []


async def test_put_with_a_name_begins_a_context_if_it_names_none(served: Served) -> None:
    doc = Doc(served, "", artifact_id="notes")
    task = await doc.run(doc.operation("put", name="notes", text=""))
    assert (task.status.state, task.artifacts[0].name) == (COMPLETED, "notes")
    assert await Doc(served, task.context_id, artifact_id="notes").read() == (1, "")


@every_way
async def test_a_client_sees_one_replacement_which_says_its_version_and_author(served: Served, way: Way) -> None:
    doc = await three(served)
    for op, fields, version, author in (
        ("undo", {}, 2, "user"),
        ("undo", {}, 1, "agent"),
        ("restore", {"version": 3}, 4, "user"),
        ("put", {"text": "five", "name": "ignored"}, 5, "user"),
    ):
        knowing = await doc.stream(doc.operation(op, **fields), CANVAS, way=way).rest()
        assert names(knowing)[0] == "submitted"
        assert names(knowing)[-2:] == ["replaced", "completed"]
        (change,) = (event for event in knowing.seen if event.HasField("artifact_update"))
        assert {"artifactVersion": version, "author": author}.items() <= canvas_of(change).items()
        assert folded(knowing.seen).versions == {"doc": {"artifactVersion": version, "author": author}}


async def test_a_new_change_after_an_undo_ends_the_redo_line_and_deletes_nothing(served: Served) -> None:
    doc = await three(served)
    await done(doc, "undo")
    assert (await done(doc, "put", text="other"))[1:] == (4, "other")
    assert "nothing to redo" in await refused(doc, "redo")
    assert await doc.versions() == [("agent", 0), ("user", 1), ("user", 2), ("user", 2)]
    response = await served.http.get(f"/artifacts/{doc.context}/doc/versions/3?raw=1")
    assert response.text == "three"
    assert (await done(doc, "restore", version=3))[1:] == (5, "three")
    assert [(await done(doc, "undo"))[1:] for _ in range(3)] == [(4, "other"), (2, "two"), (1, "one")]


async def test_an_edit_after_an_undo_is_made_of_the_version_that_is_shown(served: Served) -> None:
    doc = await three(served)
    await done(doc, "undo")
    task = await doc.run(doc.edit("say 2", selected("two", "two", text="two"), baseVersion=2))
    assert text_of(task) == "2"
    assert (await doc.read())[0] == 4
    assert (await doc.versions())[3] == ("agent", 2)


async def test_a_conversation_after_an_undo_goes_on_from_the_version_that_is_shown(served: Served) -> None:
    doc = await three(served)
    await done(doc, "undo")
    served.gate.open()
    await say(doc, "slowly append !")
    assert await doc.read() == (4, "two!")
    assert (await doc.versions())[3] == ("agent", 2)


@pytest.mark.parametrize("op", ["undo", "redo", "restore", "put"])
async def test_a_base_version_that_is_not_the_current_one_is_a_guard(served: Served, op: str) -> None:
    doc = await three(served)
    fields: dict[str, Any] = {"restore": {"version": 1}, "put": {"text": "mine"}}.get(op, {})
    why = await refused(doc, op, baseVersion=2, **fields)
    assert "current version is 3" in why
    assert "version 2" in why


@pytest.mark.parametrize("op", ["undo", "restore", "put"])
async def test_a_base_version_that_is_the_current_one_lets_it_through(served: Served, op: str) -> None:
    doc = await three(served)
    fields: dict[str, Any] = {"restore": {"version": 1}, "put": {"text": "mine"}}.get(op, {})
    assert (await done(doc, op, baseVersion=3, **fields))[1] == (2 if op == "undo" else 4)


async def test_what_a_message_says_besides_its_operation_is_ignored(served: Served) -> None:
    doc = await three(served)
    task = await doc.run(doc.operation("undo", "Please write a poem, and make it async."))
    assert text_of(task) == "two"
    assert served.model.requests == []


async def test_an_operation_while_the_artifact_is_written_is_told_to_try_again(served: Served) -> None:
    doc = await three(served)
    writing = doc.stream(asking("slowly append 0123456789", context=doc.context))
    await writing.next()
    await served.gate.reached.wait()
    while not (await doc.now())["open"]:
        served.gate.let(1)
        await served.gate.reached.wait()
    for op in ("undo", "put"):
        task = await doc.run(doc.operation(op, **({"text": "mine"} if op == "put" else {})))
        assert task.status.state == REJECTED
        assert "being written by another task. Try again" in said(task.status)
        now = {"artifactId": "doc", "artifactVersion": 3, "busy": True}
        assert MessageToDict(task.status.message.metadata) == {CANVAS: now}
    served.gate.open()
    await writing.rest()
    assert (await doc.read())[1] == "three0123456789"


async def test_what_a_user_puts_while_a_task_waits_for_an_answer_is_not_overwritten_unread(served: Served) -> None:
    doc = await made(served, "one", "doc.md", "text/markdown")
    asked = await doc.run(asking("ask, then write theirs, then mine and theirs", context=doc.context))
    assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED
    served.model.requests.clear()
    await done(doc, "put", text="mine")
    answered = doc.stream(asking("this one", context=doc.context, task=asked.id))
    await answered.next()
    await served.gate.reached.wait()  # the rewrite has been refused, and the model begins to read
    [refusal] = results(served.model.requests[-1])
    assert refusal.is_error
    assert "version 2 is current, it was version 1" in refusal.content
    assert await doc.read() == (2, "mine")
    served.gate.open()
    await answered.rest()
    assert answered.task.status.state == COMPLETED
    [read] = results(served.model.requests[-2])
    assert (read.is_error, "mine" in read.content) == (False, True)
    assert await doc.read() == (3, "mine and theirs")
    assert await doc.versions() == [("agent", 0), ("user", 1), ("agent", 2)]


def results(request: ModelRequest) -> list[ToolResult]:
    """Those that the model is given with it."""
    return [item for item in request.messages[-1].content if isinstance(item, ToolResult)]


async def test_each_task_shows_the_artifact_as_it_left_it(served: Served) -> None:
    doc = await three(served)
    await done(doc, "undo")
    await done(doc, "put", text="other")
    tasks = [await served.client().get_task(pb.GetTaskRequest(id=task_id)) for task_id, _ in await doc.tasks()]
    assert sorted(text_of(task) for task in tasks) == ["one", "other", "three", "two", "two"]
    assert {task.status.state for task in tasks} == {COMPLETED}
