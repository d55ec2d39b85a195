"""Push notifications of the whole application: registered over every binding and version, received on loopback."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError

from tests.server.app_server import WAYS, Served, asking, sent, serving
from tests.server.push_receiver import Notification, Receiver, receiving, state_of

Way = tuple[str, str]
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)

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


@every_way
@pytest.mark.transports
async def test_a_message_may_bring_its_config(served: Served, receiver: Receiver, way: Way) -> None:
    task = await sent(served, way, with_config("write report", receiver, token="t0ken"))
    expected = "TASK_STATE_COMPLETED" if way[1] == "1.0" else "completed"
    got = await receiver.until_state(expected)
    states = [state_of(each) for each in got]
    if way[1] == "1.0":
        assert states == ["TASK_STATE_WORKING", "", expected]
        assert (
            got[1].json["artifactUpdate"]["artifact"]["parts"]
            == [{"text": "# report\n\nHello, wörld 😀.\n", "mediaType": "text/markdown"}]
            or got[1].json["artifactUpdate"]["lastChunk"]
        )
    else:
        assert [(each.json["kind"], each.json["id"]) for each in got] == [("task", task.id)] * len(got)
    assert {each.headers["x-a2a-notification-token"] for each in got} == {"t0ken"}
    assert {each.headers["a2a-version"] for each in got} == {way[1]}
