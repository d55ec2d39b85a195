"""What the older request asks for, held against the thread that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from a2a.utils.errors import InvalidParamsError
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.intent import Converse, Focus, SelectionEdit
from a2a_canvas.server.agent.operation_forms import InvalidOperation, SelectionRequest
from a2a_canvas.server.protocols.a2a_v1.projection.parts import MAX_ID
from a2a_canvas.server.protocols.agui.older.older_form import is_older, older_request
from a2a_canvas.server.protocols.agui.older.older_state import OlderState
from a2a_canvas.server.protocols.agui.older.request import (
    ARTIFACT_ID,
    MAX_CONTENTS,
    ThreadArtifact,
    TranslatedRun,
    in_older_names,
    needs_tasks,
    thread_artifact,
    translate_request,
)
from a2a_canvas.server.protocols.agui.state import CanvasState
from a2a_canvas.server.tasks.record import TaskArtifact, TaskRecord
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.errors import VersionConflict
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, Content, DataPart, FilePart, Ref, TextPart, text_part
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples
from tests.store.artifact_builders import TEXTS, result

Json = dict[str, Any]
USER = Ref("t", ARTIFACT_ID, "own", "user")
AGENT = Ref("t", ARTIFACT_ID, "agents")


def code(index: int, text: str = "x = 1\n", **fields: Any) -> Json:
    return {"index": index, "type": "code", "code": text, "language": "python", "title": "x.py", **fields}


def prose(index: int, text: str = "# X\n", **fields: Any) -> Json:
    return {"index": index, "type": "text", "fullMarkdown": text, "language": "", "title": "X", **fields}


def artifact(current: int, *contents: Json) -> Json:
    return {"currentIndex": current, "contents": list(contents)}


def request(**fields: Any) -> Json:
    return {"message": "Go on", "thread_id": "t", **fields}


def made_by(*artifact_ids: str) -> TaskRecord:
    """A task that has changed these artifacts, in this order."""
    changed = {artifact_id: TaskArtifact(artifact_id, Content(), 1, "agent") for artifact_id in artifact_ids}
    return TaskRecord("own", "t", "", datetime(2030, 1, 1, tzinfo=UTC), artifacts=changed)


class Thread:
    """A thread's canvas artifact in a store."""

    def __init__(self) -> None:
        self.store = InMemoryArtifactStore()

    def has(self, *changes: Change, ref: Ref = AGENT) -> Thread:
        for change in changes:
            result(self.store.apply(ref, change))
        return self

    @property
    def canvas(self) -> ThreadArtifact | None:
        found = thread_artifact(result(self.store.list("t")), [made_by(ARTIFACT_ID)])
        return ThreadArtifact(found, result(self.store.versions(AGENT))) if found else None

    def meaning(self, **fields: Any) -> TranslatedRun:
        return translate_request(older_request(request(**fields)), self.canvas, "run")

    def take(self, **fields: Any) -> TranslatedRun:
        """What a request means, once its changes are stored."""
        run = self.meaning(**fields)
        self.has(*(change for _, change in run.changes), ref=USER)
        return run

    @property
    def shown(self) -> Json:
        """The artifact as the state shows it to such a client."""
        canvas = self.canvas
        assert canvas
        state: Json = older_state(canvas).snapshot()["artifact"]
        return state

    @property
    def texts(self) -> list[str]:
        return [content.get("code", content.get("fullMarkdown")) for content in self.shown["contents"]]


def older_state(canvas: ThreadArtifact) -> OlderState:
    record, versions = made_by(), {canvas.artifact.artifact_id: canvas.versions}
    return OlderState(CanvasState(record, [canvas.artifact], versions), record, versions, canvas.artifact.artifact_id)


def with_versions(*texts: str, **fields: Any) -> Thread:
    return Thread().has(*(ReplaceParts((text_part(text),), last_chunk=True, **fields) for text in texts))


def said(run: TranslatedRun) -> UserMessage:
    assert run.run.message
    return run.run.message


def refused(value: Json, thread: Thread | None = None) -> str:
    """The field that a refusal names."""
    with pytest.raises((InvalidParamsError, InvalidOperation)) as raised:
        translate_request(older_request(value), (thread or Thread()).canvas, "run")
    error = raised.value
    if isinstance(error, InvalidOperation):
        return in_older_names(error).field
    field: str = error.data["errors"][0]["field"]
    assert error.message.startswith(f"{field} ")
    return field


