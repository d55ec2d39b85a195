"""An edit of a range, from its announcement to its one change, alone and among others."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.changes import EditText, Undo
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Selection, Strategy
from a2a_canvas.store.errors import ArtifactBusy, ArtifactTooLarge, PassageLost
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import AppliedChange, Artifact, Limits, Ref
from a2a_canvas.store.text.spans import Span, Unit, from_codepoints
from a2a_canvas.tools.edit_stream import EditStream, EditTarget, updated_content
from tests.property_examples import examples
from tests.store.artifact_builders import appending, by, delta, replacing, result
from tests.tools.tool_calls import RecordingListener, workspace

TEXTS = st.text("ab é😀\r\n", max_size=8)
STRATEGIES = st.sampled_from(get_args(Strategy))
UNITS = st.sampled_from(get_args(Unit))

FIRST, SECOND = "The first sentence.", "And the second one."
TEXT = f"# Title\n\n{FIRST} {SECOND}\n"


def span_of(quote: str, text: str = TEXT) -> Span:
    return Span(text.index(quote), text.index(quote) + len(quote))


async def saved(text: str = TEXT, limits: Limits | None = None) -> InMemoryArtifactStore:
    """A store with one artifact of one version."""
    store = InMemoryArtifactStore(limits)
    await store.apply(by("t0"), replacing(text, last_chunk=True))
    return store


async def opened(
    store: InMemoryArtifactStore, quote: str, *pieces: str, task: str = "t1", strategy: Strategy = "replace"
) -> tuple[EditStream, RecordingListener]:
    """An edit that has been announced, with the pieces written so far."""
    watcher = RecordingListener()
    artifact = await store.get(by(task))
    target = EditTarget("a", artifact.version, artifact.text, span_of(quote, artifact.text))
    edit = EditStream(workspace(store, task, watcher), target, strategy)
    await edit.start()
    for piece in pieces:
        await edit.feed(piece)
    return edit, watcher


# ------------------------------------------------------------------------------------------------ the law


def in_units(text: str, unit: Unit) -> list[str]:
    """A text as its sender indexes it."""
    if unit == "codepoint":
        return list(text)
    encoded = text.encode("utf-16-be")
    return [encoded[at : at + 2].hex() for at in range(0, len(encoded), 2)]


@given(TEXTS, STRATEGIES, UNITS, st.lists(TEXTS, max_size=4), st.data())
@settings(max_examples=examples(200))
def test_what_is_told_makes_the_new_text_of_the_old_one(
    old: str, strategy: Strategy, unit: Unit, pieces: list[str], data: st.DataObject
) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(old))] * 2)))
    watcher, store = RecordingListener(), result(saved(old))
    edit = EditStream(workspace(store, watcher=watcher), EditTarget("a", 1, old, Span(start, end), unit), strategy)

    async def play() -> AppliedChange:
        await edit.start()
        for piece in pieces:
            await edit.feed(piece)
        return await edit.complete()

    applied = result(play())
    selection = Selection(from_codepoints(old, start, unit), from_codepoints(old, end, unit), unit)
    (started,), chunks = watcher.edits(EditStarted), watcher.edits(EditChunk)
    (completed,) = watcher.edits(EditCompleted)
    assert isinstance(completed, EditCompleted)
    assert started == EditStarted("edit-1", "a", selection, strategy, 1)
    assert [chunk.chunk for chunk in chunks] == [piece for piece in pieces if piece]  # type: ignore[union-attr]
    assert {event.selection for event in watcher.edits()} == {selection}
    units, new = in_units(old, unit), in_units(applied.artifact.text, unit)
    assert [*units[: selection.start], *in_units(completed.updated_content, unit), *units[selection.end :]] == new
    assert new[completed.written.start : completed.written.end] == in_units("".join(pieces), unit)
    written = "".join(pieces)
    assert applied.artifact.text == old[:start] + updated_content(old[start:end], written, strategy) + old[end:]
    if strategy == "replace":
        assert completed.updated_content == written


def test_the_three_strategies() -> None:
    assert [updated_content("old", "new", strategy) for strategy in get_args(Strategy)] == ["new", "newold", "oldnew"]


async def test_watchers_see_start_chunks_complete_and_then_the_one_change() -> None:
    store = await saved()
    edit, watcher = await opened(store, FIRST, "A ", "", "better one.")
    assert watcher.open == {"edit-1": "A better one."}
    assert (await store.get(by("t1"))).text == TEXT
    applied = await edit.complete()
    assert watcher.kinds == ["EditStarted", "EditChunk", "EditChunk", "EditCompleted", "AppliedChange"]
    assert watcher.told[-1] == applied
    assert (applied.append, applied.last_chunk, applied.version, applied.author) == (False, True, 2, "agent")
    assert watcher.reads().text == TEXT.replace(FIRST, "A better one.") == (await store.get(by("t1"))).text
    assert len(await store.versions(by("t1"))) == 2


async def test_an_edit_is_written_in_the_name_of_its_task_and_author() -> None:
    store = await saved()
    edit = EditStream(workspace(store), EditTarget("a", 1, TEXT, span_of(FIRST)), "replace", "user")
    await edit.start()
    await edit.complete()
    made = await store.version(by("t1"), 2)
    assert (made.author, made.task_id, made.parent) == ("user", "t1", 1)


async def test_what_no_transport_carries_is_mended_in_the_chunk_as_in_the_text() -> None:
    edit, watcher = await opened(await saved(), FIRST, "\ud83d!")
    applied = await edit.complete()
    assert [chunk.chunk for chunk in watcher.edits(EditChunk)] == ["\ufffd!"]  # type: ignore[union-attr]
    assert applied.artifact.text == TEXT.replace(FIRST, "\ufffd!")


# ----------------------------------------------------------------------------------------- among others


@pytest.mark.parametrize("strategy", get_args(Strategy))
async def test_of_edits_at_different_places_the_second_lands_by_its_quote(strategy: Strategy) -> None:
    store = await saved()
    one, _ = await opened(store, FIRST, "A much longer first sentence 😀.", strategy=strategy)
    two, watcher = await opened(store, SECOND, "Second!", task="t2", strategy=strategy)
    between = (await one.complete()).artifact.text
    await two.complete()
    expected = TEXT.replace(FIRST, updated_content(FIRST, "A much longer first sentence 😀.", strategy))
    assert (await store.get(by("t1"))).text == expected.replace(SECOND, updated_content(SECOND, "Second!", strategy))
    (started,), (completed,) = watcher.edits(EditStarted), watcher.edits(EditCompleted)
    assert isinstance(completed, EditCompleted)
    at = len(between[: between.index(SECOND)].encode("utf-16-le")) // 2
    assert completed.selection == Selection(at, at + len(SECOND))
    assert completed.selection != started.selection
    assert [version.parent for version in await store.versions(by("t1"))] == [0, 1, 2]


async def test_of_edits_at_the_same_place_the_second_is_lost_and_changes_nothing() -> None:
    store = await saved()
    one, _ = await opened(store, FIRST, "One.")
    two, watcher = await opened(store, FIRST, "Two.", task="t2")
    await one.complete()
    with pytest.raises(PassageLost, match="Nothing was changed") as caught:
        await two.complete()
    assert (caught.value.artifact_id, caught.value.base, caught.value.current) == ("a", 1, 2)
    await two.abort()
    assert watcher.kinds == ["EditStarted", "EditChunk", "EditAborted", "AppliedChange"]
    assert watcher.reads().text == TEXT.replace(FIRST, "One.") == (await store.get(by("t1"))).text


@pytest.mark.parametrize(("strategy", "text"), [("insert_before", "Before. One."), ("insert_after", "One. After.")])
async def test_an_insertion_leaves_the_passage_for_others_to_edit(strategy: Strategy, text: str) -> None:
    store = await saved()
    one, _ = await opened(store, FIRST, "Before. " if strategy == "insert_before" else " After.", strategy=strategy)
    two, _ = await opened(store, FIRST, "One.", task="t2")
    await one.complete()
    await two.complete()
    assert (await store.get(by("t1"))).text == TEXT.replace(FIRST, text)


async def test_an_edit_that_others_undo_meanwhile_is_followed_from_version_to_version() -> None:
    store = await saved()
    edit, _ = await opened(store, SECOND, "Second!")
    for change in (EditText(Span(0, 7), "# Another title", 1), Undo(), EditText(Span(0, 0), "Foreword\n", 1)):
        await store.apply(by("t2"), change)
    await edit.complete()
    assert (await store.get(by("t1"))).text == "Foreword\n" + TEXT.replace(SECOND, "Second!")


async def test_while_another_task_writes_the_edit_is_refused_and_can_be_aborted() -> None:
    store = await saved()
    edit, watcher = await opened(store, FIRST, "One.")
    await store.apply(by("t2"), delta(appending("half a")))
    with pytest.raises(ArtifactBusy):
        await edit.complete()
    assert watcher.kinds == ["EditStarted", "EditChunk"]
    await edit.abort()
    assert watcher.reads().text == TEXT, "what the other task has not finished is shown"


class Racing(InMemoryArtifactStore):
    """A store in which, whenever somebody looks, another task is writing, and takes that back right after."""

    async def get(self, ref: Ref) -> Artifact:
        await self.apply(by("t3"), delta(replacing(f"half of {SECOND}")))
        seen = await super().get(ref)
        await self.discard(by("t3"))
        return seen


async def test_what_another_task_writes_and_takes_back_never_says_where_an_edit_goes() -> None:
    store = Racing()
    for text in (TEXT, f"Foreword\n{TEXT}"):
        await store.apply(by("t0"), replacing(text, last_chunk=True))
    edit = EditStream(workspace(store), EditTarget("a", 1, TEXT, span_of(SECOND)), "replace")
    await edit.start()
    await edit.feed("Second!")
    applied = await edit.complete()
    assert applied.artifact.text == "Foreword\n" + TEXT.replace(SECOND, "Second!")


async def test_a_draft_of_the_same_task_becomes_a_version_before_the_edit() -> None:
    store = await saved()
    place = workspace(store)
    await place.store.apply(by("t1"), appending("More.\n"))
    artifact = await store.get(by("t1"))
    edit = EditStream(place, EditTarget("a", artifact.version, artifact.text, span_of(FIRST)), "replace")
    await edit.start()
    await edit.feed("One.")
    await edit.complete()
    versions = await store.versions(by("t1"))
    assert [version.content.text for version in versions[1:]] == [
        TEXT + "More.\n",
        TEXT.replace(FIRST, "One.") + "More.\n",
    ]


# ---------------------------------------------------------------------------------------------- aborting


async def test_an_edit_that_is_aborted_shows_the_artifact_as_it_stands_and_changes_nothing() -> None:
    store = await saved()
    before = await store.versions(by("t1"))
    edit, watcher = await opened(store, FIRST, "One")
    await edit.abort()
    assert watcher.kinds == ["EditStarted", "EditChunk", "EditAborted", "AppliedChange"]
    assert watcher.edits(EditAborted) == [EditAborted("edit-1", "a", Selection(9, 9 + len(FIRST)))]
    (shown,) = watcher.changes()
    assert (shown.append, shown.last_chunk, shown.version) == (False, True, 1)
    assert watcher.reads().text == TEXT
    assert await store.versions(by("t1")) == before


async def test_an_edit_that_is_tried_again_at_once_shows_nothing_in_between() -> None:
    edit, watcher = await opened(await saved(), FIRST, "One")
    await edit.abort(again=True)
    assert watcher.kinds == ["EditStarted", "EditChunk", "EditAborted"]


async def test_each_edit_of_a_workspace_has_an_id_of_its_own() -> None:
    store, watcher = await saved(), RecordingListener()
    place = workspace(store, watcher=watcher)
    for _ in range(2):
        edit = EditStream(place, EditTarget("a", 1, TEXT, span_of(FIRST)), "replace")
        await edit.start()
        await edit.abort(again=True)
    assert [event.edit_id for event in watcher.edits(EditStarted)] == ["edit-1", "edit-2"]


async def test_an_edit_that_makes_the_artifact_too_large_is_refused_and_still_open() -> None:
    store = await saved(limits=Limits(artifact_bytes=len(TEXT)))
    edit, watcher = await opened(store, FIRST, FIRST, "!")
    with pytest.raises(ArtifactTooLarge):
        await edit.complete()
    assert list(watcher.open) == ["edit-1"]
    await edit.abort()
    assert watcher.open == {}
    assert watcher.reads().text == TEXT


async def test_a_version_that_others_make_while_the_passage_is_looked_for_costs_nothing() -> None:
    class Meanwhile(InMemoryArtifactStore):
        """Another task's edit lands right after the versions have been read."""

        looked = False

        async def versions(self, ref: Ref):
            found = await super().versions(ref)
            if not self.looked:
                self.looked = True
                await self.apply(by("t2"), EditText(span_of("# "), "## ", 2))
            return found

    store = Meanwhile()
    await store.apply(by("t0"), replacing(TEXT, last_chunk=True))
    edit, _ = await opened(store, SECOND, "Done.")
    await store.apply(by("t2"), EditText(span_of("Title"), "Head", 1))
    await edit.complete()
    assert (await store.get(by("t1"))).text == f"## Head\n\n{FIRST} Done.\n"
