"""What the server says to a wrong request: what happened, to which thing, in the sender's words, and what to do."""

from typing import Any

import grpc
import grpc.aio
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import A2AServiceStub as Stub03

from a2a_canvas.server.agent.intent import OPERATIONS
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.text.wording import choice
from tests.server.app_server import Served, envelope

pytestmark = pytest.mark.asyncio(loop_scope="module")

V10 = {"A2A-Version": "1.0"}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "just say it"}]}
RUN = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}]}

METHODS = [
    ("SendMesage", "There is no method 'SendMesage'. Did you mean SendMessage or SendStreamingMessage?"),
    ("getTask", "There is no method 'getTask'. Did you mean GetTask or ListTasks?"),
    ("message/sent", "There is no method 'message/sent'. Did you mean message/send, message/stream or SendMessage?"),
    (
        "quit",
        "There is no method 'quit'. A2A 1.0 has SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask,",
    ),
    ("tasks/get", "tasks/get (GetTask in 1.0) belongs to A2A 0.3, but A2A-Version says 1.0; send A2A-Version: 0.3"),
]


@pytest.mark.parametrize(("method", "says"), METHODS)
async def test_an_unknown_method_is_told_with_the_nearest(served: Served, method: str, says: str) -> None:
    assert (await served.rpc(method, {"id": "x"}))["error"]["message"].startswith(says)


def saying(**fields: Any) -> dict[str, Any]:
    return {"message": {**MESSAGE, **fields}}


PARAMS: list[tuple[str, Any, str]] = [
    ("SendMessage", {}, "message is missing."),
    ("SendMessage", [], "params is a list and must be an object."),
    ("SendMessage", {"msg": {}}, "message is missing, and 'msg' is not a field here."),
    ("SendMessage", {"message": "hi"}, "message is 'hi' and must be an object."),
    (
        "SendMessage",
        {"message": {"parts": []}},
        "message.messageId is missing; message.role is missing; message.parts",
    ),
    ("SendMessage", saying(messageId=5), "message.messageId is 5 and must be a string."),
    ("SendMessage", saying(messageId=""), "message.messageId must not be empty."),
    ("SendMessage", {"message": {"message_id": 5}}, "message.message_id is 5 and must be a string."),
    (
        "SendMessage",
        saying(role="user"),
        "message.role is 'user' and must be ROLE_USER: only users send messages to an agent.",
    ),
    ("SendMessage", saying(role="ROLE_AGENT"), "message.role must be ROLE_USER: only users send messages to an agent."),
    ("SendMessage", saying(parts=["hi"]), "message.parts[0] is 'hi' and must be an object."),
    ("SendMessage", saying(parts=[{}]), "message.parts[0] has no content; give it one of text, raw, url or data."),
    ("SendMessage", saying(parts=[{"text": 1}]), "message.parts[0].text is 1 and must be a string."),
    ("SendMessage", saying(parts=[{"text": "a", "url": "b"}]), "message.parts[0] has text and url; only one of them"),
    ("SendMessage", saying(parts=[{"raw": "@"}]), "message.parts[0].raw is '@' and must be base64."),
    ("SendMessage", saying(parts=[{"text": " "}]), "message.parts must have a part that says something: text, a file"),
    ("SendMessage", saying(contextId="c" * 300), "message.contextId must not be longer than 256 characters."),
    (
        "SendMessage",
        {**saying(), "configuration": {"historyLength": -1}},
        "configuration.historyLength is -1 and must be 0 or more.",
    ),
    (
        "SendMessage",
        {**saying(), "configuration": {"taskPushNotificationConfig": {"url": "http://127.0.0.1"}}},
        "configuration.taskPushNotificationConfig.url names a host, 127.0.0.1, that has no address "
        "on the public internet.",
    ),
    ("GetTask", {"taskId": "x"}, "id is missing, and 'taskId' is not a field here."),
    ("GetTask", {"id": "gone"}, "Task not found: 'gone'. ListTasks has those there are;"),
    ("ListTasks", {"pageSize": 1000}, "pageSize is 1000 and must be 1 to 100."),
    ("ListTasks", {"pageToken": "x"}, "pageToken is not one of this server's; leave it out for the first page."),
    ("ListTasks", {"status": "done"}, "status is 'done' and must be TASK_STATE_SUBMITTED, TASK_STATE_WORKING,"),
    ("ListTasks", {"statusTimestampAfter": "today"}, "statusTimestampAfter is 'today' and must be a time such as 20"),
    ("GetExtendedAgentCard", {}, "This agent's only card is /.well-known/agent-card.json."),
]


