"""The state of an AG-UI run: snapshots, and the patches that turn one into the next."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.agui.json_patch import pointer
from a2a_canvas.server.protocols.agui.state import CanvasState, part_json
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.models import Artifact, DataPart, FilePart, Version, text_part
from tests.property_examples import examples
from tests.server.protocols.agui.state_history import (
    NEW,
    Step,
    StoreHistory,
    change,
    json_of,
    mixed_steps,
    overtaken,
    steps,
    version,
)
from tests.server.protocols.agui.state_patches import AT, Json, grouped, meaning, patched

# ----------------------------------------------------------------- applying patches


# ------------------------------------------------------------------------- a world


# ---------------------------------------------------------------------- the property


@settings(max_examples=examples(150))
@given(st.lists(st.lists(steps, max_size=8), min_size=1, max_size=3), st.integers(0, 30))
async def test_the_patches_lead_from_every_snapshot_to_every_later_one(tasks: list[list[Step]], joins: int) -> None:
    world = StoreHistory()
    for number, task in enumerate(tasks):
        moments, events = await world.task(task, f"t{number}")
        joins %= len(moments)
        state = moments[joins].state()
        document = state.snapshot()
        for event, moment in zip(events[joins:], moments[joins + 1 :], strict=True):
            document = patched(document, state.apply(event))
            assert meaning(document) == meaning(json_of(moment.state().snapshot()))
        assert meaning(document) == meaning(json_of(state.snapshot()))


@settings(max_examples=examples(150))
@given(st.lists(st.lists(steps, max_size=8), min_size=1, max_size=3), st.integers(0, 30), st.integers(0, 30))
async def test_a_store_that_is_ahead_of_the_task_leads_to_the_same_end(
    tasks: list[list[Step]], joins: int, ahead: int
) -> None:
    world = StoreHistory()
    for number, task in enumerate(tasks):
        moments, events = await world.task(task, f"t{number}")
        joins %= len(moments)
        store = moments[min(joins + ahead, len(moments) - 1)]
        state = moments[joins].state(store)
        document = state.snapshot()
        for event in events[joins:]:
            document = patched(document, state.apply(event))
        assert meaning(document) == meaning(json_of(moments[-1].state().snapshot()))


@settings(max_examples=examples(150))
@given(st.lists(mixed_steps, min_size=3, max_size=12), st.integers(0, 30), st.integers(0, 30))
async def test_every_patch_fits_what_a_client_has_even_if_others_change_the_artifacts_meanwhile(
    steps: list[Step], joins: int, ahead: int
) -> None:
    moments, events = await StoreHistory().task(steps)
    joins %= len(moments)
    state = moments[joins].state(moments[min(joins + ahead, len(moments) - 1)])
    document = state.snapshot()
    for event in events[joins:]:
        document = patched(document, state.apply(event))
        assert meaning(document)["artifacts"] == meaning(json_of(state.snapshot()))["artifacts"]
    assert meaning(document) == meaning(json_of(state.snapshot()))


@settings(max_examples=examples(100))
@given(st.lists(mixed_steps, min_size=3, max_size=12))
async def test_whoever_joins_sees_the_artifacts_as_they_stand_whoever_has_changed_them(steps: list[Step]) -> None:
    moments, _ = await StoreHistory().task(steps)
    for moment in moments:
        shown = json_of(moment.state().snapshot())["artifacts"]
        for artifact in moment.artifacts:
            there = shown[artifact.artifact_id]
            count = len(moment.versions[artifact.artifact_id])
            assert grouped(there["parts"]) == json_of([part_json(part) for part in artifact.parts])
            assert there["version"] == (count + 1 if artifact.open else artifact.version)


# ------------------------------------------------------------------------ the shapes


def of(record: TaskRecord = NEW, **artifacts: Sequence[Version]) -> CanvasState:
    """The state of a context whose artifacts have these versions."""
    shown = [Artifact(name, versions[-1].content, len(versions), False) for name, versions in artifacts.items()]
    return CanvasState(record, shown, artifacts)


def test_the_state_tells_of_the_task_and_of_the_artifacts_of_its_context() -> None:
    label = ev.StatusChanged(ev.State.WORKING, ev.AgentMessage("m", "Writing…", label=True))
    record = fold(NEW, Entry(1, 2, AT, label))
    assert of(record, doc=[version(1, "Hello", "doc.md")]).snapshot() == {
        "phase": "working",
        "status": "Writing…",
        "taskId": "t",
        "contextId": "c",
        "artifacts": {
            "doc": {
                "name": "doc.md",
                "description": "",
                "version": 1,
                "author": "agent",
                "open": False,
                "parts": [{"kind": "text", "text": "Hello"}],
                "versions": [{"number": 1, "author": "agent", "parent": 0}],
            }
        },
    }


def test_labels_and_states_are_replaced_when_they_change() -> None:
    state = of()
    label = ev.StatusChanged(ev.State.WORKING, ev.AgentMessage("m", "Working…", label=True))
    phase = {"op": "replace", "path": "/phase", "value": "working"}
    assert state.apply(label) == [phase, {"op": "replace", "path": "/status", "value": "Working…"}]
    assert state.apply(label) == []
    said = ev.StatusChanged(ev.State.WORKING, ev.AgentMessage("m", "I write."))
    assert state.apply(said) == [{"op": "replace", "path": "/status", "value": ""}]


def test_what_only_streams_is_no_part_of_the_state() -> None:
    assert of().apply(ev.TextAdded(ev.BlockPosition(0, 1, 0), "x")) == []


def test_an_added_text_is_one_more_part_and_the_close_puts_the_parts_in_order() -> None:
    state = of(doc=[version(1, "Hello")])
    state.apply(change("Hello", 2))
    assert state.apply(change(" you", 2, append=True)) == [
        {"op": "add", "path": "/artifacts/doc/parts/-", "value": {"kind": "text", "text": " you"}}
    ]
    assert state.apply(change("", 2, append=True)) == []
    assert state.apply(change("", 2, append=True, last_chunk=True)) == [
        {"op": "replace", "path": "/artifacts/doc/parts", "value": [{"kind": "text", "text": "Hello you"}]},
        {
            "op": "add",
            "path": "/artifacts/doc/versions/-",
            "value": {"number": 2, "author": "agent", "parent": 1},
        },
        {"op": "replace", "path": "/artifacts/doc/open", "value": False},
    ]


def test_a_draft_that_closes_as_it_stands_does_not_send_its_text_again() -> None:
    state = of(doc=[version(1, "Hello")])
    state.apply(change("Hello you", 2))
    ops = state.apply(change("", 2, append=True, last_chunk=True))
    assert [op["path"] for op in ops] == ["/artifacts/doc/versions/-", "/artifacts/doc/open"]


def test_an_undo_moves_the_version_and_what_is_made_after_it_is_its_child() -> None:
    state = of(doc=[version(1, "a"), version(2, "b")])
    ops = state.apply(change("a", 1, last_chunk=True))
    assert [op["path"] for op in ops] == ["/artifacts/doc/parts", "/artifacts/doc/version"]
    ops = state.apply(change("c", 3, last_chunk=True, parent=1))
    assert {"number": 3, "author": "agent", "parent": 1} in [op["value"] for op in ops]


def test_a_version_that_others_have_made_meanwhile_is_the_parent_all_the_same() -> None:
    state = of(doc=[version(1, "a")])
    ops = state.apply(change("c", 3, last_chunk=True, parent=2))
    assert {"number": 3, "author": "agent", "parent": 2} in [op["value"] for op in ops]


def test_what_others_have_made_of_an_artifact_since_the_task_changed_it_is_shown() -> None:
    state = overtaken().state()
    shown = state.snapshot()["artifacts"]["doc"]
    assert (shown["version"], shown["parts"], shown["author"]) == (2, [{"kind": "text", "text": "theirs"}], "user")
    assert not shown["open"]


def test_what_the_task_has_changed_last_is_shown_as_the_task_knows_it() -> None:
    shown = overtaken(changed_by="t").state().snapshot()["artifacts"]["doc"]
    assert (shown["version"], shown["parts"]) == (1, [{"kind": "text", "text": "mine"}])


def test_news_of_the_task_from_before_others_changed_its_artifact_add_to_what_it_had_written() -> None:
    state = overtaken().state()
    ops = state.apply(change(" too", 1, append=True))
    assert ops[0] == {"op": "replace", "path": "/artifacts/doc/parts", "value": [{"kind": "text", "text": "mine too"}]}
    ops = state.apply(change("!", 1, append=True))
    assert ops[0] == {"op": "add", "path": "/artifacts/doc/parts/-", "value": {"kind": "text", "text": "!"}}


@pytest.mark.parametrize(
    ("keys", "path"), [(("artifacts", "a/b~1", 0), "/artifacts/a~1b~01/0"), (("",), "/"), ((), "")]
)
def test_pointers_are_escaped(keys: tuple[str | int, ...], path: str) -> None:
    assert pointer(*keys) == path


@pytest.mark.parametrize(
    ("part", "wire"),
    [
        (text_part("x", "text/plain", {"k": 1}), {"text": "x", "mimeType": "text/plain", "metadata": {"k": 1}}),
        (text_part(""), {"text": ""}),
        (FilePart(b"ab", name="f"), {"file": {"bytes": "YWI=", "name": "f"}}),
        (FilePart(None, "https://example.com/f", media_type="image/png"),
         {"file": {"uri": "https://example.com/f", "mimeType": "image/png"}}),
        (DataPart(None), {"data": None}),
    ],
)  # fmt: skip
def test_parts_are_written_as_a2a_does(part: Any, wire: Json) -> None:
    assert part_json(part) == {"kind": part.kind, **wire}


# ---------------------------------------------------------------------- what it costs


def test_a_growing_text_costs_what_it_grows() -> None:
    state, token, count = of(), "abcdefgh", 4000
    sent = len(json.dumps(state.apply(change(token, 1))))
    for _ in range(1, count):
        ops = state.apply(change(token, 1, append=True))
        assert len(json.dumps(ops)) < len(token) + 100
        sent += len(json.dumps(ops))
    sent += len(json.dumps(state.apply(change("", 1, append=True, last_chunk=True))))
    assert sent < 100 * count + 2 * len(token) * count + 1000
