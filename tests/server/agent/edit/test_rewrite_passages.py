"""An edit of several selections: one call, one version, one undo; each passage is an edit of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.edit.edit_prompt import edit_prompt
from a2a_canvas.server.agent.edit.passages_prompt import passages_request, tag_number_of
from a2a_canvas.server.agent.edit.rewrite_passages import NOT_ALL_PASSAGES
from a2a_canvas.server.agent.edit.run import OperationRequest, check_operation, run_operation
from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.agent.intent import MAX_SELECTIONS, SelectionEdit, intent_of
from a2a_canvas.server.agent.model import EditRefusal, NothingToChange
from a2a_canvas.server.agent.operation_forms import InvalidOperation, SelectionRequest
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import Undo
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Strategy
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import text_part
from a2a_canvas.store.text.spans import Span, splice
from tests.fakes import BROKEN, REFUSED, Hold, answer, text, thinking
from tests.server.agent.edit.operation_harness import TEXT, OperationHarness, edits_of, go, phases

ONE, TWO, THREE = Span(9, 13), Span(14, 18), Span(19, 25)


def edit(
    *spans: Span, strategy: Strategy = "replace", base: int | None = 1, instruction: str = "Louder", mode: Any = "apply"
) -> SelectionEdit:
    first, *further = (SelectionRequest(span.start, span.end, name=f"selections.{at}") for at, span in enumerate(spans))
    return SelectionEdit("doc", first, strategy, instruction, base, mode, tuple(further))


def reply(*texts: str, number: int = 1) -> str:
    """The answers to the passages from the first on."""
    return "".join(f"<passage-{at}-{number}>{each}</passage-{at}-{number}>\n" for at, each in enumerate(texts, 1))


async def edited(*calls: Iterable[Any], operation: SelectionEdit | None = None) -> OperationHarness:
    harness = await OperationHarness(*calls).ready()
    await harness.run(operation or edit(ONE, THREE))
    return harness


async def now(harness: OperationHarness) -> tuple[int, str]:
    doc = await harness.doc()
    return doc.version, doc.text


async def test_the_model_gets_all_passages_in_one_call_and_all_change_as_one_version_and_one_undo() -> None:
    harness = await edited(answer(text(reply("ONE!", "THREE!"))))
    assert await now(harness) == (2, TEXT.replace("One.", "ONE!").replace("Three.", "THREE!"))
    assert harness.told.statuses == [("completed", "Edited notes.md at line 3 and line 5: version 2 is saved.")]
    common = {"name": "notes.md", "language": "markdown", "instruction": "Louder", "strategy": "replace"}
    prompts = [edit_prompt(TEXT, span, **common) for span in (ONE, THREE)]
    assert harness.llm.requests == [passages_request(prompts, "m-1")]
    await harness.run(go(Undo()))
    assert await now(harness) == (1, TEXT)


async def test_each_passage_streams_as_an_edit_of_its_own_and_the_change_follows_all() -> None:
    harness = await edited(answer(text("<passage-1-1>ON", "E!</passage-1-1><passage-2-1>TH", "REE!</passage-2-1>")))
    events = edits_of(harness.told.events)
    first, second = (event for event in events if isinstance(event, EditStarted))
    chunks = [(event.edit_id, event.chunk) for event in events if isinstance(event, EditChunk)]
    assert chunks[0] == (first.edit_id, "ON")
    assert {key: "".join(chunk for each, chunk in chunks if each == key) for key, _ in chunks} == {
        first.edit_id: "ONE!",
        second.edit_id: "THREE!",
    }
    assert phases(harness.told.events) == ["start", "start", "chunk", "complete", "complete", "artifact"]
    new = harness.told.of(ArtifactChanged)[0].parts[0].text
    for completed in (event for event in events if isinstance(event, EditCompleted)):
        assert completed.version == 1
        assert new[completed.written.start : completed.written.end] == completed.updated_content


async def test_selections_may_come_in_any_order_and_so_may_the_answers() -> None:
    said = "<passage-2-1>THREE!</passage-2-1> and <passage-1-1>ONE!</passage-1-1>"
    harness = await edited(answer(text(said)), operation=edit(THREE, ONE))
    assert await now(harness) == (2, TEXT.replace("One.", "ONE!").replace("Three.", "THREE!"))


async def test_what_the_model_says_outside_of_the_tags_is_a_remark_and_no_text() -> None:
    harness = await edited(
        answer(thinking("Hm"), text(f"Here you are:\n{reply('ONE!', 'THREE!')}I kept the rest.", at=1))
    )
    assert (await now(harness))[1] == TEXT.replace("One.", "ONE!").replace("Three.", "THREE!")
    assert harness.end.message.text.endswith("\n\nHere you are:\n\n\nI kept the rest.")


LACKING = [
    reply("ONE!"),
    "<passage-2-1>THREE!</passage-2-1>",
    "<passage-1-1>ONE!</passage-1-1><passage-2-1>THR",
    reply("ONE!", "THREE!") + "<passage-1-1>Again</passage-1-1>",
    "<passage-1-1>ONE!<passage-2-1>THREE!</passage-2-1></passage-1-1>",
    reply("ONE!", "THREE!", "FOUR!"),
    "ONE! THREE!",
    "",
]


@pytest.mark.parametrize("said", LACKING)
async def test_a_reply_that_does_not_answer_each_once_is_requested_again_and_nothing_is_guessed(said: str) -> None:
    harness = await edited(answer(text(said)), answer(text(reply("ONE!", "THREE!"))))
    assert await now(harness) == (2, TEXT.replace("One.", "ONE!").replace("Three.", "THREE!"))
    assert len(harness.told.of(EditAborted)) == 2
    failed = await edited(*[answer(text(said))] * 3)
    assert await now(failed) == (1, TEXT)
    assert failed.told.statuses == [("failed", NOT_ALL_PASSAGES)]


async def test_a_broken_stream_is_retried_and_a_refused_one_fails_with_nothing_changed() -> None:
    harness = await edited([*answer(text("<passage-1-1>ON"))[:-2], BROKEN], answer(text(reply("ONE!", "THREE!"))))
    assert (await now(harness))[0] == 2
    failed = await edited([REFUSED])
    assert await now(failed) == (1, TEXT)
    assert phases(failed.told.events) == ["start", "start", "abort", "abort", "artifact"]


async def test_a_passage_that_is_written_again_is_no_change_and_is_named() -> None:
    harness = await edited(answer(text(reply("One.", "THREE!"))))
    assert await now(harness) == (2, TEXT.replace("Three.", "THREE!"))
    told = "Edited notes.md at line 5: version 2 is saved. Unchanged: line 3."
    assert harness.told.statuses == [("completed", told)]
    same = await edited(answer(text(reply("One.", "Three."))))
    assert await now(same) == (1, TEXT)
    assert same.end.message.metadata == {CANVAS: {"artifactId": "doc", "artifactVersion": 1}}


async def test_a_passage_is_deleted_by_the_mark_alone() -> None:
    harness = await edited(answer(text(reply("<delete/>", "THREE!"))))
    assert (await now(harness))[1] == TEXT.replace("One.", "").replace("Three.", "THREE!")
    empty = await edited(*[answer(text(reply("", "THREE!")))] * 2)
    assert await now(empty) == (1, TEXT)


@pytest.mark.parametrize(
    ("strategy", "new"), [("insert_before", "+One.\nTwo.\n-Three."), ("insert_after", "One.+\nTwo.\nThree.-")]
)
async def test_texts_are_inserted_beside_each_passage(strategy: Strategy, new: str) -> None:
    harness = await edited(answer(text(reply("+", "-"))), operation=edit(ONE, THREE, strategy=strategy))
    assert (await now(harness))[1] == TEXT.replace("One.\nTwo.\nThree.", new)


async def while_others(change: Any) -> OperationHarness:
    """The edit of the first and the third line, while somebody else changes the text."""
    hold = Hold()
    harness = await OperationHarness([hold, *answer(text(reply("ONE!", "THREE!")))]).ready()
    running = asyncio.create_task(harness.run(edit(ONE, THREE)))
    await hold.reached.wait()
    await harness.put(change(TEXT))
    hold.release.set()
    await running
    return harness


async def test_what_others_change_meanwhile_moves_the_passages() -> None:
    harness = await while_others(lambda old: f"Above.\n{old.replace('Two.', '2.')}")
    assert await now(harness) == (3, "Above.\n# Notes\n\nONE!\n2.\nTHREE!\n")


async def test_an_edit_is_rejected_whole_if_others_change_one_of_its_passages() -> None:
    harness = await while_others(lambda old: old.replace("Three.", "3."))
    assert await now(harness) == (2, TEXT.replace("Three.", "3."))
    assert harness.told.statuses[-1][0] == "rejected"


async def test_suggestions_are_made_of_all_passages() -> None:
    harness = await edited(answer(text(reply("ONE!", "THREE!"))), operation=edit(ONE, THREE, mode="suggest"))
    assert await now(harness) == (1, TEXT)
    assert [each.replacement for each in await harness.suggestions()] == ["ONE!", "THREE!"]


# ------------------------------------------------------------------------------ one call for each passage


class OneByOne(OperationHarness):
    """The model answers one passage at a time."""

    async def run(self, operation: Any, **_: Any) -> Any:
        await run_operation(
            OperationRequest(operation, "m-1", "task", "context", separately=True),
            llm=self.llm,
            store=self.store,
            emit=self.told,
            new_id=self._new_id,
            sleep=self.sleep,
            make_review=self.make_review,
        )
        return self.told


async def one_by_one(*calls: Iterable[Any]) -> OneByOne:
    harness = OneByOne(*calls)
    await harness.ready()
    await harness.run(edit(ONE, TWO, THREE))
    return harness


async def test_what_writes_one_passage_at_a_time_is_called_for_each_and_makes_one_version() -> None:
    harness = await one_by_one(*(answer(text(each)) for each in ("ONE!", "TWO!", "THREE!")))
    assert await now(harness) == (2, "# Notes\n\nONE!\nTWO!\nTHREE!\n")
    assert [request.edit and request.edit.selected for request in harness.llm.requests] == ["One.", "Two.", "Three."]


async def test_a_passage_with_nothing_to_change_stays_and_the_others_change() -> None:
    harness = await one_by_one(answer(text("ONE!")), [NothingToChange("Nothing here.")], answer(text("THREE!")))
    assert await now(harness) == (2, "# Notes\n\nONE!\nTwo.\nTHREE!\n")
    assert harness.end.message.text.endswith("Unchanged: line 4.")


async def test_one_that_is_declined_or_fails_leaves_all_as_they_were() -> None:
    for last in (EditRefusal("I would rather not."), REFUSED):
        harness = await one_by_one(answer(text("ONE!")), [last])
        assert await now(harness) == (1, TEXT)
        assert phases(harness.told.events)[-4:] == ["abort", "abort", "abort", "artifact"]


# ------------------------------------------------------------------------------ properties


@given(st.data())
async def test_only_the_passages_change_however_the_reply_is_cut(data: st.DataObject) -> None:
    old = data.draw(st.text("ab \né😀", min_size=1, max_size=20), label="text")
    count = data.draw(st.integers(2, 4))
    ends = sorted(data.draw(st.sets(st.integers(0, len(old)), min_size=2 * count, max_size=2 * count)
                            if len(old) >= 2 * count else st.just({0, len(old)})))  # fmt: skip
    spans = [Span(start, end) for start, end in zip(ends[::2], ends[1::2], strict=True)]
    if len(spans) < 2:
        return
    letters = st.text("xyé😀<>-/", min_size=1, max_size=6)
    texts = data.draw(st.lists(letters, min_size=len(spans), max_size=len(spans)), label="texts")
    prompts = [
        edit_prompt(old, span, name="notes.md", language="markdown", instruction="Louder", strategy="replace")
        for span in spans
    ]
    said = reply(*texts, number=tag_number_of(prompts))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(said)), max_size=6), label="cuts"))
    deltas = [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    whole = await OperationHarness(answer(text(said)), text=old).ready()
    pieces = await OperationHarness(answer(text(*deltas)), text=old).ready()
    selections = [
        SelectionRequest(span.start, span.end, "codepoint", name=f"selections.{at}") for at, span in enumerate(spans)
    ]
    operation = SelectionEdit("doc", selections[0], "replace", "Louder", 1, "apply", tuple(selections[1:]))
    for run in (whole, pieces):
        await run.run(operation)
    assert await now(whole) == await now(pieces)
    if (await now(whole))[0] == 2:
        changed = (await now(whole))[1]
        rest = old
        for span in reversed(spans):
            rest = splice(rest, span, "\0")
        kept = rest.split("\0")
        assert changed.startswith(kept[0])
        assert changed.endswith(kept[-1])


# ------------------------------------------------------------------------------ what is refused


def sent(**fields: Any) -> dict[str, Any]:
    return {CANVAS: {"op": "edit", "artifactId": "doc", **fields}}


MANY = {"start": 0, "end": 1}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "selection"),
        ({"selections": []}, "selections"),
        ({"selections": [MANY] * (MAX_SELECTIONS + 1)}, "selections"),
        ({"selection": MANY, "selections": [MANY]}, "selections"),
        ({"selections": [MANY, {"start": 3}]}, "selections.1"),
        ({"selections": [MANY, {"start": "3", "end": 4}]}, "selections.1.start"),
        ({"selections": [MANY, {**MANY, "colour": "red"}]}, "selections.1.colour"),
        ({"selections": MANY}, "selections"),
    ],
)
def test_what_are_no_selections_is_refused_by_the_name_of_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidOperation) as refused:
        intent_of(sent(**fields), (text_part("Louder"),))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("selections", "field"),
    [
        ([(9, 13), (900, 901)], "selections.1.start"),
        ([(9, 13), (12, 18)], "selections.1.start"),
        ([(14, 18), (9, 15)], "selections.1.start"),
        ([(9, 13), (9, 13)], "selections.1.start"),
        ([(9, 13), (14, 18), (13, 13)], "selections.2.start"),
        ([(9, 9), (9, 9)], "selections.1.start"),
        ([(9, 13), (14, 13)], "selections.1.end"),
    ],
)
async def test_places_that_are_not_there_or_overlap_are_refused_before_there_is_a_task(
    selections: list[tuple[int, int]], field: str
) -> None:
    harness = await OperationHarness().ready()
    given = sent(selections=[{"start": start, "end": end} for start, end in selections])
    operation = intent_of(given, (text_part("Louder"),))
    assert isinstance(operation, SelectionEdit)
    with pytest.raises(InvalidOperation) as refused:
        await check_operation(operation, ContextKey("context"), harness.store, harness.annotations)
    assert refused.value.field == field


async def test_passages_may_touch_each_other() -> None:
    harness = await edited(answer(text(reply("ONE!", "!"))), operation=edit(ONE, Span(13, 14)))
    assert (await now(harness))[1] == TEXT.replace("One.\n", "ONE!!\n")


def test_one_selection_in_the_list_is_as_one_alone() -> None:
    alone, listed = (
        intent_of(sent(**fields), (text_part("Louder"),)) for fields in ({"selection": MANY}, {"selections": [MANY]})
    )
    assert isinstance(alone, SelectionEdit)
    assert isinstance(listed, SelectionEdit)
    assert (alone.selection.start, alone.further) == (listed.selection.start, listed.further) == (0, ())
