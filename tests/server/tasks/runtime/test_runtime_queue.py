"""Turns that wait because others run: told of, in order, and cancelled, written to and answered like the others."""

from __future__ import annotations

import asyncio

import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import AgentMessage, MessageReceived, State, StatusChanged, UserMessage
from a2a_canvas.server.agent.model import ModelText, ToolResult
from a2a_canvas.server.tasks.errors import QueueFull
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.record import Entry, fold
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.models import Ref, text_part
from tests.fakes import Hold, answer, ask, broken, text
from tests.server.tasks.runtime.runtime_harness import (
    HELLO,
    RuntimeHarness,
    in_memory_alone,
    on_every_backend,
    rest,
    spoken,
    states,
    until,
)

pytestmark = on_every_backend


def one_at_a_time(*calls: object, queued: int = 10) -> RuntimeHarness:
    return RuntimeHarness(*calls, admission=Admission(1, queued, interval=0))


async def busy(harness: RuntimeHarness, hold: Hold) -> TaskSubscription:
    """A turn that runs until `hold` is released."""
    following = await harness.send("Busy", context="busy")
    await hold.reached.wait()
    return following


def labels(entries: list[Entry]) -> list[tuple[State, str]]:
    said = ((entry.event.state, entry.event.message) for entry in entries if isinstance(entry.event, StatusChanged))
    return [(state, message.text) for state, message in said if message and message.label]


async def test_what_waits_is_submitted_tells_its_place_and_then_works() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), HELLO, HELLO)
    await busy(harness, hold)
    first, second = await harness.send("One", context="a"), await harness.send("Two", context="b")
    await until(second, StatusChanged)
    assert len(harness.llm.requests) == 1
    listed = await harness.journal.list(TaskQuery(("",), "b"))
    assert [task.state for task in listed.records] == [State.SUBMITTED]
    hold.release.set()
    entries = await rest(await harness.runtime.follow(second.snapshot.task_id, ANONYMOUS))
    record = await harness.journal.get(second.snapshot.task_id)
    assert states(entries)[-1] is State.COMPLETED
    assert spoken(record) == ["Two", "Hello"]  # labels are not said
    entries = await rest(first)
    assert labels(entries)[:2] == [(State.SUBMITTED, "Waiting: number 1 in the queue…"), (State.WORKING, "Working…")]
    assert states(entries)[:2] == [State.SUBMITTED, State.WORKING]
    record = first.snapshot
    for entry in entries:
        record = fold(record, entry)
    assert record == await harness.journal.get(first.snapshot.task_id)


async def test_the_place_is_told_again_when_it_changes() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), HELLO, HELLO)
    await busy(harness, hold)
    await harness.send("One", context="a")
    second = await harness.send("Two", context="b")
    places = [label async for label in places_of(second, hold)]
    assert places == ["Waiting: number 2 in the queue…", "Waiting: number 1 in the queue…"]


async def places_of(following: TaskSubscription, hold: Hold):
    async for entry in following:
        event = entry.event
        if isinstance(event, StatusChanged) and event.state is State.SUBMITTED:
            assert isinstance(event.message, AgentMessage)
            yield event.message.text
            hold.release.set()


async def test_contexts_take_turns_and_each_is_in_order() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), *[HELLO] * 5)
    await busy(harness, hold)
    waiting = [await harness.send(words, context=words[0]) for words in ("a1", "a2", "a3", "b1", "c1")]
    hold.release.set()
    for following in waiting:
        await rest(following)
    asked = [request.messages[-1].content[0] for request in harness.llm.requests]
    assert asked == [ModelText(words) for words in ("Busy", "a1", "b1", "c1", "a2", "a3")]


async def test_what_is_beyond_the_queue_is_refused_and_not_kept() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), HELLO, HELLO, queued=1)
    await busy(harness, hold)
    waiting = await harness.send("One")
    with pytest.raises(QueueFull, match="Send it again in a moment"):
        await harness.send("Two")
    assert [spoken(record) for record in await harness.journal.context("c")] == [["One"]]
    assert (await harness.send("One")).snapshot.task_id == waiting.snapshot.task_id  # sent again, it joins its task
    hold.release.set()
    await rest(waiting)
    assert (await harness.settled("Two")).state is State.COMPLETED


async def test_of_many_at_once_as_many_are_accepted_as_there_is_room_for() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), *[HELLO] * 2, queued=2)
    sent = await asyncio.gather(
        *(harness.send(f"{number}", context=f"c-{number}") for number in range(6)), return_exceptions=True
    )
    assert [type(result) for result in sent].count(QueueFull) == 3
    hold.release.set()
    for following in sent:
        if not isinstance(following, BaseException):
            assert states(await rest(following))[-1] is State.COMPLETED


async def test_what_waits_is_cancelled_at_once() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), HELLO)
    await busy(harness, hold)
    waiting = await harness.send("One", context="a")
    await harness.send("Two", task=waiting.snapshot.task_id, context="a")
    record = await harness.runtime.cancel(waiting.snapshot.task_id, ANONYMOUS)
    assert (record.state, spoken(record)) == (State.CANCELED, ["One", "Two"])
    assert len(harness.llm.requests) == 1
    after = await harness.send("Three", context="b")
    hold.release.set()
    assert states(await rest(after))[-1] is State.COMPLETED
    assert len(harness.llm.requests) == 2


