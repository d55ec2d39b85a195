"""A server that runs one turn at a time, over the wire: what clients of each kind are told while theirs waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.agent.events import State
from tests.server.agui_client import Thread
from tests.server.app_server import TURN, Served, Stream, Way, asking, every_way, said, sent, serving, with_turn_events

WAITING = "Waiting: number 1 in the queue…"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def busy() -> AsyncIterator[Served]:
    """A server with one turn, which runs until the gate is opened."""
    async with serving(max_turns=1, database="memory") as served:
        running = Stream(served.client().send_message(asking("slowly a")))
        await running.next()
        await served.gate.reached.wait()
        yield served
        served.gate.open()
        await running.rest()
        assert running.task.status.state == pb.TASK_STATE_COMPLETED


@every_way
async def test_a_stream_begins_with_what_waits_and_goes_on_when_it_runs(way: Way) -> None:
    async with busy() as served:
        stream = Stream(served.client(*way).send_message(asking("just say it")))
        await stream.next()
        assert stream.task.status.state == pb.TASK_STATE_SUBMITTED
        await stream.next()
        assert stream.task.status.state == pb.TASK_STATE_SUBMITTED
        assert not stream.task.status.HasField("message")
        served.gate.open()
        await stream.rest()
    states = [update.status.state for update in stream.statuses()]
    assert states[1] == pb.TASK_STATE_WORKING
    assert states[-1] == pb.TASK_STATE_COMPLETED


async def test_the_place_is_a_label_to_those_who_know_labels() -> None:
    async with busy() as served:
        events = served.client().send_message(asking("just say it"), context=with_turn_events())
        stream = Stream(events)
        await stream.next()
        await stream.next()
        (update,) = stream.statuses()
        assert said(update.status) == WAITING
        assert MessageToDict(update.metadata)[TURN]["label"] is True
        served.gate.open()
        await stream.rest()
    assert all(WAITING not in message.parts[0].text for message in stream.task.history)


async def test_a_client_that_waits_for_its_answer_gets_it_and_one_that_does_not_gets_what_waits() -> None:
    async with busy() as served:
        answered = asyncio.create_task(sent(served, ("JSONRPC", "1.0"), asking("just say it")))
        at_once = await sent(served, ("JSONRPC", "1.0"), asking("just say it", now=True))
        assert at_once.status.state == pb.TASK_STATE_SUBMITTED
        canceled = await served.client().cancel_task(pb.CancelTaskRequest(id=at_once.id))
        assert canceled.status.state == pb.TASK_STATE_CANCELED
        served.gate.open()
        assert (await answered).status.state == pb.TASK_STATE_COMPLETED


async def test_a_run_of_ag_ui_shows_the_place_as_its_status() -> None:
    async with busy() as served:
        thread = Thread(served)
        async with thread.opened(thread.body("just say it")) as run:
            while not run.state.get("status"):
                await run.next()
            assert (run.state["phase"], run.state["status"]) == (State.SUBMITTED, WAITING)
            served.gate.open()
            await run.rest()
        assert run.state["phase"] == State.COMPLETED
