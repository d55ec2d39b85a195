"""The guard in front of the SDK's HTTP routes: no request gets a 5xx, a plain text or the text of an exception."""

import asyncio
import gzip
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from google.protobuf.any_pb2 import Any as Any_
from google.protobuf.json_format import ParseDict
from google.rpc import error_details_pb2  # type: ignore[import-untyped]  # noqa: F401 (the messages in `Any_`)
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from a2a_canvas.server.protocols.a2a_v1.bindings.http_json import rest_route
from a2a_canvas.server.protocols.a2a_v1.bindings.jsonrpc import jsonrpc_route
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.pipeline.http_pipeline import HttpPipeline
from tests.loopback import connect, serving_app
from tests.property_examples import examples
from tests.server.protocols.echo_handler import Echo

JSON = {"content-type": "application/json"}
V1 = {**JSON, "a2a-version": "1.0"}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hé"}]}
MESSAGE_03 = {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hé"}]}
REST_03 = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hé"}]}
PUSH = {"taskId": "x", "id": "x", "url": "http://127.0.0.1"}
LIMITS = BodyLimits(max_body_bytes=4096)


async def health(request: Request) -> Response:
    return PlainTextResponse("ok")


async def broken(request: Request) -> Response:
    raise RuntimeError("secret text")


async def half(request: Request) -> Response:
    async def events() -> AsyncIterator[str]:
        yield "data: 1\n\n"
        raise RuntimeError("secret text")

    return StreamingResponse(events(), media_type=request.query_params["type"])


def routes(*, ours: bool = True) -> list[Any]:
    """Our routes, which have to stand behind the guard, or the SDK's."""
    handler = Echo()
    jsonrpc = [jsonrpc_route(handler)] if ours else create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)
    sdk = create_rest_routes(handler, enable_v0_3_compat=True, path_prefix="/rest")
    return [
        Route("/healthz", health),
        Route("/own", broken),
        Route("/rest/broken", broken, methods=["GET", "POST"]),
        Route("/rest/half", half),
        *jsonrpc,
        *([rest_route(handler, "/rest")] if ours else sdk),
    ]


def guarded(limits: BodyLimits = LIMITS) -> HttpPipeline:
    return HttpPipeline(Starlette(routes=routes()), limits=limits)


