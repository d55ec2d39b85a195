"""Starts, continues and cancels turns: the life of a task."""

import asyncio
import logging
from datetime import timedelta

import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.agent.events import (
    AgentMessage,
    ArtifactChanged,
    FinalMessageStarted,
    LlmCallCompleted,
    MessageReceived,
    MessageStarted,
    State,
    StatusChanged,
    TextBlockStarted,
    ToolUseStarted,
    TranscriptAppended,
)
from a2a_canvas.server.agent.model import ModelMessage, ModelText, ToolResult
from a2a_canvas.server.agent.turn.turn import INTERNAL_ERROR
from a2a_canvas.server.log_output import LineFormatter, set_task
from a2a_canvas.server.tasks.errors import ContextMismatch, TaskFinished, TaskNotCancelable, TaskNotFound
from a2a_canvas.server.tasks.incoming import DEDUP_WINDOW
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, TaskSubscription
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import (
    BROKEN,
    FakeLLM,
    Hold,
    answer,
    ask,
    broken,
    decline,
    said,
    text,
    thinking,
    tool,
    write,
)
from tests.server.tasks.runtime.runtime_harness import (
    HELLO,
    RuntimeHarness,
    in_memory_alone,
    on_every_backend,
    rest,
    spoken,
    states,
)

pytestmark = on_every_backend

# ------------------------------------------------------------------ starting a task


async def test_a_message_without_a_task_starts_one() -> None:
    harness = RuntimeHarness(HELLO)
    following = await harness.send("Hi")
    entries = await rest(following)
    assert following.snapshot.state is State.SUBMITTED
    assert states(entries)[0] is State.WORKING
    assert entries[-1].event == StatusChanged(State.COMPLETED, AgentMessage("id-4", "Hello"))
    record = await harness.runtime.get(following.snapshot.task_id, ANONYMOUS)
    assert (record.context_id, record.state, spoken(record)) == ("c", State.COMPLETED, ["Hi", "Hello"])


async def test_the_snapshot_comes_before_the_model_is_asked() -> None:
    harness = RuntimeHarness(HELLO)
    following = await harness.send("Hi")
    assert following.snapshot.generation == 1
    assert following.snapshot.history == (said("m-Hi", "Hi"),)
    assert harness.llm.requests == []
    await rest(following)


@pytest.mark.parametrize("read", ["get", "follow"])
async def test_whoever_reads_a_task_writes_its_ids_to_the_log(read: str) -> None:
    harness = RuntimeHarness(HELLO)
    task_id = (await harness.settled("Hi")).task_id
    line = logging.makeLogRecord({"msg": "Sent"})
    set_task()

    await getattr(harness.runtime, read)(task_id, ANONYMOUS)
    assert LineFormatter("text").format(line).endswith(f"Sent task={task_id} context=c")

    with pytest.raises(TaskNotFound):
        await getattr(harness.runtime, read)(task_id, Caller("somebody else"))
    assert LineFormatter("text").format(line).endswith(f"Sent task={task_id}")


async def test_a_task_without_a_context_gets_one_of_its_own() -> None:
    harness = RuntimeHarness(HELLO, HELLO)
    first, second = await harness.settled("Hi", context=""), await harness.settled("Ho", context="")
    assert first.context_id != second.context_id
    assert first.task_id != second.task_id


async def test_the_conversation_of_the_context_is_in_the_next_tasks_request() -> None:
    harness = RuntimeHarness(answer(text("I write."), write("T1", "x")), answer(text("Written.")), HELLO)
    await harness.settled("Write")
    await harness.settled("Hi")
    assert [message.content[0] for message in harness.heard()] == [
        ModelText("Write"),
        ModelText("I write."),
        ToolResult("T1", "Written; the draft stays open."),
        ModelText("Written."),
        ModelText("Hi"),
    ]


async def test_other_contexts_are_not() -> None:
    harness = RuntimeHarness(HELLO, HELLO)
    await harness.settled("Secret", context="a")
    await harness.settled("Hi", context="b")
    assert [message.content for message in harness.heard()] == [(ModelText("Hi"),)]


