"""docs/turn.md and docs/canvas.md specify what the server does: their tables, folds and examples are run."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged, UserMessage
from a2a_canvas.server.agent.intent import OPERATIONS
from a2a_canvas.server.agent.models.provider_errors import FOR_USERS
from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.assembly.engine import Clock, make_engine
from a2a_canvas.server.protocols.a2a_v1.projection import canvas_ext, turn_ext
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.projection import A2AEvent, TaskProjection
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested, Selection
from a2a_canvas.store.models import DataPart, text_part
from a2a_canvas.store.text.wording import choice
from tests.docs.pages import assert_has, blocks, page, rows, section
from tests.server.app_server import Stream, asking, serving, with_turn_events

TURN_PAGE, CANVAS_PAGE = page("turn"), page("canvas")
BOTH = TURN_PAGE + CANVAS_PAGE

EDIT_EVENTS = (
    EditStarted("e", "a", Selection(1, 2), "replace", 3),
    EditChunk("e", "a", Selection(1, 2), "new"),
    EditCompleted("e", "a", Selection(1, 2), "new", Selection(1, 4), "replace", 1),
    EditSuggested("e", "a", Selection(1, 2), "n-1"),
    EditAborted("e", "a", Selection(1, 2)),
)


def test_the_specification_of_turn_v1_has_every_event_and_no_other() -> None:
    source = Path(turn_ext.__file__).read_text()
    said = set(re.findall(r'\bturn_event\(\s*"(\w+)"', source)) | {
        canvas_ext.edit_turn_event(event)[0] for event in EDIT_EVENTS
    }
    specified = {name for row in rows(TURN_PAGE, "The events") for name in re.findall(r"`(\w+)`", row[0])}
    assert specified == said


def test_both_specifications_have_every_field_of_an_edit() -> None:
    turn = {row[0]: row[1] for row in rows(TURN_PAGE, "The events")}
    canvas = {row[0]: row[1] for row in rows(CANVAS_PAGE, "Events of an edit")}
    assert len(canvas) == len(EDIT_EVENTS)
    for event in EDIT_EVENTS:
        event_type, data = canvas_ext.edit_turn_event(event)
        assert set(re.findall(r"`(\w+)`", turn[f"`{event_type}`"])) == set(data)
        told = canvas_ext.edit_metadata(event)["edit"]
        assert set(re.findall(r"`(\w+)`", canvas[f"`{told.pop('phase')}`"])) == set(told)


def test_the_specification_of_canvas_v1_has_what_is_told_of_every_artifact_update() -> None:
    event = ArtifactChanged("a", "", "", append=False, parts=(), last_chunk=True, version=1, author="agent", parent=0)
    [row] = [row for row in rows(CANVAS_PAGE, "canvas:v1") if row[0] == "an artifact update"]
    assert set(re.findall(r"`(\w+)`", row[1])) == {*canvas_ext.change_metadata(event), "epoch", "generation"}


def specified_folds() -> SimpleNamespace:
    """The functions that the pages give."""
    names: dict[str, Any] = {}
    for code in blocks(BOTH, "python"):
        exec(code, names)
    return SimpleNamespace(**names)


def example(heading: str) -> list[dict[str, Any]]:
    """The stream that a page shows."""
    return [json.loads(line) for line in blocks(section(BOTH, heading), "json")[-1].splitlines()]


def test_the_fold_of_turn_v1_folds_the_stream_that_the_specification_shows() -> None:
    given = specified_folds()
    view: dict[str, Any] = {}
    shown = []
    for event in example("An example of a turn"):
        assert not view or not given.over(view, pauses=False)
        given.fold(view, event)
        shown.append((view["status"], view["thinking"], view["reply"]))
    assert ("Working…", "A short note on tide pools.", "") in shown
    assert ("Writing reply…", "", "The note on tide") in shown
    assert given.over(view, pauses=True)
    assert shown[-1] == ("", "", "")
    assert view["thread"] == ["I am writing it.", "The note on tide pools is ready."]
    [note] = view["artifacts"].values()
    assert "".join(part["text"] for part in note["parts"]) == "# tide pools\n\nThey come and go.\n"


FETCH = "import urllib\n\ndef fetch(url):\n    return urllib.get(url)\n"


def test_the_fold_of_canvas_v1_folds_the_stream_that_the_specification_shows() -> None:
    given = specified_folds()
    view: dict[str, Any] = {}
    texts = []
    for event in example("An example of an edit"):
        given.fold_canvas(view, event)
        texts += [given.shown(FETCH, edit) for edit in view["edits"].values()]
    assert texts == [FETCH.replace("def fetch(url):", new) for new in ("", "async def fe", "async def fetch(url):")]
    assert (view["state"], view["versions"], view["edits"]) == ("TASK_STATE_COMPLETED", {"fetch": 2}, {})
    assert view["artifacts"]["fetch"]["parts"][0]["text"] == texts[-1]


@pytest.mark.slow
async def test_both_folds_may_be_given_the_same_events_and_leave_them_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(WATCHED + EDITED.removeprefix("\nrules:\n").replace("^write", "^doc"))
    runtime, given = a_runtime(tmp_path / "script.yaml"), specified_folds()
    operation = {CANVAS: {"op": "edit", "artifactId": "doc", "selection": TWO}}
    for text, metadata in (("write", None), ("doc", None), ("say 2", operation)):
        start, entries = await lived(runtime, text, metadata)
        for joined in accumulate(entries, fold, initial=start):
            projection = TaskProjection(joined, ActivatedExtensions(turn=True, canvas=True), ends_at_pause=False)
            rest = [entry for entry in entries if entry.generation > joined.generation]
            events = [*projection.begin(), *(event for entry in rest for event in projection.project(entry))]
            sent = [as_json(event) for event in events]
            turn: dict[str, Any] = {}
            canvas: dict[str, Any] = {}
            for event in sent:
                given.fold(turn, event)
                given.fold_canvas(canvas, event)
            assert sent == [as_json(event) for event in events]
            assert turn["artifacts"] == canvas["artifacts"]
    assert visible(canvas)["artifacts"] == {"doc": ("doc.md", "One 🎈 2.\nThree.\n")}


@pytest.mark.parametrize(("unit", "start", "end"), [("utf16", 3, 5), ("codepoint", 2, 3)])
@pytest.mark.parametrize(
    ("strategy", "text"), [("replace", "🎈 new!"), ("insert_before", "🎈 new🎉!"), ("insert_after", "🎈 🎉new!")]
)
def test_what_is_shown_of_an_edit_stands_where_the_new_text_will(
    unit: str, start: int, end: int, strategy: str, text: str
) -> None:
    edit = {"selection": {"start": float(start), "end": float(end)}, "unit": unit, "strategy": strategy, "text": "new"}
    assert specified_folds().shown("🎈 🎉!", edit) == text


# ----------------------------------------------------- what different watchers make of it

WATCHED = """
rules:
  - match: {text: ^write}
    rounds:
      - {thinking: Hm., text: "I begin. ", tools: [{name: artifact_update, input: {
          append: false, artifact: {artifact_id: a, name: a.md, parts: [{kind: text, text: One two three.}]}}}],
         chunk: 4, delay: 1}
      - {text: "I go on.", tools: [{name: artifact_update, input: {append: true, last_chunk: true,
          artifact: {artifact_id: a, parts: [{kind: text, text: " Four five."}]}}}], chunk: 4, delay: 1}
      - {text: "I go on.", tools: [{name: ask_user, input: {question: "Which language?"}}], chunk: 4, delay: 1}
      - {tools: [{name: artifact_read, input: {artifact_id: a}}]}
      - {thinking: Hm., text: It is done., chunk: 4, error: {status: 529, after: 3, times: 1}}
  - match: {text: ^decline}
    rounds: [{text: No., tools: [{name: decline_task, input: {reason: I would rather not.}}]}]
  - match: {text: ^fail}
    rounds: [{text: "Well…", error: {status: 400, after: 1, times: 9}}]
  - match: {text: ^nothing}
    rounds: [{thinking: Hm.}]
