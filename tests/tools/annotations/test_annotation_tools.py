"""How the model takes part in a review: `comments`, `comment`, `reply`, `resolve`, `suggest`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.store.annotations.annotation import AGENT, Annotation, AnnotationsChanged, Writer
from a2a_canvas.store.annotations.annotation_store import InMemoryAnnotations
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.changes import AppendParts, EditText
from a2a_canvas.store.edit_events import EditAborted, EditStarted, EditSuggested
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.text.spans import Span
from a2a_canvas.tools.annotations.annotation_tools import comment, comments, reply, resolve, suggest
from a2a_canvas.tools.tool import Done, Failed, Outcome, Tool, Workspace
from tests.fakes import Clock, ids
from tests.store.artifact_builders import by, replacing, result, text
from tests.tools.tool_calls import RecordingListener, call, dumped, fragments, workspace

TEXT = "One two.\nThree four.\n"
THREE = Span(9, 14)
ANN = Writer("user", "ann", "ann")


class ReviewDesk:
    """The artifact `a` at version 1, an agent's workspace, and the review of a person, Ann."""

    def __init__(self, *changes: Any) -> None:
        self.store, self.annotations, self.watcher = InMemoryArtifactStore(), InMemoryAnnotations(), RecordingListener()
        for change in changes or (replacing(TEXT, last_chunk=True),):
            result(self.store.apply(by("t0"), change))
        self._new_id = ids("n")

    def place(self) -> Workspace:
        place = workspace(self.store, watcher=self.watcher)
        return Workspace(place.store, "c", "t1", place.new_id, review=self.review(AGENT))

    def review(self, writer: Writer = ANN) -> Review:
        async def report(change: AnnotationsChanged) -> None:
            self.annotations.write("c", "t1", change)

        evented = workspace(self.store).store
        return Review(evented, self.annotations, report, "c", "t1", writer, Clock(), self._new_id)

    async def call(self, tool: Tool, **given: Any) -> Outcome:
        return await call(tool, [json.dumps({"artifact_id": "a", **given})], self.place())

    async def listed(self) -> list[dict[str, Any]]:
        outcome = await self.call(comments)
        assert isinstance(outcome, Done)
        return json.loads(outcome.content)

    async def stored(self) -> tuple[Annotation, ...]:
        return await self.annotations.list("c", "a")


async def test_comments_are_quoted_with_their_authors_lines_and_states() -> None:
    desk = ReviewDesk()
    await desk.review().annotate("a", 1, THREE, "Why three?")
    await desk.call(reply, number=1, text="There are three.")
    await desk.review().annotate("a", 1, Span(0, 3), replacement="1")
    assert await desk.listed() == [
        {
            "number": 1,
            "kind": "comment",
            "state": "open",
            "author": "user",
            "by": "ann",
            "first_line": 2,
            "last_line": 2,
            "quote": "Three",
            "thread": [
                {"author": "user", "by": "ann", "text": "Why three?"},
                {"author": "agent", "text": "There are three."},
            ],
        },
        {
            "number": 2,
            "kind": "suggestion",
            "state": "open",
            "author": "user",
            "by": "ann",
            "first_line": 1,
            "last_line": 1,
            "quote": "One",
            "replacement": "1",
            "thread": [],
        },
    ]


async def test_one_whose_passage_is_gone_is_stale_and_has_no_lines() -> None:
    desk = ReviewDesk()
    await desk.review().annotate("a", 1, THREE, "Why three?")
    result(desk.store.apply(by("t0"), EditText(THREE, "Drei", 1)))
    (listed,) = await desk.listed()
    assert (listed["state"], listed["quote"], "first_line" in listed) == ("stale", "Three", False)


async def test_of_many_the_newest_are_listed() -> None:
    desk = ReviewDesk()
    for number in range(40):
        await desk.review().annotate("a", 1, THREE, f"{number}: {'long ' * 1000}")
    listed = await desk.listed()
    assert listed[0] == {"note": "Older ones are left out."}
    assert listed[-1]["number"] == 40


