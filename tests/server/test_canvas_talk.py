"""Edits that are asked for in conversation, over the whole application: which artifact the user means."""

from typing import Any
from uuid import uuid4

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from tests.server.app_server import Served, Way, asking, every_way, said, text_of
from tests.server.canvas_client import CANVAS, Doc, with_metadata

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "The tide comes in. Crabs hide.\n\nThe tide goes out. Crabs wander about.\n"
SHORTER = "The tide comes in. Crabs hide.\n\nThe tide goes out.\n"
SAY = "Make the second paragraph shorter"


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"model": Rehearsal(delay=0)}


async def drafted(served: Served) -> tuple[Doc, Doc]:
    """Two artifacts of one context: `tides`, and `pools`, which was changed last."""
    context = str(uuid4())
    docs = tuple(Doc(served, context, TEXT, topic) for topic in ("tides", "pools"))
    for doc in docs:
        await doc.run(asking(f"Write about {doc.artifact_id}", context=context))
        task = await doc.run(doc.operation("put", text=TEXT))
        assert task.status.state == pb.TASK_STATE_COMPLETED, task.status
    return docs


@every_way
@pytest.mark.parametrize(
    ("text", "metadata", "meant"),
    [
        ("Make the second paragraph of tides.md shorter", {CANVAS: {"artifactId": "pools"}}, "tides"),
        (SAY, {CANVAS: {"artifactId": "tides"}}, "tides"),
        (SAY, {CANVAS: {"artifactId": "tides", "selection": {"lineStart": 1}}}, "tides"),
        (SAY, {}, "pools"),
    ],
)
async def test_the_artifact_is_the_one_named_else_the_one_shown_else_the_one_changed_last(
    served: Served, way: Way, text: str, metadata: dict, meant: str
) -> None:
    docs = await drafted(served)
    task = await docs[0].run(with_metadata(docs[0].context, text, metadata), way)
    assert task.status.state == pb.TASK_STATE_COMPLETED, task.status
    assert said(task.status).startswith(f"The second paragraph of “{meant}.md” is shorter now")
    assert text_of(task) == SHORTER
    assert [artifact.artifact_id for artifact in task.artifacts] == [meant]
    for doc in docs:
        assert await doc.read() == ((3, SHORTER) if doc.artifact_id == meant else (2, TEXT))


@every_way
async def test_when_two_are_named_it_asks_and_edits_the_one_that_is_answered(served: Served, way: Way) -> None:
    tides, pools = await drafted(served)
    both = "Make the second paragraph of tides.md or pools.md shorter"
    asked = await tides.run(asking(both, context=tides.context), way)
    assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED
    assert "“tides.md” or “pools.md”" in said(asked.status)
    task = await tides.run(asking("tides.md", context=tides.context, task=asked.id), way)
    assert task.status.state == pb.TASK_STATE_COMPLETED, task.status
    assert (await tides.read(), await pools.read()) == ((3, SHORTER), (2, TEXT))


@every_way
async def test_without_an_artifact_it_says_so(served: Served, way: Way) -> None:
    doc = Doc(served, str(uuid4()))
    task = await doc.run(asking(SAY, context=doc.context), way)
    assert task.status.state == pb.TASK_STATE_COMPLETED
    assert "There is no document yet" in said(task.status)