async def ask(method: str, path: str, headers: Any = None, body: bytes = b"", app: Any = None) -> httpx.Response:
    transport = httpx.ASGITransport(app=app or guarded(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, path, headers=headers, content=body)


def rpc(method: str, params: object, **members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **members}).encode()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The SDK logs what it refuses; only what the guard logs is of interest here."""
    logging.getLogger("a2a").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("a2a").setLevel(logging.NOTSET)


def assert_clean(response: httpx.Response) -> None:
    assert response.status_code < 500
    assert not re.search(
        r"Traceback|\w(Error|Exception)\b|Failed to|pydantic|codec|NoneType|<class|line \d+ column|parseError|\.py\b",
        response.text,
    ), response.text


def assert_jsonrpc_error(response: httpx.Response) -> dict[str, Any]:
    assert_clean(response)
    answer = response.json()
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["jsonrpc"] == "2.0"
    assert isinstance(answer["id"], str | int | None)
    error: dict[str, Any] = answer["error"]
    assert {"code", "message"} <= error.keys() <= {"code", "message", "data"}
    assert isinstance(error["code"], int)
    assert isinstance(error["message"], str)
    assert_details(error.get("data") or [])
    return error


def assert_rest_error(response: httpx.Response) -> dict[str, Any]:
    assert_clean(response)
    error: dict[str, Any] = response.json()["error"]
    assert error.keys() == {"code", "status", "message", "details"}
    assert error["code"] == response.status_code
    assert error["details"][0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert_details(error["details"])
    return error


def assert_details(details: Any) -> None:
    """A protobuf client can read them. Those of A2A 0.3 over JSON-RPC are no messages."""
    if isinstance(details, list):
        for detail in details:
            ParseDict(detail, Any_())


# ---------------------------------------------------------------- what may pass


@pytest.mark.parametrize(
    ("method", "path", "headers", "body"),
    [
        ("POST", "/", V1, rpc("SendMessage", {"message": MESSAGE})),
        ("POST", "/", V1, rpc("SendStreamingMessage", {"message": MESSAGE})),
        ("POST", "/", V1, rpc("GetTask", {"id": "x"}, id=None)),
        ("POST", "/", {**V1, "content-type": "application/a2a+json; charset=utf-8"}, rpc("ListTasks", {})),
        ("POST", "/", V1, rpc("ListTasks", {"includeArtifacts": True}, id="a")),
        ("POST", "/", V1, rpc("CancelTask", {"id": "x"})),
        ("POST", "/", V1, rpc("SubscribeToTask", {"id": "x"})),
        *(("POST", "/", V1, rpc(method, {"id": "none"})) for method in ("GetTask", "CancelTask", "SubscribeToTask")),
        ("POST", "/", V1, rpc("GetExtendedAgentCard", {})),
        *(("POST", "/", V1, rpc(f"{verb}TaskPushNotificationConfig", PUSH)) for verb in ("Create", "Get", "Delete")),
        ("POST", "/", V1, rpc("ListTaskPushNotificationConfigs", PUSH)),
        ("POST", "/", JSON, rpc("tasks/get", {"id": "none"})),
        ("POST", "/", JSON, rpc("message/send", {"message": MESSAGE_03})),
        ("POST", "/", {**JSON, "a2a-version": "0.3.0"}, rpc("message/stream", {"message": MESSAGE_03})),
        ("POST", "/", JSON, rpc("tasks/get", {"id": "x", "historyLength": 0})),
        ("POST", "/rest/message:send", V1, json.dumps({"message": MESSAGE}).encode()),
        ("POST", "/rest/message:stream", V1, json.dumps({"message": MESSAGE}).encode()),
        ("POST", "/rest/v1/message:send", JSON, json.dumps({"request": REST_03}).encode()),
        ("POST", "/rest/v1/message:stream", JSON, json.dumps({"request": REST_03}).encode()),
        ("GET", "/rest/tasks/x?historyLength=3", V1, b""),
        ("HEAD", "/rest/tasks/x", V1, b""),
        ("GET", "/rest/v1/tasks/x?historyLength=3", {}, b""),
        ("POST", "/rest/tasks/x:cancel", V1, b""),
        ("POST", "/rest/v1/tasks/x:cancel", JSON, b"{}"),
        ("GET", "/rest/tasks?pageSize=3&includeArtifacts=true", V1, b""),
        ("GET", "/healthz", {}, b""),
    ],
)
async def test_what_the_sdk_answers_it_still_answers_the_same(
    method: str, path: str, headers: Any, body: bytes
) -> None:
    through = await ask(method, path, headers, body)
    bare = await ask(method, path, headers, body, Starlette(routes=routes(ours=False)))
    assert through.status_code == bare.status_code == 200
    assert content(through) == content(bare)
    assert through.headers["content-type"] == bare.headers["content-type"]


def content(response: httpx.Response) -> object:
    """The JSON of an answer, or of each event of a stream."""
    if "event-stream" not in response.headers["content-type"]:
        return (
            response.text and json.loads(response.text) if "json" in response.headers["content-type"] else response.text
        )
    return [json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line]


@pytest.mark.parametrize(
    ("method", "params", "version"),
    [
        ("SendMessage", {"message": MESSAGE}, None),
        ("SendStreamingMessage", {"message": MESSAGE}, "0.3"),
        ("GetTask", None, "1.0"),
        ("GetTask", {"id": 1}, "1.0"),
        ("Nope", {}, "1.0"),
    ],
)
async def test_refusals_that_the_sdk_makes_too_have_its_codes(method: str, params: object, version: str | None) -> None:
    headers = JSON if version is None else {**JSON, "a2a-version": version}
    through = await ask("POST", "/", headers, rpc(method, params))
    bare = await ask("POST", "/", headers, rpc(method, params), Starlette(routes=routes(ours=False)))
    assert assert_jsonrpc_error(through)["code"] == bare.json()["error"]["code"]
    assert through.json()["id"] == 1


# ---------------------------------------------------------------- what may not


DEEP = '{"a":' * 40 + "1" + "}" * 40
NASTY_BODIES = [
    b"",
    b" ",
    b"{",
    b"[" * 2000,
    b'{"a":' * 700,
    b"\xff\xfe",
    b'"\xc3("',
    b"null",
    b"[]",
    b"[{}]",
    b"{}x",
    b'{"a":NaN}',
    b'{"a":1e999}',
    b'{"a":' + b"9" * 2000 + b"}",
    rb'{"message":{"messageId":"\ud800"}}',
    b'{"message":1,"message":2}',
    b'\xef\xbb\xbf{"message":{}}',
    '{"message":{}}'.encode("utf-16"),
    b"x" * 5000,
]
NASTY_VALUES: list[Any] = [
    None,
    [],
    5,
    "x",
    {"message": 5},
    {"message": []},
    {"message": {"parts": {}}},
    {"message": {**MESSAGE, "parts": [None]}},
    {"message": {**MESSAGE, "parts": [{}]}},
    {"message": {**MESSAGE, "parts": [{"text": 5}]}},
    {"message": {**MESSAGE, "parts": [{"raw": "a"}]}},
    {"message": {**MESSAGE, "parts": [{"text": "a", "url": "b"}]}},
    {"message": {**MESSAGE, "metadata": [5]}},
    {"message": {**MESSAGE, "[a.b]": 5}},
    {"message": {**MESSAGE, "parts": [{"data": json.loads(DEEP)}]}},
    {"message": MESSAGE, "configuration": {"historyLength": 2**70}},
]
NASTY_03: list[Any] = [
    {"message": {"messageId": "m"}},
    *(
        {"message": {**MESSAGE_03, "parts": [part]}}
        for part in (
            {},
            None,
            {"kind": "x"},
            {"kind": "text", "text": 5},
            {"kind": "file", "file": {"bytes": "a"}},
            {"kind": "file", "file": {}},
            {"kind": "data", "data": []},
            {"kind": "data", "data": {}, "metadata": {"data_part_compat": True}},
        )
    ),
    {"message": MESSAGE_03, "configuration": {"historyLength": 2**70}},
    *(
        {"request": {**REST_03, "content": [part]}}
        for part in ({}, {"file": {"fileWithBytes": "/w=="}}, {"data": 5}, {"data": {"data": []}})
    ),
]
RPC_METHODS = ["SendMessage", "SendStreamingMessage", "ListTasks", "message/send", "message/stream", "tasks/get"]
POSTS = [
    "/rest/message:send",
    "/rest/message:stream",
    "/rest/tasks/x/pushNotificationConfigs",
    "/rest/v1/message:send",
    "/rest/v1/message:stream",
    "/rest/v1/tasks/x/pushNotificationConfigs",
]


def version_of(target: str) -> dict[str, str]:
    return JSON if "/v1/" in target or target[0].islower() else V1


@pytest.mark.parametrize("body", NASTY_BODIES, ids=lambda body: repr(body[:20]))
async def test_jsonrpc_refuses_every_nasty_body(body: bytes) -> None:
    assert assert_jsonrpc_error(await ask("POST", "/", V1, body))["code"] in (-32700, -32600)


@pytest.mark.parametrize("body", NASTY_BODIES, ids=lambda body: repr(body[:20]))
async def test_rest_refuses_every_nasty_body(body: bytes) -> None:
    for path in POSTS:
        error = assert_rest_error(await ask("POST", path, version_of(path), body))
        assert error["code"] == (413 if len(body) > LIMITS.max_body_bytes else 400)


@pytest.mark.parametrize("params", NASTY_VALUES + NASTY_03, ids=lambda value: str(value)[:50])
async def test_no_params_bring_jsonrpc_down(params: object) -> None:
    for method in RPC_METHODS:
        response = await ask("POST", "/", version_of(method), rpc(method, params))
        assert_clean(response)
        if response.headers["content-type"] == "application/json" and "error" in response.json():
            assert assert_jsonrpc_error(response)["code"] in (-32600, -32602)


@pytest.mark.parametrize("body", NASTY_VALUES + NASTY_03, ids=lambda value: str(value)[:50])
async def test_no_body_brings_rest_down(body: object) -> None:
    for path in POSTS:
        response = await ask("POST", path, version_of(path), json.dumps(body).encode())
        assert_clean(response)
        assert response.status_code == 200 or assert_rest_error(response)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/rest/", 404),
        ("GET", "/rest/nope", 404),
        ("GET", "/rest/tasks/", 404),
        ("POST", "/rest/v1/nope", 404),
        ("GET", "/rest/v1/tasks/%00/x/%ff", 404),
        ("PUT", "/rest/tasks", 405),
        ("GET", "/rest/message:send", 405),
        ("PATCH", "/rest/tasks/x", 405),
        ("GET", "/rest/tasks/x?historyLength=abc", 400),
        ("GET", "/rest/tasks?pageSize=99999999999", 400),
        ("GET", "/rest/tasks?status=" + "x" * 300 + "&statusTimestampAfter=x", 400),
        ("GET", "/rest/tasks/none", 404),
    ],
)
async def test_bad_paths_methods_and_queries_get_rests_error(method: str, path: str, status: int) -> None:
    response = await ask(method, path, {"a2a-version": "1.0"})
    assert response.status_code == status
    codes = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 405: "UNIMPLEMENTED"}
    assert assert_rest_error(response)["status"] == codes[status]
    assert ("allow" in response.headers) == (status == 405)


async def test_a_path_that_is_not_there_is_404_whatever_its_content_type() -> None:
    assert (await ask("POST", "/rest/nope", {"content-type": "text/plain"}, b"x")).status_code == 404


async def test_a_query_of_a_legacy_path_is_checked_too() -> None:
    for odd in ("abc", "-0.0", "1.0", "1e0", "1_0", "%201", "+1", "%D9%A3"):
        assert_rest_error(await ask("GET", f"/rest/v1/tasks/x?historyLength={odd}"))
    assert_rest_error(await ask("GET", "/rest/v1/tasks/x?historyLength=99999999999"))


async def test_a_wrong_method_on_the_jsonrpc_path_is_answered_in_json_but_get_stays_free() -> None:
    response = await ask("PUT", "/")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert_jsonrpc_error(response)
    assert (await ask("GET", "/")).text == "Method Not Allowed"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "json", "\xff"])
async def test_other_content_types_are_refused_in_each_form(content_type: str) -> None:
    headers = {"a2a-version": "1.0", "content-type": content_type.encode("latin-1")}
    assert assert_jsonrpc_error(await ask("POST", "/", headers, rpc("ListTasks", {})))["code"] == -32005
    error = assert_rest_error(await ask("POST", "/rest/message:send", headers, b"{}"))
    assert error["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


@pytest.mark.parametrize("version", ["1", "1.1", "1.99", "9.9", "garbage", "0.2", "1.0, 0.3", "\xff"])
async def test_versions_that_we_do_not_speak_are_refused_in_each_form(version: str) -> None:
    headers = {**JSON, "a2a-version": version.encode("latin-1")}
    for method in ("SendMessage", "message/send", "Nope"):
        assert assert_jsonrpc_error(await ask("POST", "/", headers, rpc(method, {})))["code"] == -32009
    for path in ("/rest/message:send", "/rest/v1/message:send"):
        error = assert_rest_error(await ask("POST", path, headers, b"{}"))
        assert error["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.parametrize("name", ["A2A-Version", "a2a-version", "A2A-VERSION"])
@pytest.mark.parametrize("header", [{}, {"a2a-version": ""}], ids=["no header", "an empty header"])
async def test_the_query_can_name_the_version(name: str, header: dict[str, str]) -> None:
    """A browser's `EventSource` cannot set a header."""
    body = {"message": MESSAGE}
    answer = await ask("POST", f"/?{name}=1.0", {**JSON, **header}, rpc("SendMessage", body))
    assert answer.json()["result"]["task"]["id"] == "t"
    stream = await ask("GET", f"/rest/tasks/x:subscribe?{name}=1.0", header)
    assert stream.headers["content-type"].startswith("text/event-stream")
    sent = await ask("POST", f"/rest/message:send?{name}=1.0", {**JSON, **header}, json.dumps(body).encode())
    assert sent.status_code == 200


