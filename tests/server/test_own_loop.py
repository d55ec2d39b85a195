"""An agent's own loop behind the server: what a client sees over A2A, and a restart in the middle."""

import asyncio

import pytest
from starlette.testclient import TestClient

from a2a_canvas import Settings, Turn, agent, create_app
from a2a_canvas.tools.functions.recorded_call import do_nothing

URL = "http://127.0.0.1:8000"


def call(client: TestClient, method: str, params: dict) -> dict:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/", json=request, headers={"A2A-Version": "1.0"}).json()["result"]


def send(client: TestClient, text: str, *, wait: bool = True, **more) -> dict:
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], "contextId": "tides", **more}
    params = {"message": message, "configuration": {"returnImmediately": not wait}}
    return call(client, "SendMessage", params)["task"]


def served(agent, **settings) -> TestClient:
    plain = {"model": "rehearsal", "database": "memory", "page": False, "public_url": URL, "shared_token": None}
    return TestClient(create_app(Settings(**{**plain, **settings}), loop=agent), base_url=URL)


def test_it_answers_messages_and_writes_artifacts() -> None:
    async def agent(turn: Turn) -> None:
        report = turn.artifact("report")
        for piece in ("# Tides\n", "High."):
            await report.append(piece, name="report.md")
        await turn.say(f"Written for {turn.text!r}, after {[message.text for message in turn.history]}.")

    with served(agent) as client:
        send(client, "first")
        task = send(client, "second")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    written = "Written for 'first', after []."
    [part] = task["status"]["message"]["parts"]
    assert part["text"] == f"Written for 'second', after {['first', written]}."
    assert [each["parts"][0]["text"] for each in task["artifacts"]] == ["# Tides\nHigh.# Tides\nHigh."]


def test_it_asks_and_is_answered() -> None:
    async def agent(turn: Turn) -> None:
        await turn.say(f"In {await turn.ask('Where?')}.")

    with served(agent) as client:
        task = send(client, "tides")
        assert (task["status"]["state"], task["status"]["message"]["parts"][0]["text"]) == (
            "TASK_STATE_INPUT_REQUIRED",
            "Where?",
        )
        task = send(client, "Brest", taskId=task["id"])
    assert task["status"]["message"]["parts"][0]["text"] == "In Brest."


@pytest.mark.parametrize(("restartable", "lasts", "runs"), [(False, False, 1), (True, True, 1), (True, False, 2)])
def test_a_server_that_shuts_down_waits_for_a_run_that_cannot_continue(tmp_path, restartable, lasts, runs) -> None:
    began: list[str] = []

    @agent(restartable=restartable)
    async def answer(turn: Turn) -> None:
        began.append(turn.text)
        while len(began) == 1 and (runs == 2 or not client.app.state.shutdown.begun):  # noqa: ASYNC110
            await asyncio.sleep(0)
        await turn.say("Done.")

    answer.lasts = lasts
    database = f"sqlite:///{tmp_path}/tasks.db"
    with served(answer, database=database) as client:
        task_id = send(client, "write", wait=False)["id"]
        while not began:
            call(client, "GetTask", {"id": task_id})
    with served(answer, database=database) as client:
        while not (task := call(client, "GetTask", {"id": task_id}))["status"]["state"].endswith(
            ("COMPLETED", "FAILED")
        ):
            pass
    assert task["status"]["message"]["parts"][0]["text"] == "Done."
    assert began == ["write"] * runs


def test_what_it_sends_to_agui_clients_no_other_client_sees() -> None:
    async def agent(turn: Turn) -> None:
        await turn.agui({"type": "STATE_SNAPSHOT", "snapshot": {"secret": 1}})
        await turn.agui({"type": "CUSTOM", "name": "secret", "value": 1})
        await turn.artifact("report").append("High.", name="report.md")
        await turn.agui({"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "secret", "content": {}})

    extensions = "urn:a2a-canvas:turn:v1, urn:a2a-canvas:canvas:v1"
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Go"}], "contextId": "tides"}
    with served(agent) as client:
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
        stream = client.post("/", json=request, headers={"A2A-Version": "1.0", "A2A-Extensions": extensions})
        task = send(client, "Again")
        listed = client.get("/artifacts/tides")
        run = {"threadId": "tides", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "Go"}]}
        shown = client.post("/canvas/stream", json=run)
    assert "TASK_STATE_COMPLETED" in stream.text
    assert "secret" not in stream.text + str(task) + listed.text
    assert listed.status_code == 200
    assert shown.text.count("secret") == 3


SECRET = "what the agent remembers"


def streamed(client: TestClient, url: str, body: dict) -> str:
    headers = {"A2A-Version": "1.0", "A2A-Extensions": "urn:a2a-canvas:turn:v1, urn:a2a-canvas:canvas:v1"}
    return client.post(url, json=body, headers={**headers, "Accept": "text/event-stream"}).text


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_it_remembers_is_there_for_the_next_task_and_no_client_sees_it(tmp_path, kind) -> None:
    async def remember(turn: Turn) -> None:
        seen = await turn.state.get() or []
        await turn.values.set(SECRET, SECRET.encode())
        await turn.state.set([*seen, SECRET])
        await turn.once("step", do_nothing)
        await turn.artifact("note").append("Written.")
        await turn.say(f"{len(seen)} before.")

    database = "memory" if kind == "memory" else f"sqlite:///{tmp_path}/tasks.db"
    with served(remember, database=database) as client:
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Go"}], "contextId": "tides"}
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
        over_a2a = streamed(client, "/", request)
        run = {"threadId": "tides", "runId": "r", "messages": [{"id": "m2", "role": "user", "content": "Go"}]}
        over_agui = streamed(client, "/canvas/stream", {**run, "state": {}, "tools": [], "context": []})
        task = send(client, "third")
        read = [str(task), client.get("/artifacts").text, client.get("/artifacts/tides").text]
    assert "0 before." in over_a2a
    assert "1 before." in over_agui
    assert task["status"]["message"]["parts"][0]["text"] == "2 before."
    assert SECRET not in "".join((over_a2a, over_agui, *read))
    assert "digest" not in over_a2a


def test_a_state_that_is_too_large_fails_the_task_with_the_numbers() -> None:
    async def remember(turn: Turn) -> None:
        await turn.state.set("x" * 98)

    with served(remember, max_state_bytes=99) as client:
        task = send(client, "Go")
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "would have 100 bytes, and the limit is 99" in task["status"]["message"]["parts"][0]["text"]
