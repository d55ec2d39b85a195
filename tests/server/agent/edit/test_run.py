"""A task that is an operation: what is refused before it, and steps through the versions."""

import asyncio
from itertools import count, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.edit.run import check_operation
from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from a2a_canvas.server.agent.events import ArtifactChanged, AssistantOutput, State, StatusChanged, TranscriptAppended
from a2a_canvas.server.agent.intent import Operation, SelectionEdit
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.server.agent.operation_forms import InvalidOperation, SelectionRequest
from a2a_canvas.store.annotations.annotation_store import InMemoryAnnotations
from a2a_canvas.store.changes import AppendParts, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import DataPart, FilePart, Limits, text_part
from tests.fakes import answer, text
from tests.server.agent.edit.operation_harness import OTHER, TEXT, TWO, OperationHarness, edit, go, phases, put
from tests.server.agent.turn.cut_harness import WaitingStore

CANVAS = "urn:a2a-canvas:canvas:v1"
ONE_UP = TEXT + "Four.\n"


async def at_version(number: int, store: InMemoryArtifactStore | None = None) -> OperationHarness:
    """The artifact at its `number`-th version; each adds a line."""
    harness = await OperationHarness(store=store).ready()
    for n in range(2, number + 1):
        await harness.put(f"{(await harness.doc()).text}{n}\n")
    return harness


# ------------------------------------------------------- refused before there is a task


async def refused(operation: Operation, harness: OperationHarness, context: str = "context") -> InvalidOperation:
    with pytest.raises(InvalidOperation) as caught:
        await check_operation(operation, context, harness.store, InMemoryAnnotations())
    return caught.value


OPERATIONS = [edit(), go(Undo()), go(Redo()), go(Restore(1)), put("x")]


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_on_an_artifact_that_is_not_there_is_refused(operation) -> None:
    assert (await refused(operation, OperationHarness())).field == "artifactId"
    assert (await refused(operation, await OperationHarness().ready(), "elsewhere")).field == "artifactId"


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_one_that_can_be_done_is_not(operation) -> None:
    await check_operation(operation, "context", (await OperationHarness().ready()).store, InMemoryAnnotations())


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (edit(base=4), "baseVersion is 4 and must be 1 to 3."),
        (go(Undo(4)), "baseVersion is 4 and must be 1 to 3."),
        (go(Redo(9)), "baseVersion is 9 and must be 1 to 3."),
        (put("x", 4), "baseVersion is 4 and must be 1 to 3."),
        (go(Restore(4)), "version is 4 and must be 1 to 3."),
        (go(Restore(1, 4)), "baseVersion is 4 and must be 1 to 3."),
    ],
)
async def test_a_version_that_was_never_made_is_refused_with_those_that_were(operation, message) -> None:
    assert str(await refused(operation, await at_version(3))) == message


@pytest.mark.parametrize(
    ("selection", "field"),
    [
        (SelectionRequest(0, 999), "selection.end"),
        (SelectionRequest(line_start=99, line_end=99), "selection.lineStart"),
        (SelectionRequest(14, 18, line_start=1, line_end=4), "selection.lineStart"),
        (SelectionRequest(14, 18, text="Three."), "selection.text"),
    ],
)
async def test_a_selection_that_cannot_be_is_refused(selection, field) -> None:
    harness = await OperationHarness().ready()
    assert (await refused(SelectionEdit("doc", selection, "replace", "x", 1), harness)).field == field


@pytest.mark.parametrize("part", [FilePart(content=b"x", name="x.png"), DataPart({"a": 1})])
async def test_an_edit_of_an_artifact_without_text_is_refused(part) -> None:
    harness = OperationHarness()
    await harness.apply(ReplaceParts((part,), last_chunk=True))
    error = await refused(edit(), harness)
    assert str(error) == "artifactId names an artifact without text: there is nothing to select in it."


async def test_what_others_made_wrong_is_left_to_the_task_to_say() -> None:
    harness = await OperationHarness().ready()
    await harness.put("All new")
    await check_operation(edit(), "context", harness.store, InMemoryAnnotations())


# --------------------------------------------------------------------- while it is written


async def being_written(*, versions: int) -> OperationHarness:
    harness = await at_version(versions) if versions else OperationHarness()
    await harness.apply(AppendParts((text_part("More"),)))
    return harness


@pytest.mark.parametrize("versions", [0, 1, 2])
@pytest.mark.parametrize(
    "operation",
    [
        lambda base: edit(base=base),
        lambda base: go(Undo(base)),
        lambda base: go(Redo(base)),
        lambda base: go(Restore(base or 1, base)),
        lambda base: put("x", base),
    ],
)
async def test_what_another_task_is_writing_is_busy_also_for_who_names_the_version_that_comes(
    operation, versions
) -> None:
    for base in (None, versions + 1):
        harness = await being_written(versions=versions)
        before = await harness.doc()
        await check_operation(operation(base), "context", harness.store, InMemoryAnnotations())
        await harness.run(operation(base))
        assert harness.told.statuses == [
            ("rejected", "Artifact 'doc' is being written by another task. Try again when it is done.")
        ]
        now = {"artifactId": "doc", "artifactVersion": versions, "busy": True}
        assert dict(harness.end.message.metadata) == {CANVAS: now}
        assert await harness.doc() == before
        assert phases(harness.told.events) == []
        assert harness.llm.requests == []