@pytest.mark.parametrize("query", ["A2A-Version=1.0", "A2A-Version=9.9", "a2a-version=%E2%82%AC"])
async def test_a_version_in_the_header_beats_one_in_the_query(query: str) -> None:
    old = await ask("POST", f"/?{query}", {**JSON, "a2a-version": "0.3"}, rpc("tasks/get", {"id": "x"}))
    assert old.json()["result"]["id"] == "x"


@pytest.mark.parametrize("version", ["", "0.3", "1.1", "%E2%82%AC", "1.0%0d%0aX: y"])
async def test_a_version_in_the_query_is_checked_as_one_in_the_header(version: str) -> None:
    error = assert_rest_error(await ask("GET", f"/rest/tasks/x?A2A-Version={version}"))
    assert error["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    assert (
        assert_jsonrpc_error(await ask("POST", f"/?A2A-Version={version}", JSON, rpc("GetTask", {})))["code"] == -32009
    )


async def test_a_refused_field_is_named_in_message_and_details() -> None:
    body = {"message": {**MESSAGE, "parts": [{"text": "a", "url": "b"}]}}
    rest = assert_rest_error(await ask("POST", "/rest/message:send", V1, json.dumps(body).encode()))
    jsonrpc = assert_jsonrpc_error(await ask("POST", "/", V1, rpc("SendMessage", body)))
    for error, details in ((rest, rest["details"]), (jsonrpc, jsonrpc["data"])):
        assert "message.parts[0]" in error["message"]
        assert details[1]["fieldViolations"][0]["field"] == "message.parts[0]"


