"""Agents of three frameworks behind their own AG-UI adapters; that of agent-framework has an environment of its own."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from a2a_canvas.server.tool_sources.agui_agents.agui_loop import agui_agent
from tests.loopback import listening
from tests.server.test_own_loop import send, served

HERE = Path(__file__).parent / "real"
ENVIRONMENT = Path(__file__).parents[4] / "build/agui-agents/agent_framework"
NEEDS_AGENTS = "TESTS_NEED_AGUI_AGENTS"
START = 60.0


@pytest.fixture(scope="module", params=["pydantic_ai", "langgraph", "agent_framework"])
def client(request) -> Iterator[TestClient]:
    """This server, whose loop is an agent of a framework."""
    python = _python_of(request.param)
    with listening() as (_, port):
        pass
    process = subprocess.Popen([python, HERE / f"{request.param}_server.py", str(port)], stdout=sys.stderr)
    try:
        _wait_for(port, process)
        with served(agui_agent(f"http://127.0.0.1:{port}/")) as client:
            yield client
    finally:
        process.terminate()
        process.wait(10)


def _python_of(framework: str) -> str:
    if framework != "agent_framework":
        return sys.executable
    python = ENVIRONMENT / "bin/python"
    if not python.exists():
        if os.environ.get(NEEDS_AGENTS):
            pytest.fail(f"`make setup-agui` has not run, and {NEEDS_AGENTS} is set")
        pytest.skip("its packages are not installed; `make setup-agui` does it")
    return str(python)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)  # nothing tells when another program listens
    pytest.fail("the agent has not started")


def ended(task: dict) -> tuple[str, str]:
    [part] = task["status"]["message"]["parts"]
    return task["status"]["state"].removeprefix("TASK_STATE_"), part["text"]


def test_it_calls_a_tool_and_replies(client: TestClient) -> None:
    state, text = ended(send(client, "tide", contextId="tools"))
    assert (state, text.endswith(": high in Brest")) == ("COMPLETED", True)


def test_its_tool_call_is_one_for_a_front_end(client: TestClient) -> None:
    message = {"id": "u", "role": "user", "content": "tide"}
    response = client.post("/canvas/stream", json={"threadId": "front", "runId": "run", "messages": [message]})
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    [start] = [event for event in events if event["type"] == "TOOL_CALL_START"]
    [end] = [event for event in events if event["type"] == "TOOL_CALL_RESULT"]
    assert (start["toolCallName"], start["toolCallId"]) == ("tide", end["toolCallId"])
    [given] = [event["value"]["input"] for event in events if event.get("name") == "tool_use_input_complete"]
    assert given == {"port": "Brest"}
    assert "high in Brest" in end["content"]


def test_a_long_answer_is_a_document(client: TestClient) -> None:
    task = send(client, "write", contextId="documents")
    assert ended(task) == ("COMPLETED", "The answer is in the document tide-pools.md.")
    [artifact] = task["artifacts"]
    assert artifact["parts"][0]["text"].splitlines() == ["# Tide pools", *(f"Line {number}." for number in range(20))]


def test_it_asks_for_approval_and_continues(client: TestClient) -> None:
    task = send(client, "delete", contextId="questions")
    state, question = ended(task)
    assert (state, "delete" in question.lower()) == ("INPUT_REQUIRED", True)
    state, text = ended(send(client, "yes", contextId="questions", taskId=task["id"]))
    assert (state, text.endswith("reef is gone")) == ("COMPLETED", True)


def test_it_knows_the_conversation(client: TestClient) -> None:
    assert ended(send(client, "hello", contextId="history"))[1] == "You said hello."
    assert ended(send(client, "again", contextId="history"))[1] == "You said hello, again."


def test_conversations_do_not_meet(client: TestClient) -> None:
    assert ended(send(client, "mine", contextId="one"))[1] == "You said mine."
    assert ended(send(client, "yours", contextId="two"))[1] == "You said yours."
