"""A server with quotas: what is beyond them is refused in the form of each binding and version, and of every route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
from a2a.client import ClientCallContext
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError
from a2a.utils.grpc_status import status_from_call
from google.rpc import error_details_pb2

from a2a_canvas import Turn
from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.tasks.sql.journal import sql_kept
from a2a_canvas.server.wire import CANVAS
from tests.server.app_server import Served, Stream, asking, envelope, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANN, JOE = new_key("ann"), new_key("joe")
V10 = {"A2A-Version": "1.0"}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
MESSAGE_03 = {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hi"}]}
REST_03 = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}
RUN = {"threadId": "c", "runId": "r", "messages": [{"id": "r", "role": "user", "content": "hi"}]}
SERVICES = {"1.0": "/lf.a2a.v1.A2AService", "0.3": "/a2a.v1.A2AService"}
Request = tuple[str, str, Any, Mapping[str, str]]

STREAMS: dict[str, Request] = {
    "JSON-RPC 1.0": ("POST", "/", envelope("SendStreamingMessage", {"message": MESSAGE}), V10),
    "JSON-RPC 1.0, subscribe": ("POST", "/", envelope("SubscribeToTask", {"id": "t"}), V10),
    "JSON-RPC 0.3": ("POST", "/", envelope("message/stream", {"message": MESSAGE_03}), {}),
    "REST 1.0": ("POST", "/rest/message:stream", {"message": MESSAGE}, V10),
    "REST 1.0, subscribe": ("GET", "/rest/tasks/t:subscribe", None, V10),
    "REST 0.3": ("POST", "/rest/v1/message:stream", {"request": REST_03}, {}),
    "AG-UI": ("POST", "/canvas/stream", RUN, {}),
    "artifacts": ("GET", "/artifacts/c/events", None, {}),
}
OTHERS: dict[str, Request] = {
    "JSON-RPC 1.0, get": ("POST", "/", envelope("GetTask", {"id": "t"}), V10),
    "REST 1.0, get": ("GET", "/rest/tasks/t", None, V10),
    "nothing": ("GET", "/nothing", None, {}),
}
CALLS: dict[str, Any] = {
    "1.0": pb.SendMessageRequest(message=pb.Message(message_id="m", role=pb.ROLE_USER, parts=[pb.Part(text="hi")])),
    "0.3": pb03.SendMessageRequest(
        request=pb03.Message(message_id="m", role=pb03.ROLE_USER, content=[pb03.Part(text="hi")])
    ),
}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@asynccontextmanager
async def limited(**quotas: Any) -> AsyncIterator[Served]:
    async with serving(api_keys=f"ann={ANN},joe={JOE}", database="memory", **quotas) as served:
        yield served


async def answer(served: Served, request: Request, key: str = ANN) -> httpx.Response:
    method, path, body, headers = request
    return await served.http.request(method, path, json=body, headers={**headers, **bearer(key)})


async def stream_call(served: Served, version: str, key: str = ANN) -> grpc.aio.AioRpcError | None:
    """The error of a streaming call."""
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        method = channel.unary_stream(f"{SERVICES[version]}/SendStreamingMessage")
        metadata = [(name.lower(), value) for name, value in bearer(key).items()]
        try:
            async for _ in method(CALLS[version].SerializeToString(), metadata=metadata):
                pass
        except grpc.aio.AioRpcError as error:
            return error
    return None


def assert_too_many(response: httpx.Response, said: str) -> None:
    """A refusal in REST's form."""
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["status"]) == (429, 429, "RESOURCE_EXHAUSTED")
    assert said in error["message"]
    info = error["details"][0]
    assert info["reason"] == "RATE_LIMITED"
    assert info["metadata"] == {"retryable": "true", "retryAfter": response.headers["retry-after"]}
    assert int(response.headers["retry-after"]) > 0


def assert_too_many_rpc(payload: dict[str, Any], said: str) -> None:
    error = payload["error"]
    assert error["code"] == -32603
    assert said in error["message"]
    data = error["data"][0]["metadata"] if isinstance(error["data"], list) else error["data"]
    assert str(data["retryable"]).lower() == "true"
    assert int(data["retryAfter"]) > 0


def assert_exhausted(error: grpc.aio.AioRpcError | None, said: str) -> None:
    assert error
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert said in (error.details() or "")
    status, retry = status_from_call(error), error_details_pb2.RetryInfo()
    assert status
    assert any(detail.Unpack(retry) for detail in status.details)
    assert retry.retry_delay.seconds > 0


async def test_what_is_more_than_a_users_requests_is_refused_in_every_form() -> None:
    said = "Request limit reached (2 per minute)"
    async with limited(max_requests_per_user=2) as served:
        for request in (OTHERS["nothing"], OTHERS["REST 1.0, get"]):
            assert (await answer(served, request)).status_code == 404
        for request in (STREAMS | OTHERS).values():
            response = await answer(served, request)
            assert response.headers["cache-control"] == "no-store"
            if request[1] == "/":
                assert response.status_code == 429  # its body was not read
                assert_too_many_rpc(response.json(), said)
            else:
                assert_too_many(response, said)
        for version in CALLS:
            assert_exhausted(await stream_call(served, version), said)
        assert (await answer(served, OTHERS["nothing"], JOE)).status_code == 404
        assert await stream_call(served, "1.0", JOE) is None