# -------------------------------------------------------------------------- conversation


def test_a_message_is_conversation_in_its_thread() -> None:
    run = Thread().meaning(message="Hello")
    assert (run.artifact_id, run.changes, run.run.thread_id, run.run.run_id) == ("", (), "t", "run")
    assert said(run).parts == (text_part("Hello"),)
    assert said(run).intent == Converse()


def test_a_selection_without_an_artifact_anywhere_is_conversation_too() -> None:
    assert said(Thread().meaning(selectedText={"start": 0, "end": 1})).intent == Converse()


def test_the_agent_is_told_which_artifact_the_user_has_before_them() -> None:
    assert said(with_versions("a").meaning()).intent == Converse(Focus(ARTIFACT_ID))
    seen = with_versions("a", "b").meaning(artifact=artifact(2, {**prose(2, "b"), "title": ""}))
    assert said(seen).intent == Converse(Focus(ARTIFACT_ID, 2))


def test_what_such_clients_send_besides_is_ignored() -> None:
    assert Thread().meaning(model="m", artifact=None, selectedText=None, tools=[1]).changes == ()


SELECTION = {"start": 4, "end": 7, "text": "two"}
MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "user", "content": "Make it long"}]
WITH_IDS = [{"id": f"m{number}", **message} for number, message in enumerate(MESSAGES)]
OPERATION = {CANVAS: {"op": "undo", "artifactId": "a"}}


@pytest.mark.parametrize(
    ("body", "older"),
    [
        ({"message": "x"}, True),
        ({"messages": MESSAGES, "selectedText": SELECTION}, True),
        ({"messages": WITH_IDS, "artifact": None}, True),
        ({"messages": WITH_IDS, "state": {"selectedText": SELECTION}}, True),
        ({"messages": WITH_IDS, "state": {"artifact": artifact(1, prose(1))}}, True),
        ({"messages": MESSAGES, "thread_id": "t"}, True),
        ({"messages": MESSAGES, "threadId": "t"}, False),
        ({"messages": WITH_IDS, "thread_id": "t"}, False),
        ({"messages": WITH_IDS, "state": {"selectedText": "two"}}, True),
        ({"messages": WITH_IDS, "state": {"selectedText": "two", "artifact": {"id": 1}}}, True),
        ({"messages": WITH_IDS, "state": {"selectedText": "", "artifact": {"id": 1}}}, False),
        ({"messages": WITH_IDS, "state": {"selectedText": SELECTION}, "forwardedProps": OPERATION}, False),
        ({"messages": [], "state": {"selectedText": SELECTION}, "resume": [{"interruptId": "i"}]}, False),
        ({"messages": WITH_IDS, "state": 5}, False),
        ({}, False),
    ],
)
def test_a_body_that_names_an_artifact_or_a_selection_is_of_the_older_form(body: Json, older: bool) -> None:
    assert is_older(body) is older


@pytest.mark.parametrize(
    "body",
    [
        {"selectedText": SELECTION},
        {"state": {"selectedText": SELECTION}},
        {"selectedText": None, "state": {"selectedText": SELECTION}},
    ],
)
@pytest.mark.parametrize("messages", [MESSAGES, WITH_IDS])
def test_the_last_of_its_messages_is_about_the_selection(body: Json, messages: list[Json]) -> None:
    run = with_versions("one two").meaning(message=None, messages=messages, **body)
    intent = said(run).intent
    assert isinstance(intent, SelectionEdit)
    assert (intent.instruction, intent.selection.text) == ("Make it long", "two")
    assert said(run).message_id == ("m1" if messages is WITH_IDS else "run")
    shown = run.run.history
    assert (shown is not None and [each.id for each in shown]) == (messages is WITH_IDS and ["m0", "m1"])


def test_without_a_thread_id_it_begins_a_thread() -> None:
    assert older_request({"message": "x"}, "new").thread_id == "new"
    assert older_request({"message": "x", "thread_id": None}, "new").thread_id == "new"
    assert older_request({"message": "x", "threadId": "t"}, "new").thread_id == "t"


# -------------------------------------------------------------------- an unknown artifact


def test_its_contents_become_versions_in_order_and_the_current_one_is_current() -> None:
    thread = Thread()
    run = thread.take(artifact=artifact(2, code(1, "a"), code(2, "b"), code(3, "c")))
    assert run.artifact_id == ARTIFACT_ID
    assert thread.texts == ["a", "b", "c"]
    assert thread.shown["currentIndex"] == 2
    assert said(run).intent == Converse(Focus(ARTIFACT_ID, 2))
    assert [version.author for version in thread.canvas.versions] == ["user"] * 3