async def test_the_version_after_the_one_that_comes_is_refused() -> None:
    harness = await being_written(versions=2)
    assert str(await refused(put("x", 4), harness)) == "baseVersion is 4 and must be 1 to 3."


# ---------------------------------------------------------------------------- versions


@pytest.mark.parametrize(
    ("operations", "said", "version", "words"),
    [
        ([go(Undo())], "Undone: notes.md is at version 2 again.", 2, "2\n"),
        ([go(Undo()), go(Undo())], "Undone: notes.md is at version 1 again.", 1, "Three.\n"),
        ([go(Undo()), go(Redo())], "Redone: notes.md is at version 3 again.", 3, "3\n"),
        ([go(Restore(1))], "Restored version 1 of notes.md as version 4.", 4, "Three.\n"),
        ([put("New")], "Saved notes.md as version 4.", 4, "New"),
        ([put("New", 3)], "Saved notes.md as version 4.", 4, "New"),
        ([go(Undo()), put("New", 2)], "Saved notes.md as version 4.", 4, "New"),
    ],
)
async def test_a_step_emits_one_replacement_and_says_what_it_did(operations, said, version, words) -> None:
    harness = await at_version(3)
    for operation in operations:
        harness.told.events.clear()
        await harness.run(operation)
    changed, remembered, ended = harness.told.events
    assert isinstance(changed, ArtifactChanged)
    assert (changed.append, changed.last_chunk, changed.version) == (False, True, version)
    assert remembered == TranscriptAppended((AssistantOutput(1, (ModelText(said),)),))
    assert (ended.state, ended.message.text, dict(ended.message.metadata)) == (State.COMPLETED, said, {})
    artifact = await harness.doc()
    assert (artifact.version, artifact.parts) == (version, changed.parts)
    assert artifact.text.endswith(words)
    assert harness.llm.requests == []


async def test_restore_and_put_make_versions_of_the_user_and_undo_makes_none() -> None:
    harness = await at_version(3)
    for operation in (go(Undo()), go(Restore(1)), put("New")):
        await harness.run(operation)
    made = [(version.number, version.parent, version.author, version.task_id) for version in await harness.versions()]
    assert made[3:] == [(4, 2, "user", "task"), (5, 4, "user", "task")]
    assert [event.author for event in harness.told.of(ArtifactChanged)] == ["agent", "user", "user"]


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ([go(Undo())] * 3, "There is nothing to undo: version 1 of artifact 'doc' is the first."),
        ([go(Redo())], "There is nothing to redo: version 3 of artifact 'doc' is the last."),
        ([go(Undo()), put("New"), go(Redo())], "There is nothing to redo: version 4 of artifact 'doc' is the last."),
    ],
)
async def test_at_the_ends_a_step_is_rejected_and_says_so(operations, said) -> None:
    harness = await at_version(3)
    *before, last = operations
    for operation in before:
        await harness.run(operation)
    harness.told.events.clear()
    artifact = await harness.doc()
    await harness.run(last)
    assert harness.told.statuses == [("rejected", said)]
    now = {"artifactId": "doc", "artifactVersion": artifact.version}
    assert dict(harness.end.message.metadata) == {CANVAS: now}
    assert phases(harness.told.events) == []
    assert await harness.doc() == artifact


@pytest.mark.parametrize("operation", [go(Undo(2)), go(Redo(2)), go(Restore(1, 2)), put("New", 2)])
async def test_a_step_from_another_version_than_the_current_one_is_rejected(operation) -> None:
    harness = await at_version(3)
    await check_operation(operation, "context", harness.store, InMemoryAnnotations())
    await harness.run(operation)
    assert harness.end.state is State.REJECTED
    assert "its current version is 3, and the change was made for version 2" in harness.end.message.text
    assert dict(harness.end.message.metadata) == {CANVAS: {"artifactId": "doc", "artifactVersion": 3}}
    assert len(await harness.versions()) == 3


@given(st.lists(st.text("ab\né😀", max_size=8), max_size=4), st.booleans())
async def test_what_is_put_is_what_stands_there_and_nothing_but_the_text_changes(texts, guarded) -> None:
    harness = await OperationHarness().ready()
    for words in texts:
        await harness.run(put(words, (await harness.doc()).version if guarded else None))
    versions = await harness.versions()
    assert [version.content.text for version in versions] == [text for text, _ in groupby([TEXT, *texts])]
    for version in versions:
        assert (version.content.name, version.content.description) == ("notes.md", "Notes")
        written = text_part(version.content.text, "text/markdown", {"k": "v"})
        assert version.content.parts == (written, DataPart({"a": 1}))


async def test_an_artifact_without_text_gets_one_by_put() -> None:
    harness = OperationHarness()
    await harness.apply(ReplaceParts((DataPart({"a": 1}),), last_chunk=True))
    await harness.run(put("New", 1))
    assert (await harness.doc()).parts == (DataPart({"a": 1}), text_part("New"))


