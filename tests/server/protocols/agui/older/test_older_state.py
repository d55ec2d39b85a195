"""The state of the older request: from every snapshot the patches lead to the next, and a text may lag by an eighth."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.agui.older.older_state import OlderState
from a2a_canvas.server.protocols.agui.state import CanvasState
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.edit_events import EditAborted, EditCompleted, EditStarted, EditSuggested
from a2a_canvas.store.models import Artifact, Version, text_part
from tests.property_examples import examples
from tests.server.protocols.agui.state_history import (
    NEW,
    PLACE,
    Moment,
    Step,
    StoreHistory,
    change,
    json_of,
    mixed_steps,
    overtaken,
    steps,
    version,
)
from tests.server.protocols.agui.state_patches import AT, meaning, patched

Json = dict[str, Any]


def older_state(moment: Moment, artifact_id: str, store: Moment | None = None) -> OlderState:
    store = store or moment
    return OlderState(moment.state(store), moment.record, store.versions, artifact_id)


def of(artifact_id: str, record: TaskRecord = NEW, **artifacts: Sequence[Version]) -> OlderState:
    """The state of a thread whose artifacts have these versions."""
    shown = [Artifact(name, versions[-1].content, len(versions), False) for name, versions in artifacts.items()]
    return OlderState(CanvasState(record, shown, artifacts), record, artifacts, artifact_id)


@settings(max_examples=examples(150))
@given(st.lists(st.lists(steps, max_size=8), min_size=1, max_size=3), st.integers(0, 30), st.sampled_from(["", "a"]))
async def test_the_patches_lead_to_every_later_snapshot_with_a_text_that_may_lag_by_an_eighth_while_it_grows(
    tasks: list[list[Step]], joins: int, artifact_id: str
) -> None:
    history = StoreHistory()
    for number, task in enumerate(tasks):
        moments, events = await history.task(task, f"t{number}")
        joins %= len(moments)
        state = older_state(moments[joins], artifact_id)
        document = state.snapshot()
        for event, moment in zip(events[joins:], moments[joins + 1 :], strict=True):
            document = patched(document, state.apply(event))
            caught_up(
                fields(document),
                fields(json_of(older_state(moment, artifact_id).snapshot())),
                is_open(moment, artifact_id),
            )
        assert fields(document) == fields(json_of(older_state(moments[-1], artifact_id).snapshot()))


@settings(max_examples=examples(150))
@given(
    st.lists(mixed_steps, min_size=3, max_size=12), st.integers(0, 30), st.integers(0, 30), st.sampled_from(["", "a"])
)
async def test_every_patch_fits_what_a_client_has_even_if_others_change_the_artifact_meanwhile(
    steps: list[Step], joins: int, ahead: int, artifact_id: str
) -> None:
    moments, events = await StoreHistory().task(steps)
    joins %= len(moments)
    state = older_state(moments[joins], artifact_id, moments[min(joins + ahead, len(moments) - 1)])
    document = state.snapshot()
    for event in events[joins:]:
        document = patched(document, state.apply(event))
    assert meaning(document) == meaning(json_of(state.snapshot()))


def caught_up(shown: Json, there: Json, growing: bool) -> None:
    if growing:
        *before, old = shown["artifact"]["contents"]
        *_, new = there["artifact"]["contents"]
        written, whole = (str(each.get("code", each.get("fullMarkdown"))) for each in (old, new))
        assert whole.startswith(written)
        assert len(whole) <= 9 / 8 * len(written)
        shown = {**shown, "artifact": {**shown["artifact"], "contents": [*before, new]}}
    assert shown == there


def is_open(moment: Moment, artifact_id: str) -> bool:
    name = artifact_id or next(iter(moment.record.artifacts), "")
    return any(artifact.artifact_id == name and artifact.open for artifact in moment.artifacts)


def fields(state: Json) -> Json:
    return {name: state[name] for name in ("artifact", "artifactAction")}


def test_a_growing_text_is_sent_at_most_ten_times() -> None:
    state, token, count = of(""), "abcdefgh", 4000
    sent = len(json.dumps(state.apply(change(token, 1))))
    for _ in range(1, count):
        sent += len(json.dumps(state.apply(change(token, 1, append=True))))
    sent += len(json.dumps(state.apply(change("", 1, append=True, last_chunk=True))))
    pieces = 100 * count + 2 * len(token) * count
    assert sent < pieces + 10 * len(token) * count + 20_000


def test_the_older_view_has_all_versions_of_the_one_artifact() -> None:
    state = of("doc", doc=[version(1, "# A", "a.md"), version(2, "x = 1", "a.py")], other=[version(1, "-")])
    assert fields(state.snapshot()) == {
        "artifact": {
            "currentIndex": 2,
            "contents": [
                {"index": 1, "type": "text", "language": "markdown", "title": "a.md", "fullMarkdown": "# A"},
                {"index": 2, "type": "code", "language": "python", "title": "a.py", "code": "x = 1"},
            ],
        },
        "artifactAction": None,
    }


def test_what_others_have_made_of_an_artifact_since_the_task_changed_it_is_current() -> None:
    assert older_state(overtaken(), "doc").snapshot()["artifact"]["currentIndex"] == 2


def test_type_and_language_come_back_as_they_were_given() -> None:
    state = of("doc", doc=[version(1, "x", "a.md", type="code", language="Klingon")])
    content = state.snapshot()["artifact"]["contents"][0]
    assert (content["type"], content["language"], content["code"]) == ("code", "Klingon", "x")


def test_without_an_artifact_the_older_view_is_empty_until_the_task_makes_one() -> None:
    state = of("")
    assert fields(state.snapshot()) == {"artifact": None, "artifactAction": None}
    [*_, op] = state.apply(change("Hi", 1, last_chunk=True))
    entry = {"index": 1, "type": "text", "language": "", "title": "", "fullMarkdown": "Hi"}
    assert op == {"op": "replace", "path": "/artifact", "value": {"currentIndex": 1, "contents": [entry]}}


def test_a_draft_that_a_replacement_closes_without_a_word_is_sent_to_its_end() -> None:
    state = of("doc", doc=[version(1, "a")])
    state.apply(change("x" * 80, 2))
    assert not of_older(state.apply(change("y", 2, append=True)))
    ops = of_older(state.apply(change("new", 3)))
    assert [(op["op"], op["path"]) for op in ops] == [
        ("replace", "/artifact/contents/1/fullMarkdown"),
        ("add", "/artifact/contents/-"),
        ("replace", "/artifact/currentIndex"),
    ]
    assert ops[0]["value"] == "x" * 80 + "y"


def test_a_draft_that_was_taken_back_leaves_the_older_view() -> None:
    state = of("doc", doc=[version(1, "a")])
    state.apply(change("b", 2))
    ops = of_older(state.apply(change("a", 1, last_chunk=True)))
    assert [(op["op"], op["path"]) for op in ops] == [
        ("remove", "/artifact/contents/1"),
        ("replace", "/artifact/currentIndex"),
    ]


def test_the_older_view_grows_where_it_stands_though_others_have_made_versions_before_it() -> None:
    state = of("doc", doc=[version(1, "a")])
    state.apply(change("b", 4, parent=3))
    ops = of_older(state.apply(change("c", 4, append=True)))
    assert ops == [{"op": "replace", "path": "/artifact/contents/1/fullMarkdown", "value": "bc"}]
    ops = of_older(state.apply(change("a", 1, last_chunk=True)))
    assert ops[0] == {"op": "remove", "path": "/artifact/contents/1"}


def of_older(ops: Iterable[Json]) -> list[Json]:
    return [op for op in ops if not op["path"].startswith("/artifacts/")]


def test_an_edit_of_the_artifact_is_a_partial_update_until_it_is_aborted() -> None:
    state = of("doc", doc=[version(1, "a")])
    start = EditStarted("e", "doc", PLACE, "replace", 1)
    action = {"op": "replace", "path": "/artifactAction"}
    assert state.apply(EditStarted("e", "other", PLACE, "replace", 1)) == []
    assert state.apply(start) == [{**action, "value": "partial_update"}]
    assert state.apply(EditCompleted("e", "doc", PLACE, "b", PLACE, "replace", 1)) == []
    assert state.apply(start) == []
    assert state.apply(EditAborted("e", "doc", PLACE)) == [{**action, "value": None}]


def test_an_edit_that_becomes_a_suggestion_ends_the_partial_update() -> None:
    state = of("doc", doc=[version(1, "a")])
    state.apply(EditStarted("e", "doc", PLACE, "replace", 1, "suggest"))
    ended = state.apply(EditSuggested("e", "doc", PLACE, "n-1"))
    assert ended == [{"op": "replace", "path": "/artifactAction", "value": None}]


def test_a_task_that_is_an_edit_says_so_from_the_beginning() -> None:
    edit = {"op": "edit", "artifactId": "doc", "selection": {"start": 0, "end": 1}}
    message = ev.UserMessage("m", (text_part("shorter"),), {CANVAS: edit})
    record = TaskRecord("t", "c", "", AT, history=(message,))
    assert of("doc", record, doc=[version(1, "a")]).snapshot()["artifactAction"] == "partial_update"
    assert of("other", record, other=[version(1, "a")]).snapshot()["artifactAction"] is None


def test_so_does_one_that_has_an_edit_open() -> None:
    record = fold(NEW, Entry(1, 2, AT, EditStarted("e", "doc", PLACE, "replace", 1)))
    assert of("doc", record, doc=[version(1, "a")]).snapshot()["artifactAction"] == "partial_update"
