"""Operations that are bad input, over every binding: the field and what it must be, no task left, nothing changed."""

from typing import Any

import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.agent.intent import OPERATIONS
from a2a_canvas.store.text.wording import choice
from tests.server.app_server import WAYS, Served, Way, asking, envelope, every_way
from tests.server.canvas_client import AGENTSTACK, CANVAS, SCRIPT, Doc, made, say, selected, with_metadata

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = "😀 one\ntwo\nthree\n"
HERE = {"start": 3, "end": 6}
CURRENT = {"op": "edit", "artifactId": "doc", "baseVersion": 1}

BAD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown op": (
        {"op": "rewrite", "artifactId": "doc"},
        ("op", choice(OPERATIONS)),
    ),
    "op that is no text": ({"op": 1, "artifactId": "doc"}, ("op", "edit, undo")),
    "no artifact named": ({"op": "undo"}, ("artifactId", "missing")),
    "no such artifact": ({"op": "undo", "artifactId": "nope"}, ("artifactId", "'nope'")),
    "unknown field": ({"op": "undo", "artifactId": "doc", "base_version": 1}, ("base_version",)),
    "group that is no boolean": ({"op": "undo", "artifactId": "doc", "group": "yes"}, ("group", "true or false")),
    "field of another operation": ({"op": "undo", "artifactId": "doc", "version": 1}, ("version",)),
    "no selection": (CURRENT, ("selection", "missing")),
    "selection without a place": ({**CURRENT, "selection": {"text": "one"}}, ("selection", "lineStart")),
    "half a range": ({**CURRENT, "selection": {"start": 3}}, ("selection", "start and end")),
    "negative": ({**CURRENT, "selection": {"start": -1, "end": 2}}, ("selection.start", "is -1", "0 to 17")),
    "half a character": ({**CURRENT, "selection": {"start": 0.5, "end": 2}}, ("selection.start",)),
    "reversed": ({**CURRENT, "selection": {"start": 6, "end": 3}}, ("selection.end", "is 3", "6 to 17")),
    "behind the text": ({**CURRENT, "selection": {"start": 3, "end": 18}}, ("selection.end", "is 18", "0 to 17")),
    "behind the text, in code points": (
        {**CURRENT, "selection": {"start": 3, "end": 17, "unit": "codepoint"}},
        ("selection.end", "is 17", "0 to 16"),
    ),
    "in the middle of a character": ({**CURRENT, "selection": {"start": 1, "end": 4}}, ("selection.start", "is 1")),
    "unknown unit": ({**CURRENT, "selection": {**HERE, "unit": "byte"}}, ("selection.unit", "utf16", "codepoint")),
    "line zero": ({**CURRENT, "selection": {"lineStart": 0}}, ("selection.lineStart", "is 0", "1 to 4")),
    "behind the last line": ({**CURRENT, "selection": {"lineStart": 2, "lineEnd": 5}}, ("selection.lineEnd", "2 to 4")),
    "lines reversed": (
        {**CURRENT, "selection": {"lineStart": 3, "lineEnd": 2}},
        ("selection.lineEnd", "is 2", "3 to 4"),
    ),
    "lines of another place": (
        {**CURRENT, "selection": {**HERE, "lineStart": 2, "lineEnd": 2}},
        ("selection.lineStart", "must be 1"),
    ),
    "text that does not match": ({**CURRENT, "selection": {**HERE, "text": "uno"}}, ("selection.text", "'one'")),
    "unknown strategy": (
        {**CURRENT, "selection": HERE, "strategy": "append"},
        ("strategy", "replace", "insert_before", "insert_after"),
    ),
    "a version to come": ({**CURRENT, "baseVersion": 2, "selection": HERE}, ("baseVersion", "is 2", "must be 1")),
    "no version": ({**CURRENT, "baseVersion": 0, "selection": HERE}, ("baseVersion", "is 0", "must be 1")),
    "restoring no version": ({"op": "restore", "artifactId": "doc"}, ("version", "missing")),
    "restoring a version to come": (
        {"op": "restore", "artifactId": "doc", "version": 9},
        ("version", "is 9", "must be 1"),
    ),
    "putting nothing": ({"op": "put", "artifactId": "doc"}, ("text", "missing")),
    "naming what is there": ({"op": "put", "artifactId": "doc", "text": "", "name": "n", "baseVersion": 1}, ("name",)),
    "merging without a version": (
        {"op": "put", "artifactId": "doc", "text": "", "merge": True},
        ("baseVersion", "merge"),
    ),
    "putting under no name": ({"op": "put", "artifactId": "nope", "text": "", "name": ""}, ("name",)),
    "putting what is no text": ({"op": "put", "artifactId": "doc", "text": ["a"]}, ("text",)),
}


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"script": SCRIPT}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def doc(server: Served) -> Doc:
    return await made(server, TEXT)


async def refusal(served: Served, request: Any, way: Way, *, streaming: bool) -> str:
    """What is said of bad input."""
    if way == ("HTTP+JSON", "0.3"):  # the SDK's client does not pass on what is said there
        path = f"/rest/v1/message:{'stream' if streaming else 'send'}"
        answer = await served.http.post(path, json=pb03_json(request), headers={"A2A-Version": "0.3"})
        assert answer.status_code == 400
        assert '"contextId"' not in answer.text
        return answer.text
    with pytest.raises(InvalidParamsError) as caught:
        _ = [event async for event in served.client(*way, streaming=streaming).send_message(request)]
    return str(caught.value)


