"""CriticMarkup over the whole application: out with `?format=critic`, in with `put` and `"format": "critic"`."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb

from tests.server.app_server import Served, Way, every_way, said
from tests.server.canvas_client import Doc, canvas_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "Tide pools are small.\nThey are deep.\n"
MARKED = "{~~Tide~>Rock~~}{>>shorter<<} pools are small.\n{==They==}{>>Who?<<} are {++very ++}deep.\n"


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"database": "memory"}


@pytest_asyncio.fixture(loop_scope="module")
async def doc(served: Served) -> Doc:
    served.gate.open()
    doc = Doc(served, str(uuid4()), TEXT)
    await done(doc, "put", text=TEXT, name="doc.md")
    return doc


async def done(doc: Doc, op: str, words: str = "please", way: Way = ("JSONRPC", "1.0"), **fields: Any) -> pb.Task:
    task = await doc.run(doc.operation(op, words, **fields), way)
    assert task.status.state == pb.TASK_STATE_COMPLETED, task.status
    return task


async def critic(doc: Doc, **headers: str) -> Any:
    path = f"/artifacts/{doc.context}/{doc.artifact_id}"
    return await doc.served.http.get(path, params={"format": "critic"}, headers=headers)


async def annotations(doc: Doc) -> list[dict[str, Any]]:
    answer = await doc.served.http.get(f"/artifacts/{doc.context}/{doc.artifact_id}/annotations")
    return [each["canvas"] for each in answer.json()["first"]["items"]]


def shape(annotation: dict[str, Any]) -> tuple[Any, ...]:
    thread = [each["text"] for each in annotation["thread"]]
    return annotation["quote"]["exact"], annotation.get("replacement"), thread, annotation["state"]


@every_way
async def test_a_text_with_marks_is_a_version_with_suggestions_and_comments(doc: Doc, way: Way) -> None:
    task = await done(doc, "put", way=way, text=MARKED.replace("small", "large"), format="critic")
    assert said(task.status) == "Saved doc.md as version 2. Added suggestion 1, comment 2, suggestion 3."
    found = await annotations(doc)
    assert [shape(each) for each in found] == [
        ("Tide", "Rock", ["shorter"], "open"),
        ("They", None, ["Who?"], "open"),
        ("", "very ", [], "open"),
    ]
    assert await doc.read() == (2, TEXT.replace("small", "large"))
    assert (await critic(doc)).text == MARKED.replace("small", "large")
    assert {each["taskId"] for each in found} == {task.id}


async def test_out_and_in_again_changes_nothing(doc: Doc) -> None:
    await done(doc, "put", text=MARKED, format="critic")
    before = await annotations(doc)
    out = await critic(doc)
    assert (out.text, out.headers["content-type"]) == (MARKED, "text/markdown; charset=utf-8")
    assert (await critic(doc, **{"If-None-Match": out.headers["etag"]})).status_code == 304
    again = await done(doc, "put", text=out.text, format="critic", baseVersion=1)
    assert said(again.status).startswith("Nothing has changed")
    assert canvas_of(again.status.message)["annotationIds"] == []
    assert await annotations(doc) == before
    assert await doc.read() == (1, TEXT)


async def test_remarks_that_were_added_in_the_text_are_replies_and_what_is_left_out_stays(doc: Doc) -> None:
    await done(doc, "put", text=MARKED, format="critic")
    edited = MARKED.replace("{>>Who?<<}", "{>>Who?<<}{>>The pools.<<}").replace("{++very ++}", "")
    await done(doc, "put", text=edited, format="critic", baseVersion=1)
    assert [shape(each)[2] for each in await annotations(doc)] == [["shorter"], ["Who?", "The pools."], []]


async def test_an_accepted_suggestion_is_part_of_the_text_that_goes_out(doc: Doc) -> None:
    await done(doc, "put", text=MARKED, format="critic")
    await done(doc, "accept", annotationId=(await annotations(doc))[0]["annotationId"])
    assert (await critic(doc)).text == "Rock" + MARKED.removeprefix("{~~Tide~>Rock~~}{>>shorter<<}")


async def test_an_ordinary_put_of_marks_is_text_and_cannot_go_out(doc: Doc) -> None:
    code = "for (;;)\n{++i;}\n"
    await done(doc, "put", text=code)
    assert await doc.read() == (2, code)
    assert await annotations(doc) == []
    refused = await critic(doc)
    assert (refused.status_code, refused.json()["error"]["status"]) == (409, "FAILED_PRECONDITION")
    assert refused.json()["error"]["message"].startswith(
        "The text cannot be written as CriticMarkup: line 2 has '{++' in its own text"
    )


async def test_suggestions_that_overlap_cannot_go_out(doc: Doc) -> None:
    for lines in ({"start": 22, "end": 30}, {"start": 27, "end": 35}):
        await done(doc, "annotate", selection=lines, replacement="x")
    refused = await critic(doc)
    assert refused.status_code == 409
    assert "line 2 has a suggestion or a comment that overlaps another" in refused.json()["error"]["message"]


REFUSED = {
    "not closed": (
        {"text": "a\n{++b", "format": "critic"},
        "text cannot be read as CriticMarkup: line 2 has '{++' without",
    ),
    "merged": (
        {"text": MARKED, "format": "critic", "merge": True, "baseVersion": 1},
        "merge is for a text without marks",
    ),
    "unknown": ({"text": MARKED, "format": "html"}, "format"),
    "no text": ({"format": "critic"}, "text is missing"),
}


@pytest.mark.parametrize(("fields", "reason"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_read_is_refused_and_nothing_is_changed(
    doc: Doc, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Exception, match=reason.replace("{++", r"\{\+\+")):
        await doc.run(doc.operation("put", **fields))
    assert (await doc.read(), await annotations(doc)) == ((1, TEXT), [])


async def test_a_text_with_marks_of_another_version_is_rejected_and_nothing_is_changed(doc: Doc) -> None:
    await done(doc, "put", text="Another text.\n")
    late = await doc.run(doc.operation("put", text=MARKED, format="critic", baseVersion=1))
    assert late.status.state == pb.TASK_STATE_REJECTED
    assert canvas_of(late.status.message)["artifactVersion"] == 2
    assert (await doc.read(), await annotations(doc)) == ((2, "Another text.\n"), [])


async def test_a_new_artifact_may_come_with_marks(served: Served) -> None:
    served.gate.open()
    doc = Doc(served, str(uuid4()), TEXT)
    await done(doc, "put", text=MARKED, format="critic", name="doc.md")
    assert len(await annotations(doc)) == 3
    assert (await critic(doc)).text == MARKED


async def test_only_the_current_text_goes_out(doc: Doc) -> None:
    path = f"/artifacts/{doc.context}/doc/versions/1"
    refused = await doc.served.http.get(path, params={"format": "critic"})
    assert (refused.status_code, "for the current version" in refused.text) == (400, True)