async def test_what_needs_no_credentials_is_not_counted() -> None:
    async with limited(max_requests_per_user=1, max_requests=1) as served:
        for _ in range(3):
            assert (await served.http.get("/.well-known/agent-card.json")).status_code == 200
        assert (await answer(served, OTHERS["nothing"])).status_code == 404
        refused = await answer(served, OTHERS["nothing"], JOE)
        assert "Request limit of this server reached (1 per minute)" in refused.text


async def test_more_links_are_not_more_requests() -> None:
    """Otherwise an owner passes its limit by links of its own, and so many users fill the memory of the meter."""
    async with limited(max_requests_per_user=5) as served:
        await answer(served, ("POST", "/canvas/stream", RUN, {}))
        tokens = []
        for _ in range(2):
            made = await answer(served, ("POST", "/artifacts/c/shares", {"link": True, "level": "read"}, {}))
            tokens.append(made.json()["token"])
        for token, status in zip([tokens[0]] * 3 + [tokens[1]] * 3, [200] * 5 + [429], strict=True):
            assert (await answer(served, ("GET", "/artifacts/c", None, {}), token)).status_code == status
        signed = await answer(served, ("POST", "/auth/signed-urls", {"path": "/artifacts/c"}, {}))
        assert signed.status_code == 200  # the owner's own requests are not those of its guests


async def test_a_signed_address_of_a_link_is_counted_with_the_links_of_its_owner() -> None:
    async with limited(max_requests_per_user=3) as served:
        await answer(served, ("POST", "/canvas/stream", RUN, {}))
        made = await answer(served, ("POST", "/artifacts/c/shares", {"link": True, "level": "read"}, {}))
        token = made.json()["token"]
        signed = await answer(served, ("POST", "/auth/signed-urls", {"path": "/artifacts/c"}, {}), token)
        assert [(await served.http.get(signed.json()["url"])).status_code for _ in range(3)] == [200, 200, 429]
        assert (await answer(served, ("GET", "/artifacts/c", None, {}), token)).status_code == 429


async def test_who_has_used_the_tokens_of_a_day_goes_on_in_no_task_of_somebody_else() -> None:
    async with limited(max_tokens_per_user=1) as served:
        ann, joe = [ClientCallContext(service_parameters=bearer(key)) for key in (ANN, JOE)]
        working = Stream(served.client().send_message(asking("wait"), context=ann))
        await working.next()
        share = ("POST", f"/artifacts/{working.task.context_id}/shares", {"user": "joe", "level": "edit"}, {})
        assert (await answer(served, share)).status_code == 201
        await Stream(served.client().send_message(asking("just say it"), context=joe)).rest()
        with pytest.raises(A2AError, match=r"Token limit reached \(1 per day\)"):
            await Stream(served.client().send_message(asking("more", task=working.task.id), context=joe)).rest()
        served.gate.open()
        await working.rest()


async def test_a_function_uses_the_tokens_of_who_sent_the_message_that_it_has_taken_last() -> None:
    begun, sent, left = asyncio.Event(), asyncio.Event(), []

    async def agent(turn: Turn) -> None:
        await turn.usage(10)
        begun.set()
        await sent.wait()
        await turn.messages()
        await turn.usage(20)
        left.append((turn.caller, turn.budget.tokens))

    async with limited(loop=agent, max_tokens_per_user=100) as served:
        ann, joe = [ClientCallContext(service_parameters=bearer(key)) for key in (ANN, JOE)]
        working = Stream(served.client().send_message(asking("go"), context=ann))
        await working.next()
        await begun.wait()
        share = ("POST", f"/artifacts/{working.task.context_id}/shares", {"user": "joe", "level": "edit"}, {})
        assert (await answer(served, share)).status_code == 201
        joined = Stream(served.client().send_message(asking("more", task=working.task.id), context=joe))
        await joined.next()
        sent.set()
        await working.rest()
        await joined.rest()
    assert left == [("joe", 80)]


async def test_a_stream_too_many_is_refused_in_every_form_and_the_others_go_on() -> None:
    said = "Stream limit reached (1 open). Close one. Try again in 10 s."
    async with limited(max_streams_per_user=1) as served:
        ann = ClientCallContext(service_parameters=bearer(ANN))
        first = Stream(served.client("HTTP+JSON", "1.0").send_message(asking("slowly report"), context=ann))
        await first.next()
        for name, request in STREAMS.items():
            response = await answer(served, request)
            if name == "JSON-RPC 0.3":
                assert_too_many_rpc(httpx.Response(200, text=response.text.partition("data:")[2]).json(), said)
            elif request[1] == "/":
                assert response.status_code == 200
                assert_too_many_rpc(response.json(), said)
            else:
                assert_too_many(response, said)
        for version in CALLS:
            assert_exhausted(await stream_call(served, version), said)
        assert (await answer(served, OTHERS["REST 1.0, get"])).status_code == 404
        assert await stream_call(served, "1.0", JOE) is None
        served.gate.open()
        await first.rest()
        assert first.task.status.state == pb.TASK_STATE_COMPLETED
        assert await stream_call(served, "1.0") is None


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "artifacts"])
async def test_a_stream_that_was_refused_or_has_ended_does_not_count(name: str) -> None:
    async with limited(max_streams_per_user=1) as served:
        for _ in range(3):
            assert "open stream" not in (await answer(served, STREAMS[name])).text