def pb03_json(request: Any) -> dict[str, Any]:
    """The request as HTTP+JSON 0.3 has it."""
    message: dict[str, Any] = MessageToDict(request.message)
    parts = message.pop("parts")
    message["content"] = [{"file": {"fileWithUri": part["url"]}} if "url" in part else part for part in parts]
    return {"message": message}


async def refused(doc: Doc, request: Any, way: Way, *told: str) -> None:
    """The request is bad input, says so in these words, and leaves nothing behind."""
    before = await doc.now(), await doc.tasks(), len(doc.served.model.requests)
    for streaming in (False, True):
        why = await refusal(doc.served, request, way, streaming=streaming)
        assert all(word in why for word in told), why
    assert (await doc.now(), await doc.tasks(), len(doc.served.model.requests)) == before


@every_way
async def test_bad_input_names_the_field_and_what_it_must_be_and_leaves_nothing(doc: Doc, way: Way) -> None:
    for given, told in BAD.values():
        await refused(doc, with_metadata(doc.context, "say 1", {CANVAS: given}), way, *told)
    agentstack = {"artifact_id": "doc", "start_index": 3, "end_index": 18, "description": ""}
    await refused(
        doc, with_metadata(doc.context, "say 1", {AGENTSTACK: agentstack}), way, "end_index", "is 18", "0 to 17"
    )
    await refused(doc, with_metadata("", "say 1", {CANVAS: {**CURRENT, "selection": HERE}}), way, "message.contextId")
    await refused(doc, with_metadata(doc.context, "say 1", {CANVAS: "edit"}), way, CANVAS, "object")


@pytest.mark.parametrize("case", BAD)
async def test_jsonrpc_has_the_code_of_invalid_params(doc: Doc, case: str) -> None:
    given, told = BAD[case]
    message = {"messageId": case, "role": "ROLE_USER", "contextId": doc.context, "parts": [{"text": "say 1"}]}
    message["metadata"] = {CANVAS: given}
    answer = await doc.served.http.post(
        "/", json=envelope("SendStreamingMessage", {"message": message}), headers={"A2A-Version": "1.0"}
    )
    error = answer.json()["error"]
    assert error["code"] == -32602
    assert all(word in error["message"] for word in told), error


@pytest.mark.parametrize("path", ["message:send", "message:stream"])
async def test_rest_answers_with_400(doc: Doc, path: str) -> None:
    message = {"messageId": path, "role": "ROLE_USER", "contextId": doc.context, "parts": [{"text": "say 1"}]}
    message["metadata"] = {CANVAS: {"op": "rewrite", "artifactId": "doc"}}
    answer = await doc.served.http.post(f"/rest/{path}", json={"message": message}, headers={"A2A-Version": "1.0"})
    assert answer.status_code == 400
    assert "op is " in answer.json()["error"]["message"]


@every_way
async def test_an_artifact_without_text_cannot_be_edited(server: Served, way: Way) -> None:
    doc = Doc(server, (await made(server, "")).context)
    files = Doc(server, f"{doc.context}-files")
    await say(files, "file")
    for selection in ({"start": 0, "end": 0}, {"lineStart": 1}):
        await refused(files, files.edit("say 1", selection), way, "artifactId", "without text")


@every_way
async def test_a_put_has_a_text_or_files(doc: Doc, way: Way) -> None:
    request = doc.operation("put", text="x")
    request.message.parts.add(url="https://example.com/i.png", media_type="image/png")
    await refused(doc, request, way, "message.parts must not have files or data beside the text of a put")


@every_way
async def test_an_edit_must_say_what_is_to_be_changed(doc: Doc, way: Way) -> None:
    request = doc.edit("x", HERE)
    request.message.ClearField("parts")
    request.message.parts.add(url="https://example.com/f")
    await refused(doc, request, way, "message.parts", "text")


@every_way
async def test_an_operation_is_a_task_of_its_own(doc: Doc, way: Way) -> None:
    done = (await doc.tasks())[0][0]
    request = doc.edit("say 1", HERE)
    request.message.task_id = done
    await refused(doc, request, way, "message.taskId")


async def test_an_artifact_of_another_context_is_not_known(doc: Doc, server: Served) -> None:
    other = await made(server, TEXT)
    request = asking("say 1", context=other.context)
    request.message.metadata.update({CANVAS: {**CURRENT, "artifactId": "elsewhere", "selection": HERE}})
    await refused(other, request, WAYS[0], "artifactId", "'elsewhere'")


async def test_an_unknown_context_has_no_artifacts(doc: Doc, server: Served) -> None:
    nowhere = Doc(server, "nowhere")
    with pytest.raises(InvalidParamsError, match="artifactId"):
        await nowhere.run(nowhere.edit("say 1", HERE))
    assert await nowhere.tasks() == []


async def test_with_an_older_base_or_none_a_quote_that_does_not_match_is_no_bad_input(server: Served) -> None:
    doc = await made(server, TEXT)
    task = await doc.run(doc.edit("say uno", selected(TEXT, "two", text="three")))
    assert task.status.state == pb.TASK_STATE_COMPLETED
    assert (await doc.read())[1] == TEXT.replace("three", "uno")
