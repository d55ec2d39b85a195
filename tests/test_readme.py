"""README and docs say what is true: their tables, links, commands and examples are taken from the text and tried."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest
import uvicorn
import yaml
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2A_ERROR_MAPPING, JSON_RPC_ERROR_CODE_MAP, InternalError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged, UserMessage
from a2a_canvas.server.agent.intent import CANVAS
from a2a_canvas.server.agent.models.demo import Rehearsal
from a2a_canvas.server.agent.models.script import load_script
from a2a_canvas.server.agent.operations import InvalidOperation
from a2a_canvas.server.app import Clock, build_app, build_runtime
from a2a_canvas.server.cli import main, parser
from a2a_canvas.server.protocols.a2a_v1 import canvas_ext, turn_ext
from a2a_canvas.server.protocols.a2a_v1.projection import ActivatedExtensions, StreamEvent, TaskProjection
from a2a_canvas.server.protocols.artifacts.paths import (
    ArtifactList,
    ArtifactVersion,
    ContextEvents,
    CurrentArtifact,
    VersionDiff,
    VersionList,
    parse_path,
)
from a2a_canvas.server.protocols.edge.unavailable import RETRY_AFTER, UnavailableError
from a2a_canvas.server.settings import PREFIX, Settings, load, option, span
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.listing import TaskQuery
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.tasks.runtime.turns import MAX_RESUMPTIONS
from a2a_canvas.server.tasks.sql.journal.journal_tables import metadata as schema
from a2a_canvas.server.tasks.sql.replica.notifications import POLL_INTERVAL
from a2a_canvas.server.tasks.sql.replica.sql_backend import LEASE_TIMING
from a2a_canvas.store.edits import EditAborted, EditChunk, EditCompleted, EditStarted, Selection
from a2a_canvas.store.models import DataPart, text_part
from a2a_canvas.store.sql.commit import COMMIT_SPACING, GroupCommit
from a2a_canvas.store.sql.database import READERS, WRITERS
from a2a_canvas.tools.registry import TOOLS
from tests.database_fixtures import postgresql_url
from tests.server.app_server import Stream, asking, serving, with_turn_events

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXTENSIONS = (ROOT / "docs/extensions.md").read_text()
AG_UI = (ROOT / "docs/ag-ui.md").read_text()
SCALING = (ROOT / "docs/scaling.md").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
ADDRESS = "http://127.0.0.1:8000"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    level, fenced, lines = 0, False, []
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        found = None if fenced else re.match("(#+) (.*)\n", line)
        if level and found and len(found[1]) <= level:
            break
        if level:
            lines.append(line)
        elif found and found[2] == heading:
            level = len(found[1])
    assert level, heading
    return "".join(lines)


def rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its own heading."""
    table = re.search(r"(?:^\|.*\|\n)+", section(text, heading), re.MULTILINE)
    assert table
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


# ------------------------------------------------------------------------ what is written


def test_the_table_of_settings_has_every_setting_with_its_option_variable_and_default() -> None:
    expected = []
    for field, info in Settings.model_fields.items():
        name, variable, default = option(field), f"`{PREFIX}{field.upper()}`", f"`{info.default}`"
        if info.annotation is bool:
            expected.append([f"`{name}`, `--no-{name[2:]}`", variable, "on" if info.default else "off"])
        else:
            expected.append([f"`{name}`", variable, "–" if info.default is None else default])
    assert [row[:3] for row in rows(README, "Settings")] == expected


def test_the_table_of_settings_tells_which_numbers_a_setting_takes() -> None:
    for field, (*_, what) in zip(Settings.model_fields, rows(README, "Settings"), strict=True):
        assert what.endswith(span(field))


OTHERS = {
    "--rm",
    "--name",
    "--restart",
    "--stop-timeout",
    "--build",
    "--scale",
    "--format",
    "--file",
    "--no-owner",
    "--dbname",
    "--only",
}
"""Options of docker, of PostgreSQL's programs and of the benchmarks."""


def test_every_option_that_is_named_exists() -> None:
    options = {option(field) for field in Settings.model_fields} | {"--no-advertise-0.3"}
    options |= set(options_of(parser()))
    pages = README + EXTENSIONS + AG_UI + SCALING
    assert set(re.findall(r"(?<=[\s`\"])--[a-z][\w.-]*\w", pages)) <= options | OTHERS


