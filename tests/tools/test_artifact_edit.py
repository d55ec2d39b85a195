"""`artifact_edit`: the law (however its input is cut, the outcome is that of the whole call), and what watchers see."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import AppendParts, Change, EditText, ReplaceParts
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Selection
from a2a_canvas.store.errors import ArtifactNotFound, ArtifactTooLarge
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, FilePart, Limits, Version
from a2a_canvas.store.text.spans import Span
from a2a_canvas.tools.artifact_edit import artifact_edit
from a2a_canvas.tools.tool import Done, Failed, Outcome, ToolStream
from tests.property_examples import examples
from tests.store.artifact_builders import appending, by, delta, replacing, result, text
from tests.tools.tool_calls import RecordingListener, call, cut, dumped, fragments, shuffled, workspace

EDIT = artifact_edit
State = tuple[Artifact, tuple[Version, ...]] | None


async def standing(store: ArtifactStore) -> State:
    try:
        return await store.get(by("t1")), await store.versions(by("t1"))
    except ArtifactNotFound:
        return None


def edit(old: Any = "b", new: Any = "X", **rest: Any) -> dict[str, Any]:
    """A call with its properties in the order of the schema."""
    return {"artifact_id": "a", "old_text": old, "new_text": new, **rest}


def saved(*changes: Change, limits: Limits | None = None) -> InMemoryArtifactStore:
    store = InMemoryArtifactStore(limits)
    for change in changes:
        result(store.apply(by("t1"), change))
    return store


def document(content: str = "abc", **rest: Any) -> ReplaceParts:
    return replacing(content, last_chunk=True, **rest)


def assert_failed(outcome: Outcome, says: str) -> None:
    assert isinstance(outcome, Failed)
    assert re.search(says, outcome.content, re.DOTALL), outcome.content
    assert "othing was changed" in outcome.content
    outcome.content.encode()


# ------------------------------------------------------------------------------------------- any call, any cut

LETTERS = 'ab \n\r\\"é€😀'
TEXTS = st.text(LETTERS, max_size=12)
PIECES = st.text(LETTERS + "\u2028\x7f/\t", max_size=6)
BROKEN_HALF = st.sampled_from(["\ud83d", "\ude00b", "a\ud83d"])


@st.composite
def asked(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A text, and a call that quotes a passage of it, or something else."""
    content = draw(TEXTS)
    start, end = sorted(draw(st.tuples(st.integers(0, len(content)), st.integers(0, len(content)))))
    old = draw(st.just(content[start:end]) | st.just(content[start:end]) | PIECES | BROKEN_HALF)
    extra = draw(st.dictionaries(st.sampled_from(["note", "text"]), st.none() | TEXTS | st.just({"new_text": "n"})))
    return content, draw(shuffled(edit(old, draw(PIECES | BROKEN_HALF), **extra)))


def expected(content: str, old: str, new: str) -> str | None:
    """What the edit makes of `content`; None if it must fail."""
    old, new = (re.sub("[\ud800-\udfff]", "\ufffd", words) for words in (old, new))
    places = [at for at in range(len(content)) if content.startswith(old, at)] if old else []
    if len(places) != 1 or old == new:
        return None
    return content[: places[0]] + new + content[places[0] + len(old) :]


@given(asked(), st.booleans(), st.data())
@settings(max_examples=examples(300))
def test_however_a_call_is_cut_and_ordered_exactly_the_quoted_passage_changes(
    asked: tuple[str, dict[str, Any]], draft: bool, data: st.DataObject
) -> None:
    content, whole = asked
    store, watcher = saved(replacing(content, name="n", last_chunk=not draft)), RecordingListener()
    pieces = data.draw(fragments(data.draw(dumped(whole))))
    outcome = result(call(EDIT, pieces, workspace(store, watcher=watcher)))
    after = expected(content, whole["old_text"], whole["new_text"])
    artifact = result(store.get(by("t1")))
    assert artifact.text == (content if after is None else after)
    assert watcher.open == {}
    if after is None:
        assert isinstance(outcome, Failed)
        assert watcher.edits(EditCompleted) == []
        return
    assert outcome == Done("Edited; version 2 of a is saved.")
    assert (artifact.version, artifact.open, artifact.name) == (2, False, "n")
    assert watcher.reads() == artifact.content
    [completed] = watcher.edits(EditCompleted)
    assert "".join(event.chunk for event in watcher.edits(EditChunk)) == completed.updated_content