async def test_two_tasks_of_a_context_run_side_by_side() -> None:
    hold = Hold()
    harness = RuntimeHarness(broken(hold), HELLO)
    first = await harness.send("Slow")
    await hold.reached.wait()
    assert (await harness.settled("Fast")).state is State.COMPLETED
    await harness.runtime.cancel(first.snapshot.task_id, ANONYMOUS)


async def test_what_another_task_is_still_saying_is_not_told_as_history() -> None:
    hold = Hold()
    harness = RuntimeHarness(broken(hold), HELLO)
    first = await harness.send("Slow")
    await hold.reached.wait()
    await harness.settled("Fast")
    assert [message.content for message in harness.heard()] == [(ModelText("Fast"),)]
    await harness.runtime.cancel(first.snapshot.task_id, ANONYMOUS)


async def test_a_task_that_goes_on_after_a_pause_is_not_told_of_later_ones() -> None:
    hold = Hold()
    harness = RuntimeHarness([hold, *ASKS], HELLO, HELLO)
    asking = await harness.send("Paint")
    await hold.reached.wait()
    await harness.settled("Something else")
    hold.release.set()
    await paused(harness, asking)
    await harness.settled("Blue", task=asking.snapshot.task_id)
    assert ModelText("Something else") not in [content for message in harness.heard() for content in message.content]


async def test_what_others_said_in_a_context_of_the_same_name_is_not_told() -> None:
    harness = RuntimeHarness(HELLO, HELLO)
    await harness.settled("Secret", owner="ann")
    await harness.settled("Hi", owner="bob")
    assert [message.content for message in harness.heard()] == [(ModelText("Hi"),)]


async def test_an_artifact_of_a_finished_task_stays_as_the_task_left_it() -> None:
    first = answer(write("T1", "Hello", last_chunk=True))
    harness = RuntimeHarness(first, answer(), answer(write("T2", " World", append=True)), answer())
    one = await harness.settled("Write")
    two = await harness.settled("Go on")
    assert (await harness.runtime.get(one.task_id, ANONYMOUS)).artifacts["doc"].content.parts[0].text == "Hello"
    assert (one.artifacts["doc"].version, two.artifacts["doc"].version) == (1, 2)
    assert two.artifacts["doc"].content.parts[0].text == "Hello World"


async def test_the_first_change_of_an_artifact_in_a_task_is_told_whole() -> None:
    harness = RuntimeHarness(
        answer(write("T1", "Hello")), answer(), answer(write("T2", " World", append=True)), answer()
    )
    await harness.settled("Write")
    entries = await rest(await harness.send("Go on"))
    first = next(entry.event for entry in entries if isinstance(entry.event, ArtifactChanged))
    assert (first.append, first.parts[0].text) == (False, "Hello World")


# ------------------------------------------------------------------ answering a question

ASKS = answer(text("Hm."), thinking("which?", at=1), ask("T1", "Which colour?", at=2))


async def test_a_question_pauses_the_task_and_the_answer_goes_on_with_the_same_turn() -> None:
    harness = RuntimeHarness(ASKS, answer(text("Blue it is.")))
    asked = await harness.settled("Paint")
    assert (asked.state, asked.message.text) == (State.INPUT_REQUIRED, "Which colour?")
    done = await harness.settled("Blue", task=asked.task_id)
    assert (done.task_id, done.state) == (asked.task_id, State.COMPLETED)
    assert spoken(done) == ["Paint", "Hm.", "Which colour?", "Blue", "Blue it is."]
    assert harness.heard()[-1] == ModelMessage("user", (ToolResult("T1", "Blue"),), "m-Blue")


async def test_indices_and_rounds_go_on_after_the_answer_and_the_final_message_starts_only_once() -> None:
    harness = RuntimeHarness(ASKS, answer(thinking("ah"), tool("T2", "artifact_list")), answer(text("Blue it is.")))
    following = await harness.send("Paint")
    watching = asyncio.create_task(rest(following))
    await harness.settled("Blue", task=(await paused(harness, following)).task_id)
    events = [entry.event for entry in await watching]
    starts = [event.place for event in events if isinstance(event, TextBlockStarted | ToolUseStarted)]
    assert [(place.index, place.round) for place in starts] == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)]
    assert [event.round for event in events if isinstance(event, MessageStarted)] == [1, 2, 3]
    assert sum(isinstance(event, FinalMessageStarted) for event in events) == 1
    assert sum(isinstance(event, LlmCallCompleted) for event in events) == 3