async def test_what_is_too_large_to_put_fails() -> None:
    harness = await OperationHarness(limits=Limits(artifact_bytes=100)).ready()
    await harness.run(put("x" * 200))
    assert harness.end.state is State.FAILED
    assert "100 are allowed" in harness.end.message.text
    assert (await harness.doc()).text == TEXT


# ------------------------------------------------------------------- others meanwhile


class Raced(InMemoryArtifactStore):
    """Others do something just after the artifact was read, as often as there is something for them to do."""

    def __init__(self, *changes) -> None:
        super().__init__()
        self.changes = list(changes)

    async def get(self, ref):
        artifact = await super().get(ref)
        if ref.task_id == "task" and self.changes:
            await super().apply(OTHER, self.changes.pop(0))
        return artifact


async def test_a_put_without_a_version_is_made_of_what_others_leave() -> None:
    theirs = [ReplaceParts((text_part(f"Theirs {n}"),), last_chunk=True) for n in range(2)]
    harness = await OperationHarness(store=Raced(*theirs)).ready()
    await harness.run(put("Mine"))
    assert [version.content.text for version in await harness.versions()][1:] == ["Theirs 0", "Theirs 1", "Mine"]
    assert harness.end.state is State.COMPLETED


async def test_a_put_on_a_version_that_others_leave_meanwhile_is_rejected() -> None:
    harness = await OperationHarness(store=Raced(ReplaceParts((text_part("Theirs"),), last_chunk=True))).ready()
    await harness.run(put("Mine", 1))
    assert harness.end.state is State.REJECTED
    assert (await harness.doc()).text == "Theirs"


async def test_a_put_on_a_version_that_others_come_back_to_meanwhile_does_no_harm() -> None:
    harness = await OperationHarness(store=Raced(Undo())).ready()
    await harness.put("Something else altogether, and longer")
    await harness.run(put(ONE_UP, 1))
    assert harness.end.state is State.REJECTED
    assert (await harness.doc()).text == TEXT


# ------------------------------------------------------------------ an edit, as a task


async def test_an_edit_that_lost_its_passage_before_it_began_is_rejected_without_a_model_call() -> None:
    harness = await OperationHarness(answer(text("x"))).ready()
    await harness.put("All new")
    await harness.run(edit())
    assert harness.end.state is State.REJECTED
    assert "changed since version 1 and is now at version 2" in harness.end.message.text
    assert dict(harness.end.message.metadata) == {CANVAS: {"artifactId": "doc", "artifactVersion": 2}}
    assert harness.llm.requests == []
    assert phases(harness.told.events) == []


async def test_the_second_of_two_edits_from_one_version_lands_elsewhere_by_its_quote() -> None:
    harness = await OperationHarness(answer(text("ONE!")), answer(text("TWO!"))).ready()
    for span in (desk_span("One."), TWO):
        await harness.run(edit(span, base=1))
        harness.told.events.clear()
    assert (await harness.doc()).text == TEXT.replace("One.", "ONE!").replace("Two.", "TWO!")


def desk_span(words: str):
    start = TEXT.index(words)
    return type(TWO)(start, start + len(words))


async def test_the_second_of_two_edits_of_one_place_is_rejected() -> None:
    harness = await OperationHarness(answer(text("2!")), answer(text("TWO!"))).ready()
    await harness.run(edit(base=1))
    harness.told.events.clear()
    await harness.run(edit(base=1))
    assert harness.end.state is State.REJECTED
    assert (await harness.doc()).text == TEXT.replace("Two.", "2!")


# --------------------------------------------------------------------- faults and cancels


class Faulty(InMemoryArtifactStore):
    async def apply(self, ref, change):
        if ref.task_id == "task":
            raise OSError("disk full")
        return await super().apply(ref, change)


@pytest.mark.parametrize("operation", [go(Restore(1)), put("x")])
async def test_a_fault_of_the_store_fails_the_task_and_is_not_told_to_the_user(operation) -> None:
    harness = await OperationHarness(store=Faulty()).ready()
    await harness.run(operation)
    assert harness.told.statuses == [("failed", INTERNAL_ERROR)]


@pytest.mark.parametrize("operation", [go(Undo()), go(Restore(1)), put("x"), put("x", 2)])
async def test_whenever_a_cancel_comes_a_step_is_made_and_told_or_nothing_has_happened(operation) -> None:
    ends = set()
    for at in count(1):
        harness = await at_version(2, WaitingStore())
        harness.store.committed()
        running = asyncio.create_task(harness.run(operation))
        for _ in range(at):
            await asyncio.sleep(0)
        late = running.done()
        running.cancel()
        await asyncio.wait([running])
        ends.add(running.cancelled())
        if running.cancelled():
            assert harness.told.events == []
            assert (await harness.doc()).version == 2
        else:
            changed, _, ended = harness.told.events
            assert changed.parts == (await harness.doc()).parts
            assert ended == StatusChanged(State.COMPLETED, harness.end.message)
        if late:
            break
    assert ends == {True, False}
