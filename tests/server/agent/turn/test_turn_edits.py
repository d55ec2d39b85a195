"""A turn whose model edits a passage: what watchers see, and what is left when the call breaks or is cancelled."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import ArtifactChanged, ToolFailed, ToolSucceeded
from a2a_canvas.server.agent.model import ToolResult
from a2a_canvas.store.changes import EditText
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Selection
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Limits
from a2a_canvas.store.text.spans import Span
from tests.fakes import BROKEN, REFUSED, EventRecorder, Hold, answer, broken, text, tool, write
from tests.property_examples import examples
from tests.server.agent.turn.turn_harness import DOC, TurnHarness
from tests.store.artifact_builders import replacing

EVENTS = (EditStarted, EditChunk, EditCompleted, EditAborted, ArtifactChanged)
BEFORE = "# Title\n\nFirst paragraph.\n\nSecond, which is long.\n"
AFTER = BEFORE.replace("Second, which is long.", "Short.")


async def store_with(content: str = BEFORE, limits: Limits | None = None) -> InMemoryArtifactStore:
    """A store in which another task has written `doc`."""
    store = InMemoryArtifactStore(limits)
    await store.apply(DOC, replacing(content, name="doc.md", last_chunk=True))
    return store


def edit(use_id: str, old: str = "Second, which is long.", new: str = "Short.", **options):
    given = {"artifact_id": "doc", "old_text": old, "new_text": new}
    return tool(use_id, "artifact_edit", given, **options)


def seen(told: EventRecorder) -> list[str]:
    """What a watcher of edits sees, in order, by kind; chunks that follow one another as one."""
    kinds = [type(event).__name__ for event in told.events if isinstance(event, EVENTS)]
    return [kind for n, kind in enumerate(kinds) if n == 0 or kind != "EditChunk" or kinds[n - 1] != kind]


def fold(told: EventRecorder, content: str = BEFORE) -> str:
    """What a client that knows of no edits has at the end."""
    for event in told.of(ArtifactChanged):
        content = (content if event.append else "") + event.parts[0].text
    return content


async def test_a_passage_is_rewritten_and_nothing_else() -> None:
    harness = TurnHarness(
        answer(text("I shorten it."), edit("T1", cut=3), reason="tool_use"),
        answer(text("Done.")),
        store=await store_with(),
    )
    told = await harness.run()
    assert told.statuses == [("working", "I shorten it."), ("completed", "Done.")]
    assert harness.results() == [ToolResult("T1", "Edited; version 2 of doc is saved.")]
    assert seen(told) == ["EditStarted", "EditChunk", "EditCompleted", "ArtifactChanged"]
    [started], [completed] = told.of(EditStarted), told.of(EditCompleted)
    at = Selection(BEFORE.index("Second"), BEFORE.index("Second") + 22)
    assert (started.artifact_id, started.selection, started.strategy, started.version) == ("doc", at, "replace", 1)
    assert (completed.selection, completed.updated_content) == (at, "Short.")
    assert "".join(event.chunk for event in told.of(EditChunk)) == "Short."
    [change] = told.of(ArtifactChanged)
    assert (change.append, change.last_chunk, change.version, change.author) == (False, True, 2, "agent")
    assert (await harness.doc()).text == fold(told) == AFTER
    assert (await harness.doc()).name == "doc.md"


async def test_the_new_text_grows_while_the_call_is_being_written() -> None:
    hold = Hold()
    harness = TurnHarness(answer([*edit("T1", cut=1)[:-3], hold]), answer(), store=await store_with())
    turn = harness.start()
    await hold.reached.wait()
    assert "".join(event.chunk for event in harness.told.of(EditChunk)) == "Short."
    assert harness.told.of(ArtifactChanged) == []
    assert harness.told.labels[-1] == "Editing doc.md…"
    assert harness.told.tool_labels == ["Editing doc.md…"]
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


async def test_the_model_is_told_when_the_passage_occurs_twice_and_quotes_more() -> None:
    store = await store_with("one\nsame\ntwo\nsame\n")
    harness = TurnHarness(
        answer(edit("T1", "same", "other")),
        answer(edit("T2", "two\nsame", "two\nother")),
        answer(text("Done.")),
        store=store,
    )
    told = await harness.run()
    [failed] = told.of(ToolFailed)
    assert "old_text occurs 2 times" in failed.error
    assert "> 2: same" in failed.error
    assert "> 4: same" in failed.error
    assert harness.results(1) == [ToolResult("T1", failed.error, is_error=True)]
    assert seen(told) == ["EditStarted", "EditChunk", "EditCompleted", "ArtifactChanged"]
    assert (await harness.doc()).text == "one\nsame\ntwo\nother\n"
    assert told.statuses == [("completed", "Done.")]


async def test_an_edit_follows_on_what_the_same_task_has_just_written() -> None:
    harness = TurnHarness(answer(write("T1", "Hello wrold"), edit("T2", "wrold", "world", at=1)), answer(text("Done.")))
    told = await harness.run()
    assert [result.content for result in harness.results()] == [
        "Written; the draft stays open.",
        "Edited; version 2 of doc is saved.",
    ]
    assert [version.content.parts[0].text for version in await harness.versions()] == ["Hello wrold", "Hello world"]
    assert fold(told, "") == "Hello world"


async def test_an_edit_can_be_taken_back_by_its_model() -> None:
    restore = tool("T2", "artifact_restore", {"artifact_id": "doc", "version": 1})
    harness = TurnHarness(answer(edit("T1")), answer(restore), answer(text("As it was.")), store=await store_with())
    told = await harness.run()
    assert harness.results() == [
        ToolResult("T2", "Restored; version 3 of doc, with the content of version 1, is saved."),
    ]
    assert (await harness.doc()).text == fold(told) == BEFORE


# ------------------------------------------------------------------- breaks and cancels


@pytest.mark.parametrize("break_", [[BROKEN], []], ids=["an error in mid-stream", "an end without a word"])
async def test_an_edit_that_breaks_off_is_taken_back_and_made_again(break_) -> None:
    cut_off = edit("T1", new="Shor", cut=1, stopped=False)[:-2]
    harness = TurnHarness(broken(cut_off, break_), answer(edit("T2")), answer(text("Done.")), store=await store_with())
    told = await harness.run()
    assert seen(told) == [
        *("EditStarted", "EditChunk", "EditAborted", "ArtifactChanged"),
        *("EditStarted", "EditChunk", "EditCompleted", "ArtifactChanged"),
    ]
    as_it_was, changed = told.of(ArtifactChanged)
    assert (as_it_was.append, as_it_was.parts[0].text, as_it_was.version) == (False, BEFORE, 1)
    assert (changed.append, changed.parts[0].text, changed.version) == (False, AFTER, 2)
    [aborted] = told.of(EditAborted)
    first, second = told.of(EditStarted)
    assert aborted.edit_id == first.edit_id != second.edit_id
    assert told.statuses == [("completed", "Done.")]
    assert len(await harness.versions()) == 2


async def test_an_edit_that_cannot_be_made_again_leaves_the_artifact_as_it_was() -> None:
    harness = TurnHarness(broken(edit("T1", cut=5, stopped=False), REFUSED), store=await store_with())
    told = await harness.run()
    assert told.statuses == [("failed", REFUSED.reason)]
    assert seen(told) == ["EditStarted", "EditChunk", "EditAborted", "ArtifactChanged"]
    assert (await harness.doc()).text == fold(told) == BEFORE
    assert len(await harness.versions()) == 1


async def test_a_cancel_in_the_middle_of_an_edit_leaves_the_artifact_as_it_was_and_says_so() -> None:
    hold = Hold()
    harness = TurnHarness(answer([*edit("T1", cut=4, stopped=False), hold]), store=await store_with())
    turn = harness.start()
    await hold.reached.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert seen(harness.told) == ["EditStarted", "EditChunk", "EditAborted", "ArtifactChanged"]
    assert (await harness.doc()).text == fold(harness.told) == BEFORE
    assert not (await harness.doc()).open


async def test_a_limit_ends_the_turn_when_the_edit_has_been_taken_back() -> None:
    store = await store_with(limits=Limits(artifact_bytes=60))
    harness = TurnHarness(answer(edit("T1", new="x" * 100)), store=store)
    told = await harness.run()
    [(state, message)] = told.statuses
    assert (state, "60 are allowed" in message) == ("failed", True)
    assert seen(told) == ["EditStarted", "EditChunk", "EditAborted", "ArtifactChanged"]
    assert (await harness.doc()).text == fold(told) == BEFORE


async def test_the_model_is_told_when_others_have_rewritten_the_passage_meanwhile() -> None:
    store = await store_with()

    async def rewrite() -> None:
        await store.apply(DOC, EditText(Span(0, len(BEFORE)), "All new.", 1))

    call = edit("T1", cut=4)
    harness = TurnHarness(answer([*call[:-1], rewrite, call[-1]]), answer(text("It has changed.")), store=store)
    told = await harness.run()
    [failed] = told.of(ToolFailed)
    assert "Read it again" in failed.error
    assert seen(told) == ["EditStarted", "EditChunk", "EditAborted", "ArtifactChanged"]
    assert (await harness.doc()).text == fold(told) == "All new."


@given(st.data())
@settings(max_examples=examples(60))
async def test_wherever_a_stream_breaks_every_announced_edit_ends_and_each_is_made_once_or_not_at_all(data) -> None:
    calls = [edit("T1", "First", "1st", cut=9), edit("T2", "Second", "2nd", at=1, cut=6)]
    whole = answer(*calls)
    at = data.draw(st.integers(0, len(whole) - 1))
    harness = TurnHarness([*whole[:at], BROKEN], answer(text("Done.")), store=await store_with())
    told = await harness.run()
    ran = [event.tool_use_id for event in told.of(ToolSucceeded)]
    assert ran == ["T1", "T2"][: len(ran)]
    expected = BEFORE
    for old, new in [("First", "1st"), ("Second", "2nd")][: len(ran)]:
        expected = expected.replace(old, new)
    assert (await harness.doc()).text == fold(told) == expected
    assert len(await harness.versions()) == 1 + len(ran)
    ended = [event.edit_id for event in (*told.of(EditCompleted), *told.of(EditAborted))]
    assert sorted(ended) == sorted(event.edit_id for event in told.of(EditStarted))