# ---------------------------------------------------------------------------- bytes


@asynccontextmanager
async def storing(folder: Path, **most: int) -> AsyncIterator[Served]:
    database = f"sqlite:///{folder}/canvas.db"
    # However busy the machine is, no number is one of before.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql_kept, "MIN_SECONDS", float("inf"))
        async with serving(api_keys=f"ann={ANN},joe={JOE}", database=database, **most) as served:
            yield served


MESSAGES = {name: request for name, request in STREAMS.items() if "subscribe" not in name and name != "artifacts"}


async def test_a_message_that_there_is_no_room_for_is_refused_in_every_form(tmp_path: Path) -> None:
    said = "Storage limit reached: you store 0 of 1 bytes, and this adds "
    async with storing(tmp_path, max_bytes_per_user=1) as served:
        for name, request in MESSAGES.items():
            response = await answer(served, request)
            if name == "JSON-RPC 0.3":
                response = httpx.Response(200, text=response.text.partition("data:")[2])
            assert "retry-after" not in response.headers
            error = response.json()["error"]
            assert said in error["message"]
            data = error["data"] if isinstance(error.get("data"), dict) else (error.get("data") or error["details"])[0]
            assert str(data.get("metadata", data)["retryable"]).lower() == "false"
            if request[1] == "/":
                assert (response.status_code, error["code"]) == (200, -32013)
            else:
                assert (response.status_code, error["code"], error["status"]) == (413, 413, "RESOURCE_EXHAUSTED")
        for version in CALLS:
            refused = await stream_call(served, version)
            assert refused
            assert (refused.code(), said in (refused.details() or "")) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
        assert (await answer(served, ("GET", "/artifacts", None, {}))).json()["contexts"] == []


async def test_who_has_filled_the_room_reads_and_removes_and_then_writes_again(tmp_path: Path) -> None:
    """And another user neither is refused nor told of it."""
    write = ("POST", "/rest/message:send", {"message": {**MESSAGE, "contextId": "c"}}, V10)
    again = ("POST", "/rest/message:send", {"message": {**MESSAGE, "messageId": "n", "contextId": "c"}}, V10)
    context = ("/artifacts/c", None, {})
    async with storing(tmp_path, max_bytes_per_user=100) as served:
        assert (await answer(served, write)).status_code == 200
        assert (await answer(served, again)).status_code == 413
        assert (await answer(served, write, JOE)).status_code == 200
        assert (await answer(served, ("GET", *context))).status_code == 200
        assert (await answer(served, ("DELETE", *context))).status_code == 204
        assert (await answer(served, again)).status_code == 200


async def test_a_server_that_is_full_tells_nobody_who_has_filled_it(tmp_path: Path) -> None:
    async with storing(tmp_path, max_bytes=100) as served:
        request = ("POST", "/rest/message:send", {"message": MESSAGE}, V10)
        assert (await answer(served, request)).status_code == 200
        refused = await answer(served, request, JOE)
        assert refused.status_code == 413
        assert refused.json()["error"]["message"] == (
            "This server's storage is full. Delete contexts (DELETE /artifacts/{context}), "
            "or ask the operator for more storage."
        )


async def test_push_configs_need_room_too(tmp_path: Path) -> None:
    async with storing(tmp_path, max_bytes_per_user=100) as served:
        sent = await answer(served, ("POST", "/rest/message:send", {"message": MESSAGE}, V10))
        configs = f"/rest/tasks/{sent.json()['task']['id']}/pushNotificationConfigs"
        refused = await answer(served, ("POST", configs, {"url": "https://example.com/"}, V10))
        assert (refused.status_code, "you store" in refused.text) == (413, True)


async def test_shares_need_room_too_in_every_form(tmp_path: Path) -> None:
    async with storing(tmp_path, max_bytes_per_user=100) as served:
        sent = await answer(served, ("POST", "/rest/message:send", {"message": MESSAGE}, V10))
        context = sent.json()["task"]["contextId"]
        refused = await answer(served, ("POST", f"/artifacts/{context}/shares", {"link": True}, {}))
        assert (refused.status_code, "you store" in refused.text) == (413, True)
        operation = {CANVAS: {"op": "share", "link": True}}
        message = {**MESSAGE, "messageId": "n", "contextId": context, "metadata": operation}
        refused = await answer(served, ("POST", "/rest/message:send", {"message": message}, V10))
        assert (refused.status_code, "you store" in refused.text) == (413, True)
