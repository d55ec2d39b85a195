"""What annotations promise, wherever they are stored: of one artifact, each step by one author."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.store.annotations import review
from a2a_canvas.store.annotations.annotation import MAX_REMARK_BYTES, AnnotationsChanged, Writer
from a2a_canvas.store.annotations.critic_markup import CriticMark
from a2a_canvas.store.annotations.review import Acceptance, Review
from a2a_canvas.store.changes import EditText, ReplaceParts, Undo
from a2a_canvas.store.errors import (
    AnnotationClosed,
    AnnotationNotFound,
    AnnotationStale,
    ArtifactBusy,
    NotItsAuthor,
    OutsideText,
    RemarkTooLong,
    StoreError,
    ThreadFull,
    TooManyAnnotations,
    WrongAnnotationKind,
)
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Ref, text_part
from a2a_canvas.store.text.spans import Span
from tests.fakes import Clock, ids
from tests.server.tasks.journal.test_journal import MAKERS, new_task
from tests.server.tasks.journal_fixtures import Make

TEXT = "One two three.\nFour five six.\n"
TWO, FOUR = Span(4, 7), Span(15, 19)
REF = Ref("context", "doc", "a", "user")


class Desk:
    """An artifact with one version in a context with the tasks `a` and `b`."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.clock = journal, Clock()
        self.artifacts, self._ids = InMemoryArtifactStore(), ids("n")

    def review(self, name: str = "ann", task: str = "a") -> Review:
        async def emit(event) -> None:
            await self.journal.append(task, event)

        store = EventedArtifactStore(self.artifacts, listener(emit))
        writer = Writer("user", name, name)
        return Review(store, self.journal.annotations, emit, "context", task, writer, self.clock, self._ids)

    async def text(self) -> str:
        return (await self.artifacts.get(REF)).text

    async def states(self) -> list[str]:
        return [each.state for each in await self.review().list("doc")]

    async def change(self, change) -> None:
        await self.artifacts.apply(REF, change)


@pytest.fixture(params=MAKERS)
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    async with MAKERS[request.param](tmp_path) as make:
        yield await make_desk(make)


async def make_desk(make: Make) -> Desk:
    journal = await make(Clock())
    await journal.create(new_task("a", "context"))
    await journal.create(new_task("b", "context"))
    desk = Desk(journal)
    await desk.change(ReplaceParts((text_part(TEXT),), last_chunk=True))
    return desk


async def test_annotations_are_listed_as_they_were_made(desk: Desk) -> None:
    comment = await desk.review().annotate("doc", 1, TWO, "Which two?")
    suggestion = await desk.review("bob", "b").annotate("doc", 1, FOUR, replacement="Many")
    assert (comment.kind, suggestion.kind) == ("comment", "suggestion")
    assert [each.annotation for each in await desk.review().list("doc")] == [comment, suggestion]
    assert [each.number for each in (comment, suggestion)] == [1, 2]
    assert (comment.quote.prefix, comment.quote.exact, comment.quote.suffix) == ("One ", "two", TEXT[7:])
    assert await desk.review().list("doc") != ()


async def test_a_thread_grows_and_a_reply_opens_what_was_resolved(desk: Desk) -> None:
    made = await desk.review().annotate("doc", 1, TWO, "Which two?")
    await desk.review("bob", "b").reply("doc", made.annotation_id, "These")
    resolved = await desk.review().resolve("doc", made.annotation_id)
    assert [(each.writer.name, each.text) for each in resolved.thread] == [("ann", "Which two?"), ("bob", "These")]
    assert await desk.states() == ["resolved"]
    await desk.review("bob", "b").reply("doc", made.annotation_id, "No, those")
    assert await desk.states() == ["open"]


async def test_accepting_makes_one_version_where_the_passage_is_now(desk: Desk) -> None:
    made = await desk.review().annotate("doc", 1, FOUR, replacement="Many")
    await desk.change(EditText(Span(0, 0), "Zero. ", 1))
    accepted = await desk.review("bob", "b").accept("doc", made.annotation_id)
    assert accepted.applied is not None
    assert accepted.applied.version == 3
    assert await desk.text() == "Zero. " + TEXT.replace("Four", "Many")
    assert await desk.states() == ["accepted"]