def test_indices_that_begin_with_0_are_renumbered() -> None:
    thread = Thread()
    thread.take(artifact=artifact(0, code(0, "a"), code(1, "b")))
    assert thread.shown == artifact(1, code(1, "a"), code(2, "b"))


def test_undo_and_redo_go_on_from_the_current_one() -> None:
    thread = Thread()
    thread.take(artifact=artifact(2, code(1, "a"), code(2, "b"), code(3, "c")))
    thread.has(Undo())
    assert thread.shown["currentIndex"] == 1
    thread.has(EditText(Span(0, 1), "d", 1))
    assert (thread.texts, thread.shown["currentIndex"]) == (["a", "b", "c", "d"], 4)


def test_two_that_make_the_artifact_at_the_same_time_do_not_mix() -> None:
    thread = Thread()
    runs = [thread.meaning(artifact=artifact(1, code(1, text))) for text in "ab"]
    thread.has(runs[0].changes[0][1])
    with pytest.raises(VersionConflict):
        thread.has(runs[1].changes[0][1])
    assert thread.texts == ["a"]


CONTENTS = st.lists(
    st.tuples(
        st.sampled_from(["code", "text"]),
        TEXTS,
        st.sampled_from([None, "", "python", "Klingon"]),
        st.sampled_from([None, "", "X", "x.py"]),
    ),
    min_size=1,
    max_size=4,
)


def content(index: int, kind: str, text: str, language: str | None, title: str | None) -> Json:
    told = {"index": index, "type": kind, "code" if kind == "code" else "fullMarkdown": text}
    return told | {name: value for name, value in (("language", language), ("title", title)) if value is not None}


@settings(max_examples=examples(80))
@given(given=CONTENTS, first=st.integers(0, 2), at=st.integers(0, 3))
def test_all_that_was_said_is_returned_unchanged_and_sent_back_it_is_no_change(
    given: list[tuple[str, str, str | None, str | None]], first: int, at: int
) -> None:
    contents = [content(first + number, *fields) for number, fields in enumerate(given)]
    place = at % len(contents)
    thread = Thread()
    thread.take(artifact=artifact(first + place, *contents))
    shown = thread.shown
    assert shown["currentIndex"] == place + 1
    for number, (sent, kept) in enumerate(zip(contents, shown["contents"], strict=True), 1):
        assert {**sent, "index": number}.items() <= kept.items()
    assert thread.meaning(artifact=shown).changes == ()


# ---------------------------------------------------------------------- a known artifact


def test_what_the_thread_has_already_is_not_stored_again() -> None:
    thread = with_versions("a", "b", name="x.md")
    assert thread.meaning(artifact=thread.shown).changes == ()
    assert thread.meaning(artifact=artifact(2, {"index": 2, "type": "text", "fullMarkdown": "b"})).changes == ()


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ({"code": "b!"}, {"code": "b!"}),
        ({"title": "y.py"}, {"title": "y.py"}),
        ({"title": ""}, {"title": ""}),
        ({"language": "go"}, {"language": "go"}),
        ({"language": "go", "code": "b!", "title": "y.go"}, {"language": "go", "code": "b!", "title": "y.go"}),
    ],
)
@pytest.mark.parametrize("origin", ["the agent's", "the user's"])
def test_what_differs_at_the_current_index_is_one_new_version_of_the_user(origin: str, own: Json, shown: Json) -> None:
    if origin == "the agent's":
        thread = with_versions("a", "b", name="x.py")
    else:
        thread = Thread()
        thread.take(artifact=artifact(2, code(1, "a"), code(2, "b")))
    run = thread.take(artifact=artifact(2, code(2, "b") | own))
    assert thread.shown == artifact(3, code(1, "a"), code(2, "b"), code(3, "b") | shown)
    assert said(run).intent == Converse(Focus(ARTIFACT_ID, 3))
    newest = thread.canvas.versions[-1]
    assert (newest.author, newest.parent, newest.task_id) == ("user", 2, "own")


def test_another_type_is_a_new_version_with_a_language_of_its_own() -> None:
    thread = Thread()
    thread.take(artifact=artifact(1, code(1, "a")))
    thread.take(artifact=artifact(1, {"index": 1, "type": "text", "fullMarkdown": "a"}))
    assert thread.shown["contents"][1] == prose(2, "a", title="x.py")