async def test_a_message_to_what_waits_is_read_when_it_begins() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), HELLO)
    await busy(harness, hold)
    waiting = await harness.send("One", context="a")
    await harness.send("Two", task=waiting.snapshot.task_id, context="a")
    hold.release.set()
    events = [entry.event for entry in await rest(waiting)]
    assert [event.message.message_id for event in events if isinstance(event, MessageReceived)] == ["m-Two"]
    assert [message.content for message in harness.heard()][-1][-1] == ModelText("Two")


async def test_an_answer_waits_too_and_the_turn_goes_on_where_it_paused() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(ask("T1", "Which colour?")), answer(hold), answer(text("Blue.")))
    asked = await harness.settled("Paint")
    await busy(harness, hold)
    following = await harness.send("Blue", task=asked.task_id)
    assert following.snapshot.state is State.SUBMITTED
    hold.release.set()
    entries = await rest(following)
    assert states(entries)[-3:] == [State.WORKING, State.WORKING, State.COMPLETED]
    assert harness.heard()[-1].content == (ToolResult("T1", "Blue"),)


async def test_an_answer_that_finds_no_room_leaves_the_question_open() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(ask("T1", "Which colour?")), answer(hold), answer(text("Blue.")), queued=0)
    asked = await harness.settled("Paint")
    running = await busy(harness, hold)
    with pytest.raises(QueueFull):
        await harness.send("Blue", task=asked.task_id)
    assert (await harness.journal.get(asked.task_id)) == asked
    hold.release.set()
    await rest(running)
    assert (await harness.settled("Blue", task=asked.task_id)).state is State.COMPLETED


@pytest.mark.parametrize(
    "given", [{"op": "put", "artifactId": "doc", "text": "New"}, {"op": "undo", "artifactId": "doc"}]
)
async def test_what_needs_no_model_waits_for_nobody(given: dict[str, str]) -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), queued=0)
    for words in ("Old", "Older"):
        await harness.store.apply(Ref("c", "doc", "t"), ReplaceParts((text_part(words),), last_chunk=True))
    await busy(harness, hold)
    message = UserMessage("m", (text_part("Go"),), {CANVAS: given})
    entries = await rest(await harness.runtime.send(Incoming(message, "", "c", ""), ANONYMOUS))
    assert states(entries) == [State.COMPLETED]


async def test_an_edit_of_the_model_waits() -> None:
    hold = Hold()
    harness = one_at_a_time(answer(hold), answer(text("New")))
    await harness.store.apply(Ref("c", "doc", "t"), ReplaceParts((text_part("Old"),), last_chunk=True))
    await busy(harness, hold)
    given = {"op": "edit", "artifactId": "doc", "selection": {"start": 0, "end": 3}}
    following = await harness.runtime.send(
        Incoming(UserMessage("m", (text_part("Newer"),), {CANVAS: given}), "", "c", ""), ANONYMOUS
    )
    await until(following, StatusChanged)
    assert len(harness.llm.requests) == 1
    hold.release.set()
    assert states(await rest(following))[-1] is State.COMPLETED


async def test_a_turn_that_pauses_or_is_cancelled_makes_room() -> None:
    hold, other = Hold(), Hold()
    harness = one_at_a_time(broken(hold), answer(ask("T1", "Which?")), answer(other))
    running = await busy(harness, hold)
    asking = await harness.send("Ask", context="a")
    last = await harness.send("Last", context="b")
    await harness.runtime.cancel(running.snapshot.task_id, ANONYMOUS)
    await other.reached.wait()
    assert (await harness.journal.get(asking.snapshot.task_id)).state is State.INPUT_REQUIRED
    other.release.set()
    assert states(await rest(last))[-1] is State.COMPLETED


@in_memory_alone
async def test_what_waits_ends_with_a_server_that_keeps_nothing_and_is_not_begun() -> None:
    hold = Hold()
    harness = one_at_a_time(broken(hold))
    await busy(harness, hold)
    waiting = [await harness.send(words, context=words) for words in ("One", "Two")]
    await harness.runtime.close()
    assert [states(await rest(following))[-1] for following in waiting] == [State.FAILED] * 2
    assert len(harness.llm.requests) == 1


async def test_many_turns_at_once_are_all_done_and_no_more_than_may_at_a_time() -> None:
    at_work, most, full = 0, 0, asyncio.Event()

    async def works() -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if at_work == 4:
            full.set()
        await full.wait()
        await asyncio.sleep(0)
        at_work -= 1

    harness = RuntimeHarness(*[answer(works, text("Hello"))] * 60, admission=Admission(4, 100))
    sent = await asyncio.gather(*(harness.send(f"{number}", context=f"c-{number % 7}") for number in range(60)))
    for following in sent:
        record = following.snapshot
        for entry in await rest(following):
            record = fold(record, entry)
        assert record == await harness.journal.get(record.task_id)
        assert record.state is State.COMPLETED
    assert most == 4
