"""What an agent changes through a suggesting store: suggestions that, accepted, make the text that it wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.store.annotations.annotation import AGENT, AnnotationsChanged
from a2a_canvas.store.annotations.annotation_store import InMemoryAnnotations
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.annotations.suggesting_store import SuggestingStore
from a2a_canvas.store.changes import AppendParts, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.edit_events import (
    EditAborted,
    EditChunk,
    EditEvent,
    EditStarted,
    EditSuggested,
    Selection,
)
from a2a_canvas.store.errors import PeopleDecide, TooManyAnnotations, VersionConflict
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import DataPart, Ref, text_part
from a2a_canvas.store.text.spans import Span, splice, to_codepoints
from tests.fakes import Clock, ids

TEXT = "One two.\nThree four.\n"
REF = Ref("c", "a", "t", "agent")
OTHER = Ref("c", "a", "other", "user")


class SuggestingTask:
    """A task that suggests, on the artifact `a`."""

    def __init__(self, store: InMemoryArtifactStore | None = None) -> None:
        self.artifacts = store or InMemoryArtifactStore()
        self.annotations, self.told = InMemoryAnnotations(), []
        evented = EventedArtifactStore(self.artifacts, self._listen)
        self.review = Review(evented, self.annotations, self._report, "c", "t", AGENT, Clock(), ids("n"))
        self.store = SuggestingStore(evented, self.review)

    async def ready(self, *texts: str) -> SuggestingTask:
        for text in texts or (TEXT,):
            await self.artifacts.apply(OTHER, ReplaceParts((text_part(text),), last_chunk=True))
        return self

    async def _listen(self, event) -> None:
        self.told.append(event)

    async def _report(self, change: AnnotationsChanged) -> None:
        self.told.append(change)
        self.annotations.write("c", "t", change)

    async def suggested(self) -> list[tuple[str, str | None]]:
        return [(each.quote.exact, each.replacement) for each in await self.annotations.list("c", "a")]

    def shown(self, old: str) -> list[str]:
        """The text that subscribers saw of each edit: `old[:start] + chunks + old[end:]`, whose end is reported."""
        edits = [event for event in self.told if isinstance(event, EditEvent)]
        texts = []
        for start in (event for event in edits if isinstance(event, EditStarted)):
            mine = [event for event in edits if event.edit_id == start.edit_id]
            assert (start.mode, start.version) == ("suggest", 1)
            assert isinstance(mine[-1], EditSuggested | EditAborted)
            at = [to_codepoints(old, place, "utf16") for place in (start.selection.start, start.selection.end)]
            texts.append(splice(old, Span(*at), "".join(each.chunk for each in mine if isinstance(each, EditChunk))))
        return texts

    async def text(self) -> str:
        return (await self.artifacts.get(REF)).text

    async def accepted(self) -> str:
        """The text once everything is accepted."""
        await self.review.accept_all("a")
        return await self.text()


async def test_a_rewrite_is_a_suggestion_for_each_hunk_and_changes_nothing() -> None:
    task = await SuggestingTask().ready()
    applied = await task.store.apply(REF, ReplaceParts((text_part(TEXT.replace("One", "1").replace("four", "4")),)))
    assert (applied.suggestions, applied.version) == ((1, 2), 1)
    assert await task.suggested() == [("One", "1"), ("four", "4")]
    assert await task.text() == TEXT
    assert [type(event) for event in task.told] == [AnnotationsChanged]


async def test_a_rewrite_that_changes_nothing_suggests_nothing() -> None:
    task = await SuggestingTask().ready()
    assert (await task.store.apply(REF, ReplaceParts((text_part(TEXT),)))).suggestions == ()
    assert await task.suggested() == []


pieces = st.lists(st.text("ab .\n", max_size=6), max_size=4)


@given(st.text("ab .\n", max_size=20), pieces, st.booleans())
async def test_however_a_call_is_cut_what_it_wrote_is_what_accepting_makes(old, written, replaces) -> None:
    task = await SuggestingTask().ready(old)
    kind = ReplaceParts if replaces else AppendParts
    await task.store.apply(REF, kind((text_part(""),), done=False))
    for piece in written:
        await task.store.apply(REF, AppendParts((text_part(piece),), done=False))
    await task.store.complete_call(REF)
    assert await task.text() == old
    new = ("" if replaces else old) + "".join(written)
    for shown in task.shown(old):
        assert shown == new
    assert await task.accepted() == new


async def test_what_is_appended_in_several_calls_is_one_insertion() -> None:
    task = await SuggestingTask().ready()
    for words in ("Five.\n", "Six.\n"):
        applied = await task.store.apply(REF, AppendParts((text_part(words),), last_chunk=True))
        assert applied.suggestions == (1,)
    assert await task.suggested() == [("", "Five.\nSix.\n")]


async def test_a_long_rewrite_in_several_calls_is_whole_once_accepted() -> None:
    task = await SuggestingTask().ready()
    await task.store.apply(REF, ReplaceParts((text_part("One two.\n"),)))
    await task.store.apply(REF, AppendParts((text_part("Drei vier.\n"),), last_chunk=True))
    assert await task.accepted() == "One two.\nDrei vier.\n"


async def test_a_call_that_is_cut_off_leaves_nothing() -> None:
    task = await SuggestingTask().ready()
    await task.store.apply(REF, ReplaceParts((text_part("On"),), done=False))
    assert await task.store.discard(REF) is None
    assert await task.store.close(REF) is None
    assert (await task.suggested(), task.told) == ([], [])


async def write(task: SuggestingTask, *pieces: str) -> None:
    """A rewrite that has not ended."""
    for at, piece in enumerate(pieces):
        kind = AppendParts if at else ReplaceParts
        await task.store.apply(REF, kind((text_part(piece),), done=False))


async def test_a_rewrite_is_seen_as_it_grows_from_the_first_line_that_differs() -> None:
    task = await SuggestingTask().ready("😀 one.\nTwo.\nThree.\n")
    await write(task, "😀 o", "ne.\nTw")
    assert task.told == []
    await write_on(task, "ice.\n", "Drei")
    started, *grown = task.told
    place = Selection(8, 20)
    assert started == EditStarted(started.edit_id, "a", place, "replace", 1, "suggest")
    assert grown == [EditChunk(started.edit_id, "a", place, chunk) for chunk in ("Twice.\n", "Drei")]
    await write_on(task, ".\n")
    await task.store.complete_call(REF)
    *_, suggested, ended = task.told
    assert isinstance(suggested, AnnotationsChanged)
    assert ended == EditSuggested(started.edit_id, "a", place, suggested.changed[0].annotation_id)
    assert await task.suggested() == [("Two", "Twice"), ("Three", "Drei")]


async def write_on(task: SuggestingTask, *pieces: str) -> None:
    for piece in pieces:
        await task.store.apply(REF, AppendParts((text_part(piece),), done=False))


async def test_what_was_seen_of_a_call_that_is_cut_off_or_begins_again_is_taken_back() -> None:
    task = await SuggestingTask().ready()
    await write(task, "Another")
    await write(task, "A third")
    await task.store.discard(REF)
    kinds = [EditStarted, EditChunk, EditAborted]
    assert [type(event) for event in task.told] == [*kinds, *kinds]
    assert await task.suggested() == []


async def test_what_was_seen_of_suggestions_that_are_refused_is_taken_back() -> None:
    task = await SuggestingTask().ready()
    await write(task, "Another")
    task.review.suggest = refuse
    with pytest.raises(TooManyAnnotations):
        await task.store.complete_call(REF)
    assert isinstance(task.told[-1], EditAborted)


async def refuse(*_) -> None:
    raise TooManyAnnotations("a", 1)


async def test_a_restored_version_is_suggested_by_hunk() -> None:
    task = await SuggestingTask().ready("One.\n", "Two.\n")
    assert (await task.store.apply(REF, Restore(1))).suggestions == (1,)
    assert await task.accepted() == "One.\n"


@pytest.mark.parametrize("step", [Undo(), Redo()])
async def test_only_people_undo_and_redo(step) -> None:
    task = await SuggestingTask().ready("One.\n", "Two.\n")
    with pytest.raises(PeopleDecide):
        await task.store.apply(REF, step)
    assert await task.text() == "Two.\n"


async def test_an_edit_of_a_range_is_one_suggestion() -> None:
    task = await SuggestingTask().ready()
    await task.store.apply(REF, EditText(Span(0, 3), "1", 1))
    assert await task.suggested() == [("One", "1")]


async def test_a_version_that_the_model_has_not_seen_is_a_conflict() -> None:
    task = await SuggestingTask().ready("One.\n", "Two.\n")
    with pytest.raises(VersionConflict):
        await task.store.apply(REF, ReplaceParts((text_part("Three.\n"),), base=1))


async def test_a_first_version_is_written_as_always() -> None:
    task = SuggestingTask()
    await task.store.apply(REF, ReplaceParts((text_part("One."),), done=False))
    await task.store.apply(REF, AppendParts((text_part(" Two."),)))
    applied = await task.store.close(REF)
    assert (applied.version, applied.suggestions) == (1, None)
    assert await task.text() == "One. Two."


async def test_files_and_data_are_changed_as_always_beside_the_suggestions() -> None:
    task = await SuggestingTask().ready()
    applied = await task.store.apply(REF, ReplaceParts((text_part("New."), DataPart([1])), last_chunk=True))
    assert (applied.version, bool(applied.suggestions)) == (2, True)
    artifact = await task.artifacts.get(REF)
    assert (artifact.text, artifact.parts[-1]) == (TEXT, DataPart([1]))
    assert await task.accepted() == "New."


async def test_it_suggests_while_another_task_writes() -> None:
    task = await SuggestingTask().ready()
    await task.artifacts.apply(OTHER, AppendParts((text_part("Draft"),)))
    await task.store.apply(REF, ReplaceParts((text_part(TEXT.replace("One", "1")),)))
    assert await task.suggested() == [("One", "1")]


async def test_what_users_change_is_changed() -> None:
    task = await SuggestingTask().ready()
    await task.store.apply(OTHER, EditText(Span(0, 3), "1", 1))
    assert (await task.artifacts.get(REF)).version == 2