def test_what_is_not_said_stays() -> None:
    parts = (text_part("a", "text/x-python", {"kept": 1}), FilePart(b"f"), DataPart({"n": 1}))
    thread = Thread().has(ReplaceParts(parts, "x.py", "Of x.", last_chunk=True))
    thread.take(artifact=artifact(1, {"index": 1, "type": "code", "code": "b"}))
    thread.take(artifact=artifact(2, {"index": 2, "type": "code", "code": "b", "title": "y.py"}))
    newest = thread.canvas.versions[-1].content
    assert (newest.name, newest.description, newest.parts[1:]) == ("y.py", "Of x.", parts[1:])
    text = newest.parts[0]
    assert isinstance(text, TextPart)
    assert (text.text, text.media_type, text.metadata) == ("b", "text/x-python", {"kept": 1, "type": "code"})


def test_versions_share_what_a_change_of_the_text_leaves() -> None:
    ((_, change),) = (
        with_versions("one two three")
        .meaning(artifact=artifact(1, {"index": 1, "type": "text", "fullMarkdown": "one 2 three"}))
        .changes
    )
    assert change == EditText(Span(4, 7), "2", 1, passage=False)


def test_only_the_content_at_the_current_index_counts() -> None:
    thread = with_versions("a", "b")
    others = [{"index": index, "type": "text", "fullMarkdown": "quite another"} for index in (1, 3)]
    mine = {"index": 2, "type": "text", "fullMarkdown": "b"}
    assert thread.meaning(artifact=artifact(2, others[0], mine, others[1])).changes == ()
    assert thread.meaning(artifact=artifact(2, mine)).changes == ()


def test_the_other_contents_are_not_even_looked_at() -> None:
    others: Any = [5, None, {}, {"index": "1"}, {"index": 1, "type": "poem"}, {"index": 1}]
    run = with_versions("a", "b").meaning(
        artifact=artifact(2, *others, {"index": 2, "type": "text", "fullMarkdown": "c"})
    )
    assert [change for _, change in run.changes] == [EditText(Span(0, 1), "c", 2, passage=False)]


def test_an_artifact_of_more_versions_than_one_may_be_made_of_is_taken_back_as_it_was_shown() -> None:
    thread = with_versions(*(str(number) for number in range(MAX_CONTENTS + 200)))
    assert len(thread.shown["contents"]) == MAX_CONTENTS + 200
    assert thread.meaning(artifact=thread.shown).changes == ()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "artifact.contents"),
        (artifact(2), "artifact.contents"),
        (artifact(2, code(1)), "artifact.currentIndex"),
        (artifact(2, code(1), code(2), code(2)), "artifact.currentIndex"),
        ({"currentIndex": "2", "contents": [code(2)]}, "artifact.currentIndex"),
        (artifact(2, code(1), code(2, type="poem")), "artifact.contents.1.type"),
        (artifact(2, code(1), code(2, title=5)), "artifact.contents.1.title"),
        (artifact(2, code(1), {"index": 2, "type": "code"}), "artifact.contents.1"),
        (artifact(2, code(1), {"index": 2}), "artifact.contents.1.type"),
        (artifact(2, code(1), {**code(2), "index": 2.0}), "artifact.contents.1.index"),
    ],
    ids=str,
)
def test_the_content_at_the_current_index_is_refused_by_its_place(given: Json, field: str) -> None:
    assert refused(request(artifact=given), with_versions("a", "b")) == field


@pytest.mark.parametrize("field", ["title", "language"])
def test_a_title_or_language_has_a_limit_unless_it_was_shown(field: str) -> None:
    fits, beyond = "x" * MAX_ID, "x" * (MAX_ID + 1)
    asked = request(artifact=artifact(1, code(1, **{field: beyond})))
    for thread in (Thread(), with_versions("a")):
        assert refused(asked, thread) == f"artifact.contents.0.{field}"
        assert thread.meaning(artifact=artifact(1, code(1, **{field: fits}))).changes
    named = Thread().has(
        ReplaceParts((text_part("a", "", {"language": beyond, "type": "code"}),), beyond, last_chunk=True)
    )
    assert named.meaning(artifact=named.shown).changes == ()


OTHERS = Ref("t", ARTIFACT_ID, "others")
BRANCHED = (Undo(), EditText(Span(0, 0), "c ", 1))
"""After these, the third of three versions is made from the first, and the second is on no way to it."""