@st.composite
def garbled(draw: st.DrawFn) -> str:
    """A call with something wrong: cut short, with a fault in it, with a field twice or of another type."""
    _, whole = draw(asked())
    whole = {**whole, **draw(st.dictionaries(st.sampled_from(list(whole)), st.sampled_from([None, 1, [], ""])))}
    written = draw(dumped(whole))
    at = draw(st.integers(0, len(written)))
    again = draw(st.sampled_from(list(whole)))
    return draw(
        st.sampled_from(
            [written[:at], written[:at] + "\x00" + written[at:], f'{{"{again}": "b", {written.lstrip()[1:]}', written]
        )
    )


@given(TEXTS, garbled(), st.data())
@settings(max_examples=examples(300))
def test_however_any_input_is_cut_the_outcome_is_that_of_the_input_in_one_piece(
    content: str, written: str, data: st.DataObject
) -> None:
    outcomes, states = [], []
    for pieces in ([written], data.draw(fragments(written))):
        store, watcher = saved(document(content)), RecordingListener()
        outcomes.append(result(call(EDIT, pieces, workspace(store, watcher=watcher))))
        states.append(result(standing(store)))
        assert watcher.open == {}
        assert watcher.told == [] or watcher.reads() == states[-1][0].content
    assert outcomes[0] == outcomes[1]
    assert states[0] == states[1]
    outcomes[0].content.encode()


# ---------------------------------------------------------------------------------- when things reach a watcher


class Watched:
    """A call on a store, and what a watcher is told of it."""

    def __init__(self, *before: Change, limits: Limits | None = None) -> None:
        self.watcher = RecordingListener()
        self.store = saved(*(before or (document(),)), limits=limits)
        self.stream: ToolStream = EDIT.open(workspace(self.store, watcher=self.watcher))

    async def feed(self, fragment: str) -> list[str]:
        before = len(self.watcher.told)
        await self.stream.feed(fragment)
        return self.watcher.kinds[before:]


async def test_in_the_schemas_order_it_is_announced_at_the_quotes_end_and_grows_with_every_character() -> None:
    watched = Watched(document("a😀bc", name="report.md"))
    quoted, rest = '{"artifact_id": "a", "old_text": "b"', ', "new_text": "'
    told = [await watched.feed(character) for character in quoted]
    assert told == [[]] * (len(quoted) - 1) + [["EditStarted"]]
    assert [await watched.feed(character) for character in rest] == [[]] * len(rest)
    for character in "Hi!":
        assert await watched.feed(character) == ["EditChunk"]
    assert (await watched.store.get(by("t1"))).text == "a😀bc"
    assert await watched.feed('"}') == []
    assert await watched.stream.finish() == Done("Edited; version 2 of a is saved.")
    at = Selection(3, 4)
    assert watched.watcher.told[:-1] == [
        EditStarted("edit-1", "a", at, "replace", 1),
        *(EditChunk("edit-1", "a", at, character) for character in "Hi!"),
        EditCompleted("edit-1", "a", at, "Hi!", Selection(3, 6), "replace", 1),
    ]
    [change] = watched.watcher.changes()
    assert (change.append, change.version, change.artifact.text) == (False, 2, "a😀Hi!c")


@pytest.mark.parametrize(
    ("held", "last"),
    [
        ('{"new_text": "Hi", "artifact_id": "a", "old_text": "b', '"'),
        ('{"new_text": "Hi", "old_text": "b", "artifact_id": "a', '"'),
        ('{"old_text": "b", "new_text": "Hi", "artifact_id": "a', '"'),
    ],
)
async def test_text_that_comes_before_it_is_known_where_it_goes_is_held_back(held: str, last: str) -> None:
    watched = Watched()
    assert [await watched.feed(character) for character in held] == [[]] * len(held)
    assert await watched.feed(last) == ["EditStarted", "EditChunk"]
    assert list(watched.watcher.open.values()) == ["Hi"]
    await watched.feed("}")
    assert isinstance(await watched.stream.finish(), Done)


