"""An agent's own loop behind the server: what a client sees over A2A, and a restart in the middle."""

import asyncio
import json
import threading

import pytest
from starlette.testclient import TestClient

from a2a_canvas import Settings, StateConflict, Turn, agent, create_app
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


# ------------------------------------------------------------------------------ what clients see


async def searching(turn: Turn):
    """Thinks, streams, calls a tool, asks and says."""
    await turn.think("Which port?")
    yield "I look "
    yield "it up."
    async with turn.tool("search", {"query": turn.text}) as call:
        hits = await call.run(search)
    await turn.say(f"Found {hits}.")
    where = await turn.ask("Where?")
    await turn.say("High water in")
    await turn.say(f"{where}.")


async def search() -> str:
    return "two ports"


TURN_EVENTS = "urn:a2a-canvas:turn:v1"
LABELS = {"Working…", "Writing reply…", "Running search…"}


def stream(client: TestClient, request: dict, path: str = "/", **headers: str) -> list[dict]:
    lines = client.post(path, json=request, headers=headers).text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def sent(client: TestClient, text: str, extensions: str = "", **more) -> list[dict]:
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], "contextId": "tides", **more}
    request = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    headers = {"A2A-Version": "1.0", "A2A-Extensions": extensions}
    return [each["result"] for each in stream(client, request, **headers)]


def statuses(events: list[dict]) -> list[tuple[str, str]]:
    """(state, text) of the status updates with a message that is not a label."""
    updates = [each["statusUpdate"]["status"] for each in events if "statusUpdate" in each]
    said = [
        (each["state"].removeprefix("TASK_STATE_"), each["message"]["parts"][0]["text"])
        for each in updates
        if "message" in each
    ]
    return [each for each in said if each[1] not in LABELS]


def test_a2a_clients_see_each_round_as_a_message_and_the_last_one_as_the_reply() -> None:
    with served(searching) as client:
        asked = sent(client, "tides")
        answered = sent(client, "Brest", taskId=asked[0]["task"]["id"])
    assert statuses(asked) == [
        ("WORKING", "I look it up."),
        ("WORKING", "Found two ports."),
        ("INPUT_REQUIRED", "Where?"),
    ]
    assert statuses(answered) == [("COMPLETED", "High water in\n\nBrest.")]


def test_a2a_0_3_clients_see_the_same() -> None:
    message = {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "tides"}]}
    request = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}}
    with served(searching) as client:
        events = [each["result"] for each in stream(client, request)]
    updates = [each["status"] for each in events if each["kind"] == "status-update" and "message" in each["status"]]
    said = [(each["state"], each["message"]["parts"][0]["text"]) for each in updates]
    assert [each for each in said if each[1] not in LABELS] == [
        ("working", "I look it up."),
        ("working", "Found two ports."),
        ("input-required", "Where?"),
    ]


def test_turn_v1_clients_see_thinking_pieces_and_tool_calls() -> None:
    with served(searching) as client:
        events = sent(client, "tides", TURN_EVENTS)
    found = [
        each["statusUpdate"]["metadata"][TURN_EVENTS] for each in events if "metadata" in each.get("statusUpdate", {})
    ]
    told = [(each["event_type"], each["data"]) for each in found if "event_type" in each]
    kinds = [kind for kind, _ in told]
    assert [data["content"] for kind, data in told if kind == "thinking"] == ["Which port?"]
    assert [data["text"] for kind, data in told if kind == "text_delta"] == ["I look ", "it up.", "Found two ports."]
    assert [data["name"] for kind, data in told if kind == "tool_use_start"] == ["search"]
    assert [data["input"] for kind, data in told if kind == "tool_use_input_complete"] == [{"query": "tides"}]
    assert [data["content"] for kind, data in told if kind == "tool_result"] == ["two ports"]
    assert kinds.count("message_start") == kinds.count("llm_call_completed") == 2
    assert kinds[-2:] == ["completed", "stream_end"]