def one_of(number: int, *texts: str, text: str = "one") -> Json:
    """An artifact at one of its versions; without texts, that one alone is sent."""
    listed = enumerate(texts, 1) if texts else [(number, text)]
    return artifact(number, *({"index": index, "type": "text", "fullMarkdown": text} for index, text in listed))


STEPS: Sequence[tuple[tuple[Change, ...], int, tuple[Change, ...]]] = [
    ((), 2, ()),
    ((), 1, (Undo(2),)),
    ((EditText(Span(0, 0), "3 ", 2),), 1, (Undo(3), Undo(2))),
    ((Undo(),), 2, (Redo(1),)),
    ((EditText(Span(0, 0), "3 ", 2), Undo(), Undo()), 3, (Redo(1), Redo(2))),
    (BRANCHED, 2, (Restore(2, 3),)),
]


@pytest.mark.parametrize(("others", "number", "steps"), STEPS)
def test_an_edit_of_a_version_makes_it_current_first_if_its_sender_knows_the_newest(
    others: tuple[Change, ...], number: int, steps: tuple[Change, ...]
) -> None:
    thread = with_versions("one two", "one, two").has(*others, ref=OTHERS)
    text = thread.texts[number - 1]
    selection = {"start": text.index("one"), "end": text.index("one") + 3, "text": "one"}
    run = thread.take(artifact=one_of(number, *thread.texts), selectedText=selection)
    assert [change for _, change in run.changes] == list(steps)
    assert thread.texts[thread.shown["currentIndex"] - 1] == text
    intent = said(run).intent
    assert isinstance(intent, SelectionEdit)
    assert intent.base_version == thread.shown["currentIndex"]


@pytest.mark.parametrize("others", [(EditText(Span(0, 1), "c", 2),), (Undo(),), (Restore(1),), BRANCHED])
@pytest.mark.parametrize("own", [{"fullMarkdown": "mine"}, {"fullMarkdown": "b", "title": "Mine"}])
def test_an_own_change_of_an_older_version_branches_from_it(others: tuple[Change, ...], own: Json) -> None:
    thread = with_versions("a", "b").has(*others, ref=OTHERS)
    before = thread.texts
    all_known = one_of(2, *before)
    all_known["contents"][1] |= own
    thread.take(artifact=all_known)
    assert thread.texts[: len(before)] == before, "nothing is overwritten"
    assert (thread.texts[-1], thread.shown["currentIndex"]) == (own["fullMarkdown"], len(thread.texts))
    canvas = thread.canvas
    assert canvas
    made_from = canvas.versions[canvas.versions[-1].parent - 1]
    assert made_from.content.text == "b"


BEHIND = ("one\n\ntwo\n\nthree\n", "one\n\n2\n\nthree\n")
"""A text as the client knows it, and as it is by now."""


def behind(own: str | None = None, **fields: Any) -> Json:
    """What such a client sends of the first version, with a change of its own."""
    return artifact(1, {"index": 1, "type": "text", "fullMarkdown": BEHIND[0] if own is None else own, **fields})


def test_a_selection_of_a_client_that_is_behind_takes_nothing_back() -> None:
    thread = with_versions(*BEHIND)
    run = thread.take(artifact=behind(), selectedText={"start": 10, "end": 15, "text": "three"})
    assert run.changes == ()
    intent = said(run).intent
    assert isinstance(intent, SelectionEdit)
    assert (intent.base_version, thread.shown["currentIndex"]) == (1, 2)


@pytest.mark.parametrize("fields", [{}, {"title": "Mine"}])
def test_an_own_change_of_a_client_that_is_behind_is_merged_with_those_of_others(fields: Json) -> None:
    thread = with_versions(*BEHIND)
    thread.take(artifact=behind("1\n\ntwo\n\nthree\n", **fields))
    assert thread.texts == [*BEHIND, "1\n\n2\n\nthree\n"]
    assert thread.shown["contents"][-1]["title"] == fields.get("title", "")


def test_a_selection_moves_with_what_others_have_changed_before_it() -> None:
    thread = with_versions("two\n\nthree\n", "😀 and 2\n\nthree\n")
    mine = artifact(1, {"index": 1, "type": "text", "fullMarkdown": "two\n\nthree\n\nfour\n"})
    run = thread.take(artifact=mine, selectedText={"start": 5, "end": 10, "text": "three"})
    intent = said(run).intent
    assert isinstance(intent, SelectionEdit)
    assert (intent.selection, intent.base_version) == (SelectionRequest(10, 15, "utf16", "three"), 3)
    assert thread.texts[-1] == "😀 and 2\n\nthree\n\nfour\n"


