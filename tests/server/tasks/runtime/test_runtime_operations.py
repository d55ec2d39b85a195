"""The life of a task that is an edit or a step through the versions."""

import asyncio

import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged, UserMessage
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.tasks.errors import TaskFinished, TaskNotCancelable, TaskTakesNoMessages
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, TaskSubscription
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.runtime.turns import unread_messages
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted
from a2a_canvas.store.models import Ref, text_part
from tests.fakes import BROKEN, Hold, answer, ask, broken, text, tool, write
from tests.server.agent.edit.operation_harness import phases
from tests.server.tasks.runtime.runtime_harness import (
    RuntimeHarness,
    in_memory_alone,
    on_every_backend,
    rest,
    spoken,
    states,
    until,
)

pytestmark = on_every_backend

TEXT = "One.\nTwo.\nThree.\n"
DOC = Ref("c", "doc", "another-task")
EDIT = {"op": "edit", "artifactId": "doc", "selection": {"start": 5, "end": 9, "text": "Two."}}
UNDO = {"op": "undo", "artifactId": "doc"}
LOUDER = answer(text("TW", "O!"))


def edit(words: str) -> dict[str, object]:
    start = TEXT.index(words)
    return {**EDIT, "selection": {"start": start, "end": start + len(words), "text": words}}


class Office(RuntimeHarness):
    """A harness with the artifact `doc` at version 1 in the context `c`."""

    async def ready(self) -> "Office":
        await self.store.apply(DOC, ReplaceParts((text_part(TEXT),), last_chunk=True))
        return self

    async def ask(
        self, given=EDIT, words="Louder", *, task="", context="c", owner="", message_id=""
    ) -> TaskSubscription:
        message = UserMessage(message_id or f"m-{words}-{given}", (text_part(words),), {CANVAS: given})
        return await self.runtime.send(Incoming(message, "", context, task), Caller(owner))

    async def done(self, given=EDIT, words="Louder", **options):
        following = await self.ask(given, words, **options)
        await rest(following)
        return await self.journal.get(following.snapshot.task_id)

    async def text(self) -> str:
        return (await self.store.get(DOC)).text


async def test_an_edit_is_a_task_of_its_own() -> None:
    harness = await Office(LOUDER).ready()
    following = await harness.ask()
    assert following.snapshot.state is State.SUBMITTED
    entries = await rest(following)
    assert states(entries) == [State.WORKING, State.COMPLETED]
    assert phases(entry.event for entry in entries) == ["start", "chunk", "complete", "artifact"]
    record = await harness.runtime.get(following.snapshot.task_id, ANONYMOUS)
    assert record.artifacts["doc"].content.text == await harness.text() == TEXT.replace("Two.", "TWO!")
    assert (record.artifacts["doc"].version, record.artifacts["doc"].author) == (2, "agent")
    assert record.open_edits == {}
    assert spoken(record) == ["Louder", "Edited doc at line 2: version 2 is saved."]


async def test_a_step_through_the_versions_asks_no_model() -> None:
    harness = await Office(LOUDER).ready()
    await harness.done()
    record = await harness.done(UNDO, "Undo that")
    assert (record.state, record.message.text) == (State.COMPLETED, "Undone: doc is at version 1 again.")
    assert (record.artifacts["doc"].version, record.artifacts["doc"].content.text) == (1, TEXT)
    assert len(harness.llm.requests) == 1


async def test_one_who_joins_an_edit_finds_what_it_has_written_so_far() -> None:
    hold = Hold()
    harness = await Office(answer(text("TW"), hold, text("O!"))).ready()
    following = await harness.ask()
    await until(following, EditChunk)
    late = await harness.runtime.follow(following.snapshot.task_id, ANONYMOUS)
    [open_edit] = late.snapshot.open_edits.values()
    assert str(open_edit.text) == "TW"
    hold.release.set()
    assert [type(entry.event) for entry in await rest(late)][-1] is StatusChanged
    assert (await rest(following))[-1].event.state is State.COMPLETED


# --------------------------------------------------------------------------- refused

WRONG = [
    ({"context": ""}, EDIT, "message.contextId"),
    ({"task": "task"}, EDIT, "message.taskId"),
    ({"task": "task"}, UNDO, "message.taskId"),
    ({}, {**EDIT, "artifactId": "gone"}, "artifactId"),
    ({"context": "d"}, EDIT, "artifactId"),
    ({}, {**EDIT, "selection": {"start": 0, "end": 99}}, "selection.end"),
    ({}, {**EDIT, "baseVersion": 2}, "baseVersion"),
    ({}, {**EDIT, "baseVersion": 1, "selection": {"start": 0, "end": 4, "text": "Two."}}, "selection.text"),
    ({}, {"op": "restore", "artifactId": "doc", "version": 2}, "version"),
    ({}, {"op": "remove"}, "op"),
    ({}, {"artifactId": "doc", "colour": 1}, "colour"),
]