"""


def visible(view: dict[str, Any]) -> dict[str, Any]:
    """What every watcher sees alike: parts may be cut differently, and thinking is for those who are there."""
    artifacts = {
        key: (artifact["name"], "".join(part.get("text", "") for part in artifact["parts"]))
        for key, artifact in view["artifacts"].items()
    }
    return {key: view[key] for key in view if key not in ("thinking", "joined_after_text")} | {"artifacts": artifacts}


Fold = Callable[[dict[str, Any], dict[str, Any]], None]


def as_json(event: A2AEvent) -> dict[str, Any]:
    fields = {pb.Task: "task", pb.TaskStatusUpdateEvent: "status_update"}
    return MessageToDict(pb.StreamResponse(**{fields.get(type(event), "artifact_update"): event}))


class Watcher:
    """Folds as the specification says what the server sends to somebody who joins at `record`."""

    def __init__(self, record: TaskRecord, fold: Fold, activated: ActivatedExtensions) -> None:
        self._fold = fold
        self._projection = TaskProjection(record, activated, ends_at_pause=False)
        self.view: dict[str, Any] = {}
        self._take(self._projection.begin())

    def see(self, entry: Entry, *, behind: bool = False) -> None:
        self._take(self._projection.project(entry, behind=behind))

    def _take(self, events: Iterable[A2AEvent]) -> None:
        for event in events:
            self._fold(self.view, as_json(event))


def watched(start: TaskRecord, entries: list[Entry], fold_: Fold, activated: ActivatedExtensions) -> dict[str, Any]:
    """The last view of whoever watched from the beginning, after all who joined later were seen to see the same."""
    early, slow = Watcher(start, fold_, activated), Watcher(start, fold_, activated)
    late: list[Watcher] = []
    for record, entry in zip(accumulate(entries, fold, initial=start), entries, strict=False):
        late.append(Watcher(record, fold_, activated))
        assert all(visible(watcher.view) == visible(early.view) for watcher in late)
        for watcher in (early, *late):
            watcher.see(entry)
        slow.see(entry, behind=entry is not entries[-1])
    assert all(visible(watcher.view) == visible(early.view) for watcher in (slow, *late))
    return early.view


async def lived(runtime: Runtime, text: str, metadata: Any = None) -> tuple[TaskRecord, list[Entry]]:
    """A task from its beginning to its end; its question is answered."""
    message = UserMessage(str(uuid4()), (text_part(text),), metadata or {})
    following = await runtime.send(Incoming(message, context_id="code"), ANONYMOUS)
    entries = []
    async for entry in following:
        entries.append(entry)
        if isinstance(entry.event, StatusChanged) and entry.event.state is State.INPUT_REQUIRED:
            await runtime.send(
                Incoming(UserMessage("n", (text_part("French"),)), task_id=following.snapshot.task_id), ANONYMOUS
            )
    return following.snapshot, entries


@pytest.mark.parametrize(
    ("text", "thread"),
    [
        ("write", ["I begin.", "I go on.", "I go on.", "Which language?", "It is done."]),
        ("decline", ["No.", "I would rather not."]),
        ("nothing", []),
        ("fail", [FOR_USERS["refused"]]),
    ],
)
@pytest.mark.parametrize("canvas", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["turn", "both"])
async def test_who_folds_turn_v1_as_specified_sees_the_same_from_wherever_he_joins(
    tmp_path: Path, text: str, thread: list[str], canvas: bool
) -> None:
    (tmp_path / "script.yaml").write_text(WATCHED)
    start, entries = await lived(a_runtime(tmp_path / "script.yaml"), text)
    given = specified_folds()
    view = watched(start, entries, given.fold, ActivatedExtensions(turn=True, canvas=canvas))
    assert given.over(view, pauses=True)
    assert view["thread"] == thread
    assert (view["status"], view["reply"], view["thinking"]) == ("", "", "")


def a_runtime(script: Path) -> Runtime:
    model = ScriptedModel(script, sleep=lambda seconds: asyncio.sleep(0))
    return make_engine(Settings(frame_ms=0), model, Clock()).runtime


EDITED = """
rules:
  - match: {text: ^write}
    rounds: [{tools: [{name: artifact_update, input: {append: false, last_chunk: true, artifact: {
      artifact_id: doc, name: doc.md, parts: [{kind: text, text: "One 🎈 two.\\nThree.\\n"}]}}}], chunk: 9, delay: 1}]
  - match: {text: "^say (?P<text>.*)", selection: ""}
    rounds: [{thinking: Hm., text: "{text}", chunk: 4, delay: 1}]
  - match: {text: ^break, selection: ""}
    rounds: [{text: It is whole., chunk: 4, error: {status: 529, after: 2, times: 2}}]
  - match: {text: ^fail, selection: ""}
    rounds: [{text: It is not., chunk: 4, error: {status: 400, after: 1, times: 9}}]
  - match: {text: ^converse}
    rounds:
      - text: I edit it.
        tools: [{name: artifact_edit, input: {artifact_id: doc, old_text: One, new_text: 1 2 3}}]
        chunk: 5
      - {tools: [{name: artifact_edit, input: {artifact_id: doc, new_text: x, old_text: not there}}], chunk: 5}
      - {text: Done.}