def test_what_a_client_that_is_behind_changes_at_the_same_place_as_others_is_refused() -> None:
    thread = with_versions(*BEHIND)
    assert refused(request(artifact=behind("one\n\nII\n\nthree\n")), thread) == "artifact.currentIndex"


def test_a_selection_of_what_others_have_changed_meanwhile_is_refused_with_the_own_change() -> None:
    thread = with_versions(*BEHIND)
    value = request(artifact=behind("1\n\ntwo\n\nthree\n"), selectedText={"start": 3, "end": 6, "text": "two"})
    assert refused(value, thread) == "selectedText"


@pytest.mark.parametrize(
    ("given_artifact", "steps"),
    [
        (one_of(1, "one", "two"), [Undo(2)]),
        (one_of(2, "one", "two"), []),
        (one_of(1), []),
    ],
    ids=["back, with the newest version", "at the newest version", "perhaps only behind"],
)
def test_a_message_about_an_older_version_goes_back_if_its_sender_knows_the_newest(
    given_artifact: Json, steps: list[Change]
) -> None:
    run = with_versions("one", "two").meaning(artifact=given_artifact)
    assert [change for _, change in run.changes] == steps
    assert said(run).intent == Converse(Focus(ARTIFACT_ID, given_artifact["currentIndex"]))


def test_what_others_have_changed_in_the_meantime_is_not_gone_back_over() -> None:
    thread = with_versions("one", "two")
    run = thread.meaning(artifact=one_of(1, "one", "two"))
    thread.has(EditText(Span(0, 0), "3 ", 2), ref=OTHERS)
    with pytest.raises(VersionConflict):
        thread.has(*(change for _, change in run.changes), ref=USER)


def test_a_draft_that_is_being_written_cannot_have_been_edited() -> None:
    thread = with_versions("a").has(AppendParts((text_part("bc"),)))
    assert thread.shown["currentIndex"] == 2
    run = thread.meaning(artifact=artifact(2, {"index": 2, "type": "text", "fullMarkdown": "ab"}))
    assert run.changes == ()
    assert said(run).intent == Converse(Focus(ARTIFACT_ID, 2))


# ----------------------------------------------------------------------------- selections


def test_a_selection_in_the_threads_artifact_is_an_edit_whatever_is_said() -> None:
    run = with_versions("one two").meaning(message="Write a poem", selectedText={"start": 4, "end": 7, "text": "two"})
    assert said(run).intent == SelectionEdit(
        ARTIFACT_ID, SelectionRequest(4, 7, "utf16", "two"), "replace", "Write a poem", None
    )


