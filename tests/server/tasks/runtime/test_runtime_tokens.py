"""Tokens of a day: a turn ends before its next model call, and what it has begun is whole."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_canvas.server.accounts.errors import QuotaReached
from a2a_canvas.server.accounts.quotas import Meter, Quota
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.store.models import Ref
from tests.fakes import Clock, answer, text, write
from tests.server.tasks.runtime.runtime_harness import HELLO, RuntimeHarness, on_every_backend

pytestmark = on_every_backend


def harness(*calls: object, meter: Meter) -> RuntimeHarness:
    return RuntimeHarness(*calls, admission=Admission(meter=meter))


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"of_user": Quota(tokens=1)}, "Stopped before the end. Token limit reached (1 per day)."),
        ({"of_all": Quota(tokens=1)}, "Stopped before the end. Token limit of this server reached (1 per day)."),
    ],
    ids=["user", "all"],
)
async def test_a_turn_that_has_used_its_tokens_ends_before_the_next_call(limits: dict[str, Any], said: str) -> None:
    runtime = harness(answer(*write("T1", "Whole.")), HELLO, meter=Meter(Clock(), **limits))
    record = await (await runtime.send("Write", context="c")).wait_until_settled()
    assert record.state is State.FAILED
    assert record.message
    assert said in record.message.text
    assert len(runtime.llm.requests) == 1
    assert (await runtime.store.get(Ref("c", "doc", ""))).text == "Whole."


async def test_a_turn_that_needs_no_other_call_is_complete() -> None:
    runtime = harness(answer(text("Hello")), meter=Meter(Clock(), Quota(tokens=1)))
    assert (await (await runtime.send("Say hello")).wait_until_settled()).state is State.COMPLETED


async def test_who_has_used_the_tokens_of_a_day_begins_no_turn() -> None:
    runtime = harness(HELLO, HELLO, meter=Meter(Clock(), Quota(tokens=1)))
    await (await runtime.send("Say hello")).wait_until_settled()
    with pytest.raises(QuotaReached):
        await runtime.send("Say it again")
    assert len(runtime.llm.requests) == 1
