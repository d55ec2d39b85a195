"""An edit that suggests: it streams as every edit does, and leaves a suggestion in place of a version."""

import asyncio
from itertools import count

import pytest

from a2a_canvas.server.agent.edit.run import check_operation
from a2a_canvas.server.agent.events import ArtifactChanged, LlmCallCompleted, StatusChanged, TranscriptAppended
from a2a_canvas.store.annotations.annotation import AGENT, AnnotationsChanged
from a2a_canvas.store.changes import AppendParts, EditText, ReplaceParts
from a2a_canvas.store.edit_events import EditStarted, EditSuggested, Selection
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Ref, text_part
from a2a_canvas.store.text.spans import Span
from tests.fakes import BROKEN, Hold, answer, broken, text
from tests.server.agent.edit.operation_harness import TEXT, TWO, OperationHarness, check_edits, edit, edits_of, phases
from tests.server.agent.turn.cut_harness import WaitingStore

LOUDER = answer(text("TW", "O!"))


async def suggested(*calls, **options) -> OperationHarness:
    harness = await OperationHarness(*calls).ready()
    await harness.run(edit(mode="suggest", **options))
    return harness


async def test_it_streams_and_ends_with_the_suggestion_and_the_status_in_one_step() -> None:
    harness = await suggested(LOUDER)
    assert phases(harness.told.events) == ["start", "chunk", "annotations", "suggested"]
    start, *_, end = edits_of(harness.told.events)
    assert isinstance(start, EditStarted)
    assert (start.mode, start.version, start.selection) == ("suggest", 1, Selection(14, 18))
    (made,) = await harness.suggestions()
    assert end == EditSuggested(start.edit_id, "doc", start.selection, made.annotation_id)
    kinds = [type(event) for event in harness.told.events]
    assert kinds[kinds.index(AnnotationsChanged) :] == [
        AnnotationsChanged,
        EditSuggested,
        TranscriptAppended,
        StatusChanged,
    ]


async def test_the_suggestion_is_the_agents_and_the_artifact_stays_as_it_is() -> None:
    harness = await suggested(LOUDER)
    (made,) = await harness.suggestions()
    assert (made.writer, made.version, made.span, made.replacement) == (AGENT, 1, TWO, "TWO!")
    assert len(await harness.versions()) == 1
    assert harness.told.of(ArtifactChanged) == []


async def test_a_client_without_extensions_reads_what_was_suggested() -> None:
    harness = await suggested(LOUDER)
    label, _ = harness.told.of(StatusChanged)
    assert label.message.text == "Suggesting a change to notes.md…"
    assert harness.told.statuses == [
        ("completed", "Suggested a change to line 4 of notes.md (suggestion 1)."),
    ]


@pytest.mark.parametrize(("strategy", "at"), [("insert_before", TWO.start), ("insert_after", TWO.end)])
async def test_an_insertion_is_a_suggestion_for_an_empty_range(strategy, at) -> None:
    harness = await suggested(LOUDER, strategy=strategy)
    (made,) = await harness.suggestions()
    assert made.span == Span(at, at)
    assert made.replacement
    assert "TWO!" in made.replacement


@pytest.mark.parametrize(
    ("calls", "state"),
    [
        ([answer(text("T"), reason="max_tokens")], "failed"),
        ([broken(text("T"), BROKEN)] * 3, "failed"),
        ([answer(text("Two."))], "completed"),
    ],
    ids=["cut off", "broken", "unchanged"],
)
async def test_one_that_comes_to_nothing_is_aborted_and_leaves_nothing(calls, state) -> None:
    harness = await suggested(*calls)
    assert phases(harness.told.events)[-1] == "abort"
    assert harness.told.events[-1].state.value == state
    assert await harness.suggestions() == ()
    assert harness.told.of(ArtifactChanged) == []


async def test_wherever_a_cancel_comes_there_is_the_suggestion_and_the_status_or_neither() -> None:
    canceled = 0
    for at in count(1):
        harness = await OperationHarness(LOUDER, store=WaitingStore()).ready()
        harness.store.committed()
        running = asyncio.create_task(harness.run(edit(mode="suggest")))
        for _ in range(at):
            await asyncio.sleep(0)
        late = running.done()
        running.cancel()
        await asyncio.wait([running])
        check_edits(harness.told.events)
        assert len(harness.told.of(LlmCallCompleted)) == len(harness.llm.requests)
        canceled += running.cancelled()
        assert len(await harness.suggestions()) == (not running.cancelled())
        assert phases(harness.told.events)[-1:] in ([], ["abort"] if running.cancelled() else ["suggested"])
        if late:
            break
    assert canceled > 2


async def test_it_works_while_another_task_writes_the_artifact_and_quotes_its_newest_version() -> None:
    harness = await OperationHarness(LOUDER).ready()
    await harness.apply(AppendParts((text_part("Four."),)))
    operation = edit(mode="suggest")
    await check_operation(operation, "context", harness.store, harness.annotations)
    await harness.run(operation)
    (made,) = await harness.suggestions()
    assert (made.version, made.quote.exact) == (1, "Two.")
    assert (await harness.doc()).open


async def test_an_artifact_without_a_version_is_busy() -> None:
    harness = OperationHarness(LOUDER)
    await harness.apply(AppendParts((text_part(TEXT),)))
    await harness.run(edit(mode="suggest", base=None))
    assert harness.end.state.value == "rejected"
    assert "is being written by another task" in harness.end.message.text
    assert harness.llm.requests == []


async def test_a_version_that_others_make_meanwhile_does_not_matter() -> None:
    hold = Hold()
    harness = await OperationHarness(answer(text("TW"), hold, text("O!"))).ready()
    running = asyncio.create_task(harness.run(edit(mode="suggest")))
    await hold.reached.wait()
    await harness.apply(EditText(TWO, "Zwei.", 1))
    hold.release.set()
    await running
    (made,) = await harness.suggestions()
    assert (made.version, made.quote.exact) == (1, "Two.")


async def test_many_are_written_at_once() -> None:
    holds = [Hold() for _ in range(3)]
    store = InMemoryArtifactStore()
    await store.apply(Ref("context", "doc", "another-task"), ReplaceParts((text_part(TEXT),), last_chunk=True))
    harnesses = [OperationHarness(answer(text("TW"), hold, text("O!")), store=store) for hold in holds]
    running = [asyncio.create_task(each.run(edit(mode="suggest"))) for each in harnesses]
    for hold in holds:
        await hold.reached.wait()
    for hold in holds:
        hold.release.set()
    await asyncio.gather(*running)
    assert [len(await each.suggestions()) for each in harnesses] == [1, 1, 1]