"""
TWO = {"start": 7, "end": 10, "text": "two"}

EDITS = [
    ("write", None, "One 🎈 two.\nThree.\n", 1),
    ("say a second one", {"op": "edit", "selection": TWO}, "One 🎈 a second one.\nThree.\n", 2),
    ("please", {"op": "undo"}, "One 🎈 two.\nThree.\n", 1),
    ("please", {"op": "redo"}, "One 🎈 a second one.\nThree.\n", 2),
    ("please", {"op": "restore", "version": 1}, "One 🎈 two.\nThree.\n", 3),
    ("say and ", {"op": "edit", "selection": TWO, "strategy": "insert_before"}, "One 🎈 and two.\nThree.\n", 4),
    ("please", {"op": "put", "text": "Mine.\n"}, "Mine.\n", 5),
    ("say lost", {"op": "edit", "selection": TWO, "baseVersion": 1}, None, 5),
    ("please", {"op": "undo", "baseVersion": 4}, None, 5),
    ("break", {"op": "edit", "selection": {"lineStart": 1}}, "It is whole.\n", 6),
    ("fail", {"op": "edit", "selection": {"lineStart": 1}}, "It is whole.\n", 6),
    ("say new", {"op": "edit", "selection": {"start": 0, "end": 2}}, "new is whole.\n", 7),
    ("please", {"op": "put", "text": "One.\n"}, "One.\n", 8),
    ("converse", None, "1 2 3.\n", 9),
    ("please", {"op": "redo"}, None, 9),
]
"""What is said and asked for, and what it makes of the artifact: its text (None: it is left alone) and version."""


@pytest.mark.slow
@pytest.mark.parametrize("turn", [False, True], ids=["canvas", "both"])
async def test_who_folds_canvas_v1_as_specified_sees_the_same_from_wherever_he_joins(
    tmp_path: Path, turn: bool
) -> None:
    (tmp_path / "script.yaml").write_text(EDITED)
    runtime, given = a_runtime(tmp_path / "script.yaml"), specified_folds()
    for text, operation, content, version in EDITS:
        start, entries = await lived(runtime, text, operation and {CANVAS: {"artifactId": "doc", **operation}})
        view = watched(start, entries, given.fold_canvas, ActivatedExtensions(turn=turn, canvas=True))
        assert view["edits"] == {}
        untouched = content is None
        assert (view["state"] == "TASK_STATE_REJECTED") == untouched
        assert visible(view)["artifacts"] == ({} if untouched else {"doc": ("doc.md", content)})
        assert view["versions"] == ({} if untouched else {"doc": version})


async def test_who_folds_turn_v1_is_not_disturbed_by_the_events_of_canvas_v1(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(EDITED)
    runtime, given = a_runtime(tmp_path / "script.yaml"), specified_folds()
    statuses = []
    for text, operation, *_ in EDITS:
        start, entries = await lived(runtime, text, operation and {CANVAS: {"artifactId": "doc", **operation}})
        alone, both = (
            Watcher(start, given.fold, ActivatedExtensions(turn=True, canvas=canvas)) for canvas in (False, True)
        )
        for entry in entries:
            for watcher in (alone, both):
                watcher.see(entry)
            assert both.view == alone.view
            statuses += [alone.view["status"]] if isinstance(entry.event, EditChunk) else []
    assert set(statuses) == {"Editing doc.md…"}


async def test_an_edit_goes_as_the_specification_shows_it(tmp_path: Path) -> None:
    shown_edit = section(CANVAS_PAGE, "An example of an edit")
    (tmp_path / "script.yaml").write_text(blocks(shown_edit, "yaml")[0])
    message = json.loads(blocks(section(CANVAS_PAGE, "Operations"), "json")[0])
    runtime = a_runtime(tmp_path / "script.yaml")
    await lived(runtime, "write fetch")
    start, entries = await lived(runtime, message["parts"][0]["text"], message["metadata"])
    projection = TaskProjection(start, ActivatedExtensions(canvas=True), ends_at_pause=True)
    events = [*projection.begin(), *(event for entry in entries for event in projection.project(entry))]
    shown = example("An example of an edit")
    assert len(events) == len(shown)
    for event, expected in zip(map(as_json, events), shown, strict=True):
        assert_has(event, expected)


WRONG: list[dict[str, Any]] = [
    {"op": "move"},
    {"op": "undo", "version": 1},
    {"op": "edit"},
    {"op": "undo", "artifactId": "x"},
    {"op": "edit", "artifactId": "image", "selection": {"start": 0, "end": 0}},
    {"op": "put", "text": "", "baseVersion": 9},
    {"op": "edit", "selection": {"start": 0, "end": 999}},
    {"op": "edit", "selection": {"start": 5, "end": 2}},
    {"op": "edit", "selection": {"lineStart": 99}},
    {"op": "edit", "selection": {"start": 15, "end": 30, "lineStart": 2}},
    {"op": "edit", "selection": {"start": 15, "end": 30, "text": "def get(url):"}, "baseVersion": 1},
    {"op": "put"},
    {"op": "put", "text": "", "merge": True},
    {"op": "put", "text": "", "name": "x", "baseVersion": 1},
]
REFUSALS = [
    f"op is 'move' and must be {choice(OPERATIONS)}.",
    "version is no field of this operation, which has artifactId, baseVersion, op and group.",
    "selection is missing: an edit has a selection, or several selections.",
    "artifactId is 'x', which this context does not have; it has 'fetch' and 'image'.",
    "artifactId names an artifact without text: there is nothing to select in it.",
    "baseVersion is 9 and must be 1.",
    "selection.end is 999 and must be 0 to 58, the length of the text, in utf16 units.",
    "selection.end is 2 and must be 5 to 58: it ends before it begins.",
    "selection.lineStart is 99 and must be 1 to 5, the last line of the text.",
    "selection.lineStart must be 3, the line in which the selection starts.",
    "selection.text does not match: version 1 says 'def fetch(url):' there.",
    "text is missing: a put has a text, or files or data in message.parts.",
    "baseVersion is missing: merge needs the version that the text was made of.",
    "name is for a new artifact, which has no baseVersion: leave out one of them.",
    "message.parts must not have files or data beside the text of a put: put them without text.",
    "merge is for a text: leave it out, or put a text in place of files and data.",
    "message.parts must say in a text what is to be changed.",
    "message.contextId is missing: say in which context the artifact is.",
    "message.taskId must be left out: an operation is a task of its own.",
]
"""What is said of these, and of the messages that lack something else."""

IMAGE = """
  - match: {text: ^image$}
    rounds: [{tools: [{name: artifact_update, input: {append: false, last_chunk: true, artifact: {
      artifact_id: image, parts: [{kind: file, file: {uri: "https://example.com/i.png"}}]}}}]}]