KEYS = st.sampled_from(["message", "parts", "text", "data", "raw", "url", "metadata", "role", "id", "params", "method"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
BODIES = st.binary(max_size=50) | VALUES.map(lambda value: json.dumps(value).encode())


@settings(max_examples=examples(150))
@given(body=BODIES, version=st.sampled_from([{}, {"a2a-version": "1.0"}]))
async def test_random_bodies_never_bring_a_binding_down(body: bytes, version: dict[str, str]) -> None:
    assert_jsonrpc_error(await ask("POST", "/", {**JSON, **version}, body))
    for path in POSTS:
        response = await ask("POST", path, {**JSON, **version}, body)
        assert response.status_code == 200 or assert_rest_error(response)


@settings(max_examples=examples(150))
@given(params=VALUES, method=st.sampled_from(RPC_METHODS))
async def test_random_params_never_bring_jsonrpc_down(params: object, method: str) -> None:
    response = await ask("POST", "/", version_of(method), rpc(method, params))
    assert_clean(response)
    if response.headers["content-type"] == "application/json" and "error" in response.json():
        assert_jsonrpc_error(response)


# ---------------------------------------------------------------- the last net


@pytest.mark.parametrize("inside", [False, True], ids=["around the app", "among its middleware"])
async def test_an_unhandled_exception_becomes_internal_error_without_text(
    inside: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app: Any = Starlette(routes=routes(), debug=True)
    if inside:
        app.add_middleware(HttpPipeline, limits=LIMITS)
    else:
        app = HttpPipeline(app, limits=LIMITS)
    response = await ask("GET", "/rest/broken", app=app)
    assert response.status_code == 500
    assert response.json()["error"]["message"] == "Internal error"
    assert "secret" not in response.text
    assert [record.exc_info is not None for record in caplog.records if record.name.startswith("a2a_canvas")] == [True]


async def test_a_stream_that_breaks_ends_with_an_error_event() -> None:
    response = await ask("GET", "/rest/half?type=text/event-stream")
    assert response.text.startswith("data: 1\n\nevent: error\r\ndata: {")
    assert "Internal error" in response.text
    assert "secret" not in response.text


async def test_another_answer_that_breaks_stays_broken() -> None:
    transport = httpx.ASGITransport(app=guarded())
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        with pytest.raises(RuntimeError):
            await client.get("/rest/half?type=text/csv")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/artifacts/a%2Fb", 200),
        ("/artifacts/%2f", 200),
        ("/artifacts%2fa", 404),
        ("/artifacts%2F%2Fa", 404),
        ("/%2fartifacts/a", 404),
        ("/rest%2ftasks", 404),
        ("/rest/tasks%2Fx", 404),
        ("/a?b=%2f", 200),
    ],
)
async def test_an_encoded_slash_is_part_of_a_name_or_nowhere(path: str, status: int) -> None:
    async def found(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("")(scope, receive, send)

    assert (await ask("GET", path, V1, app=HttpPipeline(found, limits=LIMITS))).status_code == status


async def test_other_paths_keep_their_own_errors() -> None:
    assert (await ask("GET", "/own")).text == "Internal Server Error"
    response = await ask("POST", "/healthz", {"content-type": "text/plain"}, b"\xff")
    assert (response.status_code, response.text) == (405, "Method Not Allowed")


# ---------------------------------------------------------------- over a socket


async def exchange(url: str, *pieces: bytes) -> bytes:
    """Sends the pieces and reads until the server closes, which it has to do by itself."""
    reader, writer = await connect(url)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


HEAD = b"Host: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"


@pytest.mark.parametrize("target", [b"/", b"/rest/message:send", b"/healthz"])
async def test_a_body_over_the_limit_is_refused_before_it_is_sent_and_while_it_is(target: bytes) -> None:
    async with serving_app(lambda _: guarded()) as url:
        start = b"POST " + target + b" HTTP/1.1\r\n" + HEAD
        declared = await exchange(url, start + b"Content-Length: 999999999\r\n\r\n")
        chunked = await exchange(url, start + b"Transfer-Encoding: chunked\r\n\r\n1001\r\n" + b"x" * 4097 + b"\r\n")
    for answer in (declared, chunked):
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200" if target == b"/" else b"HTTP/1.1 413")
        assert b"larger than 4096 bytes" in body
        assert json.loads(body)["error"]["code"] == (-32600 if target == b"/" else 413)


async def test_a_body_of_exactly_the_limit_passes() -> None:
    body = rpc("ListTasks", {})
    app = guarded(BodyLimits(max_body_bytes=len(body)))
    assert "result" in (await ask("POST", "/", V1, body, app)).json()
    assert_jsonrpc_error(await ask("POST", "/", V1, body + b" ", app))


async def test_a_stream_passes_piece_by_piece_and_the_readers_leaving_reaches_the_app() -> None:
    more, left = asyncio.Event(), asyncio.Event()

    async def stream(request: Request) -> Response:
        async def events() -> AsyncIterator[str]:
            yield "data: 1\n\n"
            await more.wait()
            yield "data: 2\n\n"
            while (await request.receive())["type"] != "http.disconnect":
                pass
            left.set()

        return StreamingResponse(events(), media_type="text/event-stream")

    app = HttpPipeline(Starlette(routes=[Route("/rest/stream", stream)]), limits=LIMITS)
    async with serving_app(lambda _: app) as url, httpx.AsyncClient() as client:
        async with client.stream("GET", f"{url}/rest/stream") as response:
            pieces = response.aiter_text()
            assert await anext(pieces) == "data: 1\n\n"
            more.set()
            assert await anext(pieces) == "data: 2\n\n"
        await left.wait()


async def test_a_client_that_leaves_in_its_body_never_reaches_the_app() -> None:
    reached: list[str] = []
    done = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        await HttpPipeline(app, limits=LIMITS)(scope, receive, send)
        done.set()

    async with serving_app(lambda _: watched) as url:
        _, writer = await connect(url)
        writer.write(b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()
        await done.wait()
    assert reached == []


async def test_other_kinds_of_connections_pass() -> None:
    scopes: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append((scope, receive, send))

    await HttpPipeline(app, limits=LIMITS)({"type": "lifespan"}, "receive", "send")  # type: ignore[arg-type]
    assert scopes == [({"type": "lifespan"}, "receive", "send")]


# ------------------------------------------------- what a lenient parser would take for something else


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"status": "NOPE"}, "status"),
        ({"status": "TASK_STATE_DONE"}, "status"),
    ],
)
async def test_an_unknown_state_is_no_filter_that_lets_everything_through(params: dict[str, str], field: str) -> None:
    error = assert_jsonrpc_error(await ask("POST", "/", V1, rpc("ListTasks", params)))
    assert (error["code"], field in error["message"]) == (-32602, True)
    query = "&".join(f"{name}={value}" for name, value in params.items())
    assert field in assert_rest_error(await ask("GET", f"/rest/tasks?{query}", V1))["message"]