async def test_a_passage_is_deleted_by_an_empty_text() -> None:
    watched = Watched()
    assert await watched.feed(json.dumps(edit("b", ""))) == ["EditStarted"]
    assert isinstance(await watched.stream.finish(), Done)
    assert (await watched.store.get(by("t1"))).text == "ac"


async def test_everything_but_the_passage_stays() -> None:
    full = (text("abc", media_type="text/markdown", metadata={"k": 1}), FilePart(b"f"))
    store = saved(ReplaceParts(full, "n", "d", last_chunk=True))
    await call(EDIT, [json.dumps(edit())], workspace(store))
    artifact = await store.get(by("t1"))
    assert (artifact.name, artifact.description) == ("n", "d")
    assert artifact.parts == (text("aXc", media_type="text/markdown", metadata={"k": 1}), FilePart(b"f"))
    before, after = await store.versions(by("t1"))
    assert (before.content.parts, after.author, after.parent) == (full, "agent", 1)


# ------------------------------------------------------------------------------------------- drafts and others


async def test_the_tasks_own_draft_is_closed_first() -> None:
    watched = Watched(document("old"), replacing("abc"))
    assert await watched.feed(json.dumps(edit())) == ["AppliedChange", "EditStarted", "EditChunk"]
    [started] = watched.watcher.edits(EditStarted)
    assert started.version == 2
    assert await watched.stream.finish() == Done("Edited; version 3 of a is saved.")
    assert [version.content.parts[0].text for version in await watched.store.versions(by("t1"))] == [
        "old",
        "abc",
        "aXc",
    ]


@pytest.mark.parametrize("theirs", [replacing("abc"), delta(replacing("theirs"))], ids=["whole", "being written"])
async def test_what_another_task_writes_is_not_edited(theirs: Change) -> None:
    store = saved(document())
    await store.apply(by("t2"), theirs)
    before, watcher = await standing(store), RecordingListener()
    outcome = await call(EDIT, [json.dumps(edit())], workspace(store, watcher=watcher))
    assert_failed(outcome, "'a' is being written by another task.*Try again when it is done")
    assert await standing(store) == before
    assert watcher.told == []


async def begun(watched: Watched) -> None:
    await watched.feed(json.dumps(edit())[:-1])
    assert watched.watcher.kinds == ["EditStarted", "EditChunk"]


async def test_an_edit_lands_where_its_passage_stands_now() -> None:
    watched = Watched()
    await begun(watched)
    await watched.store.apply(by("t2"), EditText(Span(0, 0), "more and ", 1))
    await watched.feed("}")
    assert await watched.stream.finish() == Done("Edited; version 3 of a is saved.")
    assert (await watched.store.get(by("t1"))).text == "more and aXc"


async def test_an_edit_of_what_others_have_rewritten_fails_and_is_taken_back() -> None:
    watched = Watched()
    await begun(watched)
    await watched.store.apply(by("t2"), document("something else"))
    await watched.feed("}")
    outcome = await watched.stream.finish()
    assert_failed(outcome, "cannot be found again.*now at version 2.*Read it again")
    assert watched.watcher.kinds[2:] == ["EditAborted", "AppliedChange"]
    assert watched.watcher.reads().parts == (text("something else"),)


async def test_an_edit_that_another_task_gets_in_the_way_of_fails_and_is_taken_back() -> None:
    watched = Watched()
    await begun(watched)
    await watched.store.apply(by("t2"), appending("!"))
    await watched.feed("}")
    assert_failed(await watched.stream.finish(), "written by another task")
    assert watched.watcher.open == {}


# --------------------------------------------------------------------------------------------- calls cut off