@pytest.mark.parametrize(("where", "given", "field"), WRONG)
async def test_what_cannot_be_is_refused_by_its_field_and_leaves_nothing_behind(where, given, field) -> None:
    harness = await Office(LOUDER).ready()
    with pytest.raises(InvalidOperation) as caught:
        await harness.ask(given, **where)
    assert caught.value.field == field
    assert (await harness.journal.list(TaskQuery(("",)))).total == 0
    assert (await harness.store.get(DOC)).version == 1
    assert harness.llm.requests == []


async def test_what_was_refused_may_be_sent_again() -> None:
    harness = Office(LOUDER)
    with pytest.raises(InvalidOperation):
        await harness.ask()
    await harness.ready()
    assert (await harness.done()).state is State.COMPLETED


async def test_an_operation_does_not_answer_a_question() -> None:
    harness = await Office(answer(ask("T1", "Which?"))).ready()
    asked = await harness.settled("Write")
    with pytest.raises(InvalidOperation):
        await harness.ask(task=asked.task_id)
    assert (await harness.journal.get(asked.task_id)) == asked


async def test_a_running_edit_takes_no_messages_and_keeps_nobody_waiting() -> None:
    hold = Hold()
    harness = await Office(broken(text("TW"), hold), answer(text("Hello"))).ready()
    following = await harness.ask()
    await hold.reached.wait()
    for context in ("c", ""):
        with pytest.raises(TaskTakesNoMessages, match="takes no further messages"):
            await harness.send("Faster", task=following.snapshot.task_id, context=context)
    assert (await harness.settled("Hi")).state is State.COMPLETED
    assert (await harness.done(UNDO, "Undo")).state is State.REJECTED
    assert spoken(await harness.journal.get(following.snapshot.task_id)) == ["Louder"]
    await harness.runtime.close()


async def test_a_finished_edit_is_finished() -> None:
    harness = await Office(LOUDER).ready()
    done = await harness.done()
    with pytest.raises(TaskFinished):
        await harness.send("More", task=done.task_id)


async def test_the_same_message_sent_twice_edits_once() -> None:
    hold = Hold()
    harness = await Office(answer(text("TW"), hold, text("O!"))).ready()
    first = await harness.ask()
    await hold.reached.wait()
    again = await harness.ask()
    hold.release.set()
    assert (await rest(again))[-1] == (await rest(first))[-1]
    late = await harness.ask()
    assert {f.snapshot.task_id for f in (again, late)} == {first.snapshot.task_id}
    assert len(harness.llm.requests) == 1
    assert len(await harness.store.versions(DOC)) == 2


# ------------------------------------------------------------------------ side by side


async def two_edits(harness: Office, holds: list[Hold], *places: str) -> list[TaskSubscription]:
    """Two edits that are both being written."""
    followings = []
    for place, hold in zip(places, holds, strict=True):
        followings.append(await harness.ask(edit(place), place))
        await hold.reached.wait()
    return followings


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_two_edits_of_different_places_both_land_whichever_ends_first(order) -> None:
    holds = [Hold(), Hold()]
    harness = await Office(answer(holds[0], text("1111 1")), answer(holds[1], text("3"))).ready()
    followings = await two_edits(harness, holds, "One.", "Three.")
    for n in order:
        holds[n].release.set()
        assert states(await rest(followings[n]))[-1] is State.COMPLETED
    assert await harness.text() == "1111 1\nTwo.\n3\n"
    assert [version.number for version in await harness.store.versions(DOC)] == [1, 2, 3]


async def test_of_two_edits_of_one_place_the_later_is_rejected() -> None:
    holds = [Hold(), Hold()]
    harness = await Office(answer(holds[0], text("2")), answer(holds[1], text("II"))).ready()
    followings = await two_edits(harness, holds, "Two.", "Two.\nThree.")
    for n in (1, 0):
        holds[n].release.set()
        entries = await rest(followings[n])
    assert phases(entry.event for entry in entries)[-2:] == ["abort", "artifact"]
    end = entries[-1].event
    assert end.state is State.REJECTED
    assert dict(end.message.metadata) == {CANVAS: {"artifactId": "doc", "artifactVersion": 2}}
    assert await harness.text() == "One.\nII\n"


