"""Push notifications of the whole application: registered over every binding and version, received on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc.aio
import pytest
import pytest_asyncio
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3 import types as v0_3
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import A2AServiceStub
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError
from aiohttp import web
from google.protobuf.json_format import MessageToDict, ParseDict

from tests.database_fixtures import postgresql_url, sqlite_url
from tests.new_database import with_tables
from tests.server.app_server import Served, Way, asking, every_way, sent, serving
from tests.server.push.receiver import Notification, Receiver, accept, receiving, state_of

Json = dict[str, Any]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "whsec_" + b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served() -> AsyncIterator[Served]:
    async with serving(push_allow="127.0.0.0/8,localhost") as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


def config(receiver: Receiver, task_id: str = "", config_id: str = "", **fields: str) -> pb.TaskPushNotificationConfig:
    scheme, credentials = fields.pop("scheme", ""), fields.pop("credentials", "")
    made = pb.TaskPushNotificationConfig(task_id=task_id, id=config_id, url=receiver.url, **fields)
    if scheme:
        made.authentication.scheme, made.authentication.credentials = scheme, credentials
    return made


def with_config(text: str, receiver: Receiver, **fields: str) -> Any:
    request = asking(text)
    request.configuration.task_push_notification_config.CopyFrom(config(receiver, **fields))
    return request


def updates(got: list[Notification]) -> list[str]:
    """The state of each status update, and the text of each version."""
    return [
        state_of(each) or "".join(part["text"] for part in each.json["artifactUpdate"]["artifact"]["parts"])
        for each in got
    ]


def check_form(got: Notification, version: str) -> None:
    """It is what a receiver that is made with the SDK reads, with nothing besides."""
    if version == "1.0":
        assert MessageToDict(ParseDict(got.json, pb.StreamResponse())) == got.json
    else:
        assert v0_3.Task.model_validate(got.json).model_dump(mode="json", by_alias=True, exclude_none=True) == got.json


# ----------------------------------------------------------------------- the operations


async def listed(served: Served, way: Way, task_id: str) -> list[str]:
    """The ids of a task's configs. The SDK's client for HTTP+JSON 0.3 can neither list nor delete."""
    if way == ("HTTP+JSON", "0.3"):
        answer = (await served.http.get(f"/rest/v1/tasks/{task_id}/pushNotificationConfigs")).json()
        return [each["pushNotificationConfig"]["id"] for each in answer.get("configs", [])]
    request = pb.ListTaskPushNotificationConfigsRequest(task_id=task_id)
    return [each.id for each in (await served.client(*way).list_task_push_notification_configs(request)).configs]


async def delete(served: Served, way: Way, task_id: str, config_id: str) -> None:
    if way == ("HTTP+JSON", "0.3"):
        answer = await served.http.delete(f"/rest/v1/tasks/{task_id}/pushNotificationConfigs/{config_id}")
        assert (answer.status_code, answer.json()) == (200, {})
    else:
        request = pb.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await served.client(*way).delete_task_push_notification_config(request)


@every_way
@pytest.mark.transports
async def test_a_config_is_created_read_listed_and_deleted(served: Served, receiver: Receiver, way: Way) -> None:
    client = served.client(*way)
    task = await sent(served, way, asking("just say it"))
    made = await client.create_task_push_notification_config(config(receiver, task.id, "c1", token="t0ken"))
    assert (made.task_id, made.id, made.url, made.token) == (task.id, "c1", receiver.url, "t0ken")
    asked = pb.GetTaskPushNotificationConfigRequest(task_id=task.id, id="c1")
    assert await client.get_task_push_notification_config(asked) == made
    assert await listed(served, way, task.id) == ["c1"]
    for _ in range(2):  # it is idempotent
        await delete(served, way, task.id, "c1")
    assert await listed(served, way, task.id) == []
    if way != ("HTTP+JSON", "0.3"):  # the SDK's client tells no errors apart
        with pytest.raises(TaskNotFoundError):
            await client.get_task_push_notification_config(asked)


async def test_http_json_0_3_takes_the_task_and_the_id_from_where_a_client_puts_them(
    served: Served, receiver: Receiver
) -> None:
    task = await sent(served, ("JSONRPC", "1.0"), asking("just say it"))
    path = f"/rest/v1/tasks/{task.id}/pushNotificationConfigs"
    body = {"configId": "mine", "config": {"pushNotificationConfig": {"url": receiver.url}}}
    made = (await served.http.post(path, json=body)).json()
    assert made["name"] == f"tasks/{task.id}/pushNotificationConfigs/mine"


async def test_http_json_0_3_takes_the_config_as_the_body(served: Served, receiver: Receiver) -> None:
    task = await sent(served, ("JSONRPC", "1.0"), asking("just say it"))
    path = f"/rest/v1/tasks/{task.id}/pushNotificationConfigs"
    name = f"tasks/{task.id}/pushNotificationConfigs/mine"
    made = (await served.http.post(path, json={"name": name, "pushNotificationConfig": {"url": receiver.url}})).json()
    assert (made["name"], made["pushNotificationConfig"]["url"]) == (name, receiver.url)
    for body in ({}, {"config": {}}, {"configId": "mine"}):
        refused = await served.http.post(path, json=body)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"] == "config.pushNotificationConfig must not be empty."


@pytest.mark.transports
async def test_a_config_without_its_task_is_refused_in_every_binding(served: Served, receiver: Receiver) -> None:
    error = (await served.rpc("CreateTaskPushNotificationConfig", {"url": receiver.url}))["error"]
    assert (error["code"], error["message"]) == (-32602, "taskId must not be empty.")
    with pytest.raises(A2AError, match="taskId must not be empty"):
        await served.client("GRPC", "1.0").create_task_push_notification_config(config(receiver))


async def test_jsonrpc_0_3_may_ask_for_the_config_of_a_task_by_the_task_alone(
    served: Served, receiver: Receiver
) -> None:
    task = await sent(served, ("JSONRPC", "1.0"), asking("just say it"))
    old = {"A2A-Version": "0.3"}
    config = {"taskId": task.id, "pushNotificationConfig": {"url": receiver.url}}
    made = await served.rpc("tasks/pushNotificationConfig/set", config, **old)
    assert await served.rpc("tasks/pushNotificationConfig/get", {"id": task.id}, **old) == made
    assert made["result"]["pushNotificationConfig"] == {"id": task.id, "url": receiver.url}


Create = Callable[[Served, str, Json], Awaitable[str]]
Send = Callable[[Served, Json], Awaitable[str]]
OLD = {"A2A-Version": "0.3"}


async def create_by_jsonrpc(served: Served, task_id: str, push: Json) -> str:
    params = {"taskId": task_id, "pushNotificationConfig": push}
    made = (await served.rpc("tasks/pushNotificationConfig/set", params, **OLD))["result"]
    return str(made["taskId"])


async def send_by_jsonrpc(served: Served, push: Json) -> str:
    message = {"messageId": str(uuid4()), "role": "user", "parts": [{"kind": "text", "text": "just say it"}]}
    params = {"message": message, "configuration": {"pushNotificationConfig": push}}
    return str((await served.rpc("message/send", params, **OLD))["result"]["id"])


async def create_by_http_json(served: Served, task_id: str, push: Json) -> str:
    answer = await served.http.post(
        f"/rest/v1/tasks/{task_id}/pushNotificationConfigs", json={"config": {"pushNotificationConfig": push}}
    )
    assert answer.status_code == 200, answer.text
    return task_id


async def send_by_http_json(served: Served, push: Json) -> str:
    answer = await served.http.post("/rest/v1/message:send", json=old_request(push))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["task"]["id"])


async def create_by_grpc(served: Served, task_id: str, push: Json) -> str:
    config = {"pushNotificationConfig": push}
    request = ParseDict(
        {"parent": f"tasks/{task_id}", "config": config}, pb03.CreateTaskPushNotificationConfigRequest()
    )
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        await A2AServiceStub(channel).CreateTaskPushNotificationConfig(request)
    return task_id


async def send_by_grpc(served: Served, push: Json) -> str:
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        answer = await A2AServiceStub(channel).SendMessage(ParseDict(old_request(push), pb03.SendMessageRequest()))
    return str(answer.task.id)


def old_request(push: Json) -> Json:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "content": [{"text": "just say it"}]}
    return {"message": message, "configuration": {"pushNotification": push, "blocking": True}}


OLD_BINDINGS: dict[str, tuple[Create, Send]] = {
    "JSONRPC": (create_by_jsonrpc, send_by_jsonrpc),
    "HTTP+JSON": (create_by_http_json, send_by_http_json),
    "GRPC": (create_by_grpc, send_by_grpc),
}


@pytest.mark.parametrize("authentication", [{}, {"schemes": []}], ids=str)
async def test_in_0_3_an_authentication_without_schemes_is_none_in_every_binding(
    served: Served, receiver: Receiver, authentication: Json
) -> None:
    push = {"url": receiver.url, "authentication": authentication}
    task = await sent(served, ("JSONRPC", "1.0"), asking("just say it"))
    for binding, (create, send) in OLD_BINDINGS.items():
        created = await create(served, task.id, push)
        begun = await send(served, push)
        for task_id in (created, begun):
            asked = pb.ListTaskPushNotificationConfigsRequest(task_id=task_id)
            (config,) = (await served.client("JSONRPC", "1.0").list_task_push_notification_configs(asked)).configs
            assert (binding, config.url, config.HasField("authentication")) == (binding, receiver.url, False)


@every_way
@pytest.mark.transports
async def test_a_message_may_bring_its_config(served: Served, receiver: Receiver, way: Way) -> None:
    asked = with_config("write report", receiver, token="t0ken", scheme="Bearer", credentials="s3cret")
    task = await sent(served, way, asked)
    assert await listed(served, way, task.id) == [task.id]
    if way[1] == "1.0":
        got = await receiver.until_state("TASK_STATE_COMPLETED")
        assert updates(got) == ["TASK_STATE_WORKING", "# report\n\nHello, wörld 😀.\n", "TASK_STATE_COMPLETED"]
        assert got[1].json["artifactUpdate"]["lastChunk"]
        assert "append" not in got[1].json["artifactUpdate"]
        assert got[2].json["statusUpdate"]["status"]["message"]["parts"] == [{"text": "I wrote report."}]
    else:
        got = await receiver.until(lambda got: len(got) == 3)
        assert [(each.json["kind"], each.json["id"]) for each in got] == [("task", task.id)] * 3
        assert [state_of(each) for each in got][::2] == ["working", "completed"]
        assert got[2].json["artifacts"][0]["parts"] == [{"kind": "text", "text": "# report\n\nHello, wörld 😀.\n"}]
    for each in got:
        check_form(each, way[1])
    assert {each.headers["x-a2a-notification-token"] for each in got} == {"t0ken"}
    assert {each.headers["authorization"] for each in got} == {"Bearer s3cret"}
    assert {each.headers["a2a-version"] for each in got} == {way[1]}
    assert len({each.headers["webhook-id"] for each in got}) == 3


async def test_in_0_3_statuses_come_in_their_order_however_late_they_are_delivered(
    served: Served, receiver: Receiver
) -> None:
    ended = asyncio.Event()

    async def answer(notification: Notification) -> web.Response:
        await ended.wait()
        return web.Response()

    receiver.answer = answer
    await sent(served, ("JSONRPC", "0.3"), with_config("revise", receiver))
    ended.set()
    got = await receiver.until(lambda got: len(got) == 4)
    assert [state_of(each) for each in got] == ["working", "working", "working", "completed"]
    times = [each.json["status"]["timestamp"] for each in got]
    assert times == sorted(times)
    assert len({each.headers["webhook-id"] for each in got}) == 4


async def test_a_version_is_told_once_although_the_call_after_it_breaks_off(served: Served, receiver: Receiver) -> None:
    await sent(served, ("JSONRPC", "1.0"), with_config("append twice", receiver))
    got = await receiver.until_state("TASK_STATE_COMPLETED")
    assert updates(got) == ["TASK_STATE_WORKING", "One, ", "One, two, three and four.", "TASK_STATE_COMPLETED"]


async def test_the_notifications_of_a_task_that_is_there_go_on_after_its_answer(
    served: Served, receiver: Receiver
) -> None:
    task = await sent(served, ("JSONRPC", "1.0"), asking("ask"))
    answer = with_config("blue", receiver)
    answer.message.task_id = task.id
    await sent(served, ("JSONRPC", "1.0"), answer)
    assert updates(await receiver.until_state("TASK_STATE_COMPLETED"))[0] == "TASK_STATE_WORKING"


async def test_an_annotation_is_reported_for_the_task_that_made_it_alone(served: Served, receiver: Receiver) -> None:
    served.gate.open()
    context = str(uuid4())
    for text in ("write report", "ask"):
        request = with_config(text, receiver)
        request.message.context_id = context
        waiting = await sent(served, ("JSONRPC", "1.0"), request)
    async with receiving() as of_annotation:
        request = with_config("Is that so?", of_annotation)
        request.message.context_id = context
        operation = {"op": "annotate", "artifactId": "report", "selection": {"lineStart": 1}}
        request.message.metadata.update({"urn:a2a-canvas:canvas:v1": operation})
        annotation = await sent(served, ("JSONRPC", "1.0"), request)
        own = await of_annotation.until_state("TASK_STATE_COMPLETED")
    assert {each.json["statusUpdate"]["taskId"] for each in own} == {annotation.id}
    assert own[-1].json["statusUpdate"]["status"]["message"]["parts"] == [{"text": "Added comment 1."}]
    answer = asking("blue", context=context, task=waiting.id)
    await sent(served, ("JSONRPC", "1.0"), answer)
    got = await receiver.until(lambda got: sum(state_of(each) == "TASK_STATE_COMPLETED" for each in got) == 2)
    assert not [each for each in got if annotation.id in each.body.decode() or b"Is that so?" in each.body]


async def test_a_signature_says_who_sent_it_and_no_secret_is_logged_or_answered(
    served: Served, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    refused = False

    async def answer(notification: Notification) -> web.Response:
        nonlocal refused
        first, refused = not refused, True
        return web.Response(status=500 if first else 204, text="s3cret")

    receiver.answer = answer
    receiver.url += "/s3cret-path?key=s3cret"
    with caplog.at_level(logging.DEBUG):
        asked = with_config("just say it", receiver, token="t0ken", scheme="HMAC-SHA256", credentials=SECRET)
        task = await sent(served, ("JSONRPC", "1.0"), asked)
        got = await receiver.until_state("TASK_STATE_COMPLETED")
        shown = await served.rpc("ListTaskPushNotificationConfigs", {"taskId": task.id})
    [config] = shown["result"]["configs"]
    assert config["authentication"] == {"scheme": "HMAC-SHA256"}
    assert not any(secret in caplog.text for secret in ("s3cret", "t0ken", SECRET))
    assert got[0].headers["webhook-id"] == got[1].headers["webhook-id"]  # the one that was refused came again
    for each in got:
        signed = f"{each.headers['webhook-id']}.{each.headers['webhook-timestamp']}.".encode() + each.body
        made = hmac.digest(b64decode(SECRET.removeprefix("whsec_")), signed, hashlib.sha256)
        assert each.headers["webhook-signature"] == "v1," + b64encode(made).decode()
        assert "authorization" not in each.headers


async def test_a_receiver_that_is_gone_is_told_nothing_more_and_whoever_looks_is_told_why(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(notification: Notification) -> web.Response:
        return web.Response(status=410)

    receiver.answer = gone
    async with serving(push_allow="127.0.0.1", database="memory", grpc=False) as served:
        task = await sent(served, ("JSONRPC", "1.0"), with_config("write report", receiver))
        while not (await figures(served, 'push_attempts_total{outcome="given_up"}'))[0]:
            pass
        error = (await served.rpc("GetTaskPushNotificationConfig", {"taskId": task.id, "id": task.id}))["error"]
        assert "because after 1 attempts the receiver answered 410" in error["message"]
        assert await listed(served, ("JSONRPC", "1.0"), task.id) == []
        assert await figures(served, "outbox_notifications") == [0]
    assert len(receiver.got) == 1
    assert "are given up after 1 attempts: the receiver answered 410" in caplog.text


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_no_turn_waits_for_a_receiver_and_a_restart_loses_nothing(
    receiver: Receiver, database: str, tmp_path: Path
) -> None:
    async def hang(notification: Notification) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    receiver.answer = hang
    url = sqlite_url(tmp_path) if database == "sqlite" else await with_tables(postgresql_url())
    async with serving(push_allow="127.0.0.1", database=url, grpc=False) as first:
        task = await sent(first, ("JSONRPC", "1.0"), with_config("write report", receiver))
        assert task.status.state == pb.TASK_STATE_COMPLETED
        await receiver.until(lambda got: len(got) == 1)
    receiver.answer = accept
    async with serving(push_allow="127.0.0.1", database=url, grpc=False):
        got = await receiver.until_state("TASK_STATE_COMPLETED")
    assert updates(got)[0] == updates(got)[1] == "TASK_STATE_WORKING"
    assert updates(got)[2:] == ["# report\n\nHello, wörld 😀.\n", "TASK_STATE_COMPLETED"]


async def figures(served: Served, *names: str) -> list[float]:
    """The values of metrics."""
    lines = (await served.http.get("/metrics")).text.splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return [float(found.get(f"a2a_canvas_{name}", 0)) for name in names]


@pytest.mark.parametrize("database", ["memory", "sqlite"])
async def test_the_metrics_say_how_much_waits_since_when_and_how_attempts_ended(
    receiver: Receiver, database: str, tmp_path: Path
) -> None:
    may_answer, waits = asyncio.Event(), ("outbox_notifications", "outbox_oldest_seconds")

    async def answer(notification: Notification) -> web.Response:
        await may_answer.wait()
        return web.Response(status=500 if len(receiver.got) == 1 else 204)

    receiver.answer = answer
    url = sqlite_url(tmp_path) if database == "sqlite" else database
    async with serving(push_allow="127.0.0.1", database=url, grpc=False) as served:
        assert await figures(served, *waits) == [0, 0]
        await sent(served, ("JSONRPC", "1.0"), with_config("write report", receiver))
        await receiver.until(lambda got: len(got) == 1)
        depth, age = await figures(served, *waits)
        assert depth == 3
        assert await figures(served, waits[1]) > [age] > [0]
        may_answer.set()
        await receiver.until_state("TASK_STATE_COMPLETED")
        while (await figures(served, waits[0]))[0]:  # the receiver has answered before the server has read it
            pass
        assert await figures(served, *waits) == [0, 0]
        attempts = [f'push_attempts_total{{outcome="{outcome}"}}' for outcome in ("accepted", "failed", "given_up")]
        assert await figures(served, *attempts) == [3, 1, 0]


@pytest.mark.parametrize("url", ["https://nowhere.invalid/", "https://[::1]/", "http://10.0.0.1/"])
async def test_a_url_that_may_not_be_sent_to_is_refused_before_there_is_a_task(served: Served, url: str) -> None:
    params = {
        "message": {"messageId": "m", "role": "ROLE_USER", "contextId": "refused", "parts": [{"text": "just say it"}]},
        "configuration": {"taskPushNotificationConfig": {"url": url}},
    }
    error = (await served.rpc("SendMessage", params))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("configuration.taskPushNotificationConfig.url names a host")
    contexts = (await served.http.get("/artifacts")).json()["contexts"]
    assert "refused" not in [each["contextId"] for each in contexts]
