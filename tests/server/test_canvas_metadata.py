"""Where clients of others put an operation: into the message or the request, as an object or as JSON in a string."""

import json
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict

from tests.server.app_server import Served, Way, every_way
from tests.server.canvas_client import CANVAS, SCRIPT, Doc, made

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"script": SCRIPT}


def placed(doc: Doc, *places: str, **fields: Any) -> Any:
    """A `put` of the text "new" whose operation is in these places."""
    request = doc.operation("put", text="new", **fields)
    operation = MessageToDict(request.message.metadata)[CANVAS]
    request.message.ClearField("metadata")
    for place in places:
        of = request.metadata if place.startswith("request") else request.message.metadata
        of.update({CANVAS: json.dumps(operation) if place.endswith("text") else operation})
    return request


@every_way
@pytest.mark.parametrize(
    "places",
    [["request"], ["request, as text"], ["message, as text"], ["request", "message"], ["request", "message, as text"]],
)
async def test_an_operation_counts_wherever_it_is(served: Served, way: Way, places: list[str]) -> None:
    doc = await made(served, "old")
    task = await doc.run(placed(doc, *places, baseVersion=1), way)
    assert (task.status.state, await doc.read()) == (pb.TASK_STATE_COMPLETED, (2, "new"))


@every_way
async def test_two_that_differ_are_refused(served: Served, way: Way) -> None:
    if way == ("HTTP+JSON", "0.3"):
        pytest.skip("the SDK's client for it tells no errors apart")
    doc = await made(served, "old")
    request = placed(doc, "request")
    request.message.metadata.update({CANVAS: {"op": "undo", "artifactId": "doc"}})
    with pytest.raises(InvalidParamsError, match="differ"):
        await doc.run(request, way)
    assert await doc.read() == (1, "old")
