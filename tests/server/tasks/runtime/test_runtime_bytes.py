"""Bytes that are kept: what there is no room for is not begun, and what has begun is whole."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.accounts.errors import StorageFull
from a2a_canvas.server.accounts.quotas import Meter, Quota
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.store.models import Ref
from tests.fakes import Clock, answer, ask, write
from tests.server.tasks.runtime.runtime_harness import HELLO, RuntimeHarness, on_every_backend

pytestmark = on_every_backend


class Room:
    """A `KeptBytes` of a server that is full after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    async def sum_of(self, owners: Collection[str]) -> int:
        self.looks -= 1
        return 0 if self.looks >= 0 else 10**9

    async def sum_of_all(self) -> int:
        raise AssertionError("nobody limits it")


def harness(*calls: object, looks: int) -> RuntimeHarness:
    meter = Meter(Clock(), Quota(bytes=10**6))
    meter.kept = Room(looks)
    return RuntimeHarness(*calls, admission=Admission(meter=meter))


async def test_who_keeps_too_much_begins_nothing() -> None:
    runtime = harness(HELLO, looks=0)
    with pytest.raises(StorageFull):
        await runtime.send("Write")
    assert runtime.llm.requests == []
    assert not await runtime.journal.has_context("c", "")


async def test_a_turn_that_fills_the_room_ends_before_the_next_call_and_is_whole() -> None:
    runtime = harness(answer(*write("T1", "Whole.")), HELLO, looks=2)
    record = await (await runtime.send("Write")).wait_until_settled()
    assert (record.state, len(runtime.llm.requests)) == (State.FAILED, 1)
    assert record.message
    assert record.message.text.startswith("Stopped before the end. The storage of this context's owner is full.")
    assert (await runtime.store.get(Ref("c", "doc", ""))).text == "Whole."


async def test_an_answer_to_a_question_needs_room_too_and_the_question_stays() -> None:
    runtime = harness(answer(*ask("T1", "Which?")), looks=2)
    record = await runtime.settled("Write")
    with pytest.raises(StorageFull):
        await runtime.send("The blue one", task=record.task_id)
    assert (await runtime.journal.get(record.task_id)).state is State.INPUT_REQUIRED


async def test_what_was_accepted_before_is_joined_and_can_be_cancelled() -> None:
    runtime = harness(answer(*ask("T1", "Which?")), looks=2)
    record = await runtime.settled("Write")
    assert (await runtime.send("Write")).snapshot.task_id == record.task_id
    assert (await runtime.runtime.cancel(record.task_id, Caller())).state is State.CANCELED