def test_agui_clients_see_messages_reasoning_and_tool_calls_with_ids_of_their_own() -> None:
    with served(searching) as client:
        runs = [
            stream(
                client,
                {"threadId": "t", "runId": run, "messages": [{"id": run, "role": "user", "content": text}]},
                "/canvas/stream",
            )
            for run, text in (("one", "tides"), ("two", "Brest"), ("three", "more tides"))
        ]
    first, second, _ = runs
    kinds = [each["type"] for each in first]
    assert kinds[0] == "RUN_STARTED"
    assert "".join(each["delta"] for each in first if each["type"] == "REASONING_MESSAGE_CONTENT") == "Which port?"
    texts = {each["messageId"]: "" for each in first if each["type"] == "TEXT_MESSAGE_START"}
    for each in first:
        if each["type"] == "TEXT_MESSAGE_CONTENT":
            texts[each["messageId"]] += each["delta"]
    assert [*texts.values()] == ["I look it up.", "Found two ports.", "Where?"]
    assert [each["content"] for each in first if each["type"] == "TOOL_CALL_RESULT"] == ["two ports"]
    assert first[-1]["outcome"]["interrupts"][0]["message"] == "Where?"
    assert second[-1]["type"] == "RUN_FINISHED"
    calls = [each["toolCallId"] for events in runs for each in events if each["type"] == "TOOL_CALL_START"]
    assert len(calls) == len({*calls}) == 2


def test_the_history_has_what_the_user_did_to_artifacts() -> None:
    async def agent(turn: Turn) -> None:
        if turn.text == "write":
            await turn.artifact("note", name="note.md").append("# Tides\n")
            await turn.say("Written.")
        else:
            await turn.say(json.dumps(turn.history.pairs()))

    undo = {"metadata": {"urn:a2a-canvas:canvas:v1": {"op": "undo", "artifactId": "note"}}}
    with served(agent) as client:
        send(client, "write")
        send(client, "write", messageId="again")
        undone = send(client, "undo", **undo)["status"]["message"]["parts"][0]["text"]
        task = send(client, "what was that?")
    assert json.loads(task["status"]["message"]["parts"][0]["text"]) == [
        {"role": "user", "content": "write"},
        {"role": "assistant", "content": "Written."},
        {"role": "user", "content": "write"},
        {"role": "assistant", "content": "Written."},
        {"role": "user", "content": '[The user\'s own step in artifact "note": undo]\nundo'},
        {"role": "assistant", "content": undone},
    ]


def test_the_budget_is_what_the_user_may_still_spend_today() -> None:
    async def agent(turn: Turn) -> None:
        await turn.usage(30, 10)
        await turn.say(str(turn.budget.tokens))

    with served(agent, max_tokens_per_user=100) as client:
        assert send(client, "go")["status"]["message"]["parts"][0]["text"] == "60"


def test_tasks_that_wait_for_another_one_of_their_conversation_leave_their_place_to_others() -> None:
    held, go_on = threading.Event(), threading.Event()

    async def agent(turn: Turn) -> None:
        while True:
            await turn.state.get()
            try:
                await turn.state.set(turn.text)
                break
            except StateConflict:
                pass
        if turn.text == "first":
            held.set()
            await asyncio.to_thread(go_on.wait)
        await turn.say(turn.text)

    with served(agent, max_turns=2) as client:
        first = send(client, "first", wait=False)
        held.wait()
        later = [send(client, text, wait=False) for text in ("second", "third")]
        assert send(client, "another conversation", contextId="ebb")["status"]["state"] == "TASK_STATE_COMPLETED"
        assert call(client, "GetTask", {"id": later[0]["id"]})["status"]["state"] == "TASK_STATE_WORKING"
        go_on.set()
        for task in (first, *later):
            while not (ended := call(client, "GetTask", {"id": task["id"]}))["status"]["state"].endswith(
                ("COMPLETED", "FAILED")
            ):
                pass
            assert ended["status"]["state"] == "TASK_STATE_COMPLETED"