def test_the_current_index_is_the_base_version() -> None:
    thread = with_versions("one two", "one, two")
    run = thread.meaning(
        artifact=artifact(1, {"index": 1, "type": "text", "fullMarkdown": "one two"}),
        selectedText={"start": 4, "end": 7, "text": "two", "lineStart": 1, "lineEnd": 1},
    )
    assert said(run).intent == SelectionEdit(
        ARTIFACT_ID, SelectionRequest(4, 7, "utf16", "two", 1, 1), "replace", "Go on", 1
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_selection_in_what_the_user_has_just_changed_is_an_edit_of_that(known: bool) -> None:
    thread = with_versions("one") if known else Thread()
    mine = {"index": 1, "type": "text", "fullMarkdown": "one two"}
    run = thread.take(artifact=artifact(1, mine), selectedText={"start": 4, "end": 7, "text": "two"})
    intent = said(run).intent
    assert isinstance(intent, SelectionEdit)
    assert intent.base_version == len(thread.texts) == 1 + known


WRONG_SELECTIONS: Sequence[tuple[Json, str]] = [
    ({}, "selectedText"),
    ({"start": 0}, "selectedText"),
    ({"start": 5, "end": 4}, "selectedText.end"),
    ({"start": -1, "end": 4}, "selectedText.start"),
    ({"start": 0, "end": 99}, "selectedText.end"),
    ({"start": 4, "end": 7, "text": "one"}, "selectedText.text"),
    ({"start": 4, "end": 7, "lineStart": 2, "lineEnd": 2}, "selectedText.lineStart"),
    ({"lineStart": 3, "lineEnd": 3}, "selectedText.lineStart"),
    ({"lineStart": 0}, "selectedText.lineStart"),
]


@pytest.mark.parametrize(("selection", "field"), WRONG_SELECTIONS, ids=str)
@pytest.mark.parametrize("known", [True, False])
def test_a_selection_that_the_users_own_text_does_not_have_is_refused_before_anything_is_stored(
    selection: Json, field: str, known: bool
) -> None:
    mine = {"index": 1, "type": "text", "fullMarkdown": "one two\nthree"}
    value = request(artifact=artifact(1, mine), selectedText=selection)
    assert refused(value, with_versions("one") if known else None) == field


# ------------------------------------------------------------------------- malformed ones


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "message"),
        (request(message=3), "message"),
        (request(message=" "), "message"),
        (request(thread_id=3), "thread_id"),
        (request(thread_id=""), "thread_id"),
        (request(message=None, messages=[]), "messages"),
        (request(message=None, messages=5), "messages"),
        (request(message=None, messages=[5]), "messages.0"),
        (request(message=None, messages=[{"role": "user", "content": " "}]), "messages.0.content"),
        (request(message=None, messages=[{"role": "assistant", "content": "x"}]), "messages"),
        (request(thread_id="t" * (MAX_ID + 1)), "thread_id"),
        (request(artifact=[]), "artifact"),
        (request(artifact={}), "artifact.contents"),
        (request(artifact={"contents": [code(1)]}), "artifact.currentIndex"),
        (request(artifact=artifact(1)), "artifact.contents"),
        (request(artifact=artifact(2, code(1))), "artifact.currentIndex"),
        (request(artifact={"currentIndex": "1", "contents": [code(1)]}), "artifact.currentIndex"),
        (request(artifact=artifact(1, code(1), code(1))), "artifact.contents"),
        (request(artifact=artifact(1, code(1), 5)), "artifact.contents.1"),  # type: ignore[arg-type]
        (request(artifact=artifact(1, code(1, type="poem"))), "artifact.contents.0.type"),
        (request(artifact=artifact(1, code(1, type="text"))), "artifact.contents.0"),
        (request(artifact=artifact(1, {"index": 1, "type": "code"})), "artifact.contents.0"),
        (request(artifact=artifact(1, code(1, code=5))), "artifact.contents.0.code"),
        (request(artifact=artifact(1, code(1, title=5))), "artifact.contents.0.title"),
        (request(artifact=artifact(1, {**code(1), "index": 1.0})), "artifact.contents.0.index"),
        (request(artifact=artifact(1, *(code(n) for n in range(MAX_CONTENTS + 1)))), "artifact.contents"),
        (request(selectedText="x"), "selectedText"),
        (request(state={"selectedText": "x"}), "selectedText"),
        (
            request(message=None, messages=[{"role": "user", "content": "x"}], state={"selectedText": "x"}),
            "selectedText",
        ),
        (request(state={"selectedText": 0}), "selectedText"),
        (request(selectedText={"start": "0"}), "selectedText.start"),
        (request(selectedText={"start": 0, "end": 1, "text": 5}), "selectedText.text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_request_is_refused_by_the_name_of_its_field(value: Json, field: str) -> None:
    assert refused(value) == field


@pytest.mark.parametrize("index", [-1, 0, 3, 4])
def test_an_index_that_the_threads_artifact_does_not_have_is_refused_with_those_it_has(index: int) -> None:
    value = request(artifact=artifact(index, code(index)))
    assert refused(value, with_versions("a", "b")) == "artifact.currentIndex"
    with pytest.raises(InvalidParamsError, match="1 to 2"):
        with_versions("a", "b").meaning(artifact=artifact(index, code(index)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("selection", "selectedText"),
        ("selection.end", "selectedText.end"),
        ("baseVersion", "artifact.currentIndex"),
        ("artifactId", "artifact"),
        ("message.parts", "message"),
        ("selections", "selections"),
        (f"metadata[{CANVAS}]", f"metadata[{CANVAS}]"),
    ],
)
def test_an_operations_fields_are_called_as_in_the_request(ours: str, theirs: str) -> None:
    named = in_older_names(InvalidOperation(ours, "is wrong"))
    assert (named.field, str(named)) == (theirs, f"{theirs} is wrong.")


ANY = st.integers(-2, 9) | TEXTS | st.none()
SELECTIONS = st.dictionaries(st.sampled_from(["start", "end", "text", "lineStart", "lineEnd"]), ANY)
FIELDS = st.sampled_from(["index", "type", "code", "fullMarkdown", "language", "title"])
ONE = st.builds(
    content, st.integers(0, 3), st.sampled_from(["code", "text"]), TEXTS, st.none() | TEXTS, st.none() | TEXTS
)
ARTIFACTS = st.builds(
    lambda current, contents: artifact(current, *contents),
    ANY,
    st.lists(
        ONE | st.builds(lambda one, other: one | other, ONE, st.dictionaries(FIELDS, ANY, max_size=1)), max_size=3
    ),
)


@settings(max_examples=examples(150))
@given(known=st.lists(TEXTS, max_size=2), given_artifact=st.none() | ARTIFACTS, selection=st.none() | SELECTIONS)
def test_whatever_is_sent_is_taken_or_refused_and_what_is_taken_can_be_stored(
    known: list[str], given_artifact: Json | None, selection: Json | None
) -> None:
    thread = with_versions(*known)
    value = request(artifact=given_artifact, selectedText=selection)
    try:
        run = translate_request(older_request(value), thread.canvas, "run")
    except (InvalidParamsError, InvalidOperation):
        return
    try:
        thread.has(*(change for _, change in run.changes), ref=USER)
    except VersionConflict:
        assert given_artifact
        assert given_artifact["currentIndex"] < len(known)
    else:
        if given_artifact:
            current = next(one for one in given_artifact["contents"] if one["index"] == given_artifact["currentIndex"])
            assert current["code" if current["type"] == "code" else "fullMarkdown"] in thread.texts


# ------------------------------------------------------------------- which artifact it is


def of(artifact_id: str, *, text: bool = True) -> Artifact:
    parts = (text_part("x"),) if text else (FilePart(b"x"),)
    return Artifact(artifact_id, Content(parts=parts), 1, False)


@pytest.mark.parametrize(
    ("artifacts", "tasks", "found"),
    [
        ([], [], None),
        ([of("file", text=False)], [("file",)], None),
        ([of("a"), of("b")], [("a", "b")], "a"),
        ([of("b"), of("a")], [("a", "b")], "a"),
        ([of("b"), of("a")], [("a",), ("b",)], "a"),
        ([of("a"), of("b")], [(), ("b",), ("a", "b")], "b"),
        ([of("a"), of("file", text=False)], [("file", "a")], "a"),
        ([of("b")], [("taken back",), ("b",)], "b"),
        ([of("a"), of(ARTIFACT_ID)], [("a",), (ARTIFACT_ID,)], ARTIFACT_ID),
        ([of("a"), of(ARTIFACT_ID, text=False)], [(ARTIFACT_ID,), ("a",)], "a"),
    ],
)
def test_a_threads_canvas_is_its_clients_own_or_the_first_with_text_that_a_task_has_made(
    artifacts: list[Artifact], tasks: list[tuple[str, ...]], found: str | None
) -> None:
    chosen = thread_artifact(artifacts, [made_by(*changed) for changed in tasks])
    assert (chosen.artifact_id if chosen else None) == found
    # Tasks are only asked for where they can tell.
    assert needs_tasks(artifacts) or thread_artifact(artifacts, ()) is chosen


def test_a_version_that_is_no_longer_kept_is_not_shown_and_cannot_be_gone_on_from() -> None:
    canvas = with_versions("a", "b", "c").canvas
    assert canvas
    pruned = replace(canvas.versions[0], content=Content(), pruned=True)
    versions = (pruned, *canvas.versions[1:])
    state = older_state(replace(canvas, versions=versions))
    assert [content["index"] for content in state.snapshot()["artifact"]["contents"]] == [2, 3]
    with pytest.raises(InvalidParamsError, match=r"artifact\.currentIndex is 1, a version that is no longer kept"):
        translate_request(
            older_request(request(artifact=artifact(1, code(1, "a")))), replace(canvas, versions=versions), "run"
        )


@given(order=st.permutations(["a", "b", "c"]), later=st.lists(st.sampled_from(["a", "b", "c"]), max_size=4))
def test_it_stays_the_same_whatever_is_changed_later(order: list[str], later: list[str]) -> None:
    artifacts = [of(artifact_id) for artifact_id in order]
    chosen = thread_artifact(artifacts, [made_by("b", "a"), made_by("c"), *map(made_by, later)])
    assert chosen
    assert chosen.artifact_id == "b"