async def test_a_comment_is_the_agents_at_its_quote() -> None:
    desk = ReviewDesk()
    assert await desk.call(comment, quote="Three", text="Needs a source.") == Done("Added comment 1.")
    (made,) = await desk.stored()
    assert (made.writer, made.span, made.version, made.thread[0].text) == (AGENT, THREE, 1, "Needs a source.")


async def test_a_comment_is_for_the_newest_version_while_another_task_writes() -> None:
    desk = ReviewDesk(replacing(TEXT, last_chunk=True), AppendParts((text("Five."),)))
    refused = await desk.call(comment, quote="Five.", text="Hm.")
    assert isinstance(refused, Failed)
    await desk.call(comment, quote="Three", text="Hm.")
    assert len(await desk.stored()) == 1


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        (comment, {"quote": "o", "text": "?"}, "quote occurs 2 times"),
        (comment, {"quote": "Nine", "text": "?"}, "quote does not occur"),
        (comment, {"quote": "Three", "text": ""}, "text: must not be empty"),
        (comment, {"quote": "Three", "text": "x" * 20_001}, "20001"),
        (comment, {"artifact_id": "b", "quote": "Three", "text": "?"}, 'no artifact "b"'),
        (reply, {"number": 2, "text": "?"}, "number is 2, but must be 1"),
        (resolve, {"number": 0}, "number is 0, but must be 1"),
        (comments, {"artifact_id": "b"}, 'no artifact "b"'),
        (suggest, {"old_text": "o", "new_text": "?"}, "Call suggest again"),
        (suggest, {"old_text": "Three", "new_text": "Three"}, "is the same as old_text"),
    ],
)
async def test_a_call_that_cannot_be_says_why_and_changes_nothing(tool: Tool, given: dict[str, Any], says: str) -> None:
    desk = ReviewDesk()
    await desk.review().annotate("a", 1, THREE, "Why three?")
    before = await desk.stored()
    outcome = await desk.call(tool, **given)
    assert isinstance(outcome, Failed)
    assert says in outcome.content
    assert await desk.stored() == before


async def test_without_any_a_number_is_refused_too() -> None:
    outcome = await ReviewDesk().call(resolve, number=1)
    assert outcome == Failed("number is 1, but the artifact has no comments and no suggestions. Nothing was changed.")


async def test_a_comment_that_has_been_dealt_with_is_resolved_once() -> None:
    desk = ReviewDesk()
    await desk.review().annotate("a", 1, THREE, "Why three?")
    assert await desk.call(resolve, number=1) == Done("Resolved comment 1.")
    assert isinstance(await desk.call(resolve, number=1), Failed)
    assert (await desk.listed())[0]["state"] == "resolved"


async def test_a_suggestion_is_accepted_or_rejected_and_never_resolved() -> None:
    desk = ReviewDesk()
    await desk.review().annotate("a", 1, THREE, replacement="3")
    assert isinstance(await desk.call(resolve, number=1), Failed)


@given(st.data())
async def test_a_suggestion_streams_however_its_input_is_cut_and_changes_no_text(data: st.DataObject) -> None:
    desk = ReviewDesk()
    whole = data.draw(dumped({"artifact_id": "a", "old_text": "Three", "new_text": "3"}))
    outcome = await call(suggest, data.draw(fragments(whole)), desk.place())
    assert outcome == Done("Suggested; suggestion 1 of a is open. The text stays as it is until people accept.")
    start, end = desk.watcher.edits(EditStarted | EditSuggested)
    (made,) = await desk.stored()
    assert (start.mode, end.annotation_id, made.replacement, made.span) == ("suggest", made.annotation_id, "3", THREE)
    assert desk.watcher.changes() == []
    assert result(desk.store.get(by("t1"))).text == TEXT


async def test_a_suggestion_that_is_cut_off_is_aborted_and_leaves_nothing() -> None:
    desk = ReviewDesk()
    stream = suggest.open(desk.place())
    await stream.feed('{"artifact_id": "a", "old_text": "Three", "new_text": "3')
    assert desk.watcher.open
    await stream.abort()
    assert desk.watcher.kinds[-1] == EditAborted.__name__
    assert await desk.stored() == ()