async def test_an_edit_and_a_turn_that_writes_the_same_artifact_keep_out_of_each_others_way() -> None:
    hold = Hold()
    harness = await Office(broken(write("T1", "Other"), hold)).ready()
    writing = await harness.send("Write")
    await hold.reached.wait()
    record = await harness.done()
    assert record.state is State.REJECTED
    assert record.message.metadata[CANVAS] == {"artifactId": "doc", "artifactVersion": 1, "busy": True}
    await harness.runtime.cancel(writing.snapshot.task_id, ANONYMOUS)


# -------------------------------------------------------------------------- stopping


@pytest.mark.parametrize("journal", [InMemoryJournal, None])
async def test_a_canceled_edit_is_aborted_and_its_artifact_shown_as_it_is(journal) -> None:
    hold = Hold()
    harness = await Office(broken(text("TW"), hold), **({"journal": journal} if journal else {})).ready()
    following = await harness.ask()
    await hold.reached.wait()
    record = await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    assert (record.state, record.open_edits) == (State.CANCELED, {})
    *_, aborted, shown, ended = [entry.event for entry in await rest(following)]
    assert isinstance(aborted, EditAborted)
    assert isinstance(shown, ArtifactChanged)
    assert (shown.append, shown.version, shown.parts[0].text) == (False, 1, TEXT)
    assert ended == StatusChanged(State.CANCELED)
    assert harness.llm.ends == ["CancelledError"]
    assert len(await harness.store.versions(DOC)) == 1


async def test_an_edit_canceled_before_its_first_step_says_nothing_of_it() -> None:
    harness = await Office(LOUDER, journal=InMemoryJournal).ready()
    following = await harness.ask()
    await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    assert [entry.event for entry in await rest(following)] == [StatusChanged(State.CANCELED)]
    assert harness.llm.requests == []


@in_memory_alone
async def test_a_cancel_after_any_entry_leaves_an_edit_whole_or_undone() -> None:
    canceled = completed = 0
    for at in range(1, 100):
        harness = await Office(broken(text("T"), BROKEN), LOUDER).ready()
        following = await harness.ask()
        entries = []
        async for entry in following:
            entries.append(entry)
            if len(entries) == at:
                break
        else:
            break
        try:
            await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
        except TaskNotCancelable:
            completed += 1
        else:
            canceled += 1
        entries += await rest(following)
        events = [entry.event for entry in entries]
        record = await harness.journal.get(following.snapshot.task_id)
        assert record.open_edits == {}
        assert states(entries).count(record.state) == 1
        landed = any(isinstance(event, EditCompleted) for event in events)
        assert record.state is (State.COMPLETED if landed else State.CANCELED)
        assert len(await harness.store.versions(DOC)) == 1 + landed
        if any(isinstance(event, EditStarted) for event in events):
            assert record.artifacts["doc"].content.text == await harness.text()
            assert phases(events)[-2:] == (["complete", "artifact"] if landed else ["abort", "artifact"])
    assert canceled > 5
    assert completed > 1


@in_memory_alone
async def test_when_the_server_closes_an_edit_is_aborted_and_fails() -> None:
    hold = Hold()
    harness = await Office(broken(text("TW"), hold)).ready()
    following = await harness.ask()
    await hold.reached.wait()
    await harness.runtime.close()
    entries = await rest(following)
    assert phases(entry.event for entry in entries) == ["start", "chunk", "abort", "artifact"]
    assert entries[-1].event.state is State.FAILED
    assert "The server was stopped" in entries[-1].event.message.text
    assert await harness.text() == TEXT


@in_memory_alone
async def test_a_cancel_while_a_step_is_made_comes_too_late() -> None:
    harness = await Office(LOUDER).ready()
    await harness.done()
    following = await harness.ask(UNDO, "Undo")
    await asyncio.sleep(0)
    with pytest.raises(TaskNotCancelable, match="already completed"):
        await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    record = await harness.journal.get(following.snapshot.task_id)
    assert record.artifacts["doc"].version == (await harness.store.get(DOC)).version == 1


# ------------------------------------------------------------------- what is remembered


