"""Drafts and versions (README, "How parts are combined"): tasks write one artifact, against a model of strings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from store import document as doc
from store.changes import AppendParts, Change, ReplaceParts
from store.document import Applied, Document
from store.errors import ArtifactBusy, ArtifactNotFound, ArtifactTooLarge, EmptyUpdate, StoreError
from store.memory import InMemoryArtifactStore
from store.models import Artifact, FilePart, Limits, Ref, TextPart, Version
from tests.store.making import appending, by, delta, replacing, result, text

# ---------------------------------------------------------------------------------------- the naive model

LIMIT = 12


@dataclass(frozen=True)
class Saved:
    text: str
    task: str
    incomplete: bool


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


@dataclass(frozen=True)
class Model:
    saved: tuple[Saved, ...] = ()
    open: Open | None = None

    @property
    def exists(self) -> bool:
        return bool(self.saved or self.open)

    @property
    def shown(self) -> str:
        return self.open.shown if self.open else self.saved[-1].text if self.saved else ""

    def write(self, task: str, change: Change, new: str) -> Model | StoreError:
        if self.open and self.open.task != task:
            return ArtifactBusy("a", self.open.task)
        model = self
        if self.open and not self.open.mid_call and isinstance(change, ReplaceParts) and not self.open.cut_off:
            model = self.save()
        start = "" if isinstance(change, ReplaceParts) or (model.open and model.open.cut_off) else model.shown
        shown = start + new
        if len(shown) > LIMIT:
            return ArtifactTooLarge(len(shown), LIMIT)
        completed = shown if change.done else model.open.completed if model.open else None
        model = Model(model.saved, Open(task, shown, completed, not change.done))
        return model.save() if change.last_chunk else model

    def save(self) -> Model:
        assert self.open
        return Model((*self.saved, Saved(self.open.shown, self.open.task, self.open.cut_off)))

    def keep(self, task: str) -> Model | StoreError:
        if self.open and self.open.task != task:
            return ArtifactBusy("a", self.open.task)
        if not self.open or not self.open.mid_call:
            return self
        return Model(self.saved, replace(self.open, completed=self.open.shown, mid_call=False))

    def close(self, task: str) -> Model:
        return self.save() if self.open and self.open.task == task else self

    def discard(self, task: str) -> Model:
        draft = self.open
        if not draft or draft.task != task or not draft.mid_call:
            return self
        if draft.completed is not None:
            return Model(self.saved, Open(task, draft.completed, draft.completed, mid_call=False))
        return Model(self.saved) if self.saved else Model((), replace(draft, mid_call=False))


TASKS = st.sampled_from(["t1", "t1", "t2", "t3"])
SHORT = st.text("ab", max_size=4)


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
        after = self.model.write(task, change, new)
        if isinstance(after, StoreError):
            with pytest.raises(type(after)) as caught:
                result(self.store.apply(by(task), change))
            assert str(caught.value) == str(after)
            return
        self.model = after
        applied = result(self.store.apply(by(task), change))
        assert applied.last_chunk == last_chunk
        assert applied.version == len(after.saved) + bool(after.open)
        self.check_told(applied)

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
                result(self.store.keep(by(task)))
            return
        self.model = after
        result(self.store.keep(by(task)))

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
            assert not applied.last_chunk
            self.check_told(applied)

    def check_told(self, applied: Applied) -> None:
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
        assert (artifact.version, artifact.open) == (len(self.model.saved), self.model.open is not None)

    @invariant()
    def versions_are_numbered_from_1_and_never_altered(self) -> None:
        if not self.model.exists:
            return
        versions = result(self.store.versions(by("anyone")))
        assert [(v.number, v.parent) for v in versions] == [(n, n - 1) for n in range(1, len(versions) + 1)]
        assert [
            Saved(v.content.parts[0].text, v.task_id, v.incomplete)  # type: ignore[union-attr]
            for v in versions
        ] == list(self.model.saved)
        assert versions[: len(self.seen)] == self.seen
        self.seen = versions


TestDrafts = Drafts.TestCase
TestDrafts.settings = settings(max_examples=300, stateful_step_count=25, deadline=None)


# ---------------------------------------------------------------------------------------- fixed examples


def after(*steps: Change | str, task: str = "t1", document: Document | None = None) -> tuple[Document, Applied | None]:
    """The document after changes, and "keep", "close" or "discard", and what the last step told."""
    document, told, ref = document or Document("a"), None, by(task)
    for step in steps:
        match step:
            case "keep":
                document, told = doc.kept(document, ref), None
            case "close":
                document, told = doc.closed(document, ref)
            case "discard":
                document, told = doc.discarded(document, ref)
            case ReplaceParts() | AppendParts():
                document, told = doc.changed(document, ref, step, Limits())
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
    assert (told.append, told.parts) == (False, (text("A"),))


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
    document, applied = doc.changed(Document("a"), ref, replacing("A", last_chunk=True), Limits())
    assert (document.versions[0].author, applied.author) == ("user", "user")
