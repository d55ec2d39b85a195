"""Drafts, versions and undo (docs/a2a.md, "How parts are combined"): writes by tasks, checked by a model of texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from a2a_canvas.store import mutation
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Step, Undo
from a2a_canvas.store.errors import (
    ArtifactBusy,
    ArtifactNotFound,
    ArtifactTooLarge,
    EmptyUpdate,
    NothingToRedo,
    NothingToUndo,
    OutsideText,
    StoreError,
    VersionConflict,
    VersionNotFound,
)
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import AppliedChange, Artifact, Document, FilePart, Limits, Ref, TextPart, Version
from a2a_canvas.store.text.spans import Span, difference
from tests.property_examples import examples
from tests.store.artifact_builders import appending, by, delta, replacing, result, text

# ---------------------------------------------------------------------------------------- the naive model

LIMIT = 12


@dataclass(frozen=True)
class Saved:
    text: str
    task: str
    incomplete: bool
    parent: int


@dataclass(frozen=True)
class Open:
    """The draft: whose, what is shown, what the last completed call left (None: none has), and mid-call or not."""

    task: str
    shown: str
    completed: str | None
    mid_call: bool

    @property
    def cut_off(self) -> bool:
        return not self.mid_call and self.completed is None

    @property
    def replaceable(self) -> bool:
        """Whether a replace makes it a version first."""
        return not self.mid_call and not self.cut_off


@dataclass(frozen=True)
class Model:
    """All texts that were saved; the undo line, as numbers of them; the place on it; the draft."""

    saved: tuple[Saved, ...] = ()
    line: tuple[int, ...] = ()
    at: int = -1
    open: Open | None = None

    @property
    def exists(self) -> bool:
        return bool(self.saved or self.open)

    @property
    def current(self) -> int:
        return self.line[self.at] if self.line else 0

    @property
    def begins(self) -> list[int]:
        """The places on the line where the versions of another task begin."""
        tasks = [None, *(self.saved[number - 1].task for number in self.line)]
        return [at for at, (before, task) in enumerate(pairwise(tasks)) if before != task]

    @property
    def standing(self) -> str:
        return self.saved[self.current - 1].text if self.current else ""

    @property
    def shown(self) -> str:
        return self.open.shown if self.open else self.standing

    def write(self, task: str, change: Change, new: str) -> Model | StoreError:
        if self.open and self.open.task != task:
            return ArtifactBusy("a", self.open.task)
        model = self
        if self.open and self.open.replaceable and isinstance(change, ReplaceParts):
            model = self.save()
        start = "" if isinstance(change, ReplaceParts) or (model.open and model.open.cut_off) else model.shown
        shown = start + new
        if len(shown) > LIMIT:
            return ArtifactTooLarge(len(shown), LIMIT)
        completed = shown if change.done else model.open.completed if model.open else None
        model = replace(model, open=Open(task, shown, completed, not change.done))
        return model.save() if change.last_chunk else model

    def save(self) -> Model:
        return self.add(self.open.shown, self.open.task, self.open.cut_off) if self.open else self

    def add(self, text: str, task: str, incomplete: bool = False) -> Model:
        saved = (*self.saved, Saved(text, task, incomplete, self.current))
        line = (*self.line[: self.at + 1], len(saved))
        return Model(saved, line, len(line) - 1)

    def step(self, task: str, change: Step) -> Model | StoreError:
        if not self.exists:
            return ArtifactNotFound("a")
        if self.open and (self.open.task != task or self.open.mid_call):
            return ArtifactBusy("a", self.open.task)
        model = self.save()
        if change.base not in (None, model.current):
            return VersionConflict("a", change.base or 0, model.current)
        match change:
            case EditText():
                return model.edit(task, change)
            case Restore():
                if not 1 <= change.version <= len(model.saved):
                    return VersionNotFound("a", change.version, len(model.saved))
                old = model.saved[change.version - 1]
                return model.add(old.text, task, old.incomplete)
            case Undo(group=group):
                back = max(at for at in model.begins if at <= model.at) - 1 if group else model.at - 1
                return replace(model, at=max(back, 0)) if model.at else NothingToUndo("a", model.current)
            case Redo(group=group):
                last = len(model.line) - 1
                if model.at == last:
                    return NothingToRedo("a", model.current)
                on = min(at for at in (*model.begins, last + 1) if at > model.at + 1) - 1 if group else model.at + 1
                return replace(model, at=on)

    def edit(self, task: str, change: EditText) -> Model | StoreError:
        start, end, text = change.span.start, change.span.end, self.standing
        if not 0 <= start <= end <= len(text):
            return OutsideText(start, end, len(text))
        edited = text[:start] + change.text + text[end:]
        return ArtifactTooLarge(len(edited), LIMIT) if len(edited) > LIMIT else self.add(edited, task)

    def keep(self, task: str) -> Model | StoreError:
        if self.open and self.open.task != task:
            return ArtifactBusy("a", self.open.task)
        if not self.open or not self.open.mid_call:
            return self
        return replace(self, open=replace(self.open, completed=self.open.shown, mid_call=False))

    def close(self, task: str) -> Model:
        return self.save() if self.open and self.open.task == task else self

    def discard(self, task: str) -> Model:
        draft = self.open
        if not draft or draft.task != task or not draft.mid_call:
            return self
        if draft.completed is not None:
            return replace(self, open=Open(task, draft.completed, draft.completed, mid_call=False))
        return replace(self, open=None if self.saved else replace(draft, mid_call=False))


TASKS = st.sampled_from(["t1", "t1", "t2", "t3"])
SHORT = st.text("ab", max_size=4)
BASES: st.SearchStrategy[Callable[[int], int]] = st.sampled_from(
    [lambda n: n, lambda n: n, lambda n: n, lambda n: n - 1]
)
"""What a sender takes for the current version."""
ANY_BASES: st.SearchStrategy[Callable[[int], int | None]] = BASES | st.just(lambda n: None)


class Drafts(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.store = InMemoryArtifactStore(Limits(artifact_bytes=LIMIT))
        self.model = Model()
        self.seen: tuple[Version, ...] = ()

    @rule(
        task=TASKS,
        kind=st.sampled_from([ReplaceParts, AppendParts]),
        new=SHORT,
        last_chunk=st.booleans(),
        done=st.booleans(),
    )
    def write(self, task: str, kind: type[Change], new: str, last_chunk: bool, done: bool) -> None:
        change = kind((text(new),), last_chunk=last_chunk, done=done)
        self.change(task, change, self.model.write(task, change, new))

    @rule(task=TASKS, start=st.integers(-1, LIMIT), more=st.integers(-1, 3), new=SHORT, base=BASES)
    def edit(self, task: str, start: int, more: int, new: str, base: Callable[[int], int]) -> None:
        self.step(task, EditText(Span(start, start + more), new, base(self.model.save().current)))

    @rule(task=TASKS, new=SHORT, base=BASES, whole=st.booleans())
    def put(self, task: str, new: str, base: Callable[[int], int], whole: bool) -> None:
        span, text = (Span(0, len(self.model.shown)), new) if whole else difference(self.model.shown, new)
        self.step(task, EditText(span, text, base(self.model.save().current)))

    @rule(task=TASKS, version=st.integers(0, 6), base=ANY_BASES)
    def restore(self, task: str, version: int, base: Callable[[int], int | None]) -> None:
        self.step(task, Restore(version, base(self.model.save().current)))

    @rule(task=TASKS, base=ANY_BASES, group=st.booleans())
    def undo(self, task: str, base: Callable[[int], int | None], group: bool) -> None:
        self.step(task, Undo(base(self.model.save().current), group))

    @rule(task=TASKS, base=ANY_BASES, group=st.booleans())
    def redo(self, task: str, base: Callable[[int], int | None], group: bool) -> None:
        self.step(task, Redo(base(self.model.save().current), group))

    def step(self, task: str, change: Step) -> None:
        applied = self.change(task, change, self.model.step(task, change))
        assert applied is None or not applied.append

    def change(self, task: str, change: Change, after: Model | StoreError) -> AppliedChange | None:
        """Make a change of which the model says what comes of it."""
        if isinstance(after, StoreError):
            with pytest.raises(type(after)) as caught:
                result(self.store.apply(by(task), change))
            assert (str(caught.value), vars(caught.value)) == (str(after), vars(after))
            return None
        before, self.model = self.model, after
        applied = result(self.store.apply(by(task), change))
        self.check_closed(before, change, applied.closed)
        assert applied.last_chunk == (after.open is None)
        assert applied.version == (len(after.saved) + 1 if after.open else after.current)
        self.check_told(applied)
        return applied

    def check_closed(self, before: Model, change: Change, closed: AppliedChange | None) -> None:
        """The end of a draft is told, if the change is one that closes it."""
        draft = before.open
        closes = draft and (isinstance(change, Step) or (draft.replaceable and isinstance(change, ReplaceParts)))
        assert bool(closed) == bool(closes)
        if closed:
            assert (closed.version, closed.parent, closed.last_chunk) == (len(before.saved) + 1, before.current, True)
            assert closed.artifact.text == before.shown

    @rule(task=TASKS)
    def delta_beyond_the_limit(self, task: str) -> None:
        with pytest.raises((ArtifactTooLarge, ArtifactBusy)):
            result(self.store.apply(by(task), delta(appending("x" * (LIMIT + 1)))))

    @rule(task=TASKS)
    def keep(self, task: str) -> None:
        if not self.model.exists:
            return
        after = self.model.keep(task)
        if isinstance(after, StoreError):
            with pytest.raises(type(after)):
                result(self.store.complete_call(by(task)))
            return
        self.model = after
        result(self.store.complete_call(by(task)))

    @rule(task=TASKS)
    def close(self, task: str) -> None:
        if not self.model.exists:
            return
        before, self.model = self.model, self.model.close(task)
        applied = result(self.store.close(by(task)))
        assert (applied is None) == (before == self.model)
        if applied:
            assert applied.last_chunk
            self.check_told(applied)

    @rule(task=TASKS)
    def discard(self, task: str) -> None:
        before, self.model = self.model, self.model.discard(task)
        applied = result(self.store.discard(by(task)))
        left_visible = self.model.open is not None and self.model.open.cut_off
        assert (applied is None) == (before == self.model or left_visible)
        if applied:
            assert not applied.append
            assert applied.last_chunk == (self.model.open is None)
            self.check_told(applied)

    def check_told(self, applied: AppliedChange) -> None:
        assert applied.artifact == result(self.store.get(by("anyone")))
        assert applied.parts == (applied.new if applied.append else applied.artifact.parts)

    @invariant()
    def the_store_shows_what_the_model_shows(self) -> None:
        if not self.model.exists:
            with pytest.raises(ArtifactNotFound):
                result(self.store.get(by("anyone")))
            return
        artifact: Artifact = result(self.store.get(by("anyone")))
        assert artifact.text == self.model.shown
        assert (artifact.version, artifact.open) == (self.model.current, self.model.open is not None)

    @invariant()
    def versions_are_numbered_from_1_and_never_altered(self) -> None:
        if not self.model.exists:
            return
        versions = result(self.store.versions(by("anyone")))
        assert [version.number for version in versions] == [*range(1, len(versions) + 1)]
        assert [Saved(v.content.text, v.task_id, v.incomplete, v.parent) for v in versions] == [*self.model.saved]
        for version in versions:
            assert result(self.store.version(by("anyone"), version.number)) == version
        assert versions[: len(self.seen)] == self.seen
        self.seen = versions


TestDrafts = Drafts.TestCase
TestDrafts.settings = settings(max_examples=examples(300), stateful_step_count=25)


# ---------------------------------------------------------------------------------------- fixed examples


def after(
    *steps: Change | str, task: str = "t1", document: Document | None = None
) -> tuple[Document, AppliedChange | None]:
    """The document after changes, and "keep", "close" or "discard", and what the last step told."""
    document, told, ref = document or Document("a"), None, by(task)
    for step in steps:
        match step:
            case "keep":
                document, told = mutation.complete_call(document, ref), None
            case "close":
                document, told = mutation.close_draft(document, ref)
            case "discard":
                document, told = mutation.discard_call(document, ref)
            case ReplaceParts() | AppendParts() | EditText() | Restore() | Undo() | Redo():
                document, told = mutation.apply_change(document, ref, step, Limits())
            case _:
                raise AssertionError(step)
    return document, told


def texts(document: Document) -> list[str]:
    return [part.text for version in document.versions for part in version.content.parts if isinstance(part, TextPart)]


def test_one_call_that_replaces_and_finishes_is_one_version() -> None:
    document, told = after(replacing("A", last_chunk=True))
    assert texts(document) == ["A"]
    assert document.draft is None
    assert told
    assert (told.last_chunk, told.version, told.append) == (True, 1, False)


def test_a_replace_by_a_later_call_closes_the_draft_first() -> None:
    document, told = after(replacing("A"), replacing("B"))
    assert (texts(document), document.artifact.text) == (["A"], "B")
    assert told
    assert (told.append, told.version) == (False, 2)


def test_an_append_by_a_later_call_goes_on_with_the_draft() -> None:
    document, _ = after(replacing("A"), appending("B", last_chunk=True))
    assert texts(document) == ["AB"]


def test_the_deltas_of_one_call_never_close_the_draft() -> None:
    document, _ = after(*[delta(replacing("A"))] * 3, delta(appending("B")), replacing("C"), "close")
    assert texts(document) == ["C"]


def test_a_call_that_is_kept_is_complete_and_the_next_replace_closes_it() -> None:
    document, _ = after(delta(replacing("A")), "keep", delta(replacing("B")))
    assert (texts(document), document.artifact.text) == (["A"], "B")


def test_a_cut_off_call_returns_to_where_the_last_completed_call_left_the_draft() -> None:
    document, told = after(replacing("A"), delta(appending("B")), delta(appending("C")), "discard")
    assert (texts(document), document.artifact.text) == ([], "A")
    assert told
    assert (told.append, told.parts, told.last_chunk) == (False, (text("A"),), False)


def test_a_cut_off_replace_of_a_draft_leaves_its_content_as_a_version() -> None:
    document, told = after(replacing("A"), delta(replacing("B")), "discard")
    assert (texts(document), document.draft) == (["A"], None)
    assert told
    assert told.parts == (text("A"),)


def test_a_cut_off_call_returns_to_the_version_where_no_draft_was_open() -> None:
    document, told = after(replacing("A", last_chunk=True), delta(appending("B")), "discard")
    assert (texts(document), document.artifact.text, document.draft) == (["A"], "A", None)
    assert told
    assert (told.append, told.parts, told.last_chunk, told.version) == (False, (text("A"),), True, 1)


def test_where_nothing_was_complete_the_partial_text_stays_visible_and_nobody_is_told() -> None:
    document, told = after(delta(replacing("A")), "discard")
    assert (document.artifact.text, told) == ("A", None)


def test_a_cut_off_text_that_stays_becomes_an_incomplete_version_when_the_draft_closes() -> None:
    document, told = after(delta(replacing("A")), "discard", "close")
    assert texts(document) == ["A"]
    assert document.versions[0].incomplete
    assert told
    assert told.last_chunk


@pytest.mark.parametrize("name", [None, "old"])
@pytest.mark.parametrize("change", [replacing("B"), appending("B"), delta(appending("B"))])
def test_the_next_change_after_a_cut_off_text_starts_afresh(change: Change, name: str | None) -> None:
    document, told = after(delta(replacing("A", name=name)), "discard", change)
    assert (document.artifact.text, document.artifact.name, document.versions) == ("B", "", ())
    assert told
    assert not told.append
    document, _ = after("close", document=document)
    assert not document.versions[0].incomplete


def test_a_cut_off_artifact_belongs_to_its_task_until_the_draft_closes() -> None:
    document, _ = after(delta(replacing("A")), "discard")
    with pytest.raises(ArtifactBusy):
        after(replacing("B"), task="t2", document=document)


def test_only_one_task_writes_and_the_others_are_told_whose_it_is() -> None:
    document, _ = after(replacing("A"))
    for step in (appending("B"), replacing("B"), "keep"):
        with pytest.raises(ArtifactBusy, match="Try again") as caught:
            after(step, task="t2", document=document)
        assert (caught.value.artifact_id, caught.value.task_id) == ("a", "t1")
    assert after("discard", "close", task="t2", document=document) == (document, None)
    document, _ = after("close", document=document)
    document, _ = after(appending("B", last_chunk=True), task="t2", document=document)
    assert texts(document) == ["A", "AB"]
    assert [version.task_id for version in document.versions] == ["t1", "t2"]


def test_keep_without_a_call_that_is_being_written_does_nothing() -> None:
    for steps in (["close"], ["discard"], []):
        document, _ = after(delta(replacing("A")), "discard", *steps)
        assert after("keep", document=document) == (document, None)


def test_the_name_and_description_stay_unless_given() -> None:
    document, _ = after(replacing("A", name="n", description="d"), replacing("B"), appending("C", name="m"))
    assert (document.artifact.name, document.artifact.description) == ("m", "d")
    assert document.versions[0].content.name == "n"


def test_a_watcher_may_append_only_what_follows_what_the_task_has_told() -> None:
    document, first = after(appending("A", name="n"))
    assert first
    assert (first.append, first.parts) == (False, (text("A"),))
    document, more = after(appending("B", name="n"), document=document)
    assert more
    assert (more.append, more.parts) == (True, (text("B"),))
    document, renamed = after(appending("C", name="m", last_chunk=True), document=document)
    assert renamed
    assert (renamed.append, renamed.parts) == (False, (text("ABC"),))
    document, from_another = after(appending("D", last_chunk=True), task="t2", document=document)
    assert from_another
    assert (from_another.append, from_another.parts) == (False, (text("ABCD"),))
    document, again = after(appending("E"), document=document)
    assert again
    assert (again.append, again.parts) == (False, (text("ABCDE"),))


def test_closing_tells_a_text_by_adding_nothing_and_anything_else_as_a_whole() -> None:
    _, told = after(replacing("A"), "close")
    assert told
    assert (told.append, told.parts, told.last_chunk, told.version) == (True, (text(""),), True, 1)
    file = FilePart(b"1")
    _, told = after(ReplaceParts((file,)), "close")
    assert told
    assert (told.append, told.parts, told.last_chunk) == (False, (file,), True)


def test_an_invalid_change_leaves_an_open_draft_open() -> None:
    document, _ = after(replacing("A"))
    with pytest.raises(EmptyUpdate):
        after(ReplaceParts(()), document=document)
    assert document.versions == ()


def test_a_version_remembers_who_wrote_it() -> None:
    ref = Ref("c", "a", "t1", author="user")
    document, applied = mutation.apply_change(Document("a"), ref, replacing("A", last_chunk=True), Limits())
    assert (document.versions[0].author, applied.author) == ("user", "user")


# ------------------------------------------------------------------------------------------------- steps


def saved(*contents: str, task: str = "t1") -> Document:
    """A document with a version of each text."""
    document, _ = after(*(replacing(content, last_chunk=True) for content in contents), task=task)
    return document


def test_undo_walks_back_over_versions_and_redo_forward_again() -> None:
    document = saved("A", "B", "C")
    shown = []
    for step in (Undo(), Undo(), Redo(), Redo()):
        document, told = after(step, document=document)
        assert told
        shown.append((told.artifact.text, told.version, told.last_chunk))
    assert shown == [("B", 2, True), ("A", 1, True), ("B", 2, True), ("C", 3, True)]
    assert texts(document) == ["A", "B", "C"]


def test_a_change_after_an_undo_ends_the_redo_line_and_deletes_nothing() -> None:
    document, _ = after(Undo(), EditText(Span(0, 1), "D", base=1), document=saved("A", "B"))
    assert [(v.number, v.parent) for v in document.versions] == [(1, 0), (2, 1), (3, 1)]
    assert texts(document) == ["A", "B", "D"]
    with pytest.raises(NothingToRedo, match="version 3"):
        after(Redo(), document=document)
    document, told = after(Undo(), Redo(), document=document)
    assert told
    assert told.artifact.text == "D"
    document, told = after(Restore(2), document=document)
    assert told
    assert (told.artifact.text, told.version, document.versions[-1].parent) == ("B", 4, 3)


def test_a_draft_after_an_undo_is_made_from_the_version_that_was_gone_back_to() -> None:
    document, _ = after(Undo(), appending("+"), "close", document=saved("A", "B"))
    assert texts(document) == ["A", "B", "A+"]
    assert document.versions[-1].parent == 1


def test_a_draft_that_is_taken_back_after_an_undo_leaves_what_can_be_redone() -> None:
    document, told = after(Undo(), delta(appending("+")), "discard", document=saved("A", "B"))
    assert told
    assert (told.artifact.text, told.version) == ("A", 1)
    assert after(Redo(), document=document)[0].artifact.text == "B"


def by_tasks(*tasks: str) -> Document:
    """A document whose versions were made by these tasks; each says its number."""
    document = Document("a")
    for number, task in enumerate(tasks, 1):
        document, _ = after(replacing(str(number), last_chunk=True), document=document, task=task)
    return document


@pytest.mark.parametrize(
    ("tasks", "undone", "redone"),
    [
        ("abbb", [1], [4]),
        ("abbcc", [3, 1], [3, 5]),
        ("abab", [3, 2, 1], [2, 3, 4]),
        ("aaab", [3, 1], [3, 4]),
        ("aaa", [1], [3]),
        ("ab", [1], [2]),
    ],
)
def test_as_a_group_all_that_one_task_made_is_undone_and_redone_at_once(
    tasks: str, undone: list[int], redone: list[int]
) -> None:
    document = by_tasks(*tasks)
    for step, numbers, error in (
        (Undo(group=True), undone, NothingToUndo),
        (Redo(group=True), redone, NothingToRedo),
    ):
        for number in numbers:
            document, told = after(step, document=document, task="z")
            assert (told and told.version, document.current, len(document.versions)) == (number, number, len(tasks))
        with pytest.raises(error):
            after(step, document=document, task="z")


def test_from_within_a_group_the_rest_of_it_is_undone_or_redone() -> None:
    document, _ = after(Undo(), document=by_tasks(*"abbb"))
    assert after(Undo(group=True), document=document)[0].current == 1
    assert after(Redo(group=True), document=document)[0].current == 4


def test_a_group_stands_on_the_undo_line_and_not_in_the_order_of_numbers() -> None:
    document, _ = after(Undo(), document=by_tasks(*"ab"))
    document, _ = after(replacing("3", last_chunk=True), replacing("4", last_chunk=True), document=document, task="b")
    assert after(Undo(group=True), document=document)[0].current == 1
    document, _ = after(Undo(group=True), Redo(group=True), document=document)
    assert document.current == 4


def test_the_first_version_cannot_be_undone_nor_the_last_redone() -> None:
    with pytest.raises(NothingToUndo, match=r"version 1 .* is the first"):
        after(Undo(), document=saved("A"))
    with pytest.raises(NothingToRedo, match=r"version 1 .* is the last"):
        after(Redo(), document=saved("A"))


@pytest.mark.parametrize("step", [EditText(Span(0, 1), "x", base=1), Restore(1, base=1), Undo(base=1), Redo(base=1)])
def test_a_step_that_was_meant_for_another_version_is_refused(step: Step) -> None:
    with pytest.raises(VersionConflict, match="current version is 2") as caught:
        after(step, document=saved("A", "B"))
    assert (caught.value.base, caught.value.current) == (1, 2)


def test_an_edit_changes_its_range_and_nothing_else_of_the_artifact() -> None:
    parts = (text("Hello World", media_type="text/markdown", metadata={"k": 1}), FilePart(b"1"))
    document, _ = after(ReplaceParts(parts, name="n", description="d", last_chunk=True))
    document, told = after(EditText(Span(6, 11), "there", base=1), document=document)
    assert told
    assert told.parts == (text("Hello there", media_type="text/markdown", metadata={"k": 1}), FilePart(b"1"))
    assert (told.artifact.name, told.artifact.description, told.version) == ("n", "d", 2)
    assert document.versions[0].content.parts == parts


def test_a_step_of_the_task_that_has_the_draft_closes_it_first() -> None:
    document, told = after(appending("B"), EditText(Span(0, 1), "x", base=2), document=saved("A"))
    assert texts(document) == ["A", "AB", "xB"]
    assert told
    assert (told.append, told.last_chunk, told.version) == (False, True, 3)


def test_a_refused_step_leaves_a_draft_open() -> None:
    document, _ = after(appending("B"), document=saved("A"))
    for step in (EditText(Span(0, 9), "x", base=2), EditText(Span(0, 1), "x", base=1), Restore(9), Redo()):
        with pytest.raises(StoreError):
            after(step, document=document)
    assert document.draft


def test_an_incomplete_version_stays_incomplete_when_it_is_restored() -> None:
    document, _ = after(delta(replacing("A")), "discard", "close", replacing("B", last_chunk=True), Restore(1))
    assert [version.incomplete for version in document.versions] == [True, False, True]


def test_a_task_that_has_undone_may_append_to_what_it_was_told() -> None:
    document, told = after(Undo(), appending("+"), document=saved("A", "B"))
    assert told
    assert (told.append, told.parts) == (True, (text("+"),))
    document, _ = after("close", document=document)
    document, _ = after(Undo(), task="t2", document=document)
    _, told = after(appending("!"), document=document)
    assert told
    assert (told.append, told.parts) == (False, (text("A!"),))