@pytest.mark.parametrize("state", [True, False, 99])
async def test_a_state_that_is_no_state_of_a2a_is_refused_in_json(state: object) -> None:
    error = assert_jsonrpc_error(await ask("POST", "/", V1, rpc("ListTasks", {"status": state})))
    assert (error["code"], error["message"][:10]) == (-32602, "status is ")


@pytest.mark.parametrize("role", [True, False])
async def test_a_truth_value_is_no_role(role: bool) -> None:
    message = {"messageId": "m-1", "role": role, "parts": [{"text": "x"}]}
    error = assert_jsonrpc_error(await ask("POST", "/", V1, rpc("SendMessage", {"message": message})))
    assert (error["code"], error["message"][:16]) == (-32602, "message.role is ")
    body = json.dumps({"message": message}).encode()
    assert "message.role" in assert_rest_error(await ask("POST", "/rest/message:send", V1, body))["message"]


async def test_a_method_of_03_with_the_version_of_10_is_version_not_supported() -> None:
    for method in ("message/send", "message/stream", "tasks/get"):
        error = assert_jsonrpc_error(await ask("POST", "/", V1, rpc(method, {})))
        assert error["code"] == -32009


@pytest.mark.parametrize("state", ["TASK_STATE_WORKING", "2", "TASK_STATE_UNSPECIFIED"])
async def test_a_known_state_passes_by_name_and_by_number(state: str) -> None:
    assert "result" in (await ask("POST", "/", V1, rpc("ListTasks", {"status": state}))).json()
    assert (await ask("GET", f"/rest/tasks?status={state}", V1)).status_code == 200


