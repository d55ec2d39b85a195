"""Edits of a selection that an agent's function answers, behind the server."""

import asyncio
from typing import Any

import pytest
from starlette.testclient import TestClient

import a2a_canvas
from a2a_canvas import Settings, Turn, create_app
from a2a_canvas.testing import agent

CANVAS = "urn:a2a-canvas:canvas:v1"
URL = "http://127.0.0.1:8000"


def reef():
    """An agent that writes two lines, and shouts what is selected in them."""

    @a2a_canvas.agent
    async def reef(turn: Turn) -> None:
        await turn.artifact("tides").append("The tide is high.\nThen it is low.\n", name="tides.md")
        await turn.say("Written.")

    @reef.edit
    async def shout(turn: Turn):
        assert turn.edit
        await turn.usage(90, 10)
        yield turn.edit.passage.upper()
        if turn.edit.instruction.startswith("much"):
            yield "!"

    return reef


def test_an_edit_is_a_version_and_can_be_undone() -> None:
    with agent(loop=reef()) as it:
        it.send("tides")
        edited = it.edit("tides", "much louder", "high")
        assert (edited.state, edited.text) == ("completed", "Edited tides.md at line 1: version 2 is saved.")
        assert edited.artifacts == {"tides": "The tide is HIGH!.\nThen it is low.\n"}
        assert it.edit("tides", "louder", "low").artifacts == {"tides": "The tide is HIGH!.\nThen it is LOW.\n"}
        it.undo("tides")
        assert it.undo("tides").artifacts == {"tides": "The tide is high.\nThen it is low.\n"}


def test_its_own_function_answers_edits_if_it_says_so() -> None:
    @a2a_canvas.agent(edits=True)
    async def reef(turn: Turn):
        if turn.edit:
            yield turn.edit.passage.upper()
        else:
            await turn.artifact("tides").append("high", name="tides.md")
            yield "Written."

    with agent(loop=reef) as it:
        assert it.send("tides").text == "Written."
        assert it.edit("tides", "louder", "high").artifacts == {"tides": "HIGH"}


def test_it_knows_the_conversation_and_is_no_part_of_a_message() -> None:
    seen: list[Any] = []
    agent_function = reef()
    agent_function.editor = None

    @agent_function.edit
    async def look(turn: Turn) -> str:
        seen.append([(each.role, each.text) for each in turn.history])
        return "low"

    with agent(loop=agent_function) as it:
        it.send("tides")
        it.edit("tides", "lower", "high")
    assert seen == [[("user", "tides"), ("agent", "Written.")]]


def test_its_tokens_count_against_the_limits_of_the_user() -> None:
    with agent(loop=reef(), max_tokens_per_user=150) as it:
        it.send("tides")
        it.edit("tides", "louder", "high")
        ended = it.edit("tides", "louder", "low")
        assert ended.state == "failed"
        assert ended.text.startswith("Stopped before the end.")
        with pytest.raises(RuntimeError, match="refused"):
            it.edit("tides", "louder", "low")
        assert len(it.versions("tides")) == 2


def test_it_streams_as_a_model_s_edit() -> None:
    with agent(loop=reef()) as it:
        it.send("tides")
        message = operation(it.context_id, "much louder", "edit", selection={"start": 12, "end": 16, "text": "high"})
        headers = {"A2A-Version": "1.0", "A2A-Extensions": CANVAS}
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
        streamed = it.http.post("/", json=request, headers=headers).text
    phases = [each for each in ("start", "chunk", "complete") if f'"phase":"{each}"' in streamed.replace(" ", "")]
    assert phases == ["start", "chunk", "complete"]


def operation(context_id: str, text: str, op: str, **fields: Any) -> dict[str, Any]:
    metadata = {CANVAS: {"op": op, "artifactId": "tides", **fields}}
    return {
        "messageId": f"{text} {op}",
        "role": "ROLE_USER",
        "parts": [{"text": text}],
        "contextId": context_id,
        "metadata": metadata,
    }


def call(client: TestClient, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/", json=request, headers={"A2A-Version": "1.0"}).json()


def test_an_edit_that_a_restart_cut_off_runs_again(tmp_path) -> None:
    runs: list[tuple[bool, bool]] = []
    agent_function = reef()
    agent_function.editor = None

    @agent_function.edit
    async def slow(turn: Turn):
        runs.append((turn.resumed, turn.handed_over))
        yield "LO"
        try:
            if len(runs) == 1:
                await asyncio.Event().wait()
        finally:
            runs.append((turn.resumed, turn.handed_over))
        yield "UD"

    settings = Settings(database=f"sqlite:///{tmp_path}/tasks.db", page=False, public_url=URL, shared_token=None)
    message = operation("tides", "louder", "edit", selection={"start": 12, "end": 16, "text": "high"})
    with TestClient(create_app(settings, loop=agent_function), base_url=URL) as client:
        write = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "tides"}], "contextId": "tides"}
        call(client, "SendMessage", {"message": write})
        now = {"returnImmediately": True}
        task = call(client, "SendMessage", {"message": message, "configuration": now})["result"]["task"]
        while not runs:
            call(client, "GetTask", {"id": task["id"]})
    assert runs == [(False, False), (False, True)]
    with TestClient(create_app(settings, loop=agent_function), base_url=URL) as client:
        state = ""
        while not state.endswith("COMPLETED"):
            state = call(client, "GetTask", {"id": task["id"]})["result"]["status"]["state"]
        parts = client.get("/artifacts/tides/tides").json()["parts"]
    assert parts[0]["text"] == "The tide is LOUD.\nThen it is low.\n"
    assert runs[2:] == [(True, False), (True, False)]
