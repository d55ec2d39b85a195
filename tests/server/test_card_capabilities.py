"""What the operator's card requires or switches off, over every binding and version."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from a2a.client import ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    A2AError,
    ExtensionSupportRequiredError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)

from tests.server.app_server import Served, Way, asking, envelope, every_way, sent, serving

REQUIRED = "urn:example:required"
OFFERED = "urn:example:offered"
Ask = Callable[[Served, Way], Awaitable[Any]]

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.transports]


def card(folder: Path, capabilities: dict[str, Any]) -> Path:
    path = folder / "card.json"
    path.write_text(json.dumps({"name": "Reef", "capabilities": capabilities}))
    return path


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def demanding(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    extensions = [{"uri": REQUIRED, "required": True}, {"uri": OFFERED}]
    file = card(tmp_path_factory.mktemp("card"), {"extensions": extensions})
    async with serving(agent_card=file, database="memory") as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def plain(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    file = card(tmp_path_factory.mktemp("card"), {"streaming": False, "pushNotifications": False})
    async with serving(agent_card=file, database="memory", push_allow="127.0.0.1") as served:
        yield served


# --------------------------------------------------------------------- extensions


def naming(version: str, *uris: str) -> ClientCallContext:
    header = "A2A-Extensions" if version == "1.0" else "X-A2A-Extensions"
    return ClientCallContext(service_parameters={header: ", ".join(uris)})


@every_way
async def test_a_request_without_a_required_extension_is_refused(demanding: Served, way: Way) -> None:
    client = demanding.client(*way, streaming=False)
    kind = A2AError if way == ("HTTP+JSON", "0.3") else ExtensionSupportRequiredError  # its client tells none apart
    for context in (None, naming(way[1], OFFERED)):
        with pytest.raises(kind) as refused:
            [_ async for _ in client.send_message(asking("just say it"), context=context)]
        assert REQUIRED in str(refused.value) or way == ("HTTP+JSON", "0.3")
    answered = [each async for each in client.send_message(asking("just say it"), context=naming(way[1], REQUIRED))]
    assert answered[0].task.status.state == pb.TASK_STATE_COMPLETED


async def test_the_refusal_has_the_codes_of_the_specification(demanding: Served) -> None:
    error = (await demanding.rpc("ListTasks", {}))["error"]
    assert (error["code"], error["data"][0]["reason"]) == (-32008, "EXTENSION_SUPPORT_REQUIRED")
    answer = await demanding.http.get("/rest/tasks", headers={"A2A-Version": "1.0"})
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
    async with grpc.aio.insecure_channel(demanding.grpc) as channel:
        list_tasks = channel.unary_unary("/lf.a2a.v1.A2AService/ListTasks")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await list_tasks(pb.ListTasksRequest().SerializeToString())
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_the_extensions_of_the_card_are_echoed(demanding: Served) -> None:
    headers = {"A2A-Version": "1.0", "A2A-Extensions": f"{REQUIRED}, {OFFERED}, urn:example:other"}
    answer = await demanding.http.post("/", json=envelope("ListTasks", {}), headers=headers)
    assert "result" in answer.json()
    assert answer.headers["A2A-Extensions"] == f"{OFFERED}, {REQUIRED}"
    async with grpc.aio.insecure_channel(demanding.grpc) as channel:
        list_tasks = channel.unary_unary("/lf.a2a.v1.A2AService/ListTasks")
        call = list_tasks(pb.ListTasksRequest().SerializeToString(), metadata=[("a2a-extensions", REQUIRED)])
        await call
        assert dict(await call.initial_metadata())["a2a-extensions"] == REQUIRED


# ------------------------------------------------------------------- capabilities


async def stream(served: Served, way: Way) -> None:
    [_ async for _ in served.client(*way).send_message(asking("just say it"))]


async def subscribe(served: Served, way: Way) -> None:
    [_ async for _ in served.client(*way).subscribe(pb.SubscribeToTaskRequest(id="t"))]


async def bring_config(served: Served, way: Way) -> None:
    asked = asking("just say it")
    asked.configuration.task_push_notification_config.url = "http://127.0.0.1/"
    await sent(served, way, asked)


async def create_config(served: Served, way: Way) -> None:
    config = pb.TaskPushNotificationConfig(task_id="t", url="http://127.0.0.1/")
    await served.client(*way).create_task_push_notification_config(config)


async def get_config(served: Served, way: Way) -> None:
    asked = pb.GetTaskPushNotificationConfigRequest(task_id="t", id="c")
    await served.client(*way).get_task_push_notification_config(asked)


REFUSED: list[tuple[Ask, type[A2AError]]] = [
    (stream, UnsupportedOperationError),
    (subscribe, UnsupportedOperationError),
    (bring_config, PushNotificationNotSupportedError),
    (create_config, PushNotificationNotSupportedError),
    (get_config, PushNotificationNotSupportedError),
]


@every_way
@pytest.mark.parametrize(("ask", "kind"), REFUSED, ids=[ask.__name__ for ask, _ in REFUSED])
async def test_what_the_card_switches_off_is_refused(plain: Served, way: Way, ask: Ask, kind: type[A2AError]) -> None:
    with pytest.raises(A2AError if way == ("HTTP+JSON", "0.3") else kind):
        await ask(plain, way)


@every_way
async def test_everything_else_is_served(plain: Served, way: Way) -> None:
    assert (await sent(plain, way, asking("just say it"))).status.state == pb.TASK_STATE_COMPLETED
