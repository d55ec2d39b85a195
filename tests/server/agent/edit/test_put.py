"""A user's own text as a new version, merged with what others have changed since."""

from __future__ import annotations

from typing import NoReturn

import pytest

from a2a_canvas.server.agent.edit.put import MAX_PLACES, MAX_TEXTS, conflicts_json
from a2a_canvas.server.agent.events import ArtifactChanged, State
from a2a_canvas.server.agent.intent import Put, Upload
from a2a_canvas.store.changes import EditText, Redo, Undo
from a2a_canvas.store.errors import VersionPruned
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.merge import Conflict
from a2a_canvas.store.models import Content, DataPart, FilePart, Limits, Ref, text_part
from a2a_canvas.store.text.spans import Span
from a2a_canvas.store.tracking import track
from tests.server.agent.edit.operation_harness import TEXT, OperationHarness, put
from tests.server.agent.edit.test_run import Raced

CANVAS = "urn:a2a-canvas:canvas:v1"
THEIRS = TEXT.replace("One.", "Number one.")
MINE = TEXT.replace("Three.", "Three!\nFour.")
PNG = FilePart(b"\x89PNG", name="a.png", media_type="image/png")
BOTH = THEIRS.replace("Three.", "Three!\nFour.")


def merging(text: str, base: int) -> Put:
    return Put("doc", text, base, merge=True)


async def changed_by_others(store: InMemoryArtifactStore | None = None) -> OperationHarness:
    """The artifact at version 2, of which others have made `THEIRS`."""
    harness = await OperationHarness(store=store).ready()
    await harness.put(THEIRS)
    return harness


# ------------------------------------------------------------------------------ merged


async def test_on_the_current_version_it_is_a_put_like_any_other() -> None:
    harness = await OperationHarness().ready()
    await harness.run(merging(MINE, 1))
    assert harness.told.statuses == [("completed", "Saved notes.md as version 2.")]
    assert (await harness.doc()).text == MINE


async def test_what_others_have_changed_elsewhere_is_kept() -> None:
    harness = await changed_by_others()
    await harness.run(merging(MINE, 1))
    assert harness.told.statuses == [("completed", "Merged with version 2: version 3 is saved.")]
    [changed] = harness.told.of(ArtifactChanged)
    assert (changed.version, changed.parent, changed.author, changed.last_chunk) == (3, 2, "user", True)
    assert (await harness.doc()).parts == (text_part(BOTH, "text/markdown", {"k": "v"}), DataPart({"a": 1}))


async def test_several_versions_later_and_after_an_undo() -> None:
    harness = await changed_by_others()
    await harness.put(THEIRS.replace("Two.", "2."))
    await harness.apply(Undo())
    await harness.run(merging(MINE, 1))
    assert harness.told.statuses == [("completed", "Merged with version 2: version 4 is saved.")]
    assert (await harness.doc()).text == BOTH


async def test_what_others_have_taken_back_is_a_change_as_well() -> None:
    harness = await changed_by_others()
    await harness.apply(Undo())
    await harness.run(merging(THEIRS.replace("Three.", "Three!"), 2))
    assert harness.told.statuses == [("completed", "Merged with version 1: version 3 is saved.")]
    assert (await harness.doc()).text == TEXT.replace("Three.", "Three!")


async def test_what_others_make_meanwhile_is_merged_with_too() -> None:
    theirs = EditText(Span(THEIRS.index("Two."), THEIRS.index("Two.") + 4), "2.", 2)
    harness = await changed_by_others(Raced(theirs, Undo(), Redo()))
    await harness.run(merging(MINE, 1))
    assert harness.told.statuses == [("completed", "Merged with version 3: version 4 is saved.")]
    assert (await harness.doc()).text == BOTH.replace("Two.", "2.")


async def test_large_texts_too() -> None:
    base = "".join(f"Line {number}\n" for number in range(20_000))
    harness = await OperationHarness(text=base).ready()
    await harness.put(base.replace("Line 3\n", "Line three\n"))
    await harness.run(merging(base.replace("Line 19000\n", ""), 1))
    assert (await harness.doc()).text == base.replace("Line 3\n", "Line three\n").replace("Line 19000\n", "")


