"""Documents as rows: what is written is what is read again, and nothing is written twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store import mutation
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, Restore, Undo
from a2a_canvas.store.errors import VersionPruned
from a2a_canvas.store.models import DataPart, Document, FilePart, TextEdit
from a2a_canvas.store.sql.rows import (
    FULL_EVERY,
    ArtifactHead,
    Piece,
    RowChanges,
    StoredDocument,
    VersionRow,
    content_of,
    document_of,
    find_appended,
    row_changes,
)
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples
from tests.store.artifact_builders import appending, by, delta, replacing, text
from tests.store.sql.random_steps import LIMITS, STEPS, Step, done


class Rows:
    """A database for one artifact. `volume` is how many characters of content were written to it in all."""

    def __init__(self) -> None:
        self.head = ArtifactHead()
        self.versions: list[VersionRow] = []
        self.pieces: list[Piece] = []
        self.volume = 0
        self._stored = StoredDocument(Document("a"))

    def save(self, document: Document) -> RowChanges:
        made = row_changes(self._stored, document, changed=1, holder=None)
        if made.cut is not None:
            assert made.cut < len(self.pieces)
            self.pieces = self.pieces[: made.cut]
        self.pieces += made.pieces
        assert [piece.seq for piece in self.pieces] == [*range(len(self.pieces))]
        self.versions += made.versions
        self.head, self._stored = made.head, made.after
        self.volume += sum(len(piece.content) for piece in made.pieces)
        self.volume += sum(len(row.content or row.replacement or "") for row in made.versions)
        return made

    def read(self, known: StoredDocument | None = None) -> StoredDocument:
        known = known or StoredDocument(Document("a"))
        return document_of("a", self.head, self.versions[len(known.depths) :], self.pieces, known)

    def chain(self) -> list[VersionRow]:
        rows: list[VersionRow] = []
        number = self.head.current
        while number:
            row = self.versions[number - 1]
            rows.insert(0, row)
            number = 0 if row.replacement is None else row.parent
        return rows

    def prune(self, *numbers: int) -> None:
        for number in numbers:
            self.versions[number - 1] = replace(self.versions[number - 1], content=None, replacement=None)


def after(document: Document, *steps: Change, task: str = "t1") -> Document:
    for step in steps:
        document = mutation.apply_change(document, by(task), step, LIMITS)[0]
    return document


def edited(document: Document, times: int) -> Document:
    """So many edits of one character, each a version."""
    for _ in range(times):
        document = after(document, EditText(Span(0, 1), "y", document.current))
    return document


LONG = "0123456789" * 10_000
WRITTEN = after(Document("a"), replacing(LONG, last_chunk=True))


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(STEPS, st.booleans()), max_size=25))
def test_rows_give_the_document_again_whenever_it_was_saved_on_its_way(steps: list[tuple[Step, bool]]) -> None:
    rows, document, known = Rows(), Document("a"), None
    for step, saved in steps:
        document = done(document, step)
        if not saved:
            continue
        made = rows.save(document)
        read = rows.read(known)
        assert read == replace(made.after, document=document)
        assert rows.read().document == document
        assert content_of(rows.head, rows.chain(), rows.pieces) == document.artifact.content
        assert rows.head.exists == document.exists
        known = replace(read, document=replace(read.document, draft=None))


@settings(max_examples=examples(60))
@given(st.lists(STEPS, max_size=15), st.lists(STEPS, max_size=15))
def test_a_document_read_from_rows_goes_on_like_any_other(before: list[Step], after: list[Step]) -> None:
    rows, document = Rows(), Document("a")
    for step in before:
        document = done(document, step)
    rows.save(document)
    rows._stored = rows.read()
    again = rows._stored.document
    for step in after:
        document, again = done(document, step), done(again, step)
        rows.save(again)
    assert rows.read().document == document


def test_the_edits_that_made_a_version_at_once_are_read_again() -> None:
    edits = TextEdit(Span(0, 1), 2), TextEdit(Span(4, 4), 1)
    change = EditText(Span(0, 4), "xx123y", 1, passage=False, edits=edits)
    rows, document = Rows(), after(WRITTEN, change, EditText(Span(0, 1), "z", 2))
    rows.save(document)
    assert rows.read().document == document
    assert [each.edits for each in document.versions] == [(), edits, (TextEdit(Span(0, 1), 1),)]


def test_a_growing_draft_costs_what_is_added_to_it() -> None:
    rows, document = Rows(), after(Document("a"), delta(replacing(LONG)))
    rows.save(document)
    first = rows.volume
    for _ in range(100):
        document = after(document, delta(appending("x" * 20)), delta(appending("y" * 20)))
        rows.save(document)
    assert rows.volume - first < 100 * 100
    document = mutation.complete_call(document, by("t1"))
    assert rows.save(document).pieces == ()
    assert rows.read().document == document


@pytest.mark.parametrize("document", [WRITTEN, edited(WRITTEN, 3), after(edited(WRITTEN, 2), Undo())])
def test_a_draft_that_goes_on_from_a_version_does_not_repeat_it(document: Document) -> None:
    rows = Rows()
    rows.save(document)
    rows._stored = rows.read()
    volume, document = rows.volume, rows._stored.document
    for _ in range(10):
        document = after(document, delta(appending("x", description="")))
        rows.save(document)
    assert rows.volume - volume < 1000
    assert rows.read().document == document


def test_parts_that_join_a_long_text_are_written_alone() -> None:
    rows = Rows()
    document = after(WRITTEN, delta(appending("x")))
    rows.save(document)
    for parts in [(FilePart(b"f"),), (DataPart(1), text("more", metadata={"k": 1})), (FilePart(b"g"), text("end"))]:
        document = after(document, delta(AppendParts(parts)))
        assert [(piece.kind, len(piece.content) < 300) for piece in rows.save(document).pieces] == [("append", True)]
    assert rows.read().document == document


def test_a_call_that_is_taken_back_leaves_the_pieces_of_those_before_it() -> None:
    rows = Rows()
    kept = after(WRITTEN, appending("kept"))
    rows.save(kept)
    rows.save(after(kept, delta(appending("cut off"))))
    back, _ = mutation.discard_call(after(kept, delta(appending("cut off"))), by("t1"))
    made = rows.save(back)
    assert (made.cut, made.pieces) == (1, ())
    assert rows.read().document == back
    assert rows.save(after(back, delta(appending("again")))).pieces[0].kind == "append"


def test_what_was_kept_between_two_saves_is_found_again() -> None:
    rows = Rows()
    begun = after(WRITTEN, delta(appending("a")))
    rows.save(begun)
    further = after(mutation.complete_call(after(begun, delta(appending("b"))), by("t1")), delta(appending("c")))
    made = rows.save(further)
    assert [piece.kind for piece in made.pieces] == ["append", "append"]
    assert made.head.draft_completed == 2
    assert rows.read().document == further


def test_a_draft_that_is_closed_leaves_no_pieces() -> None:
    rows = Rows()
    document = after(Document("a"), delta(replacing("a")), delta(appending("b")))
    rows.save(document)
    closed, _ = mutation.close_draft(document, by("t1"))
    made = rows.save(closed)
    assert (made.cut, made.pieces, made.head.draft_task, len(made.versions)) == (0, (), None, 1)


def test_an_edit_of_a_long_text_costs_what_was_written_in_its_place() -> None:
    rows = Rows()
    rows.save(WRITTEN)
    volume, document = rows.volume, WRITTEN
    for _ in range(FULL_EVERY - 1):
        document = after(document, EditText(Span(10, 20), "z" * 100, document.current))
        rows.save(document)
    assert rows.volume - volume < (FULL_EVERY - 1) * 110
    assert rows.read().document == document


@pytest.mark.parametrize("undone", [False, True])
def test_a_chain_of_edits_is_kept_whole_at_times(undone: bool) -> None:
    rows, document = Rows(), WRITTEN
    for _ in range(3 * FULL_EVERY):
        document = edited(document, 1)
        if undone:  # so that most parents are not the version before
            document = edited(after(document, Undo()), 1)
    rows.save(document)
    read = rows.read()
    assert max(read.depths) == FULL_EVERY - 1
    assert len(rows.chain()) <= FULL_EVERY
    assert sum(row.replacement is None for row in rows.versions) <= 2 + len(rows.versions) / FULL_EVERY * 2
    assert read.document == document
    assert read.size < 10 * len(LONG)


def test_what_is_not_an_edit_is_kept_whole() -> None:
    rows = Rows()
    document = after(WRITTEN, Restore(1), EditText(Span(0, 1), "y", 2, passage=False))
    file = after(Document("b"), appending("x"), AppendParts((FilePart(b"f"),), last_chunk=True))
    without = after(Document("c"), AppendParts((DataPart(1),), last_chunk=True))
    rows.save(document)
    assert all(row.content for row in rows.versions)
    for each in (file, without):
        added = after(each, EditText(Span(0, 0), "new", 1))
        kept = Rows()
        kept.save(added)
        assert kept.read().document == replace(added, artifact_id="a")


def test_characters_that_a_database_would_refuse_are_kept_or_replaced() -> None:
    document = after(Document("a"), replacing("a\x00b", name="half \ud800", last_chunk=True))
    document = after(document, EditText(Span(1, 2), "\x00\x00", 1))
    rows = Rows()
    rows.save(document)
    written = "".join(row.content or row.replacement or "" for row in rows.versions)
    assert "\x00" not in written
    written.encode()
    assert [version.content.text for version in rows.read().document.versions] == ["a\x00b", "a\x00\x00b"]
    assert rows.read().document.versions[0].content.name == "half \ufffd"


# ------------------------------------------------------------------------------------------------ pruning


def test_a_pruned_version_keeps_its_place_and_nothing_leads_back_to_it() -> None:
    rows = Rows()
    rows.save(after(Document("a"), *(replacing(each, last_chunk=True) for each in "ABC")))
    rows.prune(1, 2)
    document = rows.read().document
    assert [(version.number, version.pruned, version.content.text) for version in document.versions] == [
        (1, True, ""),
        (2, True, ""),
        (3, False, "C"),
    ]
    for refused in (Undo(), Restore(1)):
        with pytest.raises(VersionPruned, match=r"Version \d of artifact 'a' is no longer kept") as caught:
            after(document, refused)
        assert caught.value.count == 3
    with pytest.raises(VersionPruned):
        document.version(2)
    with pytest.raises(VersionPruned):
        after(replace(document, current=1), Redo())
    assert after(document, Restore(3)).artifact.text == "C"


def test_an_edit_of_a_pruned_version_is_pruned_too() -> None:
    rows = Rows()
    rows.save(edited(WRITTEN, 2))
    rows.prune(1)
    assert [version.pruned for version in rows.read().document.versions] == [True, True, True]


# ----------------------------------------------------------------------------------------------- appended


@given(st.lists(STEPS, max_size=12), st.lists(STEPS, max_size=6))
def test_what_is_found_to_be_appended_makes_the_new_of_the_old(before: list[Step], after: list[Step]) -> None:
    document = Document("a")
    for step in before:
        document = done(document, step)
    old = document.artifact.content
    for step in after:
        document = done(document, step)
    new = document.artifact.content
    parts = find_appended(old, new)
    if parts:
        assert mutation.apply(old.parts, AppendParts(parts)) == new.parts
    if parts == ():
        assert old == new


def _names(pieces: Iterable[Piece]) -> list[str]:
    return [piece.kind for piece in pieces]


def test_a_new_name_is_written_with_the_whole() -> None:
    rows = Rows()
    rows.save(after(WRITTEN, delta(appending("x"))))
    assert _names(rows.save(after(WRITTEN, delta(appending("x")), delta(appending("y", name="new")))).pieces) == [
        "whole"
    ]