def options_of(command: ArgumentParser) -> Iterator[str]:
    """Those of a command and of all commands below it."""
    for action in command._actions:
        yield from action.option_strings
        for below in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from options_of(below)


def test_every_variable_that_is_named_is_a_setting() -> None:
    variables = {PREFIX + field.upper() for field in Settings.model_fields}
    assert set(re.findall(rf"{PREFIX}[A-Z0-9_]+", README + SCALING)) <= variables


def test_every_file_that_is_named_exists() -> None:
    paths = re.findall(r"`((?:server|store|tools|bench|docs|deploy)/[\w/.]+)`", README + SCALING)
    assert {"store/sql/commit.py", "server/tasks/sql/lease.py"} <= set(paths)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_command_is_named() -> None:
    [commands] = [action.choices for action in parser()._actions if isinstance(action.choices, dict)]
    assert [name for name in commands if not re.search(rf"[` ]{name}[` ]", README)] == []


def test_every_tool_is_named() -> None:
    assert [tool.name for tool in TOOLS if f"`{tool.name}`" not in section(README, "Scripts")] == []


def test_every_target_of_make_that_is_named_exists() -> None:
    named = set(re.findall(r"(?:^ +|`)make ([a-z-]+)", README, re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"serve", "test"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if "://" not in target:
            path, _, heading = target.partition("#")
            other = page.parent / path if path else page
            assert other.exists(), target
            assert not heading or heading in headings(other.read_text()), target


def headings(text: str) -> set[str]:
    """The anchors of a page's headings."""
    lines = re.findall("^#+(.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in lines}


def test_what_a_request_is_answered_without_a_database_is_what_the_tables_say() -> None:
    mapping = A2A_ERROR_MAPPING[UnavailableError]
    codes = ["-32603", str(mapping.http_code), mapping.grpc_status]
    assert JSON_RPC_ERROR_CODE_MAP[InternalError] == -32603
    [row] = [row for row in rows(README, "What A2A's operations answer") if "database" in row[0]]
    assert row[2:] == codes
    [retry_after] = RETRY_AFTER.items()
    told = section(README, "When the database is away")
    assert all(code in told for code in (*codes, "`{}: {}`".format(*retry_after)))


def test_the_load_balanced_servers_are_those_of_the_compose_file() -> None:
    told = section(README, "Several servers")
    numbers = ("no", "one", "two", "three", "four", "five")
    assert f"{numbers[COMPOSE['services']['server']['deploy']['replicas']]} servers" in told
    published = [port.split(":")[1] for port in COMPOSE["services"]["balancer"]["ports"]]
    assert all(port in told for port in published)
    assert set(re.findall(r"--scale (\w+)=", told)) <= COMPOSE["services"].keys()
    [password] = re.findall(r"\b(\w+)=\S+ docker compose", told)
    assert f"${{{password}:?" in (ROOT / "compose.yaml").read_text()


def test_the_limit_of_resumptions_is_that_of_the_server() -> None:
    [row] = [row for row in rows(README, "Limits") if row[0].startswith("crashes of the server")]
    assert row[1] == str(MAX_RESUMPTIONS)


def test_the_page_on_scaling_names_every_table_and_how_it_is_keyed() -> None:
    keyed = {row[0].strip("`"): row[1] for row in rows(SCALING, "Sharding contexts")}
    assert keyed.keys() == schema.tables.keys()
    for name, table in schema.tables.items():
        columns = ", ".join(f"`{column.name}`" for column in table.primary_key)
        assert keyed[name] == columns


def test_the_page_on_scaling_has_the_numbers_of_the_code() -> None:
    told = {row[0]: row[1] for row in rows(SCALING, "What is fixed")}
    interval = inspect.signature(GroupCommit).parameters["interval"].default
    assert told == {
        "connections of a server": str(READERS + WRITERS + 1),
        "transactions of a server for tasks and artifacts, at most": f"{1 / COMMIT_SPACING:.0f} a second",
        "a piece of a draft is written within": f"{interval * 1000:.0f} ms",
        "a server renews its row": f"every {LEASE_TIMING.beat:.0f} s",
        "a server is taken for dead after": f"{LEASE_TIMING.expired:.0f} s",
        "a look at the tables, below the notifications": f"every {POLL_INTERVAL:.0f} s",
    }


def test_every_script_can_be_loaded(tmp_path: Path) -> None:
    scripts = blocks(README, "yaml") + blocks(EXTENSIONS, "yaml")
    assert len(scripts) == 3
    for script in scripts:
        (tmp_path / "script.yaml").write_text(script)
        load_script(tmp_path / "script.yaml")


EDIT_EVENTS = (
    EditStarted("e", "a", Selection(1, 2), "replace", 3),
    EditChunk("e", "a", Selection(1, 2), "new"),
    EditCompleted("e", "a", Selection(1, 2), "new", Selection(1, 4), "replace", 1),
    EditAborted("e", "a", Selection(1, 2)),
)


def test_the_specification_of_turn_v1_has_every_event_and_no_other() -> None:
    source = Path(turn_ext.__file__).read_text()
    said = set(re.findall(r'\bturn_event\(\s*"(\w+)"', source)) | {
        canvas_ext.edit_turn_event(event)[0] for event in EDIT_EVENTS
    }
    specified = {name for row in rows(EXTENSIONS, "The events") for name in re.findall(r"`(\w+)`", row[0])}
    assert specified == said


def test_both_specifications_have_every_field_of_an_edit() -> None:
    turn = {row[0]: row[1] for row in rows(EXTENSIONS, "The events")}
    canvas = {row[0]: row[1] for row in rows(EXTENSIONS, "What watchers are told")}
    assert len(canvas) == len(EDIT_EVENTS)
    for event in EDIT_EVENTS:
        event_type, data = canvas_ext.edit_turn_event(event)
        assert set(re.findall(r"`(\w+)`", turn[f"`{event_type}`"])) == set(data)
        told = canvas_ext.edit_metadata(event)["edit"]
        assert set(re.findall(r"`(\w+)`", canvas[f"`{told.pop('phase')}`"])) == set(told)


def specified_folds() -> SimpleNamespace:
    """The functions that docs/extensions.md gives."""
    names: dict[str, Any] = {}
    for code in blocks(EXTENSIONS, "python"):
        exec(code, names)
    return SimpleNamespace(**names)


def example(heading: str) -> list[dict[str, Any]]:
    """The stream that docs/extensions.md shows."""
    return [json.loads(line) for line in blocks(section(EXTENSIONS, heading), "json")[-1].splitlines()]


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


def as_json(event: StreamEvent) -> dict[str, Any]:
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

    def _take(self, events: Iterable[StreamEvent]) -> None:
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
    following = await runtime.send(Incoming(message, context_id="code"))
    entries = []
    async for entry in following:
        entries.append(entry)
        if isinstance(entry.event, StatusChanged) and entry.event.state is State.INPUT_REQUIRED:
            await runtime.send(Incoming(UserMessage("n", (text_part("French"),)), task_id=following.snapshot.task_id))
    return following.snapshot, entries


@pytest.mark.parametrize(
    ("text", "thread"),
    [
        ("write", ["I begin.", "I go on.", "I go on.", "Which language?", "It is done."]),
        ("decline", ["No.", "I would rather not."]),
        ("nothing", []),
        ("fail", ["The model answered 400 (bad request)."]),
    ],
)
@pytest.mark.parametrize("canvas", [False, True], ids=["turn", "both"])
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
    model = load_script(script, sleep=lambda seconds: asyncio.sleep(0))
    return build_runtime(Settings(frame_ms=0), model, Clock())


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
    page = section(EXTENSIONS, "An example of an edit")
    (tmp_path / "script.yaml").write_text(blocks(page, "yaml")[0])
    message = json.loads(blocks(section(EXTENSIONS, "Operations"), "json")[0])
    runtime = a_runtime(tmp_path / "script.yaml")
    await lived(runtime, "write fetch")
    start, entries = await lived(runtime, message["parts"][0]["text"], message["metadata"])
    projection = TaskProjection(start, ActivatedExtensions(canvas=True), ends_at_pause=True)
    events = [*projection.begin(), *(event for entry in entries for event in projection.project(entry))]
    shown = example("An example of an edit")
    assert len(events) == len(shown)
    for event, expected in zip(map(as_json, events), shown, strict=True):
        assert_has(event, expected)


def assert_has(value: Any, expected: Any) -> None:
    """`value` has all that `expected` has, ids apart."""
    if isinstance(expected, dict):
        for key in expected.keys() - {"id"}:
            assert_has(value[key], expected[key])
    elif isinstance(expected, list):
        for each, one in zip(value, expected, strict=True):
            assert_has(each, one)
    else:
        assert value == expected


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
]
IMAGE = """
  - match: {text: ^image$}
    rounds: [{tools: [{name: artifact_update, input: {append: false, last_chunk: true, artifact: {
      artifact_id: image, parts: [{kind: file, file: {uri: "https://example.com/i.png"}}]}}}]}]
"""


async def test_wrong_operations_are_refused_as_the_specification_says(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(blocks(EXTENSIONS, "yaml")[1] + IMAGE)
    runtime = a_runtime(tmp_path / "script.yaml")
    for text in ("write fetch", "image"):
        await lived(runtime, text)
    undo = {CANVAS: {"op": "undo", "artifactId": "fetch"}}
    wrong = [Incoming(a_message("x", {CANVAS: {"artifactId": "fetch", **each}}), context_id="code") for each in WRONG]
    wrong.append(Incoming(a_message(None, {CANVAS: {**undo[CANVAS], "op": "edit", "selection": {"lineStart": 1}}})))
    wrong.append(Incoming(a_message("x", undo)))
    wrong.append(Incoming(a_message("x", undo), context_id="code", task_id="t"))
    said = [await refusal(runtime, incoming) for incoming in wrong]
    specified = [row[1].strip("`") for row in rows(EXTENSIONS, "What is refused, what is rejected")]
    assert said == specified
    assert (await runtime.journal.list(TaskQuery(""))).total == 2


def a_message(text: str | None, metadata: Any) -> UserMessage:
    part = DataPart({"n": 1}) if text is None else text_part(text)
    return UserMessage(str(uuid4()), (part,), metadata)


async def refusal(runtime: Runtime, incoming: Incoming) -> str:
    with pytest.raises(InvalidOperation) as refused:
        await runtime.send(incoming)
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


# --------------------------------------------------------------------------- what is done


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server with the rehearsal model, as the README's reader has it, but not at a human pace."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        app = build_app(load({"port": port}), Rehearsal(delay=0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        running.start()
        try:
            # The socket accepts from the first moment; an answer says that start-up is over.
            assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            running.join()


@dataclass(frozen=True)
class Curl:
    """A request as the README writes it for curl."""

    url: str
    headers: dict[str, str]
    body: str

    @classmethod
    def read(cls, text: str) -> Curl:
        words = iter(shlex.split(text.replace("\\\n", " "), comments=True)[1:])
        headers, url, body = {}, "", ""
        for word in words:
            match word:
                case "-N" | "-i":
                    pass
                case "-H":
                    name, _, value = next(words).partition(": ")
                    headers[name] = value
                case "-d":
                    body = next(words)
                case _:
                    assert word.startswith(ADDRESS)
                    url = word
        return cls(url, headers, body)

    def with_ids(self, ids: Mapping[str, str]) -> Curl:
        """The same with something in place of what stands for it."""
        url, headers, body = self.url, dict(self.headers), self.body
        for name, id_ in ids.items():
            url, body = url.replace(name, id_), body.replace(name, id_)
            headers = {key: value.replace(name, id_) for key, value in headers.items()}
        return Curl(url, headers, body)

    @property
    def path(self) -> str:
        return self.url.removeprefix(ADDRESS)

    def send(self, address: str) -> Answer:
        url, method = self.url.replace(ADDRESS, address), "POST" if self.body else "GET"
        with (
            httpx.Client(trust_env=False, timeout=30) as http,
            http.stream(method, url, content=self.body, headers=self.headers) as answer,
        ):
            if self.path.endswith("/events"):  # it never ends
                lines = [next(line for line in answer.iter_lines() if line.startswith("data:"))]
            else:
                lines = answer.read().decode().splitlines()
        events = [json.loads(line[5:]) for line in lines if line.startswith("data:")]
        return Answer(answer.status_code, answer.headers, "\n".join(lines), events)


@dataclass(frozen=True)
class Answer:
    """What came back; `events` of a stream."""

    status: int
    headers: httpx.Headers
    text: str
    events: list[dict[str, Any]]

    @property
    def results(self) -> list[dict[str, Any]]:
        """The values, without the envelope of JSON-RPC."""
        values = self.events or [json.loads(self.text)]
        return [value.get("result", value) for value in values]


CURLS = [
    Curl.read("curl " + text) for block in blocks(README, "sh") for text in re.split(r"^curl ", block, flags=re.M)[1:]
]


@pytest.fixture(scope="module")
def answers(address: str) -> list[tuple[Curl, Answer]]:
    """The README's requests, sent one after the other."""
    answered: list[tuple[Curl, Answer]] = []
    task_id = a_task(address)
    for curl in CURLS:
        tags = [answer.headers.get("etag", "") for before, answer in answered if before.url == curl.url]
        answered.append((curl, curl.with_ids({"TASK_ID": task_id, "ETAG": "".join(tags)}).send(address)))
    return answered


def of_path(answers: list[tuple[Curl, Answer]], path: str) -> list[Answer]:
    found = [answer for curl, answer in answers if curl.path.startswith(path)]
    assert found
    return found


@pytest.mark.parametrize(
    "number", range(len(CURLS)), ids=[f"{number}-{curl.path}" for number, curl in enumerate(CURLS)]
)
def test_every_curl_command_is_answered(number: int, answers: list[tuple[Curl, Answer]]) -> None:
    curl, answer = answers[number]
    if "If-None-Match" in curl.headers:
        assert (answer.status, answer.text) == (304, "")
        return
    assert answer.status == 200, answer.text
    if curl.path.startswith("/artifacts"):
        assert answer.text
    elif curl.path == "/canvas/stream":
        assert answer.events[0]["type"] == "RUN_STARTED"
        assert answer.events[-1]["outcome"] == {"type": "success"}
    elif "tream" in curl.url + curl.body:
        assert "task" in answer.results[0]
        assert answer.results[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert any("artifactUpdate" in event for event in answer.results)
    else:
        [result] = answer.results
        assert result.get("id") or "tasks" in result or result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_the_curl_commands_try_every_binding_of_http_and_all_of_their_methods() -> None:
    methods = {json.loads(curl.body)["method"] for curl in CURLS if curl.path == "/"}
    assert methods == {"SendStreamingMessage", "GetTask", "ListTasks"}
    paths = {curl.path for curl in CURLS}
    assert {"/", "/rest/message:stream", "/rest/tasks/TASK_ID", "/canvas/stream"} <= paths


def test_the_edit_is_told_as_the_readme_shows_it(answers: list[tuple[Curl, Answer]]) -> None:
    [edited] = [answer for curl, answer in answers if "A2A-Extensions" in curl.headers]
    assert edited.headers["A2A-Extensions"] == CANVAS
    bodies = [body for event in edited.results for body in event.values()]
    told = [body["metadata"][CANVAS] for body in bodies if CANVAS in body.get("metadata", {})]
    shown = [json.loads(line) for line in blocks(section(README, "Edit a selection"), "json")[0].splitlines()]
    *phases, version = shown
    for expected in phases:
        phase = expected["edit"]["phase"]
        [first, *_] = [fields["edit"] for fields in told if fields.get("edit", {}).get("phase") == phase]
        assert first.keys() == expected["edit"].keys()
        if phase != "chunk":
            assert_has(first, expected["edit"])
    assert version.items() <= next(fields for fields in told if "artifactVersion" in fields).items()


def test_the_specification_of_canvas_v1_has_what_is_told_of_every_artifact_update() -> None:
    event = ArtifactChanged("a", "", "", append=False, parts=(), last_chunk=True, version=1, author="agent", parent=0)
    [row] = [row for row in rows(EXTENSIONS, "canvas:v1") if row[0] == "an artifact update"]
    assert set(re.findall(r"`(\w+)`", row[1])) == {*canvas_ext.change_metadata(event), "epoch", "generation"}


@pytest.mark.parametrize("method", ["SendStreamingMessage", "SubscribeToTask"])
def test_an_early_error_on_a_stream_of_json_rpc_is_plain_json(address: str, method: str) -> None:
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
    answer = Curl(f"{ADDRESS}/", {"A2A-Version": "1.0", "Content-Type": "application/json"}, asked).send(address)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert "error" in json.loads(answer.text)


def test_what_is_not_there_is_told_as_the_readme_says(address: str) -> None:
    answer = Curl(f"{ADDRESS}/artifacts/nowhere", {}, "").send(address)
    assert answer.status == 404
    [detail] = json.loads(answer.text)["error"]["details"]
    assert f"`{detail['reason']}`" in section(README, "Read artifacts")


def test_what_can_be_read_is_what_was_done(answers: list[tuple[Curl, Answer]]) -> None:
    read = {curl.path: answer for curl, answer in answers if curl.path.startswith("/artifacts") and not curl.headers}
    [entry] = read["/artifacts/notes"].results[0]["artifacts"]
    assert (entry["artifactId"], entry["version"], entry["versions"], entry["open"]) == ("tide-pools", 1, 2, False)
    assert read["/artifacts/notes/tide-pools?raw=1"].headers["content-type"].startswith("text/markdown")
    assert [each["number"] for each in read["/artifacts/notes/tide-pools/versions"].results[0]["versions"]] == [1, 2]
    diff = read["/artifacts/notes/tide-pools/versions/2/diff?raw=1"].text
    assert "-This outline leads through tide pools.\n+This outline leads through tide pools. It is" in diff
    [event] = read["/artifacts/notes/events"].events
    assert event["artifactUpdate"]["metadata"][CANVAS] == {"artifactVersion": 1, "author": "agent"}


def test_every_path_below_artifacts_is_in_the_table() -> None:
    said = [row[0].strip("`") for row in rows(README, "Read artifacts")]
    resources = [parse_path(path.removeprefix("/artifacts/").translate({123: None, 125: None})) for path in said]
    assert [type(resource) for resource in resources] == [
        ArtifactList,
        CurrentArtifact,
        VersionList,
        ArtifactVersion,
        VersionDiff,
        ContextEvents,
    ]


SESSIONS = blocks(README, "console")
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.mark.parametrize("session", SESSIONS, ids=["first", "edits"])
def test_every_session_goes_as_it_is_shown(
    session: str, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    context = ""
    for command in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        line, *shown = command.splitlines()
        program, *arguments = [context if UUID.fullmatch(word) else word for word in shlex.split(line)]
        assert program == ".venv/bin/a2a-canvas"
        assert main([*arguments, "--url", address]) == 0
        said = "".join(capsys.readouterr()).splitlines()
        context = next((line.split()[-1] for line in said if line.startswith("context")), context)
        masked = {UUID.sub("ID", line) for line in said}
        missing = [line for line in shown if UUID.sub("ID", line) not in masked and not re.match("─|\\[…\\]", line)]
        assert missing == []


def post_run(address: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    answer = Curl(f"{ADDRESS}/canvas/stream", {"Content-Type": "application/json"}, json.dumps(body)).send(address)
    assert answer.status == 200, answer.text
    return answer.events


def test_every_request_that_the_page_on_ag_ui_shows_is_a_run(address: str) -> None:
    asked = post_run(address, {"threadId": "pools", "runId": "run-0", "messages": [ASK]})[-1]
    [interrupt] = asked["outcome"]["interrupts"]
    requests = [block for block in blocks(AG_UI, "json") if re.search('"(threadId|thread_id)"', block)]
    assert len(requests) == 3
    for request in reversed(requests):
        run = post_run(address, json.loads(request.replace("TASK_ID", interrupt["id"])))
        assert run[-1]["outcome"] == {"type": "success"}


ASK = {"id": "q", "role": "user", "content": "Ask me my name"}


def test_the_state_has_the_fields_that_the_page_on_ag_ui_shows(address: str) -> None:
    state, older = (
        json.loads(blocks(section(AG_UI, heading), "json")[at])
        for heading, at in (("The state", 0), ("The older request", 1))
    )
    write = {"id": "w", "role": "user", "content": "Write an outline about tide pools"}
    post_run(address, {"threadId": "state", "runId": "r", "messages": [write]})
    [begun] = [
        event["snapshot"]
        for event in post_run(address, {"thread_id": "state", "message": "Hello"})
        if "snapshot" in event
    ]
    assert begun.keys() == state.keys() | older.keys()
    [shown], [artifact] = state["artifacts"].values(), begun["artifacts"].values()
    assert artifact.keys() == shown.keys()
    assert artifact["versions"] == shown["versions"]
    assert artifact["parts"][0].keys() == shown["parts"][0].keys()
    assert begun["artifact"].keys() == older["artifact"].keys()
    assert begun["artifact"]["contents"][0].keys() - {"fullMarkdown"} == older["artifact"]["contents"][0].keys() - {
        "code"
    }


# ------------------------------------------------------------------------ in production


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A SQLite file whose latest transactions are in its write-ahead log alone, because somebody has it open."""
    path = tmp_path / "a2a-canvas.db"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"{PREFIX}DATABASE", f"sqlite:///{path}")
    assert main(["db", "upgrade"]) == 0
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO task_contexts VALUES ('t', 'c')")
    connection.commit()
    assert path.with_name(path.name + "-wal").stat().st_size
    yield path
    connection.close()


def backups() -> list[str]:
    return blocks(section(README, "Backups"), "sh")[0].splitlines()


@pytest.mark.parametrize("number", range(3), ids=["backup", "vacuum", "container"])
def test_every_backup_of_sqlite_is_whole(number: int, database: Path) -> None:
    command = backups()[number]
    container = command.startswith("docker exec canvas ")
    if container:
        assert "--name canvas " in section(README, "One server")
        command = command.removeprefix("docker exec canvas ").replace("/data/", f"{database.parent}/")
        command = command.replace("python ", f"{sys.executable} ", 1)
    elif not shutil.which("sqlite3"):
        pytest.skip("needs the command sqlite3")
    subprocess.run(["bash", "-c", command], cwd=database.parent, check=True)
    [copy] = database.parent.glob("backup*.db")
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT context_id FROM task_contexts").fetchall() == [("c",)]
    connection.close()
    assert main(["db", "check", "--database", f"sqlite:///{copy}"]) == 0


def test_a_backup_of_postgresql_can_be_gone_back_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("pg_dump"):
        pytest.skip("needs PostgreSQL's programs: install the Debian package postgresql-client")
    dump, restore = blocks(section(README, "Backups"), "sh")[1].splitlines()
    first, second = postgresql_url(), postgresql_url()
    for url, command in ((first, dump), (second, restore)):
        monkeypatch.setenv(f"{PREFIX}DATABASE", url)
        if command is dump:
            assert main(["db", "upgrade"]) == 0
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert main(["db", "check"]) == 0


def test_every_command_for_the_database_can_be_given(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    a2a-canvas (db .*)$", README, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[-2:]] == ["Would", "Removed"]


def test_every_server_that_is_started_could_be(monkeypatch: pytest.MonkeyPatch) -> None:
    serves = re.findall(r"^    a2a-canvas (serve .*)$", README, re.MULTILINE)
    [url] = re.findall(rf"^    export {PREFIX}DATABASE=(\S+)$", README, re.MULTILINE)
    assert serves
    monkeypatch.setenv(f"{PREFIX}DATABASE", url)
    for command in serves:
        options = parser().parse_args(shlex.split(command))
        assert load({key: value for key, value in vars(options).items() if key != "command"}).database == url


def a_task(address: str) -> str:
    """The id of a task that there is."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    [answer] = Curl(f"{ADDRESS}/rest/message:send", headers, json.dumps({"message": message})).send(address).results
    task_id: str = answer["task"]["id"]
    return task_id


def test_the_example_for_the_python_sdk_prints_the_artifact(address: str, tmp_path: Path) -> None:
    [code] = blocks(README, "python")
    assert ADDRESS in code
    (tmp_path / "example.py").write_text(code.replace(ADDRESS, address))
    ran = subprocess.run(
        [sys.executable, tmp_path / "example.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONIOENCODING": "utf-8"},
    )
    assert ran.returncode == 0, ran.stderr
    assert "TASK_STATE_COMPLETED" in ran.stdout
    assert "tide-pools.md:\n# Tide pools\n" in ran.stdout