async def test_an_undo_opens_what_it_takes_back_and_nothing_else(desk: Desk) -> None:
    first = await desk.review().annotate("doc", 1, TWO, replacement="2")
    second = await desk.review().annotate("doc", 1, FOUR, replacement="4")
    rejected = await desk.review().annotate("doc", 1, FOUR, replacement="5")
    await desk.review().accept("doc", first.annotation_id)
    await desk.review().accept("doc", second.annotation_id)
    await desk.review().reject("doc", rejected.annotation_id)
    assert await desk.states() == ["accepted", "accepted", "rejected"]
    await desk.change(Undo())
    assert await desk.states() == ["accepted", "open", "rejected"]
    await desk.review().accept("doc", second.annotation_id)
    assert await desk.text() == TEXT.replace("two", "2").replace("Four", "4")


async def test_accepting_all_is_one_version_and_names_what_did_not_fit(desk: Desk) -> None:
    review = desk.review()
    first = await review.annotate("doc", 1, Span(0, 3), replacement="1")
    gone = await review.annotate("doc", 1, Span(24, 28), replacement="gone")
    await desk.change(EditText(Span(22, 30), "", 1))
    last = await review.annotate("doc", 2, FOUR, replacement="4")
    accepted: Acceptance = await desk.review("bob", "b").accept_all("doc")
    assert [each.annotation_id for each in accepted.accepted] == [first.annotation_id, last.annotation_id]
    assert [each.annotation_id for each in accepted.stale] == [gone.annotation_id]
    assert await desk.text() == "1 two three.\n4 fi"
    assert await desk.states() == ["accepted", "stale", "accepted"]
    assert len(await desk.artifacts.versions(REF)) == 3


async def test_those_that_made_a_version_are_listed_alone(desk: Desk) -> None:
    made = [await desk.review().annotate("doc", 1, span, replacement="x") for span in (TWO, FOUR, Span(0, 3))]
    await desk.review().reject("doc", made[2].annotation_id)
    for number, each in enumerate(made[:2], 2):
        await desk.review("bob", "b").accept("doc", each.annotation_id)
        (listed,) = await desk.journal.annotations.list(REF.context_id, "doc", number)
        assert (listed.annotation_id, listed.state) == (each.annotation_id, "accepted")
    assert await desk.journal.annotations.list(REF.context_id, "doc", 1) == ()


async def test_a_suggestion_whose_passage_was_changed_inside_is_merged_or_in_conflict(desk: Desk) -> None:
    review = desk.review()
    merged = await review.annotate("doc", 1, Span(15, 29), replacement="Four five 6.")
    conflicting = await review.annotate("doc", 1, Span(0, 14), replacement="One 2 three.")
    await desk.change(EditText(Span(20, 24), "5", 1))
    await desk.change(EditText(TWO, "zwei", 2))
    accepted = await desk.review("bob", "b").accept_all("doc")
    assert [each.annotation_id for each in accepted.accepted] == [merged.annotation_id]
    assert [(each.annotation.annotation_id, each.current) for each in accepted.conflicts] == [
        (conflicting.annotation_id, "One zwei three.")
    ]
    assert await desk.text() == "One zwei three.\nFour 5 6.\n"
    assert await desk.states() == ["accepted", "open"]
    one = await desk.review().accept("doc", conflicting.annotation_id)
    assert (one.applied, len(one.conflicts)) == (None, 1)