@pytest.mark.parametrize("raw", ["###", "a", "aGk=x", "aGk", "aGk=", "a-_/", ""])
async def test_bytes_are_base64_or_refused_with_their_place(raw: str) -> None:
    message = {**MESSAGE, "parts": [{"text": "x"}, {"raw": raw}]}
    answer = await ask("POST", "/", V1, rpc("SendMessage", {"message": message}))
    if raw in ("aGk", "aGk=", "a-_/", ""):
        assert "result" in answer.json()
    else:
        error = assert_jsonrpc_error(answer)
        assert (error["code"], "raw" in error["message"]) == (-32602, True)


async def test_of_many_requests_at_once_one_passes_in_each_step_of_the_loop_in_order() -> None:
    passed: list[tuple[int, int]] = []
    steps = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append((int(scope["path"][1:]), steps))

    async def one(guard: HttpPipeline, number: int) -> None:
        scope = {"type": "http", "method": "GET", "path": f"/{number}", "headers": [], "query_string": b""}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        await guard(scope, receive, receive)  # type: ignore[arg-type]

    guard = HttpPipeline(app, limits=LIMITS)
    sent = [asyncio.create_task(one(guard, number)) for number in range(20)]
    await asyncio.sleep(0)
    sent[3].cancel()  # its sender has gone
    while not all(each.done() for each in sent):
        await asyncio.sleep(0)
        steps += 1
    assert [number for number, _ in passed] == [number for number in range(20) if number != 3]
    at = [step for _, step in passed]
    assert len(set(at)) == len(at)


# --------------------------------------------------------------------------- compressed bodies


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", "x"])
@pytest.mark.parametrize(
    "path",
    ["/", "/rest/message:send", "/rest/message:stream", "/rest/v1/message:send", "/rest/tasks/t:cancel", "/healthz"],
)
async def test_a_compressed_body_is_refused_unread_on_every_route(path: str, encoding: str) -> None:
    body = gzip.compress(rpc("GetTask", {"id": "t"}))
    response = await ask("POST", path, V1 | {"content-encoding": encoding}, body)
    assert (response.status_code, response.headers["accept-encoding"]) == (415, "identity")
    error = response.json()["error"]
    assert error["message"] == f"The body has Content-Encoding {encoding!r}; send it without"
    assert error["code"] == (-32005 if path == "/" else 415)


async def test_a_body_that_says_it_is_not_compressed_is_read() -> None:
    response = await ask("POST", "/", V1 | {"content-encoding": "identity"}, rpc("GetTask", {"id": "t"}))
    assert response.json()["result"]["id"] == "t"
