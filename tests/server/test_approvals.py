"""A call that needs approval, over each way in: the client is told what is to run, and what the user answers counts."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.wire import CANVAS
from tests.server.agui_client import Thread, agent
from tests.server.app_server import Served, asking, every_way, said, sent
from tests.server.protocols.agui.agui_verifier import CLIENTS

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOLS = '''
from a2a_canvas import tool


@tool(approval="ask")
async def delete_file(path: str) -> str:
    """Deletes a file."""
    return f"{path} is gone."
'''
SCRIPT = """
rules:
  - match: {text: '^delete$'}
    rounds:
      - tools: [{name: delete_file, input: {path: "a.txt"}}]
      - {text: "Settled."}
"""
QUESTION = 'May I run delete_file(path="a.txt")? Answer yes or no.'


@pytest.fixture(scope="module")
def app_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("agent")
    (folder / "script.yaml").write_text(SCRIPT)
    (folder / "tools.py").write_text(TOOLS)
    return {"script": folder / "script.yaml", "tools": (folder / "tools.py",)}


def what_the_model_read(served: Served) -> str:
    return str(served.model.requests[-1].messages)


ANSWERS = pytest.mark.parametrize(
    ("words", "outcome"),
    [("yes", "a.txt is gone."), ('{"approved": true}', "a.txt is gone."), ("no", "The user did not approve this call")],
)


@ANSWERS
@every_way
@pytest.mark.transports
async def test_the_client_is_told_what_is_to_run_and_answers(
    served: Served, context: str, way: tuple[str, str], words: str, outcome: str
) -> None:
    asked = await sent(served, way, asking("delete", context=context))
    assert (asked.status.state, said(asked.status)) == (pb.TASK_STATE_INPUT_REQUIRED, QUESTION)
    [call] = MessageToDict(asked.status.message.metadata)[CANVAS]["approvals"]
    assert (call["tool"], call["input"], bool(call["toolCallId"])) == ("delete_file", {"path": "a.txt"}, True)
    assert len(served.model.requests) == 1

    answered = await sent(served, way, asking(words, context=context, task=asked.id))
    assert (answered.status.state, said(answered.status)) == (pb.TASK_STATE_COMPLETED, "Settled.")
    assert outcome in what_the_model_read(served)


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        ("yes", "a.txt is gone."),
        ({"approved": True}, "a.txt is gone."),
        ({"approved": False}, "The user did not approve this call"),
    ],
)
async def test_in_ag_ui_it_is_an_interrupt(served: Served, payload: Any, outcome: str) -> None:
    thread = Thread(served)
    asked = await thread.run("delete")
    [interrupt] = asked.end["outcome"]["interrupts"]
    [call] = interrupt["metadata"]["approvals"]
    assert (call["tool"], call["input"]) == ("delete_file", {"path": "a.txt"})
    assert (interrupt["toolCallId"], interrupt["message"]) == (call["toolCallId"], QUESTION)

    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}]
    answered = await thread.run("", resume=resume)
    assert (answered.task_id, answered.said[-1]) == (asked.task_id, "Settled.")
    assert outcome in what_the_model_read(served)


@pytest.mark.parametrize("client", CLIENTS)
async def test_ag_ui_s_own_client_shows_the_interrupt_and_answers_it(served: Served, client: str) -> None:
    found = await agent(Thread(served), "delete", "resume:yes", client=client)
    [interrupt] = [
        each
        for event in found["events"]
        if event["type"] == "RUN_FINISHED"
        for each in (event.get("outcome") or {}).get("interrupts", ())
    ]
    [call] = interrupt["metadata"]["approvals"]
    assert (call["tool"], call["input"], interrupt["message"]) == ("delete_file", {"path": "a.txt"}, QUESTION)
    assert found["messages"][-1]["content"] == "Settled."
    assert "a.txt is gone." in what_the_model_read(served)