async def test_several_suggestions_on_one_passage_are_accepted_where_they_do_not_touch(desk: Desk) -> None:
    review = desk.review()
    for replacement in ("One 2 three.", "One two and three.", "One II three."):
        await review.annotate("doc", 1, Span(0, 14), replacement=replacement)
    comment = await review.annotate("doc", 1, Span(8, 13), "Three of what?")
    accepted = await review.accept_all("doc")
    assert [each.replacement for each in accepted.accepted] == ["One 2 three.", "One two and three."]
    assert [each.current for each in accepted.conflicts] == ["One 2 and three."]
    assert await desk.states() == ["accepted", "accepted", "open", "open"]
    (placed,) = (each for each in await review.list("doc") if each.annotation == comment)
    assert placed.span
    assert placed.span.extract(await desk.text()) == "three"


@pytest.mark.parametrize("at", [0, 3, 4, 8, 15, len(TEXT)])
@pytest.mark.parametrize("texts", [(" 1", " 2"), ("1\n", "2\n"), ("1 ", "1 ")])
async def test_what_is_inserted_where_another_insertion_was_accepted_comes_behind_it(
    desk: Desk, at: int, texts: tuple[str, str]
) -> None:
    point = Span(at, at)
    first = await desk.review("bob", "b").annotate("doc", 1, point, replacement=texts[0])
    second = await desk.review().annotate("doc", 1, point, replacement=texts[1])
    other = await desk.review("bob", "b").annotate("doc", 1, Span(9, 9), replacement="x")
    accepted = await desk.review().accept_all("doc", lambda each: each.annotation.writer.name == "bob")
    assert [each.annotation_id for each in accepted.accepted] == [first.annotation_id, other.annotation_id]
    await desk.review().accept("doc", second.annotation_id)
    after = TEXT[at:] if at > 9 else TEXT[at:9] + "x" + TEXT[9:]
    before = TEXT[:9] + "x" + TEXT[9:at] if at > 9 else TEXT[:at]
    assert await desk.text() == before + texts[0] + texts[1] + after
    for expected in (["accepted", "open", "accepted"], ["open", "open", "open"]):
        await desk.change(Undo())
        assert await desk.states() == expected


async def test_of_two_who_accept_at_once_one_wins(desk: Desk) -> None:
    made = await desk.review().annotate("doc", 1, TWO, replacement="2")
    both = [desk.review(name, task).accept("doc", made.annotation_id) for name, task in (("ann", "a"), ("bob", "b"))]
    found = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(each).__name__ for each in found) == ["Acceptance", "AnnotationClosed"]
    assert len(await desk.artifacts.versions(REF)) == 2