async def test_a_later_conversation_hears_of_edits_and_steps() -> None:
    harness = await Office(LOUDER, answer(text("Hello"))).ready()
    await harness.done()
    await harness.done(UNDO, "Undo that")
    await rest(await harness.ask({"artifactId": "doc"}, "Hi"))
    assert [content for message in harness.heard() for content in message.content] == [
        ModelText('[Of a passage selected in artifact "doc", utf16 offsets 5-9: "Two."]'),
        ModelText("Louder"),
        ModelText("Edited doc at line 2: version 2 is saved."),
        ModelText('[The user\'s own step in artifact "doc": undo]'),
        ModelText("Undo that"),
        ModelText("Undone: doc is at version 1 again."),
        ModelText('[The user is looking at artifact "doc"]'),
        ModelText("Hi"),
    ]


async def test_it_hears_of_a_canceled_edit_that_it_ended() -> None:
    hold = Hold()
    harness = await Office(broken(text("TW"), hold), answer(text("Hello"))).ready()
    following = await harness.ask()
    await hold.reached.wait()
    await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    await harness.settled("Hi")
    assert [message.content[-1] for message in harness.heard()][1:] == [
        ModelText("(The task ended here.)"),
        ModelText("Hi"),
    ]


async def test_an_edit_hears_nothing_of_the_conversation() -> None:
    harness = await Office(answer(text("Hello")), LOUDER).ready()
    await harness.settled("Secret")
    await harness.done()
    [message] = harness.heard()
    assert "Secret" not in "".join(content.text for content in message.content)


# ------------------------------------------------------- what a person changes while a task goes on


PUT = {"op": "put", "artifactId": "doc", "baseVersion": 1, "text": "One.\nMine.\nThree.\n"}
REWRITE = write("T9", "All new.", last_chunk=True)


def last_said(harness: RuntimeHarness, request: int) -> list[str]:
    """The texts that stand last in a request: results, and what was said after them."""
    return [getattr(item, "text", getattr(item, "content", "")) for item in harness.heard(request)[-1].content]


async def test_what_a_person_puts_while_a_question_is_open_is_told_to_the_model_and_not_overwritten() -> None:
    read = tool("T2", "artifact_read", {"artifact_id": "doc"})
    again = write("T10", "One.\nMine.\n3.\n", last_chunk=True)
    calls = [answer(ask("T1", "Which?")), answer(REWRITE), answer(read), answer(again), answer(text("Done."))]
    harness = await Office(*calls).ready()
    asked = await harness.settled("Rewrite it")
    put = await harness.done(PUT, "Mine")
    assert put.state is State.COMPLETED
    done = await harness.settled("This one", task=asked.task_id)
    note = 'In its lines 2 to 2, "Two." has become "Mine.".'
    assert any("[Artifact" in said and note in said for said in last_said(harness, 1))
    refused, _ = last_said(harness, 2)[0], harness.heard(2)
    assert note in refused
    assert "Read it first, and keep that change. Nothing was changed." in refused
    assert len([said for said in last_said(harness, 2) if note in said]) == 1  # told once, and in the refusal
    assert (done.state, done.message.text) == (State.COMPLETED, "Done.")
    assert await harness.text() == "One.\nMine.\n3.\n"


async def test_what_a_person_puts_during_the_turn_is_told_in_front_of_the_next_round() -> None:
    hold = Hold()
    listing = tool("T1", "artifact_list")
    harness = await Office(answer(text("Hm."), hold, listing), answer(REWRITE), answer(text("Sorry."))).ready()
    following = await harness.send("Rewrite it")
    await hold.reached.wait()
    await harness.done(PUT, "Mine")
    hold.release.set()
    assert states(await rest(following))[-1] is State.COMPLETED
    assert any('"Two." has become "Mine."' in said for said in last_said(harness, 1))
    assert await harness.text() == PUT["text"]


async def test_what_a_person_takes_back_with_undo_during_the_turn_is_not_written_again_unread() -> None:
    hold = Hold()
    own = write("T1", "Version two.", last_chunk=True)
    harness = await Office(answer(own), answer(text("Hm."), hold, REWRITE), answer(text("Sorry."))).ready()
    following = await harness.send("Rewrite it")
    await hold.reached.wait()
    assert (await harness.done(UNDO, "Undo that")).state is State.COMPLETED
    hold.release.set()
    await rest(following)
    assert await harness.text() == TEXT


async def test_what_the_model_itself_wrote_before_the_question_is_its_own() -> None:
    own = write("T1", "Version two.", last_chunk=True)
    harness = await Office(answer(own), answer(ask("T2", "Good?")), answer(REWRITE), answer(text("Done."))).ready()
    asked = await harness.settled("Rewrite it")
    await harness.settled("No", task=asked.task_id)
    assert await harness.text() == "All new."