# ------------------------------------------------------------------------- nothing new

DATA = Upload("doc", (DataPart({"a": 1}),), None)


@pytest.mark.parametrize(
    "operation",
    [put(THEIRS), put(THEIRS, 2), merging(THEIRS, 2), merging(TEXT, 1), merging(THEIRS, 1), DATA],
    ids=["text", "on the current", "merging", "an old text", "what others have made of it", "data"],
)
async def test_what_the_current_version_is_already_makes_no_version(operation: Put | Upload) -> None:
    harness = await changed_by_others()
    before = await harness.doc()
    await harness.run(operation)
    assert harness.told.statuses == [
        ("completed", "Nothing has changed: all of it is in version 2 of notes.md already.")
    ]
    assert dict(harness.end.message.metadata) == {CANVAS: {"artifactId": "doc", "artifactVersion": 2}}
    assert harness.told.of(ArtifactChanged) == []
    assert (await harness.doc(), len(await harness.versions())) == (before, 2)


async def test_the_undone_versions_can_be_redone_after_it() -> None:
    harness = await changed_by_others()
    await harness.apply(Undo())
    await harness.run(put(TEXT))
    await harness.apply(Redo())
    assert (await harness.doc()).text == THEIRS


@pytest.mark.parametrize(
    "operation",
    [Upload("doc", (DataPart({"a": True}),), None), Upload("doc", (DataPart({"a": 1}, "text/csv"),), None)],
    ids=["value", "media type"],
)
async def test_data_of_another_kind_is_something_new(operation: Upload) -> None:
    harness = await changed_by_others()
    await harness.run(operation)
    assert len(await harness.versions()) == 3


async def test_an_empty_text_is_something_new_where_there_is_none() -> None:
    harness = OperationHarness()
    await harness.run(Upload("doc", (PNG,), None, "picture"))
    await harness.run(put(""))
    assert (await harness.doc()).parts == (PNG, text_part(""))


async def test_the_version_that_is_named_is_a_guard_there_too() -> None:
    harness = await changed_by_others()
    for operation in (put(THEIRS, 1), Upload("doc", DATA.parts, 1)):
        await harness.run(operation)
        assert harness.end.state is State.REJECTED


# ---------------------------------------------------------------------------- conflicts


async def test_where_both_have_changed_the_same_place_nothing_is_saved_and_both_texts_are_told() -> None:
    harness = await changed_by_others()
    await harness.run(merging(TEXT.replace("One.", "No. 1.").replace("Two.", "2."), 1))
    assert harness.told.statuses == [
        (
            "rejected",
            "Version 2 of artifact 'doc' and your text change the same place, line 3 of version 1. Nothing was saved. "
            "Take over what you want of version 2, and put the result on top of it.",
        )
    ]
    conflict = {"start": 9, "end": 12, "base": "One", "current": "Number one", "yours": "No. 1"}
    now = {"artifactId": "doc", "artifactVersion": 2, "conflicts": [conflict]}
    assert dict(harness.end.message.metadata) == {CANVAS: now}
    assert (await harness.doc()).text == THEIRS
    assert len(await harness.versions()) == 2


async def test_of_several_places_all_are_told() -> None:
    harness = await changed_by_others()
    await harness.put(THEIRS.replace("Three.", "3."))
    await harness.run(merging("# Notes\n\nZero.\nTwo.\nIII.\n", 1))
    assert "change the same 2 places, the first in line 3 of version 1" in harness.end.message.text
    told = dict(harness.end.message.metadata)[CANVAS]
    assert [(each["base"], each["current"], each["yours"]) for each in told["conflicts"]] == [
        ("One", "Number one", "Zero"),
        ("Three", "3", "III"),
    ]


async def test_without_merge_it_is_rejected_as_ever() -> None:
    harness = await changed_by_others()
    await harness.run(put(MINE, 1))
    assert harness.end.state is State.REJECTED
    assert dict(harness.end.message.metadata) == {CANVAS: {"artifactId": "doc", "artifactVersion": 2}}


