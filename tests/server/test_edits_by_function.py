"""Edits of a selection that an agent's function answers, behind the server."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import a2a_canvas
from a2a_canvas import Settings, Turn, create_app
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.model import EDITS_OFF
from a2a_canvas.testing import TestedAgent, agent

CANVAS = "urn:a2a-canvas:canvas:v1"
URL = "http://127.0.0.1:8000"


async def shout(turn: Turn):
    assert turn.edit
    await turn.usage(90, 10)
    yield turn.edit.passage.upper()
    if turn.edit.instruction.startswith("much"):
        yield "!"


def reef(edit=shout) -> AgentFunction:
    """An agent that writes two lines, and whose edits `edit` answers."""

    @a2a_canvas.agent
    async def reef(turn: Turn) -> None:
        await turn.artifact("tides").append("The tide is high.\nThen it is low.\n", name="tides.md")
        await turn.say("Written.")

    reef.edit(edit)
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

    async def look(turn: Turn) -> str:
        seen.append([(each.role, each.text) for each in turn.history])
        return "low"

    with agent(loop=reef(look)) as it:
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


def operation(context_id: str, says: str, op: str, **fields: Any) -> dict[str, Any]:
    metadata = {CANVAS: {"op": op, "artifactId": "tides", **fields}}
    return {
        "messageId": f"{says} {op}",
        "role": "ROLE_USER",
        "parts": [{"text": says}],
        "contextId": context_id,
        "metadata": metadata,
    }


def call(client: TestClient, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/", json=request, headers={"A2A-Version": "1.0"}).json()


def cut_off_edit(folder: Path, edit: Any, began: Sequence[object]) -> tuple[Settings, dict[str, Any]]:
    """The settings of a server that stopped once `edit` had begun, and the task of the edit."""
    settings = Settings(database=f"sqlite:///{folder}/tasks.db", page=False, public_url=URL, shared_token=None)
    message = operation("tides", "louder", "edit", selection={"start": 12, "end": 16, "text": "high"})
    with TestClient(create_app(settings, loop=reef(edit)), base_url=URL) as client:
        write = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "tides"}], "contextId": "tides"}
        call(client, "SendMessage", {"message": write})
        now = {"returnImmediately": True}
        task = call(client, "SendMessage", {"message": message, "configuration": now})["result"]["task"]
        while not began:
            call(client, "GetTask", {"id": task["id"]})
    return settings, task


def test_an_edit_that_a_restart_cut_off_runs_again(tmp_path) -> None:
    runs: list[tuple[bool, bool]] = []

    async def slow(turn: Turn):
        runs.append((turn.resumed, turn.handed_over))
        yield "LO"
        try:
            if len(runs) == 1:
                await asyncio.Event().wait()
        finally:
            runs.append((turn.resumed, turn.handed_over))
        yield "UD"

    settings, task = cut_off_edit(tmp_path, slow, runs)
    assert runs == [(False, False), (False, True)]
    with TestClient(create_app(settings, loop=reef(slow)), base_url=URL) as client:
        state = ""
        while not state.endswith("COMPLETED"):
            state = call(client, "GetTask", {"id": task["id"]})["result"]["status"]["state"]
        parts = client.get("/artifacts/tides/tides").json()["parts"]
    assert parts[0]["text"] == "The tide is LOUD.\nThen it is low.\n"
    assert runs[2:] == [(True, False), (True, False)]


def write_and_edit(settings: Settings, instruction: str, loop: AgentFunction | None) -> tuple[dict[str, Any], str]:
    """Tides are written and both of the words `is` are edited in one edit; its task, and what is written then."""
    selections = [{"start": 9, "end": 11}, {"lineStart": 2}]
    message = operation("tides", instruction, "edit", selections=selections, baseVersion=1)
    put = operation("tides", "put", "put", text="The tide is high.\nThen it is low.\n", name="tides.md")
    with TestClient(create_app(settings, loop=loop), base_url=URL) as client:
        call(client, "SendMessage", {"message": put})
        task = call(client, "SendMessage", {"message": message})["result"]["task"]
        written = client.get("/artifacts/tides/tides").json()
        assert [each["number"] for each in client.get("/artifacts/tides/tides/versions").json()["versions"]] == [1, 2]
        call(client, "SendMessage", {"message": operation("tides", "undo", "undo")})
        assert client.get("/artifacts/tides/tides").json()["version"] == 1
    return task, written["parts"][0]["text"]


def test_several_passages_are_answered_one_by_one_and_are_one_version_and_one_undo() -> None:
    settings = Settings(database="memory", page=False, public_url=URL, shared_token=None)
    task, written = write_and_edit(settings, "louder", reef())
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert written == "The tide IS high.\nTHEN IT IS LOW.\n"


def test_the_rehearsal_model_answers_several_passages_too() -> None:
    settings = Settings(model="rehearsal", database="memory", page=False, public_url=URL, shared_token=None)
    task, written = write_and_edit(settings, "make it upper case", None)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    assert written == "The tide IS high.\nTHEN IT IS LOW.\n"


# ------------------------------------------------------------------------- nothing answers edits


async def writer(turn: Turn) -> None:
    await turn.artifact("tides").append("The tide is high.\n", name="tides.md")


def params(it: TestedAgent) -> dict[str, Any]:
    extensions = it.http.get("/.well-known/agent-card.json").json()["capabilities"]["extensions"]
    return next(each.get("params", {}) for each in extensions if each["uri"] == CANVAS)


@pytest.fixture
def without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.usefixtures("without_a_key")
def test_without_a_model_edits_are_off_and_the_rest_works(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with agent(loop=writer, model=None) as it:
        assert "Edits of a selection are off" in caplog.text
        assert params(it) | {"formats": []} == {"edits": False, "formats": [], "quickActions": []}
        it.send("tides")
        tasks = len(call(it.http, "ListTasks", {})["result"]["tasks"])
        with pytest.raises(RuntimeError, match=re.escape(EDITS_OFF)):
            it.edit("tides", "louder", "high")
        assert len(call(it.http, "ListTasks", {})["result"]["tasks"]) == tasks
        for op, fields in (("put", {"text": "Low."}), ("undo", {}), ("redo", {}), ("restore", {"version": 1})):
            sent = call(it.http, "SendMessage", {"message": operation(it.context_id, op, op, **fields)})
            assert sent["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED", op
        assert it.versions("tides")[-1] == "The tide is high.\n"


@pytest.mark.usefixtures("without_a_key")
def test_the_refusal_is_an_unsupported_operation() -> None:
    with agent(loop=writer, model=None) as it:
        it.send("tides")
        place = {"start": 0, "end": 3, "text": "The"}
        error = call(it.http, "SendMessage", {"message": operation(it.context_id, "x", "edit", selection=place)})[
            "error"
        ]
    assert (error["code"], error["message"]) == (-32004, EDITS_OFF)


@pytest.mark.usefixtures("without_a_key")
@pytest.mark.parametrize("more", [{"loop": reef(), "model": None}, {"loop": writer, "model": "rehearsal"}, {}])
def test_with_a_function_or_a_model_they_are_on(more: dict[str, Any]) -> None:
    with agent(**more) as it:
        assert "edits" not in params(it)


@pytest.mark.usefixtures("without_a_key")
def test_an_edit_that_was_accepted_with_a_model_fails_without_one(tmp_path) -> None:
    """The server was started again without `--model` while the edit was being made."""
    began: list[str] = []

    async def slow(turn: Turn) -> None:
        began.append(turn.text)
        await asyncio.Event().wait()

    settings, task = cut_off_edit(tmp_path, slow, began)
    with TestClient(create_app(settings, loop=writer), base_url=URL) as client:
        status = {"state": ""}
        while not status["state"].endswith("FAILED"):
            status = call(client, "GetTask", {"id": task["id"]})["result"]["status"]
    assert status["message"]["parts"][0]["text"] == EDITS_OFF


@pytest.mark.usefixtures("without_a_key")
@pytest.mark.parametrize("edits", [True, False])
def test_over_ag_ui_it_is_the_same(edits: bool) -> None:
    with agent(loop=reef() if edits else writer, model=None) as it:
        it.send("tides")
        operation = {"op": "edit", "artifactId": "tides", "selection": {"start": 12, "end": 16, "text": "high"}}
        run = {"threadId": it.context_id, "runId": "r", "messages": [{"id": "m", "role": "user", "content": "louder"}]}
        more = {"state": {}, "tools": [], "context": [], "forwardedProps": {CANVAS: operation}}
        answer = it.http.post("/canvas/stream", json={**run, **more})
        text = it.versions("tides")[-1].partition(".")[0]
    if edits:
        assert "RUN_FINISHED" in answer.text
        assert text == "The tide is HIGH"
    else:
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, EDITS_OFF)
        assert text == "The tide is high"


def test_the_card_has_the_quick_actions_of_what_answers_edits() -> None:
    for loop, rehearses in ((reef(), False), (writer, True), (None, True)):
        with agent(loop=loop) as it:
            assert ("quickActions" in params(it)) is rehearses
            description = it.http.get("/.well-known/agent-card.json").json()["description"]
            assert ("rehearsal" in description) is (loop is None)


@pytest.mark.usefixtures("without_a_key")
@pytest.mark.parametrize(("model", "edits"), [(None, False), ("rehearsal", True)])
def test_a_loop_of_the_settings_needs_no_model(tmp_path, model: str | None, edits: bool) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    with agent(tmp_path, model=model, loop=None) as it:
        assert it.send("tides").state == "completed"
        assert params(it).get("edits", True) is edits


AGENT = """
async def agent(turn):
    await turn.artifact("tides").append("High.", name="tides.md")
"""


def test_an_edit_can_be_cancelled() -> None:
    ended: list[str] = []

    async def slow(turn: Turn):
        try:
            yield "LO"
            await asyncio.Event().wait()
        finally:
            ended.append(turn.text)

    with agent(loop=reef(slow)) as it:
        it.send("tides")
        message = operation(it.context_id, "louder", "edit", selection={"start": 12, "end": 16, "text": "high"})
        params = {"message": message, "configuration": {"returnImmediately": True}}
        task = call(it.http, "SendMessage", params)["result"]["task"]
        cancelled = call(it.http, "CancelTask", {"id": task["id"]})["result"]
        assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"
        assert it.versions("tides") == ("The tide is high.\nThen it is low.\n",)
    assert ended in ([], ["louder"])  # it may not have begun