async def test_a_note_of_this_servers_is_no_message_of_the_user() -> None:
    harness = await Office(answer(ask("T1", "Which?")), answer(text("Fine.")), answer(text("Hello"))).ready()
    asked = await harness.settled("Rewrite it")
    await harness.done(PUT, "Mine")
    record = await harness.settled("This one", task=asked.task_id)
    assert unread_messages(record) == ()
    assert spoken(record) == ["Rewrite it", "Which?", "This one", "Fine."]


# ------------------------------------------------------------------------ suggestions

SUGGEST = {**EDIT, "mode": "suggest"}


async def test_an_edit_that_suggests_changes_no_artifact_and_is_kept_with_its_status() -> None:
    harness = await Office(LOUDER).ready()
    entries = await rest(await harness.ask(SUGGEST))
    assert states(entries) == [State.WORKING, State.COMPLETED]
    assert phases(entry.event for entry in entries) == ["start", "chunk", "annotations", "suggested"]
    (made,) = await harness.journal.annotations.list("c", "doc")
    assert (made.writer.author, made.replacement) == ("agent", "TWO!")
    assert await harness.text() == TEXT


async def test_one_who_joins_finds_that_it_suggests() -> None:
    hold = Hold()
    harness = await Office(answer(text("TW"), hold, text("O!"))).ready()
    following = await harness.ask(SUGGEST)
    await until(following, EditChunk)
    late = await harness.runtime.follow(following.snapshot.task_id, ANONYMOUS)
    [open_edit] = late.snapshot.open_edits.values()
    assert (open_edit.mode, str(open_edit.text)) == ("suggest", "TW")
    hold.release.set()
    await rest(following)


async def test_a_canceled_suggestion_is_aborted_and_leaves_nothing() -> None:
    hold = Hold()
    harness = await Office(answer(text("TW"), hold)).ready()
    following = await harness.ask(SUGGEST)
    await until(following, EditChunk)
    await harness.runtime.cancel(following.snapshot.task_id, ANONYMOUS)
    entries = await rest(following)
    assert phases(entry.event for entry in entries) == ["abort"]
    assert await harness.journal.annotations.list("c", "doc") == ()


# -------------------------------------------------------- agents suggest, people decide


NEW = {"append": False, "artifact": {"artifact_id": "new", "parts": [{"kind": "text", "text": "New."}]}}


class SuggestingOffice(Office):
    """Where agents suggest."""

    async def ready(self) -> "SuggestingOffice":
        await super().ready()
        await self.done(UNDO, "Begin the context")
        await self.runtime.contexts.owned.let_agents_suggest("c", "", True)
        return self

    async def suggested(self) -> list[tuple[str, str]]:
        return [(each.quote.exact, each.replacement or "") for each in await self.journal.annotations.list("c", "doc")]


async def test_where_agents_suggest_every_edit_is_a_suggestion() -> None:
    harness = await SuggestingOffice(LOUDER).ready()
    record = await harness.done()
    assert spoken(record)[-1] == "Suggested a change to line 2 of doc (suggestion 1)."
    assert await harness.suggested() == [("Two.", "TWO!")]
    assert await harness.text() == TEXT


async def test_where_agents_suggest_a_conversation_changes_nothing_and_says_so_to_the_model() -> None:
    harness = await SuggestingOffice(
        answer(tool("T1", "artifact_edit", {"artifact_id": "doc", "old_text": "One.", "new_text": "1."})),
        answer(write("T2", TEXT.replace("Three", "3"), last_chunk=True)),
        answer(write("T3", "Four.\n", append=True, last_chunk=True)),
        answer(tool("T4", "artifact_update", NEW)),
        answer(text("Suggested.")),
    ).ready()
    record = await harness.settled("Change it")
    assert record.state is State.COMPLETED
    assert await harness.suggested() == [("One.", "1."), ("Three", "3"), ("", "Four.\n")]
    assert await harness.text() == TEXT
    assert [*record.artifacts] == ["new"]
    told = [each.content for request in harness.llm.requests[1:4] for each in request.messages[-1].content]
    assert all("stays as it is until people accept" in each for each in told)


async def test_where_they_no_longer_suggest_they_change() -> None:
    harness = await SuggestingOffice(LOUDER).ready()
    await harness.runtime.contexts.owned.let_agents_suggest("c", "", False)
    await harness.done()
    assert (await harness.text(), await harness.suggested()) == (TEXT.replace("Two.", "TWO!"), [])