async def test_on_a_version_that_is_no_longer_kept_it_is_rejected() -> None:
    class Pruned(InMemoryArtifactStore):
        async def version(self, ref: Ref, number: int) -> NoReturn:
            raise VersionPruned(ref.artifact_id, number, 2)

    harness = await changed_by_others(Pruned())
    await harness.run(merging(MINE, 1))
    assert harness.end.state is State.REJECTED
    assert "Version 1 of artifact 'doc' is no longer kept" in harness.end.message.text
    assert (await harness.doc()).text == THEIRS


def test_places_are_counted_in_utf16() -> None:
    assert conflicts_json("😀 a 😀 b", [Conflict(4, "😀", "x", "y")]) == [
        {"start": 5, "end": 7, "base": "😀", "current": "x", "yours": "y"}
    ]


def test_of_many_places_the_first_are_told_and_of_long_ones_the_texts_are_left_out() -> None:
    short = [Conflict(2 * n, "a", "b", "c") for n in range(MAX_PLACES + 1)]
    assert len(conflicts_json("a " * len(short), short)) == MAX_PLACES
    first, second = conflicts_json("a" * MAX_TEXTS, [Conflict(0, "a", "b", "c"), Conflict(2, "a" * MAX_TEXTS, "", "c")])
    assert first == {"start": 0, "end": 1, "base": "a", "current": "b", "yours": "c"}
    assert second == {"start": 2, "end": MAX_TEXTS + 2}


# ------------------------------------------------------------------------- files and data


async def test_files_and_data_make_an_artifact_that_is_not_there() -> None:
    harness = OperationHarness()
    await harness.run(Upload("doc", (PNG, DataPart([1])), None, "picture"))
    assert harness.told.statuses == [("completed", "Saved picture as version 1.")]
    [version] = await harness.versions()
    assert (version.author, version.content) == ("user", Content("picture", "", (PNG, DataPart([1]))))


@pytest.mark.parametrize("base", [None, 1])
async def test_they_replace_those_that_are_there_and_leave_the_rest(base: int | None) -> None:
    harness = await OperationHarness().ready()
    await harness.run(Upload("doc", (DataPart([1]), DataPart([2])), base, None if base else "ignored"))
    artifact = await harness.doc()
    assert (artifact.version, artifact.name, artifact.text) == (2, "notes.md", TEXT)
    assert artifact.parts[1:] == (DataPart([1]), DataPart([2]))


async def test_on_another_version_than_the_current_one_they_are_rejected() -> None:
    harness = await changed_by_others()
    await harness.run(Upload("doc", (PNG,), 1))
    assert dict(harness.end.message.metadata) == {CANVAS: {"artifactId": "doc", "artifactVersion": 2}}
    assert len(await harness.versions()) == 2


async def test_what_others_make_meanwhile_does_not_stand_in_their_way() -> None:
    harness = await changed_by_others(Raced(Undo()))
    await harness.run(Upload("doc", (PNG,), None))
    assert (await harness.versions())[-1].parent == 1


@pytest.mark.parametrize(
    ("limits", "state"), [(Limits(artifact_bytes=3), State.FAILED), (Limits(parts=0), State.REJECTED)]
)
async def test_more_than_an_artifact_may_have_is_not_saved(limits: Limits, state: State) -> None:
    harness = OperationHarness(limits=limits)
    await harness.run(Upload("doc", (PNG,), None, "picture"))
    assert harness.end.state is state


# ------------------------------------------------------------------------------ tracked


async def test_a_put_edits_no_passage_so_what_stands_between_its_changes_is_found_again() -> None:
    harness = await OperationHarness().ready()
    await harness.run(put(TEXT.replace("One.", "Number one.").replace("Three.", "Three!"), 1))
    at = TEXT.index("Two.")
    found = await track(await harness.versions(), 1, 2, Span(at, at + 4), "Two.")
    assert found
    assert found.extract((await harness.doc()).text) == "Two."