async def paused(harness: RuntimeHarness, following: TaskSubscription) -> TaskRecord:
    return await (await harness.journal.follow(following.snapshot.task_id)).wait_until_settled()


async def test_the_rounds_of_a_turn_are_counted_through_its_pauses() -> None:
    harness = RuntimeHarness(*[answer(ask(f"T{n}", "And?")) for n in range(11)])
    record = await harness.settled("Go")
    for n in range(9):
        record = await harness.settled(f"So {n}", task=record.task_id)
    assert record.state is State.INPUT_REQUIRED
    record = await harness.settled("Enough", task=record.task_id)
    assert record.state is State.FAILED
    assert "10 rounds" in record.message.text


async def test_an_artifact_that_was_told_before_the_pause_is_appended_to_after_it() -> None:
    harness = RuntimeHarness(
        answer(write("T1", "Hello"), ask("T2", "More?")), answer(write("T3", "!", append=True)), answer()
    )
    asked = await harness.settled("Write")
    entries = await rest(await harness.send("Yes", task=asked.task_id))
    first = next(entry.event for entry in entries if isinstance(entry.event, ArtifactChanged))
    assert (first.append, first.parts[0].text) == (True, "!")


async def test_of_two_answers_at_once_the_first_answers_and_the_second_is_said_after_it() -> None:
    hold = Hold()
    harness = RuntimeHarness(ASKS, [hold, *answer(text("Blue."))], answer(text("Big and blue.")))
    asked = await harness.settled("Paint")
    one, two = await asyncio.gather(harness.send("Blue", task=asked.task_id), harness.send("Big", task=asked.task_id))
    hold.release.set()
    assert states(await rest(one))[-1] is State.COMPLETED
    await rest(two)
    record = await harness.journal.get(asked.task_id)
    heard = [content for message in harness.heard() for content in message.content]
    assert ToolResult("T1", "Blue") in heard
    assert ModelText("Big") in heard
    assert [message.message_id for message in record.history].count("m-Big") == 1


# -------------------------------------------------------------- adding to a working task


async def test_a_message_to_a_working_task_is_given_to_the_model_before_its_next_round() -> None:
    hold = Hold()
    harness = RuntimeHarness(answer(tool("T1", "artifact_list"), hold), answer(text("Short.")))
    first = await harness.send("Write")
    await hold.reached.wait()
    second = await harness.send("Keep it short", task=first.snapshot.task_id)
    assert second.snapshot.state is State.WORKING
    assert second.snapshot.history[-1].message_id == "m-Keep it short"
    hold.release.set()
    entries = await rest(second)
    assert states(entries)[-1] is State.COMPLETED
    assert harness.heard()[-1].content == (ToolResult("T1", "[]"), ModelText("Keep it short"))
    record = await harness.journal.get(first.snapshot.task_id)
    assert spoken(record) == ["Write", "Keep it short", "Short."]


async def test_a_message_during_the_last_round_keeps_the_turn_going_and_its_reply_is_in_the_history() -> None:
    hold = Hold()
    harness = RuntimeHarness(answer(text("Done."), hold), answer(text("Short: done.")))
    first = await harness.send("Write")
    await hold.reached.wait()
    second = await harness.send("Keep it short", task=first.snapshot.task_id)
    hold.release.set()
    assert [entry.generation for entry in (await rest(first))[-3:]] == [
        entry.generation for entry in (await rest(second))[-3:]
    ]
    record = await harness.journal.get(first.snapshot.task_id)
    assert spoken(record) == ["Write", "Keep it short", "Done.", "Short: done."]