async def test_what_is_refused_changes_nothing(desk: Desk) -> None:
    comment = await desk.review().annotate("doc", 1, TWO, "Which?")
    suggestion = await desk.review().annotate("doc", 1, FOUR, replacement="4")
    await desk.change(EditText(FOUR, "", 1))
    before = await desk.review().list("doc")
    bob = desk.review("bob", "b")
    refused: list[tuple[type[StoreError], object]] = [
        (WrongAnnotationKind, bob.accept("doc", comment.annotation_id)),
        (WrongAnnotationKind, bob.reject("doc", comment.annotation_id)),
        (WrongAnnotationKind, bob.resolve("doc", suggestion.annotation_id)),
        (AnnotationStale, bob.accept("doc", suggestion.annotation_id)),
        (AnnotationNotFound, bob.reply("doc", "none", "What?")),
        (NotItsAuthor, bob.withdraw("doc", comment.annotation_id)),
        (OutsideText, bob.annotate("doc", 1, Span(5, 1000), "Where?")),
        (RemarkTooLong, bob.annotate("doc", 1, TWO, "x" * (MAX_REMARK_BYTES + 1))),
        (RemarkTooLong, bob.reply("doc", comment.annotation_id, "ö" * (MAX_REMARK_BYTES // 2 + 1))),
    ]
    for error, step in refused:
        with pytest.raises(error):
            await step  # type: ignore[misc]
    assert await desk.review().list("doc") == before


async def test_a_decision_is_made_once(desk: Desk) -> None:
    comment = await desk.review().annotate("doc", 1, TWO, "Which?")
    suggestion = await desk.review().annotate("doc", 1, FOUR, replacement="4")
    await desk.review().resolve("doc", comment.annotation_id)
    await desk.review().reject("doc", suggestion.annotation_id)
    for step in (
        desk.review().resolve("doc", comment.annotation_id),
        desk.review().accept("doc", suggestion.annotation_id),
        desk.review().reject("doc", suggestion.annotation_id),
    ):
        with pytest.raises(AnnotationClosed):
            await step


async def test_its_author_withdraws_an_annotation_and_so_may_the_owner(desk: Desk) -> None:
    first = await desk.review().annotate("doc", 1, TWO, "Which?")
    second = await desk.review().annotate("doc", 1, TWO, "Which?")
    await desk.review().withdraw("doc", first.annotation_id)
    await desk.review("bob", "b").withdraw("doc", second.annotation_id, others=True)
    assert await desk.review().list("doc") == ()


async def test_nothing_is_accepted_while_a_task_writes(desk: Desk) -> None:
    made = await desk.review().annotate("doc", 1, TWO, replacement="2")
    await desk.artifacts.apply(Ref("context", "doc", "b"), ReplaceParts((text_part("Draft"),)))
    await desk.review().annotate("doc", 1, FOUR, "Comments are not kept waiting")
    with pytest.raises(ArtifactBusy):
        await desk.review().accept("doc", made.annotation_id)
    assert await desk.states() == ["open", "open"]


async def test_changes_take_positions_in_the_log_of_the_context(desk: Desk) -> None:
    following = await desk.journal.follow_context("context")
    made = await desk.review().annotate("doc", 1, TWO, replacement="2")
    await desk.review().accept("doc", made.annotation_id)
    changes = aiter(following)
    async with asyncio.timeout(60):
        found = [await anext(changes) for _ in range(3)]
    assert [type(each.entry.event) for each in found] == [AnnotationsChanged, ArtifactChanged, AnnotationsChanged]
    assert [each.position for each in found] == [1, 2, 3]


async def test_steps_of_one_author_at_the_same_time_lose_nothing(desk: Desk) -> None:
    review = desk.review()
    made = await asyncio.gather(*(review.annotate("doc", 1, TWO, f"{number}") for number in range(5)))
    assert sorted(each.number for each in made) == [1, 2, 3, 4, 5]
    await asyncio.gather(*(review.reply("doc", made[0].annotation_id, f"reply {number}") for number in range(5)))
    [first] = [each.annotation for each in await review.list("doc") if each.annotation.number == 1]
    assert len(first.thread) == 6


async def test_marks_in_a_text_make_no_thread_longer_than_it_may_be(desk: Desk) -> None:
    saved: list[int] = []

    async def save() -> int:
        saved.append(1)
        return 1

    await desk.review().annotate("doc", 1, TWO, "Which two?")
    before = await desk.review().list("doc")
    for first in ("Which two?", "Another one"):
        mark = CriticMark(TWO, None, (first, *["x" * MAX_REMARK_BYTES] * 5))
        with pytest.raises(ThreadFull):
            await desk.review().save_marked("doc", TEXT, [mark], save, int)
    assert (saved, await desk.review().list("doc")) == ([], before)


async def test_an_artifact_has_a_number_of_open_annotations_at_most(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "MAX_OPEN", 2)
    first, second = [await desk.review().annotate("doc", 1, TWO, text) for text in ("Which?", "Why?")]
    with pytest.raises(TooManyAnnotations):
        await desk.review().annotate("doc", 1, FOUR, "One too many")
    await desk.review().resolve("doc", first.annotation_id)
    third = await desk.review().annotate("doc", 1, FOUR, "One more")
    with pytest.raises(TooManyAnnotations):
        await desk.review().reply("doc", first.annotation_id, "This would open it again")
    await desk.review().withdraw("doc", second.annotation_id)
    await desk.review().reply("doc", first.annotation_id, "This opens it again")
    assert (
        [each.annotation.number for each in await desk.review().list("doc")] == [first.number, third.number] == [1, 3]
    )
