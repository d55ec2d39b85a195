"""The state of an AG-UI run: snapshots, and the patches that turn one into the next."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.intent import CANVAS
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.protocols.agui.json_patch import pointer
from a2a_canvas.server.protocols.agui.state import CanvasState, VersionsByArtifact, part_json
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.edits import EditAborted, EditCompleted, EditStarted, Selection
from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, Content, DataPart, FilePart, Ref, Version, text_part
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples
from tests.server.protocols.agui.state_patches import AT, Json, grouped, meaning, patched

NEW = TaskRecord("t", "c", "", AT)
NAMES = ["a", "b/~1"]
PLACE = Selection(0, 1)


# ----------------------------------------------------------------- applying patches


# ------------------------------------------------------------------------- a world


@dataclass(frozen=True)
class Moment:
    """A task and the store, as they stood together."""

    record: TaskRecord
    artifacts: tuple[Artifact, ...]
    versions: VersionsByArtifact

    def state(self, legacy: str | None = None, store: "Moment | None" = None) -> CanvasState:
        store = store or self
        return CanvasState(self.record, store.artifacts, store.versions, legacy)


@dataclass
class StoreHistory:
    """A store with the tasks that change it."""

    store: InMemoryArtifactStore = field(default_factory=InMemoryArtifactStore)

    async def task(self, steps: Iterable["Step"], task_id: str = "t") -> tuple[list[Moment], list[ev.TurnEvent]]:
        """The moments of a task that takes these steps, one more than there are events."""
        record = TaskRecord(task_id, "c", "", AT)
        moments, events = [await self.moment(record)], []

        async def emit(event: ev.TurnEvent) -> None:
            nonlocal record
            record = fold(record, Entry(1, record.generation + 1, AT, event))
            events.append(event)
            moments.append(await self.moment(record))

        evented = EventedArtifactStore(self.store, listener(emit))
        for step in steps:
            try:
                await (step.take(self.store, "other") if step.foreign else step.take(evented, task_id))
            except StoreError:
                continue
            moments[-1] = await self.moment(record)
        await evented.close_all()
        return moments, events

    async def moment(self, record: TaskRecord) -> Moment:
        artifacts = await self.store.list("c")
        refs = [Ref("c", artifact.artifact_id, "") for artifact in artifacts]
        return Moment(record, artifacts, {ref.artifact_id: await self.store.versions(ref) for ref in refs})


@dataclass(frozen=True)
class Step:
    """A change, or what ends a call: `complete_call`, `close`, `discard`. A `foreign` one is taken by another task."""

    artifact_id: str
    what: Change | str
    foreign: bool = False

    async def take(self, store: EventedArtifactStore | InMemoryArtifactStore, task_id: str) -> None:
        ref = Ref("c", self.artifact_id, task_id)
        if isinstance(self.what, str):
            await getattr(store, self.what)(ref)
            return
        if isinstance(self.what, Undo | Redo):
            await store.close(ref)
        await store.apply(ref, self.what)


metadata = st.dictionaries(
    st.sampled_from(["language", "type", "k"]), st.sampled_from(["code", "text", "x"]), max_size=2
)
some_parts = st.lists(
    st.builds(text_part, st.text("ab\n", max_size=20), st.sampled_from(["", "text/x-python"]), metadata)
    | st.builds(DataPart, st.sampled_from([None, 1, {"a": [1]}]))
    | st.builds(FilePart, st.binary(max_size=3), name=st.just("f")),
    min_size=1,
    max_size=3,
).map(tuple)
updates = st.sampled_from([ReplaceParts, AppendParts, AppendParts]).flatmap(
    lambda kind: st.builds(
        kind,
        some_parts,
        name=st.sampled_from([None, None, "n", "n.py"]),
        last_chunk=st.booleans(),
        done=st.booleans(),
    )
)
numbers = st.integers(1, 4)
hops = st.one_of(
    st.builds(
        lambda start, size, text, base: EditText(Span(start, start + size), text, base),
        st.integers(0, 3),
        st.integers(0, 2),
        st.text("xyz", max_size=4),
        numbers,
    ),
    st.builds(Restore, numbers),
    st.builds(Undo),
    st.builds(Redo),
)
whats = updates | updates | hops | st.sampled_from(["complete_call", "close", "discard"])
steps = st.builds(Step, st.sampled_from(NAMES), whats)
whole = st.builds(ReplaceParts, some_parts, last_chunk=st.just(True)) | hops
mixed_steps = st.builds(Step, st.just("a"), updates) | st.builds(Step, st.just("a"), whole, st.booleans()) | steps


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
            document = patched(document, state.follow(event))
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
        state = moments[joins].state(store=store)
        document = state.snapshot()
        for event in events[joins:]:
            document = patched(document, state.follow(event))
        assert meaning(document) == meaning(json_of(moments[-1].state().snapshot()))


@settings(max_examples=examples(150))
@given(st.lists(st.lists(steps, max_size=8), min_size=1, max_size=3), st.integers(0, 30), st.sampled_from(["", "a"]))
async def test_so_do_the_patches_of_the_older_view_with_a_text_that_may_lag_by_an_eighth_while_it_grows(
    tasks: list[list[Step]], joins: int, legacy: str
) -> None:
    world = StoreHistory()
    for number, task in enumerate(tasks):
        moments, events = await world.task(task, f"t{number}")
        joins %= len(moments)
        state = moments[joins].state(legacy)
        document = state.snapshot()
        for event, moment in zip(events[joins:], moments[joins + 1 :], strict=True):
            document = patched(document, state.follow(event))
            caught_up(older(document), older(json_of(moment.state(legacy).snapshot())), is_open(moment, legacy))
        assert older(document) == older(json_of(moments[-1].state(legacy).snapshot()))


@settings(max_examples=examples(150))
@given(
    st.lists(mixed_steps, min_size=3, max_size=12),
    st.integers(0, 30),
    st.integers(0, 30),
    st.sampled_from([None, "", "a"]),
)
async def test_every_patch_fits_what_a_client_has_even_if_others_change_the_artifacts_meanwhile(
    steps: list[Step], joins: int, ahead: int, legacy: str | None
) -> None:
    moments, events = await StoreHistory().task(steps)
    joins %= len(moments)
    state = moments[joins].state(legacy, moments[min(joins + ahead, len(moments) - 1)])
    document = state.snapshot()
    for event in events[joins:]:
        document = patched(document, state.follow(event))
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


def caught_up(shown: Json, there: Json, growing: bool) -> None:
    if growing:
        *before, old = shown["artifact"]["contents"]
        *_, new = there["artifact"]["contents"]
        written, whole = (str(each.get("code", each.get("fullMarkdown"))) for each in (old, new))
        assert whole.startswith(written)
        assert len(whole) <= 9 / 8 * len(written)
        shown = {**shown, "artifact": {**shown["artifact"], "contents": [*before, new]}}
    assert shown == there


def is_open(moment: Moment, legacy: str) -> bool:
    name = legacy or next(iter(moment.record.artifacts), "")
    return any(artifact.artifact_id == name and artifact.open for artifact in moment.artifacts)


def older(state: Json) -> Json:
    return {name: state[name] for name in ("artifact", "artifactAction")}


def json_of(state: Any) -> Any:
    """As it goes over the wire."""
    return json.loads(json.dumps(state))


# ------------------------------------------------------------------------ the shapes


def of(record: TaskRecord = NEW, legacy: str | None = None, **artifacts: Sequence[Version]) -> CanvasState:
    """The state of a context whose artifacts have these versions."""
    shown = [Artifact(name, versions[-1].content, len(versions), False) for name, versions in artifacts.items()]
    return CanvasState(record, shown, artifacts, legacy)


def version(number: int, text: str, name: str = "", **metadata: Any) -> Version:
    return Version(number, Content(name, "", (text_part(text, "", metadata),)), "agent", "t0", number - 1)


def change(
    text: str,
    number: int,
    *,
    append: bool = False,
    last_chunk: bool = False,
    name: str = "",
    parent: int | None = None,
) -> ev.ArtifactChanged:
    parent = number - 1 if parent is None else parent
    return ev.ArtifactChanged("doc", name, "", append, (text_part(text),), last_chunk, number, "agent", parent)


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
    assert state.follow(label) == [phase, {"op": "replace", "path": "/status", "value": "Working…"}]
    assert state.follow(label) == []
    said = ev.StatusChanged(ev.State.WORKING, ev.AgentMessage("m", "I write."))
    assert state.follow(said) == [{"op": "replace", "path": "/status", "value": ""}]


def test_what_only_streams_is_no_part_of_the_state() -> None:
    assert of().follow(ev.TextAdded(ev.BlockPosition(0, 1, 0), "x")) == []


def test_an_added_text_is_one_more_part_and_the_close_puts_the_parts_in_order() -> None:
    state = of(doc=[version(1, "Hello")])
    state.follow(change("Hello", 2))
    assert state.follow(change(" you", 2, append=True)) == [
        {"op": "add", "path": "/artifacts/doc/parts/-", "value": {"kind": "text", "text": " you"}}
    ]
    assert state.follow(change("", 2, append=True)) == []
    assert state.follow(change("", 2, append=True, last_chunk=True)) == [
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
    state.follow(change("Hello you", 2))
    ops = state.follow(change("", 2, append=True, last_chunk=True))
    assert [op["path"] for op in ops] == ["/artifacts/doc/versions/-", "/artifacts/doc/open"]


def test_an_undo_moves_the_version_and_what_is_made_after_it_is_its_child() -> None:
    state = of(doc=[version(1, "a"), version(2, "b")])
    ops = state.follow(change("a", 1, last_chunk=True))
    assert [op["path"] for op in ops] == ["/artifacts/doc/parts", "/artifacts/doc/version"]
    ops = state.follow(change("c", 3, last_chunk=True, parent=1))
    assert {"number": 3, "author": "agent", "parent": 1} in [op["value"] for op in ops]


def test_a_version_that_others_have_made_meanwhile_is_the_parent_all_the_same() -> None:
    state = of(doc=[version(1, "a")])
    ops = state.follow(change("c", 3, last_chunk=True, parent=2))
    assert {"number": 3, "author": "agent", "parent": 2} in [op["value"] for op in ops]


def test_what_others_have_made_of_an_artifact_since_the_task_changed_it_is_shown() -> None:
    state = overtaken()
    shown = state.snapshot()["artifacts"]["doc"]
    assert (shown["version"], shown["parts"], shown["author"]) == (2, [{"kind": "text", "text": "theirs"}], "user")
    assert not shown["open"]
    assert older(state.snapshot())["artifact"]["currentIndex"] == 2


def test_what_the_task_has_changed_last_is_shown_as_the_task_knows_it() -> None:
    shown = overtaken(changed_by="t").snapshot()["artifacts"]["doc"]
    assert (shown["version"], shown["parts"]) == (1, [{"kind": "text", "text": "mine"}])


def test_news_of_the_task_from_before_others_changed_its_artifact_add_to_what_it_had_written() -> None:
    state = overtaken()
    ops = state.follow(change(" too", 1, append=True))
    assert ops[0] == {"op": "replace", "path": "/artifacts/doc/parts", "value": [{"kind": "text", "text": "mine too"}]}
    ops = state.follow(change("!", 1, append=True))
    assert ops[0] == {"op": "add", "path": "/artifacts/doc/parts/-", "value": {"kind": "text", "text": "!"}}


def overtaken(changed_by: str = "other") -> CanvasState:
    """The task has written "mine", which became version 1; the user has made it "theirs"."""
    record = fold(NEW, Entry(1, 2, AT, change("mine", 1)))
    theirs = Version(2, Content("", "", (text_part("theirs"),)), "user", "other", 1)
    stored = Artifact("doc", theirs.content, 2, open=False, changed_by=changed_by)
    return CanvasState(record, [stored], {"doc": [version(1, "mine too!"), theirs]}, "doc")


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


@pytest.mark.parametrize("legacy", [None, "doc"])
def test_a_growing_text_costs_what_it_grows(legacy: str | None) -> None:
    state, token, count = of(legacy=legacy), "abcdefgh", 4000
    sent = len(json.dumps(state.follow(change(token, 1))))
    for _ in range(1, count):
        ops = state.follow(change(token, 1, append=True))
        assert legacy or len(json.dumps(ops)) < len(token) + 100
        sent += len(json.dumps(ops))
    sent += len(json.dumps(state.follow(change("", 1, append=True, last_chunk=True))))
    pieces = 100 * count + 2 * len(token) * count
    assert sent < pieces + (10 * len(token) * count + 20_000 if legacy else 1000)


# -------------------------------------------------------------------- the older view


def test_the_older_view_has_all_versions_of_the_one_artifact() -> None:
    state = of(legacy="doc", doc=[version(1, "# A", "a.md"), version(2, "x = 1", "a.py")], other=[version(1, "-")])
    assert older(state.snapshot()) == {
        "artifact": {
            "currentIndex": 2,
            "contents": [
                {"index": 1, "type": "text", "language": "markdown", "title": "a.md", "fullMarkdown": "# A"},
                {"index": 2, "type": "code", "language": "python", "title": "a.py", "code": "x = 1"},
            ],
        },
        "artifactAction": None,
    }


def test_type_and_language_come_back_as_they_were_given() -> None:
    state = of(legacy="doc", doc=[version(1, "x", "a.md", type="code", language="Klingon")])
    content = state.snapshot()["artifact"]["contents"][0]
    assert (content["type"], content["language"], content["code"]) == ("code", "Klingon", "x")


def test_without_an_artifact_the_older_view_is_empty_until_the_task_makes_one() -> None:
    state = of(legacy="")
    assert older(state.snapshot()) == {"artifact": None, "artifactAction": None}
    [*_, op] = state.follow(change("Hi", 1, last_chunk=True))
    entry = {"index": 1, "type": "text", "language": "", "title": "", "fullMarkdown": "Hi"}
    assert op == {"op": "replace", "path": "/artifact", "value": {"currentIndex": 1, "contents": [entry]}}


def test_a_draft_that_a_replacement_closes_without_a_word_is_sent_to_its_end() -> None:
    state = of(legacy="doc", doc=[version(1, "a")])
    state.follow(change("x" * 80, 2))
    assert not of_older(state.follow(change("y", 2, append=True)))
    ops = of_older(state.follow(change("new", 3)))
    assert [(op["op"], op["path"]) for op in ops] == [
        ("replace", "/artifact/contents/1/fullMarkdown"),
        ("add", "/artifact/contents/-"),
        ("replace", "/artifact/currentIndex"),
    ]
    assert ops[0]["value"] == "x" * 80 + "y"


def test_a_draft_that_was_taken_back_leaves_the_older_view() -> None:
    state = of(legacy="doc", doc=[version(1, "a")])
    state.follow(change("b", 2))
    ops = of_older(state.follow(change("a", 1, last_chunk=True)))
    assert [(op["op"], op["path"]) for op in ops] == [
        ("remove", "/artifact/contents/1"),
        ("replace", "/artifact/currentIndex"),
    ]


def test_the_older_view_grows_where_it_stands_though_others_have_made_versions_before_it() -> None:
    state = of(legacy="doc", doc=[version(1, "a")])
    state.follow(change("b", 4, parent=3))
    ops = of_older(state.follow(change("c", 4, append=True)))
    assert ops == [{"op": "replace", "path": "/artifact/contents/1/fullMarkdown", "value": "bc"}]
    ops = of_older(state.follow(change("a", 1, last_chunk=True)))
    assert ops[0] == {"op": "remove", "path": "/artifact/contents/1"}


def of_older(ops: Iterable[Json]) -> list[Json]:
    return [op for op in ops if not op["path"].startswith("/artifacts/")]


def test_an_edit_of_the_artifact_is_a_partial_update_until_it_is_aborted() -> None:
    state = of(legacy="doc", doc=[version(1, "a")])
    start = EditStarted("e", "doc", PLACE, "replace", 1)
    action = {"op": "replace", "path": "/artifactAction"}
    assert state.follow(EditStarted("e", "other", PLACE, "replace", 1)) == []
    assert state.follow(start) == [{**action, "value": "partial_update"}]
    assert state.follow(EditCompleted("e", "doc", PLACE, "b", PLACE, "replace", 1)) == []
    assert state.follow(start) == []
    assert state.follow(EditAborted("e", "doc", PLACE)) == [{**action, "value": None}]


def test_a_task_that_is_an_edit_says_so_from_the_beginning() -> None:
    edit = {"op": "edit", "artifactId": "doc", "selection": {"start": 0, "end": 1}}
    message = ev.UserMessage("m", (text_part("shorter"),), {CANVAS: edit})
    record = TaskRecord("t", "c", "", AT, history=(message,))
    assert of(record, "doc", doc=[version(1, "a")]).snapshot()["artifactAction"] == "partial_update"
    assert of(record, "other", other=[version(1, "a")]).snapshot()["artifactAction"] is None


def test_so_does_one_that_has_an_edit_open() -> None:
    record = fold(NEW, Entry(1, 2, AT, EditStarted("e", "doc", PLACE, "replace", 1)))
    assert of(record, "doc", doc=[version(1, "a")]).snapshot()["artifactAction"] == "partial_update"