class ClosingSlowly(InMemoryArtifactStore):
    """Holds a turn where it closes its drafts: it takes no more messages, and has not ended yet."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = Hold()

    async def close(self, ref):
        await self.closing()
        return await super().close(ref)


async def test_a_message_that_comes_when_the_turn_takes_no_more_waits_for_its_end_and_is_refused() -> None:
    store = ClosingSlowly()
    harness = RuntimeHarness(answer(write("T1", "x")), answer(text("Done.")), store=store)
    first = await harness.send("Write")
    await store.closing.reached.wait()
    late = asyncio.create_task(harness.send("Wait", task=first.snapshot.task_id))
    await asyncio.sleep(0)
    store.closing.release.set()
    with pytest.raises(TaskFinished, match="is completed"):
        await late
    record = await harness.journal.get(first.snapshot.task_id)
    assert spoken(record) == ["Write", "Done."]


async def test_a_message_that_comes_when_the_turn_is_about_to_ask_answers_the_question() -> None:
    store = ClosingSlowly()
    harness = RuntimeHarness(answer(write("T1", "x"), ask("T2", "Which?")), answer(text("Blue.")), store=store)
    first = await harness.send("Write")
    await store.closing.reached.wait()
    late = asyncio.create_task(harness.send("Blue", task=first.snapshot.task_id))
    await asyncio.sleep(0)
    store.closing.release.set()
    await rest(await late)
    assert harness.heard()[-1].content[-1] == ToolResult("T2", "Blue")
    assert spoken(await harness.journal.get(first.snapshot.task_id)) == ["Write", "Which?", "Blue", "Blue."]


async def test_a_message_to_a_task_that_then_fails_is_in_the_next_tasks_conversation() -> None:
    hold = Hold()
    harness = RuntimeHarness(answer(decline("T1", "No."), hold), HELLO)
    first = await harness.send("Write")
    await hold.reached.wait()
    await harness.send("Please", task=first.snapshot.task_id)
    hold.release.set()
    await rest(first)
    await harness.settled("Hi")
    assert ModelText("Please") in [content for message in harness.heard() for content in message.content]


# ------------------------------------------------------------------- what is refused


async def test_a_message_to_a_task_that_is_not_there_is_refused() -> None:
    with pytest.raises(TaskNotFound, match="a message without taskId starts a new one"):
        await RuntimeHarness().send("Hi", task="gone")


async def test_a_message_to_somebody_elses_task_is_refused_as_if_it_were_not_there() -> None:
    harness = RuntimeHarness(ASKS)
    theirs = await harness.settled("Paint", owner="ann")
    for context in ("c", "", "wrong"):
        with pytest.raises(TaskNotFound):
            await harness.send("Blue", task=theirs.task_id, context=context, owner="bob")


@pytest.mark.parametrize("call", ["get", "follow", "cancel"])
async def test_somebody_elses_task_is_not_there(call) -> None:
    harness = RuntimeHarness(ASKS)
    theirs = await harness.settled("Paint", owner="ann")
    for task_id, owner in ((theirs.task_id, "bob"), (theirs.task_id, ""), ("gone", "ann")):
        with pytest.raises(TaskNotFound):
            await getattr(harness.runtime, call)(task_id, Caller(owner))


async def test_a_message_to_a_finished_task_is_refused_and_told_how_to_go_on() -> None:
    harness = RuntimeHarness(HELLO)
    done = await harness.settled("Hi")
    with pytest.raises(TaskFinished, match="without taskId to go on") as caught:
        await harness.send("More", task=done.task_id)
    assert caught.value.state is State.COMPLETED
    assert spoken(await harness.journal.get(done.task_id)) == ["Hi", "Hello"]


async def test_a_message_with_another_context_than_its_tasks_is_refused() -> None:
    harness = RuntimeHarness(ASKS)
    asked = await harness.settled("Paint")
    with pytest.raises(ContextMismatch, match="does not belong to context 'd'"):
        await harness.send("Blue", task=asked.task_id, context="d")
    assert (await harness.journal.get(asked.task_id)).state is State.INPUT_REQUIRED


async def test_a_message_with_its_task_alone_needs_no_context() -> None:
    harness = RuntimeHarness(ASKS, HELLO)
    asked = await harness.settled("Paint")
    assert (await harness.settled("Blue", task=asked.task_id, context="")).state is State.COMPLETED


# ------------------------------------------------------------------ messages sent again


async def test_a_message_sent_again_joins_the_task_of_the_first_and_does_not_run_again() -> None:
    hold = Hold()
    harness = RuntimeHarness(broken(hold, *HELLO[1:]))
    first = await harness.send("Hi")
    await hold.reached.wait()
    again = await harness.send("Hi")
    assert again.snapshot.task_id == first.snapshot.task_id
    hold.release.set()
    assert (await rest(again))[-1] == (await rest(first))[-1]
    finished = await harness.send("Hi")
    assert (finished.snapshot.task_id, finished.snapshot.state) == (first.snapshot.task_id, State.COMPLETED)
    assert len(harness.llm.requests) == 1


async def test_twins_sent_at_once_run_once() -> None:
    hold = Hold()
    harness = RuntimeHarness([hold, *HELLO])
    followings = await asyncio.gather(*[harness.send("Hi") for _ in range(5)])
    hold.release.set()
    assert len({following.snapshot.task_id for following in followings}) == 1
    ends = [(await rest(following))[-1] for following in followings]
    assert len(harness.llm.requests) == 1
    assert len(set(map(id, ends))) == 1


async def test_the_same_id_with_another_content_runs() -> None:
    harness = RuntimeHarness(HELLO, HELLO)
    await rest(await harness.send("Hi", message_id="m"))
    await rest(await harness.send("Ho", message_id="m"))
    assert len(harness.llm.requests) == 2


async def test_the_same_message_of_another_caller_or_to_another_context_runs() -> None:
    harness = RuntimeHarness(HELLO, HELLO, HELLO)
    for owner, context in (("ann", "c"), ("bob", "c"), ("ann", "d")):
        await harness.settled("Hi", owner=owner, context=context)
    assert len(harness.llm.requests) == 3


async def test_the_same_message_of_strangers_without_a_context_runs() -> None:
    harness = RuntimeHarness(HELLO, HELLO)
    first, second = await harness.settled("Hi", context=""), await harness.settled("Hi", context="")
    assert first.task_id != second.task_id


async def test_a_known_caller_may_repeat_a_message_without_a_context() -> None:
    harness = RuntimeHarness(HELLO)
    first = await harness.settled("Hi", context="", owner="ann")
    again = await harness.send("Hi", context="", owner="ann")
    assert again.snapshot.task_id == first.task_id


async def test_after_a_day_the_same_message_runs_again() -> None:
    harness = RuntimeHarness(HELLO, HELLO)
    first = await harness.settled("Hi")
    harness.clock.move(DEDUP_WINDOW)
    assert (await harness.send("Hi")).snapshot.task_id == first.task_id
    harness.clock.move(timedelta(seconds=1))
    assert (await harness.settled("Hi")).task_id != first.task_id


async def test_an_answer_sent_again_is_not_said_twice() -> None:
    harness = RuntimeHarness(ASKS, answer(text("Blue it is.")))
    asked = await harness.settled("Paint")
    await harness.settled("Blue", task=asked.task_id)
    again = await harness.send("Blue", task=asked.task_id)
    assert spoken(again.snapshot).count("Blue") == 1
    assert len(harness.llm.requests) == 2


async def test_a_message_that_was_refused_may_be_sent_again() -> None:
    harness = RuntimeHarness(ASKS, HELLO)
    with pytest.raises(TaskNotFound):
        await harness.send("Blue", task="id-1")
    await harness.settled("Paint")
    assert (await harness.settled("Blue", task="id-1")).state is State.COMPLETED


# ------------------------------------------------------------------------- cancelling


async def working(harness: RuntimeHarness, hold: Hold, words: str = "Write") -> TaskSubscription:
    following = await harness.send(words)
    await hold.reached.wait()
    return following


async def test_cancelling_stops_the_model_at_once_and_watchers_see_canceled_last() -> None:
    hold = Hold()
    harness = RuntimeHarness(broken(write("T1", "Hello"), write("T2", " World", append=True, stopped=False), hold))
    following = await working(harness, hold)
    record = await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    assert record.state is State.CANCELED
    assert harness.llm.ends == ["CancelledError"]
    entries = await rest(following)
    assert entries[-1].event == StatusChanged(State.CANCELED)
    assert sum(isinstance(entry.event, LlmCallCompleted) for entry in entries) == 1
    *_, back, closing = [entry.event for entry in entries if isinstance(entry.event, ArtifactChanged)]
    assert (back.append, back.parts[0].text, closing.last_chunk) == (False, "Hello", True)
    assert record.artifacts["doc"].content.parts[0].text == "Hello"


async def test_after_a_cancel_its_artifact_can_be_written_by_the_next_task() -> None:
    hold = Hold()
    harness = RuntimeHarness(broken(write("T1", "Hel", stopped=False), hold), answer(write("T2", "Hello")), answer())
    following = await working(harness, hold)
    await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    assert (await harness.settled("Again")).artifacts["doc"].content.parts[0].text == "Hello"


async def test_a_task_can_be_canceled_before_its_turn_has_taken_its_first_step() -> None:
    harness = RuntimeHarness(HELLO, journal=InMemoryJournal)
    following = await harness.send("Hi")
    record = await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    assert record.state is State.CANCELED
    assert [entry.event for entry in await rest(following)] == [StatusChanged(State.CANCELED)]
    assert harness.llm.requests == []


async def test_a_message_added_before_the_first_step_of_a_turn_that_is_canceled_is_not_forgotten() -> None:
    harness = RuntimeHarness(HELLO, journal=InMemoryJournal)
    following = await harness.send("Hi")
    task_id = following.snapshot.task_id
    await harness.send("Ho", task=task_id)
    record = await harness.runtime.cancel(task_id, ANONYMOUS)
    assert [item.content for item in record.transcript] == [(ModelText("Hi"),), (ModelText("Ho"),)]


async def test_two_cancels_at_once_cancel_once() -> None:
    hold = Hold()
    harness = RuntimeHarness(broken(hold))
    following = await working(harness, hold)
    records = await asyncio.gather(*[harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS) for _ in range(2)])
    assert [record.state for record in records] == [State.CANCELED] * 2
    assert states(await rest(following)).count(State.CANCELED) == 1


async def test_a_second_cancel_does_not_break_off_the_closing_of_the_drafts() -> None:
    hold, store = Hold(), ClosingSlowly()
    harness = RuntimeHarness(broken(write("T1", "Hello"), hold), store=store)
    following = await working(harness, hold)
    first = asyncio.create_task(harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS))
    await store.closing.reached.wait()
    second = asyncio.create_task(harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS))
    await asyncio.sleep(0)
    store.closing.release.set()
    assert (await first).state is (await second).state is State.CANCELED
    [artifact] = await store.list("c")
    assert not artifact.open


async def test_a_task_that_asks_can_be_canceled() -> None:
    harness = RuntimeHarness(ASKS)
    asked = await harness.settled("Paint")
    following = await harness.runtime.follow(asked.task_id, ANONYMOUS)
    assert (await harness.runtime.cancel(asked.task_id, ANONYMOUS)).state is State.CANCELED
    assert [entry.event for entry in await rest(following)] == [StatusChanged(State.CANCELED)]


async def test_a_task_that_asks_gives_up_what_its_calls_have_begun_before_it_is_canceled() -> None:
    """So that a crash in between leaves a task that can be cancelled again."""
    hold, given_up = Hold(), []

    async def run(given, canvas):
        await canvas.remember("task", {"id": "7"})
        return await canvas.ask("When?")

    async def give_up(record) -> None:
        given_up.append(record.kept["task"])
        await hold()

    book = FunctionTool("book", "Books.", {"type": "object"}, run, abandon=give_up)
    harness = RuntimeHarness(answer(tool("T1", "book")), tools=(*TOOLS, book))
    asked = await harness.settled("Book")
    cancelling = asyncio.create_task(harness.runtime.cancel(asked.task_id, ANONYMOUS))
    await hold.reached.wait()
    assert (await harness.journal.get(asked.task_id)).state is State.INPUT_REQUIRED
    cancelling.cancel()
    await asyncio.wait([cancelling])
    hold.reached.clear()
    cancelling = asyncio.create_task(harness.runtime.cancel(asked.task_id, ANONYMOUS))
    await hold.reached.wait()
    hold.release.set()
    assert (await cancelling).state is State.CANCELED
    assert given_up == ['{"id":"7"}'] * 2


@pytest.mark.parametrize("cancel_first", [True, False])
async def test_a_cancel_and_an_answer_at_once_come_one_after_the_other(cancel_first) -> None:
    harness = RuntimeHarness(ASKS, broken(Hold()))
    asked = await harness.settled("Paint")
    following = await harness.runtime.follow(asked.task_id, ANONYMOUS)
    cancel, send = harness.runtime.cancel(asked.task_id, ANONYMOUS), harness.send("Blue", task=asked.task_id)
    both = (cancel, send) if cancel_first else (send, cancel)
    results = await asyncio.gather(*both, return_exceptions=True)
    assert (await rest(following))[-1].event == StatusChanged(State.CANCELED)
    assert {type(result) for result in results} <= {TaskRecord, TaskFinished, type(following)}
    record = await harness.journal.get(asked.task_id)
    await asyncio.sleep(0)
    assert record.state is State.CANCELED
    assert await harness.journal.get(asked.task_id) == record
    assert "whole" not in harness.llm.ends[1:]


@pytest.mark.parametrize("end", [HELLO, answer(decline("T1", "No.")), [], broken(text("x"), ValueError())])
async def test_a_finished_task_cannot_be_canceled(end) -> None:
    harness = RuntimeHarness(end, end, end)
    done = await harness.settled("Hi")
    with pytest.raises(TaskNotCancelable, match=f"already {done.state.value}"):
        await harness.runtime.cancel(done.task_id, ANONYMOUS)


async def test_a_canceled_task_cannot_be_canceled_again() -> None:
    harness = RuntimeHarness(ASKS)
    asked = await harness.settled("Paint")
    await harness.runtime.cancel(asked.task_id, ANONYMOUS)
    with pytest.raises(TaskNotCancelable):
        await harness.runtime.cancel(asked.task_id, ANONYMOUS)


async def test_a_cancel_that_the_turns_end_overtakes_says_so() -> None:
    hold = Hold()

    class Stubborn(FakeLLM):
        """A model whose last word cannot be stopped."""

        async def stream(self, request):
            async for event in super().stream(request):
                yield event
            try:
                await hold()
            except asyncio.CancelledError:
                return

    harness = RuntimeHarness(llm=Stubborn([HELLO]))
    following = await working(harness, hold)
    with pytest.raises(TaskNotCancelable, match="already completed"):
        await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)


async def test_what_was_said_in_a_canceled_task_is_remembered_in_the_context() -> None:
    hold = Hold()
    harness = RuntimeHarness(broken(tool("T1", "artifact_list"), hold), HELLO)
    following = await working(harness, hold)
    await harness.send("Faster", task=following.snapshot.task_id)
    await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    await harness.settled("Hi")
    assert [message.content[-1] for message in harness.heard()][2:] == [
        ModelText("Faster"),
        ModelText("(The task ended here.)"),
        ModelText("Hi"),
    ]


# ------------------------------------------------------- answering by the context alone


async def test_a_question_is_answered_by_its_context_alone_if_only_one_task_of_it_waits() -> None:
    harness = RuntimeHarness(HELLO, ASKS, answer(text("Blue it is.")), HELLO)
    done = await harness.settled("Hi")
    asked = await harness.settled("Paint")
    answered = await harness.settled("Blue")
    assert (answered.task_id, answered.state) == (asked.task_id, State.COMPLETED)
    assert harness.heard()[-1] == ModelMessage("user", (ToolResult("T1", "Blue"),), "m-Blue")
    assert (await harness.settled("Thanks")).task_id not in (done.task_id, asked.task_id)


async def test_an_older_question_is_answered_too_and_one_that_another_task_asks_then() -> None:
    harness = RuntimeHarness(HELLO, ASKS, answer(ask("T2", "How big?")), answer(text("Fine.")))
    await harness.settled("Hi")
    first = await harness.settled("Paint")
    again = await harness.settled("Blue")
    assert (again.task_id, again.message.text) == (first.task_id, "How big?")
    assert (await harness.settled("Big")).task_id == first.task_id


async def test_of_several_that_wait_none_is_answered_by_the_context_alone() -> None:
    hold = Hold()
    harness = RuntimeHarness([hold, *ASKS], [hold, *ASKS], HELLO, answer(text("Fine.")), answer(text("Finer.")))
    followings = [await harness.send("Paint"), await harness.send("Draw")]
    hold.release.set()
    first, second = [(await paused(harness, following)).task_id for following in followings]
    assert (await harness.settled("Blue")).task_id not in (first, second)
    assert (await harness.settled("Red", task=first)).state is State.COMPLETED
    assert (await harness.settled("Green")).task_id == second


async def test_neither_anothers_question_nor_one_of_another_context_is_answered() -> None:
    harness = RuntimeHarness(ASKS, HELLO, HELLO, HELLO)
    asked = await harness.settled("Paint", owner="ann")
    for other in (await harness.settled("Blue", owner="bob"), await harness.settled("Blue", owner="ann", context="d")):
        assert (other.task_id == asked.task_id, other.state) == (False, State.COMPLETED)
    alone = await harness.settled("Blue", owner="ann", context="")
    assert alone.context_id != asked.context_id
    assert (await harness.journal.get(asked.task_id)).state is State.INPUT_REQUIRED


async def test_an_answer_by_context_that_is_sent_again_joins_the_task_even_when_that_has_ended() -> None:
    harness = RuntimeHarness(ASKS, answer(text("Blue it is.")))
    asked = await harness.settled("Paint")
    for _ in range(2):
        assert (await harness.settled("Blue")).task_id == asked.task_id
    assert len(harness.llm.requests) == 2


async def test_of_two_answers_by_context_at_once_one_answers_and_the_other_starts_a_task() -> None:
    harness = RuntimeHarness(ASKS, answer(text("One.")), answer(text("Two.")))
    asked = await harness.settled("Paint")
    both = await asyncio.gather(harness.send("Blue"), harness.send("Big"))
    for following in both:
        await rest(following)
    found = [following.snapshot.task_id for following in both]
    assert (asked.task_id in found, len(set(found))) == (True, 2)
    assert len((await harness.journal.get(asked.task_id)).history) == 5


# -------------------------------------------------------------- when things go wrong


@in_memory_alone
async def test_when_the_server_closes_working_tasks_fail_with_a_message_and_asking_ones_stay() -> None:
    holds = [Hold(), Hold()]
    harness = RuntimeHarness(ASKS, *[broken(hold) for hold in holds])
    asked = await harness.settled("Paint", context="d")
    followings = [await working(harness, hold, f"Write {n}") for n, hold in enumerate(holds)]
    await harness.runtime.close()
    ends = [(await rest(following))[-1].event for following in followings]
    assert {end.state for end in ends} == {State.FAILED}
    assert all("The server was stopped" in end.message.text for end in ends)
    assert len({end.message.message_id for end in ends}) == 2
    assert (await harness.journal.get(asked.task_id)).state is State.INPUT_REQUIRED
    assert harness.llm.ends[1:] == ["CancelledError"] * 2


async def test_a_task_whose_model_stays_broken_fails() -> None:
    record = await RuntimeHarness([BROKEN], [BROKEN], [BROKEN]).settled("Hi")
    assert (record.state, record.message.text) == (State.FAILED, BROKEN.reason)


async def test_a_turn_that_is_lost_leaves_no_task_working() -> None:
    class BrokenStore(InMemoryArtifactStore):
        async def close(self, ref):
            raise OSError("disk full")

    harness = RuntimeHarness(answer(write("T1", "x")), answer(text("Done.")), store=BrokenStore())
    record = await harness.settled("Hi")
    assert (record.state, record.message.text) == (State.FAILED, INTERNAL_ERROR)


async def test_every_message_of_a_long_life_is_in_the_history_once() -> None:
    hold = Hold()
    harness = RuntimeHarness(ASKS, answer(tool("T2", "artifact_list"), hold), answer(text("Done.")))
    asked = await harness.settled("Paint")
    following = await harness.send("Blue", task=asked.task_id)
    await hold.reached.wait()
    await harness.send("Big", task=asked.task_id)
    hold.release.set()
    entries = await rest(following)
    record = await harness.journal.get(asked.task_id)
    assert spoken(record) == ["Paint", "Hm.", "Which colour?", "Blue", "Big", "Done."]
    assert len({message.message_id for message in record.history}) == 6
    assert sum(isinstance(entry.event, MessageReceived) for entry in entries) == 1
    assert any(isinstance(entry.event, TranscriptAppended) for entry in entries)