@pytest.mark.parametrize("end", ["finish", "abort"])
async def test_input_that_ends_anywhere_leaves_the_artifact_as_it_was(end: str) -> None:
    whole = json.dumps(edit("b", "né\n😀"))
    for length in range(len(whole)):
        watched = Watched()
        before = await standing(watched.store)
        for piece in cut(whole[:length], length // 2):
            await watched.feed(piece)
        if end == "finish":
            assert_failed(await watched.stream.finish(), "complete, valid JSON.*Call it again, with all of it")
        else:
            await watched.stream.abort()
        assert await standing(watched.store) == before
        assert watched.watcher.open == {}
        if watched.watcher.told:
            assert watched.watcher.kinds[-2:] == ["EditAborted", "AppliedChange"]
            assert watched.watcher.reads() == before[0].content  # type: ignore[index]


async def test_abort_tells_nothing_of_an_edit_that_was_not_announced_or_has_ended() -> None:
    watched = Watched()
    await watched.feed('{"artifact_id": "a", ')
    await watched.stream.abort()
    assert watched.watcher.told == []
    done = Watched()
    await done.feed(json.dumps(edit()))
    await done.stream.finish()
    told = list(done.watcher.told)
    await done.stream.abort()
    assert done.watcher.told == told


async def test_nothing_is_acted_on_after_an_abort() -> None:
    watched = Watched()
    await watched.feed('{"artifact_id": "a", ')
    await watched.stream.abort()
    assert await watched.feed('"old_text": "b", "new_text": "X"}') == []
    assert isinstance(await watched.stream.finish(), Failed)


async def test_a_limit_passes_when_the_edit_has_been_taken_back() -> None:
    watched = Watched(document("abc"), limits=Limits(artifact_bytes=5))
    await watched.feed(json.dumps(edit("b", "123456")))
    with pytest.raises(ArtifactTooLarge):
        await watched.stream.finish()
    assert watched.watcher.kinds[-2:] == ["EditAborted", "AppliedChange"]
    assert (await watched.store.get(by("t1"))).text == "abc"


async def test_a_cancel_while_the_change_is_made_takes_the_edit_back() -> None:
    class Slow(InMemoryArtifactStore):
        reached = asyncio.Event()

        async def apply(self, ref: Any, change: Change) -> Any:
            if isinstance(change, EditText):
                self.reached.set()
                await asyncio.Event().wait()
            return await super().apply(ref, change)

    store, watcher = Slow(), RecordingListener()
    await store.apply(by("t1"), document())
    turn = asyncio.create_task(call(EDIT, [json.dumps(edit())], workspace(store, watcher=watcher)))
    await store.reached.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert watcher.kinds == ["EditStarted", "EditChunk", "EditAborted", "AppliedChange"]
    assert watcher.reads().parts == (text("abc"),)


# -------------------------------------------------------------------------------------------------- bad input

TWICE = "is given twice; give every field once"
INVALID: dict[str, tuple[str, str]] = {
    "nothing": ("", "complete, valid JSON"),
    "not JSON": ("hello", "complete, valid JSON"),
    "more after the end": (json.dumps(edit()) + "}", "expected the end of the text"),
    "a number": ("5", "input: is "),
    "a list": ("[]", "input: is "),
    "no id": ('{"old_text": "b", "new_text": "X"}', "artifact_id: is missing"),
    "no old text": ('{"artifact_id": "a", "new_text": "X"}', "old_text: is missing"),
    "no new text": ('{"artifact_id": "a", "old_text": "b"}', "new_text: is missing"),
    "blank id": (json.dumps(edit(artifact_id=" ")), "artifact_id: .*must not be blank"),
    "id is a number": (json.dumps(edit(artifact_id=1)), "artifact_id: .*must be a string"),
    "id is an object": (json.dumps(edit(artifact_id={"a": "b"})), "artifact_id: .*must be a string"),
    "half a character in the id": (json.dumps(edit(artifact_id="\ud83d")), "artifact_id: .*unicode string"),
    "empty old text": (json.dumps(edit("")), "old_text: .*must not be empty.*append=true.*quote a neighbouring"),
    "old text is null": (json.dumps(edit(None)), "old_text: is "),
    "new text is null": (json.dumps(edit("b", None)), "new_text: is "),
    "new text is a list": (json.dumps(edit("b", ["X"])), "new_text: is "),
    "id twice": (json.dumps(edit())[:-1] + ', "artifact_id": "a"}', f"artifact_id: {TWICE}"),
    "old text twice": (json.dumps(edit())[:-1] + ', "old_text": "b"}', f"old_text: {TWICE}"),
    "new text twice": (json.dumps(edit())[:-1] + ', "new_text": "Y"}', f"new_text: {TWICE}"),
    "new text twice, first a number": ('{"new_text": 1, ' + json.dumps(edit())[1:], f"new_text: {TWICE}"),
    "no such artifact": (json.dumps(edit(artifact_id="z")), 'no artifact "z" in this context; there is "a"'),
    "no such text": (json.dumps(edit("z")), "old_text does not occur.*artifact_read"),
    "text that is everywhere": (json.dumps(edit("a")), "old_text occurs 2 times.*quote more"),
    "nothing new": (json.dumps(edit("b", "b")), "the same as old_text"),
}


@pytest.mark.parametrize(("input_", "says"), INVALID.values(), ids=INVALID.keys())
async def test_bad_input_fails_says_how_to_do_it_right_and_leaves_the_artifact_as_it_was(
    input_: str, says: str
) -> None:
    for pieces in ([input_], list(input_), cut(input_, len(input_) // 2)):
        watched = Watched(document("abca"))
        before = await standing(watched.store)
        for piece in pieces:
            await watched.feed(piece)
        outcome = await watched.stream.finish()
        assert_failed(outcome, says)
        assert await watched.stream.finish() == outcome
        assert await standing(watched.store) == before
        assert watched.watcher.open == {}


async def test_what_stands_twice_in_a_field_that_is_ignored_is_ignored() -> None:
    written = json.dumps(edit())[:-1] + ', "note": {"old_text": "a", "old_text": 1}}'
    assert isinstance(await call(EDIT, list(written), workspace(saved(document()))), Done)


async def test_half_a_character_is_quoted_as_it_was_kept() -> None:
    store = saved(document("a\ud83d b"))
    assert (await store.get(by("t1"))).text == "a\ufffd b"
    assert isinstance(await call(EDIT, list(json.dumps(edit("\ud83d", "\ude00!"))), workspace(store)), Done)
    assert (await store.get(by("t1"))).text == "a\ufffd! b"


async def test_an_artifact_without_text_has_nothing_to_edit() -> None:
    store = saved(AppendParts((FilePart(b"f"),), last_chunk=True))
    outcome = await call(EDIT, [json.dumps(edit())], workspace(store))
    assert_failed(outcome, "'a' has no text to edit. Use artifact_update")


async def test_what_is_wrong_with_the_input_comes_before_what_is_not_found() -> None:
    outcome = await call(EDIT, list(json.dumps(edit("z", 5))), workspace(saved(document())))
    assert_failed(outcome, "new_text: is ")


async def test_an_edit_that_was_announced_is_taken_back_when_its_input_proves_wrong() -> None:
    watched = Watched()
    await begun(watched)
    assert await watched.feed(', "old_text": "a"') == ["EditAborted", "AppliedChange"]
    assert await watched.feed("}") == []


# --------------------------------------------------------------------------------- what reader and model see


async def test_the_label_is_empty_until_the_passage_is_found() -> None:
    for name, label in (("report.md", "Editing report.md…"), ("", "Editing a…")):
        watched = Watched(document(name=name))
        await watched.feed('{"artifact_id": "a", "old_text": "b')
        assert watched.stream.label == ""
        await watched.feed('"')
        assert watched.stream.label == label


def test_the_schema_has_the_properties_in_the_order_in_which_they_are_to_be_written() -> None:
    schema = json.loads(json.dumps(EDIT.input_schema))
    assert list(schema["properties"]) == ["artifact_id", "old_text", "new_text"] == schema["required"]


@pytest.mark.parametrize(
    "rule",
    [
        "small changes in the middle",
        "occurs exactly once",
        "artifact_update with append=true",
        "append=false",
        "artifact_restore",
        "To insert, quote a neighbouring passage",
        "An empty one deletes",
        "more than four places or a third",
        'never "… rest unchanged …"',
    ],
)
def test_the_description_tells_when_and_how_to_use_it(rule: str) -> None:
    assert rule in " ".join(EDIT.description.split())


def test_it_asks_for_its_input_as_it_is_generated_and_does_not_wait_for_other_calls() -> None:
    assert (EDIT.name, EDIT.eager, EDIT.acts_last) == ("artifact_edit", True, False)


def test_every_announced_edit_that_comes_to_nothing_is_aborted_once() -> None:
    watched = Watched()
    result(begun(watched))
    result(watched.stream.abort())
    result(watched.stream.abort())
    assert len(watched.watcher.edits(EditAborted)) == 1