@pytest.mark.parametrize(("method", "params", "says"), PARAMS)
async def test_params_are_refused_by_the_name_of_their_field(
    served: Served, method: str, params: Any, says: str
) -> None:
    assert (await served.rpc(method, params))["error"]["message"].startswith(says)


async def test_each_field_at_fault_is_a_detail_of_its_own_too(served: Served) -> None:
    error = (await served.rpc("SendMessage", {"message": {}}))["error"]
    at_fault = [(each["field"], each["description"]) for each in error["data"][1]["fieldViolations"]]
    assert at_fault[0] == ("message.messageId", "is missing.")
    assert [field for field, _ in at_fault] == ["message.messageId", "message.role", "message.parts"]


LEGACY: list[tuple[str, Any, str]] = [
    ("message/send", {}, "message is missing."),
    (
        "message/send",
        {"message": {**MESSAGE, "role": "human"}},
        "message.role is 'human' and must be 'agent' or 'user'.",
    ),
    ("message/send", {"message": {**MESSAGE, "role": "user", "parts": []}}, "message.parts must not be empty."),
    ("tasks/get", {"taskId": "x"}, "id is missing."),
]


@pytest.mark.parametrize(("method", "params", "says"), LEGACY)
async def test_so_are_those_of_a2a_03(served: Served, method: str, params: Any, says: str) -> None:
    answer = await served.http.post("/", json=envelope(method, params))
    assert answer.json()["error"]["message"].startswith(says)


OPERATIONS: list[tuple[Any, str]] = [
    ("edit", f"metadata[{CANVAS}] is 'edit' and must be an object."),
    (
        {"op": "edt"},
        f"op is 'edt' and must be {choice(OPERATIONS)}.",
    ),
    (
        {"op": "undo", "artifact_id": "a"},
        "artifact_id is no field of this operation, which has artifactId, baseVersion,",
    ),
    ({"op": "restore", "artifactId": "a"}, "version is missing."),
    ({"op": "restore", "artifactId": "a", "version": "1"}, "version is '1' and must be a whole number."),
    ({"op": "edit", "artifactId": "a", "selection": {"start": 1}}, "selection needs both start and end, or neither."),
    ({"op": "undo", "artifactId": "a"}, "artifactId is 'a', which this context does not have; it has no artifact."),
]


@pytest.mark.parametrize(("operation", "says"), OPERATIONS)
async def test_an_operation_is_refused_by_the_name_of_its_field(served: Served, operation: Any, says: str) -> None:
    params = saying(contextId="c", metadata={CANVAS: operation})
    assert (await served.rpc("SendMessage", params))["error"]["message"].startswith(says)


BODIES = [
    (b"", {}, "The body is empty, which is not JSON; send one JSON object"),
    (b"{", {}, "Body is not JSON from line 1, column 2 on; send one JSON object"),
    (b'{"a": 1, "a": 2}', {}, "An object has the same key twice: 'a'; send every key once"),
    (b'{"a": 1e999}', {}, "1e999 is too large for a double; send it as a string"),
    (b"{}", {"Content-Type": "text/plain"}, "The body has Content-Type 'text/plain'; send it with application/json or"),
    (b"{}", {"Content-Encoding": "gzip"}, "The body has Content-Encoding 'gzip'; send it without"),
    (
        b'{"message": {}}',
        {"A2A-Version": "2.0"},
        "A2A-Version is '2.0', which is not supported; send A2A-Version: 1.0 or",
    ),
    (
        b'{"message": {}}',
        {"A2A-Version": "0.3"},
        "This path belongs to A2A 1.0, but A2A-Version says 0.3; send A2A-Ver",
    ),
]


@pytest.mark.parametrize(("body", "headers", "says"), BODIES)
async def test_a_body_is_refused_with_what_was_sent(served: Served, body: bytes, headers: Any, says: str) -> None:
    headers = {**V10, "Content-Type": "application/json", **headers}
    answer = await served.http.post("/rest/message:send", content=body, headers=headers)
    assert answer.json()["error"]["message"].startswith(says)


RUNS: list[tuple[Any, str]] = [
    ({}, "threadId is missing."),
    ({**RUN, "messages": "x"}, "messages is 'x' and must be a list."),
    ({**RUN, "messages": []}, "messages must end with a message from the user, or resume must answer an interrupt."),
    ({**RUN, "messages": [{"id": "1", "role": "elf"}]}, "messages.0 has role 'elf', which must be one of 'developer',"),
    ({**RUN, "forwardedProps": {CANVAS: {"op": "x"}}}, f"forwardedProps.{CANVAS}.op is 'x' and must be edit, undo,"),
    (
        {**RUN, "resume": [{"interruptId": "i", "status": "resolved", "payload": "x"}]},
        "resume.0.interruptId is 'i'; there is no such interrupt. Send the message without resume.",
    ),
]


