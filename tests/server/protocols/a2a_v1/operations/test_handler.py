"""What the handler decides by itself; what it does with a runtime behind it is in tests/server/test_app.py."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from a2a.server.context import ServerCallContext
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import BlockPosition, ToolInputAdded
from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.a2a_v1.operations.dispatch import EVENT_JSON
from a2a_canvas.server.protocols.a2a_v1.operations.handler import A2AHandler
from a2a_canvas.server.protocols.a2a_v1.projection.encoding import EVENT_FORM
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.cursors import MOST_READY
from a2a_canvas.server.tasks.journal.round_robin import BUDGET
from a2a_canvas.server.wire import TURN
from tests.fakes import Hold, answer, said, text
from tests.server.protocols.agui.agui_runs import ScriptedRuntime
from tests.server.protocols.push_fixtures import push_operations
from tests.server.tasks.work_clock import turns_until, work_clock


async def send(part: dict[str, str]) -> dict[str, object]:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    app = create_app(Settings(database="memory"), Rehearsal(delay=0))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client,
    ):
        answer: dict[str, object] = (await client.post("/", json=body, headers={"A2A-Version": "1.0"})).json()
        return answer


@pytest.mark.parametrize(
    "media_type", ["", "text/plain", "text/plain; charset=utf-8", "TEXT/CSV", "text/x-python", "IMAGE/PNG"]
)
async def test_any_text_and_what_the_card_lists_is_taken_however_it_is_written(media_type: str) -> None:
    assert "result" in await send({"raw": "aGk=", "mediaType": media_type})


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/vnd.x+json; v=1", "application/zip", "nonsense"]
)
async def test_data_is_json_whatever_its_media_type(media_type: str) -> None:
    assert "result" in await send({"data": {}, "mediaType": media_type})


@pytest.mark.parametrize("media_type", ["application/zip", "image/tiff; x=1", "nonsense"])
async def test_other_media_types_are_refused_with_those_that_are_not(media_type: str) -> None:
    error = (await send({"raw": "aGk=", "mediaType": media_type}))["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32005
    assert "Send text, or one of application/json" in error["message"]


@pytest.fixture
async def no_work() -> AsyncIterator[None]:
    """No reader ever has read long enough to let others read."""
    with work_clock():
        yield


async def read(handler: A2AHandler, task_id: str, *, as_json: bool) -> tuple[list[Any], asyncio.Future[Any]]:
    """What a subscriber gets, and the task that reads it."""
    context = ServerCallContext(state={EVENT_FORM: EVENT_JSON} if as_json else {}, requested_extensions={TURN})
    events, seen = handler.on_subscribe_to_task(pb.SubscribeToTaskRequest(id=task_id), context), []
    seen.append(await anext(events))

    async def rest() -> None:
        async for event in events:
            seen.append(event)

    return seen, asyncio.ensure_future(rest())


@pytest.mark.usefixtures("no_work")
async def test_a_reader_of_json_gets_what_is_ready_together_and_the_same_as_any_other() -> None:
    hold = Hold()
    world = ScriptedRuntime([answer(hold, *text("Done."))])
    handler = A2AHandler(world.runtime, pb.AgentCard(), push_operations())
    following = await world.runtime.send(Incoming(said("m", "Go"), context_id="c"), ANONYMOUS)
    await hold.reached.wait()
    task_id, place = following.snapshot.task_id, BlockPosition(0, 1, 0)
    one_by_one, reading = await read(handler, task_id, as_json=False)
    together, reading_json = await read(handler, task_id, as_json=True)
    await asyncio.sleep(0)
    written = [ToolInputAdded(place, "T", f"{number}") for number in range(MOST_READY * 2 + 7)]
    await world.runtime.journal.append(task_id, *written)
    hold.release.set()
    await asyncio.gather(reading, reading_json)
    batches = [event for event in together if isinstance(event, tuple)]
    assert max(map(len, batches)) == MOST_READY
    flat = [each for event in together for each in (event if isinstance(event, tuple) else (event,))]
    encoded = [each if isinstance(each, bytes) else EVENT_JSON.write(each) for each in flat]
    assert [json.loads(each) for each in encoded] == [json.loads(EVENT_JSON.write(each)) for each in one_by_one]
    assert len(flat) > len(written)


@pytest.mark.parametrize("as_json", [True, False])
async def test_the_loop_turns_while_500_subscribers_are_behind(as_json: bool) -> None:
    hold, subscribers, behind = Hold(), 500, 10
    world = ScriptedRuntime([answer(hold, *text("Done."))])
    handler = A2AHandler(world.runtime, pb.AgentCard(), push_operations())
    task_id = (await world.runtime.send(Incoming(said("m", "Go"), context_id="c"), ANONYMOUS)).snapshot.task_id
    await hold.reached.wait()
    cost, sent, in_one_turn = BUDGET / 10, 0, 0

    async def subscriber() -> None:
        nonlocal sent
        context = ServerCallContext(state={EVENT_FORM: EVENT_JSON} if as_json else {}, requested_extensions={TURN})
        async for event in handler.on_subscribe_to_task(pb.SubscribeToTaskRequest(id=task_id), context):
            together = len(event) if isinstance(event, tuple) else 1
            sent += together
            clock.work(together * cost)

    with work_clock() as clock:
        reading = [asyncio.create_task(subscriber()) for _ in range(subscribers)]
        await turns_until(lambda: sent == subscribers)
        before = sent

        def all_sent() -> bool:
            nonlocal before, in_one_turn
            in_one_turn, before = max(in_one_turn, sent - before), sent
            return sent == subscribers * (1 + behind)

        await world.runtime.journal.append(task_id, *[ToolInputAdded(BlockPosition(0, 1, 0), "T", "x")] * behind)
        await turns_until(all_sent)
    assert in_one_turn <= BUDGET / cost + behind
    for each in reading:
        each.cancel()
