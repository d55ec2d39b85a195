"""Several replicas on one PostgreSQL: who asks which of them makes no difference, and none of them is needed."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest
from sqlalchemy import event

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    BlockStopped,
    LlmCallCompleted,
    State,
    StatusChanged,
    ToolInputAdded,
)
from a2a_canvas.server.agent.model import ModelText, ToolResult
from a2a_canvas.server.tasks.errors import StreamLost, TaskFinished, TaskNotCancelable
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.listing import TaskQuery, list_position
from a2a_canvas.server.tasks.record import Entry, fold
from a2a_canvas.server.tasks.runtime.turns import MAX_RESUMPTIONS
from a2a_canvas.store.errors import ArtifactBusy
from a2a_canvas.store.models import Ref
from tests.fakes import Hold, answer, ask, broken, said, text, tool, write
from tests.server.tasks.runtime.runtime_harness import rest, states, until
from tests.server.tasks.sql.replica_harness import BOTH_WAYS, SHORT_LEASE, Replica

HELLO = answer(text("Hello"))


async def joined(replica: Replica, task_id: str):
    return await replica.runtime.follow(task_id, ANONYMOUS)


# ---------------------------------------------------------------------- the same everywhere


@BOTH_WAYS
async def test_a_watcher_of_another_replica_sees_the_same_entries(several) -> None:
    hold = Hold()
    a = await several.start(answer(write("T1", "One two three", cut=3), hold), answer(text("Done.")))
    b = await several.start()
    here = await a.send("Write")
    task_id = here.snapshot.task_id
    await hold.reached.wait()
    there = await joined(b, task_id)
    hold.release.set()
    ours, theirs = await rest(here), await rest(there)
    assert others(theirs) == [entry for entry in others(ours) if entry.generation > there.snapshot.generation]
    record = there.snapshot
    for entry in theirs:
        record = fold(record, entry)
    assert record == await a.record(task_id) == await b.record(task_id)
    assert record.state is State.COMPLETED
    assert await a.text() == await b.text() == "One two three"


async def test_a_watcher_of_another_replica_gets_the_input_of_a_call_whole_when_its_block_ends(several) -> None:
    hold = Hold()
    *call, end = write("T1", "One two three", cut=3)
    a = await several.start(answer([*call, hold, end]), answer(text("Done.")))
    b = await several.start()
    here = await a.send("Write")
    await hold.reached.wait()
    there = await joined(b, here.snapshot.task_id)
    hold.release.set()
    ours, theirs = await rest(here), await rest(there)
    assert len(inputs(ours)) > 1
    assert inputs(theirs) == ["".join(inputs(ours))]
    place = next(place for place, entry in enumerate(theirs) if isinstance(entry.event, ToolInputAdded))
    whole, ended = theirs[place : place + 2]
    assert ended == replace(whole, event=BlockStopped(whole.event.place))  # so both have the same number
    assert others(theirs) == [entry for entry in others(ours) if entry.generation > there.snapshot.generation]
    assert (await b.record(here.snapshot.task_id)) == await a.record(here.snapshot.task_id)


def inputs(entries: list[Entry]) -> list[str]:
    return [entry.event.partial_json for entry in entries if isinstance(entry.event, ToolInputAdded)]


def others(entries: list[Entry]) -> list[Entry]:
    """Those that are the same everywhere."""
    return [entry for entry in entries if not isinstance(entry.event, ToolInputAdded)]


@BOTH_WAYS
async def test_pieces_of_a_draft_are_committed_sooner_for_a_watcher_of_another_replica(several) -> None:
    joining, watching = Hold(), Hold()
    *call, end = write("T1", "One two three", cut=3)
    a = await several.start(answer([*call[:-3], joining, *call[-3:], watching, end]), answer(text("Done.")))
    b = await several.start()
    a.backend.commits._interval = 60.0
    marked, mark = asyncio.Event(), a.backend.journal.mark_followed

    def mark_followed(task_ids: Iterable[str]) -> None:
        mark(task_ids)
        if task_ids:
            marked.set()

    a.backend.journal.mark_followed = mark_followed
    task_id = (await a.send("Write")).snapshot.task_id
    await joining.reached.wait()
    there = await joined(b, task_id)
    await marked.wait()
    joining.release.set()
    await until(there, ArtifactChanged)
    assert not watching.release.is_set()
    watching.release.set()
    assert states(await rest(there))[-1] is State.COMPLETED


async def test_a_replica_names_the_tasks_that_it_follows_while_they_run_elsewhere(several) -> None:
    hold = Hold()
    a = await several.start(answer(hold, text("Done.")))
    b = await several.start()
    here = await a.send("Wait")
    await hold.reached.wait()
    await a.backend.commits.flushed()  # before, it may be submitted for the others
    there = await joined(b, here.snapshot.task_id)
    assert (a.backend.journal.followed_tasks, b.backend.journal.followed_tasks) == ((), (here.snapshot.task_id,))
    hold.release.set()
    await rest(there)
    assert b.backend.journal.followed_tasks == ()


async def test_the_new_pages_of_all_followed_tasks_are_read_by_one_statement(several) -> None:
    holds = Hold(), Hold(), Hold()
    a = await several.start(*(answer(text("One "), hold, text("two.")) for hold in holds))
    b = await several.start()
    here = [await a.send(f"Write {each}", context=each) for each in "cde"]
    for hold in holds:
        await hold.reached.wait()
    await a.backend.commits.flushed()
    there = [await joined(b, each.snapshot.task_id) for each in here]
    b.backend._listener.cancel()
    for hold in holds:
        hold.release.set()
    for each in here:
        await rest(each)
    statements: list[str] = []
    engine = b.backend._database._single_reader.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    await b.backend.journal.refresh([each.snapshot.task_id for each in here], ())
    assert [states(await rest(each))[-1] for each in there] == [State.COMPLETED] * 3
    assert len(statements) == 1


async def test_a_task_that_has_ended_is_not_read_again_for_its_followers(several, monkeypatch) -> None:
    a = await several.start(HELLO)
    here = await a.send("Hi")
    await rest(here)
    reads: list[str] = []
    for read in ("_take", "_read_on"):
        monkeypatch.setattr(a.backend.journal._tails, read, lambda log, *_: reads.append(log.record.task_id))
    await a.backend.journal.refresh([here.snapshot.task_id], [])
    await a.backend.journal.refresh_all()
    assert reads == []


async def test_whatever_is_asked_about_a_task_is_answered_anywhere(several) -> None:
    a, b = await several.start(answer(write("T1", "Text", last_chunk=True)), HELLO), await several.start()
    following = await a.send("Write")
    await rest(following)
    [task] = (await b.backend.journal.list(TaskQuery(("",)))).records
    assert task == await b.record(following.snapshot.task_id)
    assert await b.backend.journal.context("c") == (task,)
    assert await b.backend.journal.has_context("c", "")
    assert [v.content.text for v in await b.backend.store.versions(Ref("c", "doc", ""))] == ["Text"]
    changes = await b.backend.journal.follow_context("c")
    assert changes.snapshot.artifacts["doc"].artifact.content.text == "Text"


async def test_a_page_ends_at_a_number_of_bytes_and_the_next_one_goes_on_there(several) -> None:
    calls = [(answer(write(f"T{number}", "x" * 3000, last_chunk=True)), HELLO) for number in range(4)]
    a = await several.start(*[call for turn in calls for call in turn])
    for number in range(4):
        await rest(await a.send(f"Write {number}", context=f"c{number}"))
    for artifacts, sizes in ((True, [2, 2]), (False, [4])):
        pages, query, more = [], TaskQuery(("",), max_bytes=18_000, artifacts=artifacts), True
        while more:
            page = await a.backend.journal.list(query)
            assert page.total == 4
            pages.append([task.first_message.message_id for task in page.records])
            query, more = replace(query, after=list_position(page.records[-1])), page.more
        assert [len(page) for page in pages] == sizes
        assert [said for page in pages for said in page] == [f"m-Write {number}" for number in (3, 2, 1, 0)]


@BOTH_WAYS
async def test_a_context_is_followed_across_the_replicas_that_change_it(several) -> None:
    a = await several.start(answer(write("T1", "One", last_chunk=True)), HELLO)
    b = await several.start(answer(write("T2", "Two", last_chunk=True)), HELLO)
    c = await several.start()
    changes = aiter(await c.backend.journal.follow_context("c"))
    await rest(await a.send("Write one"))
    await rest(await b.send("Write two"))
    seen = []
    while not seen or seen[-1].entry.event.version < 2 or not seen[-1].entry.event.last_chunk:
        seen.append(await anext(changes))
    assert [change.position for change in seen] == list(range(1, len(seen) + 1))
    assert await c.text() == "Two"


async def test_the_next_turn_of_a_context_knows_what_was_said_on_another_replica(several) -> None:
    a, b = await several.start(answer(text("I am A."))), await several.start(HELLO)
    await rest(await a.send("Who?"))
    await rest(await b.send("And you?"))
    assert [m.content[0] for m in b.llm.requests[0].messages] == [
        ModelText("Who?"),
        ModelText("I am A."),
        ModelText("And you?"),
    ]


# ------------------------------------------------------------------ messages for a task elsewhere


@BOTH_WAYS
async def test_a_message_for_a_task_that_runs_elsewhere_is_given_to_its_turn(several) -> None:
    hold = Hold()
    a = await several.start(answer(tool("T1", "artifact_list"), hold), answer(text("Short.")))
    b = await several.start()
    here = await a.send("Write")
    await hold.reached.wait()
    sending = asyncio.create_task(b.send("Keep it short", here.snapshot.task_id))
    there = await sending
    assert [m.message_id for m in there.snapshot.history] == ["m-Write", "m-Keep it short"]
    again = await b.send("Keep it short", here.snapshot.task_id)
    assert [m.message_id for m in again.snapshot.history].count("m-Keep it short") == 1
    hold.release.set()
    await rest(here)
    assert ModelText("Keep it short") in a.llm.requests[1].messages[-1].content
    assert b.llm.requests == []


async def test_a_message_that_comes_when_the_task_has_ended_elsewhere_is_refused(several) -> None:
    a, b = await several.start(HELLO), await several.start()
    following = await a.send("Hi")
    await rest(following)
    with pytest.raises(TaskFinished):
        await b.send("More", following.snapshot.task_id)


async def test_a_question_is_answered_on_any_replica_and_the_turn_goes_on_there(several) -> None:
    a = await several.start(answer(text("Hm."), ask("T1", "Which colour?", at=1)))
    b = await several.start(answer(text("Blue it is.")))
    asked = await a.send("Paint")
    await until(asked, StatusChanged)
    while (await a.record(asked.snapshot.task_id)).state is not State.INPUT_REQUIRED:
        await until(asked, StatusChanged)
    answered = await b.send("Blue", asked.snapshot.task_id)
    await rest(answered)
    assert (await rest(asked))[-1].event.state is State.COMPLETED
    assert ToolResult("T1", "Blue") in b.llm.requests[0].messages[-1].content


@BOTH_WAYS
async def test_a_follower_on_the_replica_that_takes_the_answer_misses_nothing(several) -> None:
    hold = Hold()
    a = await several.start(answer(text("Hm."), hold, ask("T1", "Which colour?", at=1)))
    b = await several.start(answer(text("Blue it is.")))
    here = await a.send("Paint")
    task_id = here.snapshot.task_id
    await hold.reached.wait()
    there, asked = await joined(b, task_id), await joined(a, task_id)
    await b.backend._listener.stop()  # notifications are slower than the answer
    hold.release.set()
    while not (await a.record(task_id)).state.paused:
        await until(asked, StatusChanged)
    await rest(await b.send("Blue", task_id))
    ours, theirs = await rest(here), await rest(there)
    assert others(theirs) == [entry for entry in others(ours) if entry.generation > there.snapshot.generation]
    b.backend._listener.start()


async def asked_on(replica: Replica) -> str:
    """A task on this replica that waits for input."""
    asked = await replica.send("Paint")
    while not (await replica.record(asked.snapshot.task_id)).state.paused:
        await until(asked, StatusChanged)
    return asked.snapshot.task_id


PAUSES = {"a question": ask("T1", "Which colour?"), "authentication": tool("T1", "auth_required", {"reason": "Log in"})}
every_pause = pytest.mark.parametrize("pause", PAUSES.values(), ids=PAUSES)


@every_pause
async def test_a_question_is_answered_by_its_context_alone_on_any_replica(several, pause) -> None:
    a, b = await several.start(answer(pause)), await several.start(answer(text("Blue it is.")))
    task_id = await asked_on(a)
    answered = await b.send("Blue")
    assert answered.snapshot.task_id == task_id
    await rest(answered)
    assert ToolResult("T1", "Blue") in b.llm.requests[0].messages[-1].content
    again = await a.send("Blue")
    assert (again.snapshot.task_id, again.snapshot.state) == (task_id, State.COMPLETED)


@every_pause
async def test_so_it_is_when_the_replica_that_asked_is_gone(several, pause) -> None:
    a = await several.start(answer(pause))
    task_id = await asked_on(a)
    await a.stop()
    b = await several.start(answer(text("Blue it is.")))
    answered = await b.send("Blue")
    await rest(answered)
    assert (await b.record(task_id)).state is State.COMPLETED


async def test_of_two_answers_by_context_on_two_replicas_one_answers_and_the_other_starts_a_task(several) -> None:
    a = await several.start(answer(ask("T1", "Which colour?")), HELLO, HELLO)
    b = await several.start(HELLO, HELLO)
    task_id = await asked_on(a)
    both = await asyncio.gather(a.send("Blue"), b.send("Big"))
    for following in both:
        await rest(following)
    found = [following.snapshot.task_id for following in both]
    assert (task_id in found, len(set(found))) == (True, 2)
    assert len((await a.record(task_id)).history) == 4


async def test_of_two_answers_on_two_replicas_one_answers_and_none_is_lost(several) -> None:
    hold = Hold()
    a = await several.start(
        answer(ask("T1", "Which colour?")), [hold, *answer(text("Fine."))], answer(text("Finer.")), HELLO
    )
    b = await several.start([hold, *answer(text("Fine."))], answer(text("Finer.")), HELLO)
    asked = await a.send("Paint")
    task_id = asked.snapshot.task_id
    while (await a.record(task_id)).state is not State.INPUT_REQUIRED:
        await until(asked, StatusChanged)
    both = asyncio.gather(a.send("Blue", task_id), b.send("Big", task_id))
    await both
    hold.release.set()
    await rest(asked)
    record = await a.record(task_id)
    assert record.state is State.COMPLETED
    assert sorted(m.message_id for m in record.history if hasattr(m, "parts")) == ["m-Big", "m-Blue", "m-Paint"]
    assert [len(a.llm.requests), len(b.llm.requests)] in ([3, 0], [1, 2])


async def test_the_same_message_at_two_replicas_at_once_makes_one_task(several) -> None:
    a, b = await several.start(HELLO), await several.start(HELLO)
    followings = await asyncio.gather(*[replica.send("Hi") for replica in (a, b)])
    assert len({following.snapshot.task_id for following in followings}) == 1
    for following in followings:
        await rest(following)
    assert len(a.llm.requests) + len(b.llm.requests) == 1
    assert (await a.backend.journal.list(TaskQuery(("",)))).total == 1


# ------------------------------------------------------------------------------- cancelling


@BOTH_WAYS
async def test_a_cancel_on_another_replica_stops_the_model_call(several) -> None:
    hold = Hold()
    a, b = await several.start(broken(write("T1", "Half", stopped=False), hold)), await several.start()
    here = await a.send("Write")
    await hold.reached.wait()
    record = await b.runtime.cancel(here.snapshot.task_id, ANONYMOUS)
    assert record.state is State.CANCELED
    assert a.llm.ends == ["CancelledError"]
    assert (await rest(here))[-1].event.state is State.CANCELED
    with pytest.raises(TaskNotCancelable):
        await b.runtime.cancel(here.snapshot.task_id, ANONYMOUS)


async def test_a_task_that_waits_is_cancelled_on_any_replica(several) -> None:
    a, b = await several.start(answer(ask("T1", "Which?"))), await several.start()
    asked = await a.send("Paint")
    while (await a.record(asked.snapshot.task_id)).state is not State.INPUT_REQUIRED:
        await until(asked, StatusChanged)
    assert (await b.runtime.cancel(asked.snapshot.task_id, ANONYMOUS)).state is State.CANCELED
    assert (await a.record(asked.snapshot.task_id)).state is State.CANCELED


# --------------------------------------------------------------------------------- artifacts


async def test_an_artifact_that_is_being_written_on_one_replica_is_busy_on_the_other(several) -> None:
    hold = Hold()
    a = await several.start(broken(write("T1", "One"), hold))
    b = await several.start(answer(write("T2", "Two", last_chunk=True)), answer(text("It is busy.")))
    here = await a.send("Write")
    await until(here, ArtifactChanged)
    there = await b.send("Write, too")
    await rest(there)
    [result] = b.llm.requests[1].messages[-1].content
    assert result.is_error
    assert str(ArtifactBusy("doc", "")) in result.content
    await a.runtime.cancel(here.snapshot.task_id, ANONYMOUS)
    assert await b.text() == "One"


# ----------------------------------------------------------------------- crash and takeover


async def test_a_dead_replicas_turn_is_taken_up_from_its_last_completed_call(several) -> None:
    hold = Hold()
    a = await several.start(
        answer(write("T1", "One. ", append=True)),
        broken(write("T2", "Two. ", append=True), write("T3", "Thr", append=True, at=1, stopped=False), hold),
    )
    b = await several.start(answer(write("T4", "Three.", append=True)), answer(text("Written.")))
    here = await a.send("Write")
    there = await joined(b, here.snapshot.task_id)
    await hold.reached.wait()
    await a.backend.commits.flushed()
    await a.crash()
    entries = await rest(there)
    record = await b.record(here.snapshot.task_id)
    assert (record.state, record.epoch) == (State.COMPLETED, 2)
    assert await b.text() == record.artifacts["doc"].content.text == "One. Two. Three."
    assert [m.role for m in b.llm.requests[0].messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [c.tool_use_id for m in b.llm.requests[0].messages for c in m.content if isinstance(c, ToolResult)] == [
        "T1",
        "T2",
    ]
    # Watchers elsewhere just see it go on: the model call is told to be over, the text goes back, and on.
    second = [entry.event for entry in entries if entry.epoch == 2]
    assert isinstance(second[0], LlmCallCompleted)
    assert second[0].stop_reason == "error"
    back = next(event for event in second if isinstance(event, ArtifactChanged))
    assert (back.append, "".join(part.text for part in back.parts)) == (False, "One. Two. ")
    numbers = [(entry.epoch, entry.generation) for entry in entries]
    assert numbers == sorted(numbers)


async def test_a_message_that_the_model_has_not_been_shown_is_shown_by_the_next_owner(several) -> None:
    hold = Hold()
    a = await several.start(broken(tool("T1", "artifact_list"), hold))
    b = await several.start(answer(text("Short.")))
    here = await a.send("Write")
    await hold.reached.wait()
    await a.send("Keep it short", here.snapshot.task_id)
    await a.crash()
    await rest(await joined(b, here.snapshot.task_id))
    assert ModelText("Keep it short") in b.llm.requests[0].messages[-1].content


async def test_a_cancel_that_its_owner_did_not_live_to_hear_is_carried_out(several) -> None:
    hold = Hold()
    a = await several.start(broken(write("T1", "Half."), hold), timing=SHORT_LEASE)
    b = await several.start(timing=SHORT_LEASE)
    here = await a.send("Write")
    await hold.reached.wait()
    await a.backend.commits.flushed()
    a.freeze()
    assert (await b.runtime.cancel(here.snapshot.task_id, ANONYMOUS)).state is State.CANCELED
    assert b.llm.requests == []
    assert await b.text() == "Half."
    await a.crash()


async def test_a_task_that_brings_down_every_owner_fails(several) -> None:
    task_id = ""
    for _ in range(MAX_RESUMPTIONS + 1):
        hold = Hold()
        replica = await several.start(broken(text("I"), hold), HELLO)
        if not task_id:
            task_id = (await replica.send("Explode")).snapshot.task_id
        await hold.reached.wait()
        await replica.backend.commits.flushed()
        await replica.crash()
    last = await several.start(HELLO)
    entries = await rest(await joined(last, task_id))
    record = await last.record(task_id)
    assert (record.state, states(entries)[-1:]) == (State.FAILED, [State.FAILED])
    assert "broke down in the middle of this task 3 times" in record.message.text
    assert last.llm.requests == []


async def test_a_task_that_waits_for_input_stays_as_it_is(several) -> None:
    a = await several.start(answer(ask("T1", "Which?")))
    asked = await a.send("Paint")
    while (await a.record(asked.snapshot.task_id)).state is not State.INPUT_REQUIRED:
        await until(asked, StatusChanged)
    await a.crash()
    hold = Hold()
    b = await several.start(answer(text("Blue it is.")), broken(hold))
    other = await b.send("Other", context="d")  # a turn of its own: whoever takes over has had the time to
    await rest(other)
    record = await b.record(asked.snapshot.task_id)
    assert (record.state, record.epoch) == (State.INPUT_REQUIRED, 1)


async def test_a_stopped_owner_that_wakes_up_after_the_takeover_writes_nothing(several) -> None:
    hold, late = Hold(), Hold()
    a = await several.start(
        broken(write("T1", "One. ", append=True), late, write("T2", "WRONG", append=True, at=1), hold),
        timing=SHORT_LEASE,
    )
    b = await several.start(answer(write("T3", "Two.", append=True)), answer(text("Written.")), timing=SHORT_LEASE)
    here = await a.send("Write")
    await late.reached.wait()
    await a.backend.commits.flushed()
    watching = await joined(a, here.snapshot.task_id)
    a.freeze()
    before = a.backend._lease.id
    await rest(await joined(b, here.snapshot.task_id))
    late.release.set()
    await hold.reached.wait()  # it goes on writing, in memory
    a.thaw()
    with pytest.raises(StreamLost):
        await rest(watching)
    record = await b.record(here.snapshot.task_id)
    assert (record.state, record.epoch) == (State.COMPLETED, 2)
    assert await a.text() == await b.text() == "One. Two."
    assert await a.record(here.snapshot.task_id) == record
    assert a.backend._lease.id != before
    a.llm.calls.append(list(HELLO))
    assert (await rest(await a.send("Hi", context="d")))[-1].event.state is State.COMPLETED  # it serves again


@BOTH_WAYS
async def test_a_replica_that_stops_hands_its_turns_over_at_once(several) -> None:
    hold = Hold()
    a = await several.start(broken(write("T1", "One. ", append=True), write("T2", "T", at=1, stopped=False), hold))
    b = await several.start(answer(write("T3", "Two.", append=True)), answer(text("Written.")))
    here = await a.send("Write")
    there = await joined(b, here.snapshot.task_id)
    await hold.reached.wait()
    await a.runtime.close()
    await rest(there)
    record = await b.record(here.snapshot.task_id)
    assert (record.state, await b.text()) == (State.COMPLETED, "One. Two.")
    # It did not break down, so this does not count as one of the few times that a task is taken up.
    claims = await b.backend._takeover.claim(())
    assert claims == ()


async def test_nothing_is_accepted_by_a_replica_that_stops(several) -> None:
    a = await several.start(HELLO)
    await a.runtime.close()
    with pytest.raises(Exception, match="this server is stopping"):
        await a.runtime.send(Incoming(said("m", "Hi"), "", "c", ""), ANONYMOUS)