@pytest.mark.parametrize(("run", "says"), RUNS)
async def test_a_run_is_refused_in_the_words_of_ag_ui(served: Served, run: Any, says: str) -> None:
    assert (await served.http.post("/canvas/stream", json=run)).json()["error"]["message"].startswith(says)


ALL = "There are /.well-known/agent-card.json, /healthz, /readyz, /metrics, / (JSON-RPC), /artifacts/…"
PATHS = [
    ("GET", "/nope", 404, f"There is nothing at '/nope'. {ALL}"),
    ("GET", "/message:send", 404, "There is nothing at '/message:send'. Did you mean /rest/message:send or"),
    (
        "GET",
        "/.well-known/agent.json",
        404,
        "There is nothing at '/.well-known/agent.json'. Did you mean /.well-known/ag",
    ),
    ("GET", "/rest", 404, "There is nothing at '/rest'. Did you mean /rest/…?"),
    (
        "GET",
        "/rest/nope",
        404,
        "There is nothing at '/rest/nope'. There are /rest/message:send, /rest/message:stream, /rest",
    ),
    ("GET", "/rest/task", 404, "There is nothing at '/rest/task'. Did you mean /rest/tasks?"),
    (
        "GET",
        "/artifacts/a/b/c",
        404,
        "There is nothing at '/artifacts/a/b/c'. There are /artifacts, /artifacts/{context}, and below it events, ",
    ),
    ("GET", "/artifacts/gone", 404, "There is no context 'gone'. GET /artifacts lists yours;"),
    ("PUT", "/", 405, "PUT is not possible at /; it takes GET, HEAD and POST"),
    ("POST", "/page/0/main.js", 405, "POST is not possible at /page/0/main.js; it takes GET and HEAD"),
    ("GET", "/page/0/main.js", 404, "The page has changed since it was loaded. Reload it."),
    ("GET", "/rest/message:send", 405, "GET is not possible at /rest/message:send; it takes POST"),
    ("POST", "/artifacts", 405, "POST is not possible at /artifacts; it takes GET and HEAD"),
    ("POST", "/healthz", 405, "POST is not possible at /healthz; it takes GET and HEAD"),
    ("GET", "/canvas/stream", 405, "GET is not possible at /canvas/stream; it takes POST"),
]


@pytest.mark.parametrize(("method", "path", "status", "says"), PATHS)
async def test_a_wrong_path_or_method_is_told_in_json_with_what_there_is(
    served: Served, method: str, path: str, status: int, says: str
) -> None:
    answer = await served.http.request(method, path, headers=V10)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.json()["error"]["message"].startswith(says)
    assert ("allow" in answer.headers) == (status == 405)


async def test_an_artifact_that_is_not_there_is_told_with_those_that_are(served: Served) -> None:
    await served.rpc("SendMessage", {"message": {**MESSAGE, "contextId": "c-1", "parts": [{"text": "write parts"}]}})
    known = (await served.http.get("/artifacts/c-1")).json()["artifacts"][0]["artifactId"]
    error = (await served.http.get("/artifacts/c-1/gone")).json()["error"]
    assert error["message"] == f"There is no artifact 'gone' in context 'c-1'. It has '{known}'."
    params = saying(contextId="c-1", metadata={CANVAS: {"op": "undo", "artifactId": "gone"}})
    says = f"artifactId is 'gone', which this context does not have; it has '{known}'."
    assert (await served.rpc("SendMessage", params))["error"]["message"] == says


async def test_grpc_says_the_same(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        stub = Stub03(channel)  # type: ignore[no-untyped-call]
        calls = [
            (
                stub.GetTask(pb03.GetTaskRequest(name="x")),
                "InvalidParamsError: name is 'x' and must be tasks/ and the id of a task.",
            ),
            (
                stub.SendMessage(pb03.SendMessageRequest(request={"message_id": "m"})),
                "InvalidParamsError: message.content must not be empty.",
            ),
            (
                channel.unary_unary("/lf.a2a.v1.A2AService/GetTasks")(b""),  # type: ignore[arg-type]
                "There is no method /lf.a2a.v1.A2AService/GetTasks. Did you mean GetTask or ListTasks?",
            ),
        ]
        for call, says in calls:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.details() == says