"""


async def test_wrong_operations_are_refused_as_the_specification_says(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(blocks(CANVAS_PAGE, "yaml")[0] + IMAGE)
    runtime = a_runtime(tmp_path / "script.yaml")
    for text in ("write fetch", "image"):
        await lived(runtime, text)
    undo = {CANVAS: {"op": "undo", "artifactId": "fetch"}}
    wrong = [Incoming(a_message("x", {CANVAS: {"artifactId": "fetch", **each}}), context_id="code") for each in WRONG]
    for each in (
        {"op": "put", "text": ""},
        {"op": "put", "merge": True, "baseVersion": 1},
        {"op": "edit", "selection": {"lineStart": 1}},
    ):
        wrong.append(Incoming(a_message(None, {CANVAS: {"artifactId": "fetch", **each}})))
    wrong.append(Incoming(a_message("x", undo)))
    wrong.append(Incoming(a_message("x", undo), context_id="code", task_id="t"))
    said = [await refusal(runtime, incoming) for incoming in wrong]
    assert said == REFUSALS
    [shown] = blocks(section(page("errors"), "Invalid operations"), "text")
    assert set(shown.splitlines()) <= set(said)
    assert (await runtime.journal.list(TaskQuery(("",)))).total == 2


async def test_a_conflict_is_told_as_the_specification_shows(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(blocks(CANVAS_PAGE, "yaml")[0])
    runtime = a_runtime(tmp_path / "script.yaml")
    await lived(runtime, "write fetch")
    for name in ("load", "download"):
        text = FETCH.replace("def fetch", f"def {name}")
        operation = {"op": "put", "artifactId": "fetch", "text": text, "baseVersion": 1, "merge": True}
        start, entries = await lived(runtime, "mine", {CANVAS: operation})
    *_, rejected = accumulate(entries, fold, initial=start)
    [shown] = [json.loads(block) for block in blocks(section(CANVAS_PAGE, "Merging"), "json")]
    assert rejected.message is not None
    assert dict(rejected.message.metadata) == shown


def a_message(text: str | None, metadata: Any) -> UserMessage:
    part = DataPart({"n": 1}) if text is None else text_part(text)
    return UserMessage(str(uuid4()), (part,), metadata)


async def refusal(runtime: Runtime, incoming: Incoming) -> str:
    with pytest.raises(InvalidOperation) as refused:
        await runtime.send(incoming, ANONYMOUS)
    return str(refused.value)


def viewed(stream: Stream) -> SimpleNamespace:
    """The view of somebody who was sent what `stream` has read, and whether it is at its end."""
    given = specified_folds()
    view: dict[str, Any] = {}
    for event in stream.seen:
        given.fold(view, MessageToDict(event))
    return SimpleNamespace(**visible(view), over=given.over(view, pauses=False), ended=given.over(view, pauses=True))


async def test_a_stream_of_one_task_folds_to_what_was_seen_by_those_who_were_there(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(WATCHED)
    async with serving(tmp_path / "script.yaml", grpc=False) as served:
        served.gate.open()
        client, call = served.client(), with_turn_events()
        ask = asking("write", message_id="m-1", context="c")
        first = await Stream(client.send_message(ask, context=call)).rest()
        repeated = await Stream(client.send_message(ask, context=call)).rest()
        assert len(repeated.seen) == 1
        assert viewed(repeated) == viewed(first)
        assert (viewed(first).over, viewed(first).ended) == (True, False)
        assert viewed(first).thread[-1] == "Which language?"

        subscribed = Stream(client.subscribe(pb.SubscribeToTaskRequest(id=first.task.id), context=call))
        await subscribed.next()
        assert viewed(subscribed) == viewed(first)
        answered = await Stream(client.send_message(asking("French", task=first.task.id), context=call)).rest()
        assert viewed(await subscribed.rest()) == viewed(answered)
        again = await Stream(client.send_message(ask, context=call)).rest()
        assert len(again.seen) == 1
        assert viewed(again) == viewed(answered)
        assert viewed(again).ended


async def test_a_cancelled_task_adds_nothing_to_the_thread(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(WATCHED)
    async with serving(tmp_path / "script.yaml", grpc=False) as served:
        client, call = served.client(), with_turn_events()
        ask = asking("write", message_id="m-1", context="c")
        stream = Stream(client.send_message(ask, context=call))
        await stream.next()
        await served.gate.reached.wait()
        await client.cancel_task(pb.CancelTaskRequest(id=stream.task.id))
        view = viewed(await stream.rest())
        assert (view.ended, view.thread, view.reply, view.status) == (True, [], "", "")
        assert viewed(await Stream(client.send_message(ask, context=call)).rest()) == view
