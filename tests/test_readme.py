"""README and docs say what is true: their tables, links, commands and examples are taken from the text and tried."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from server.agent.events import State, StatusChanged, UserMessage
from server.agent.rehearsal import Rehearsal
from server.agent.script import load_script
from server.app import Clock, build_app, build_runtime
from server.protocols import a2a_turn
from server.protocols.a2a_events import Event, Projection
from server.settings import PREFIX, Settings, load, option, span
from server.tasks.incoming import Incoming
from server.tasks.record import Entry, TaskRecord, fold
from server.tasks.runtime import Runtime
from store.models import text_part
from tests.server.serving import Stream, asking, serving, with_turn_events

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXTENSIONS = (ROOT / "docs/extensions.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
ADDRESS = "http://127.0.0.1:8000"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its own heading."""
    section = text[text.index(f"\n## {heading}\n") :]
    table = re.search(r"(?:^\|.*\|\n)+", section, re.MULTILINE)
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


def test_every_option_that_is_named_exists() -> None:
    options = {option(field) for field in Settings.model_fields} | {"--no-advertise-0.3"}
    of_other_commands = {"--url", "--json", "--task", "--context", "--rm"}
    assert set(re.findall(r"(?<=[\s`\"])--[a-z][\w.-]*\w", README + EXTENSIONS)) <= options | of_other_commands


def test_every_target_of_make_that_is_named_exists() -> None:
    named = set(re.findall(r"(?:^ +|`)make ([a-z]+)", README, re.MULTILINE))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"serve", "test"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    headings = {
        re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in re.findall("^#+(.*)", text, re.M)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings
        elif "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_script_can_be_loaded(tmp_path: Path) -> None:
    scripts = blocks(README, "yaml") + blocks(EXTENSIONS, "yaml")
    assert len(scripts) == 2
    for script in scripts:
        (tmp_path / "script.yaml").write_text(script)
        load_script(tmp_path / "script.yaml")


def test_the_specification_of_turn_v1_has_every_event_and_no_other() -> None:
    source = Path(a2a_turn.__file__).read_text()
    said = set(re.findall(r'\bwire\(\s*"(\w+)"', source))
    specified = {name for row in rows(EXTENSIONS, "The events") for name in re.findall(r"`(\w+)`", row[0])}
    assert specified == said


def specified_fold() -> SimpleNamespace:
    """`fold` and `over`, as docs/extensions.md gives them."""
    [code] = blocks(EXTENSIONS, "python")
    names: dict[str, Any] = {}
    exec(code, names)
    return SimpleNamespace(**names)


def test_the_fold_that_the_specification_gives_folds_the_stream_that_it_shows() -> None:
    given = specified_fold()
    view: dict[str, Any] = {}
    shown = []
    for line in blocks(EXTENSIONS, "json")[-1].splitlines():
        assert not view or not given.over(view, pauses=False)
        given.fold(view, json.loads(line))
        shown.append((view["status"], view["thinking"], view["reply"]))
    assert ("Working…", "A short note on tide pools.", "") in shown
    assert ("Writing reply…", "", "The note on tide") in shown
    assert given.over(view, pauses=True)
    assert shown[-1] == ("", "", "")
    assert view["thread"] == ["I am writing it.", "The note on tide pools is ready."]
    [note] = view["artifacts"].values()
    assert "".join(part["text"] for part in note["parts"]) == "# tide pools\n\nThey come and go.\n"


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
    return {key: view[key] for key in ("state", "status", "reply", "thread")} | {"artifacts": artifacts}


class Watcher:
    """Folds as the specification says what the server sends to somebody who joins at `record`."""

    def __init__(self, record: TaskRecord) -> None:
        self._given = specified_fold()
        self._projection = Projection(record, turn_events=True, ends_at_pause=False)
        self.view: dict[str, Any] = {}
        self._take(self._projection.begin())

    def see(self, entry: Entry, *, behind: bool = False) -> None:
        self._take(self._projection.project(entry, behind=behind))

    @property
    def done(self) -> bool:
        return bool(self._given.over(self.view, pauses=True))

    def _take(self, events: Iterable[Event]) -> None:
        fields = {pb.Task: "task", pb.TaskStatusUpdateEvent: "status_update"}
        for event in events:
            response = pb.StreamResponse(**{fields.get(type(event), "artifact_update"): event})
            self._given.fold(self.view, MessageToDict(response))


async def lived(runtime: Runtime, text: str) -> tuple[TaskRecord, list[Entry]]:
    """A task from its beginning to its end; its question is answered."""
    following = await runtime.send(Incoming(UserMessage("m", (text_part(text),))))
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
async def test_who_folds_as_specified_sees_the_same_from_wherever_he_joins(
    tmp_path: Path, text: str, thread: list[str]
) -> None:
    (tmp_path / "script.yaml").write_text(WATCHED)
    model = load_script(tmp_path / "script.yaml", sleep=lambda seconds: asyncio.sleep(0))
    start, entries = await lived(build_runtime(Settings(frame_ms=0), model, Clock()), text)
    early, slow = Watcher(start), Watcher(start)
    late: list[Watcher] = []
    for record, entry in zip(accumulate(entries, fold, initial=start), entries, strict=False):
        late.append(Watcher(record))
        assert all(visible(watcher.view) == visible(early.view) for watcher in late)
        assert not early.done
        for watcher in (early, *late):
            watcher.see(entry)
        slow.see(entry, behind=entry is not entries[-1])
    assert all(watcher.done and visible(watcher.view) == visible(early.view) for watcher in late)
    assert visible(slow.view) == visible(early.view)
    assert early.view["thread"] == thread
    assert (early.view["status"], early.view["reply"], early.view["thinking"]) == ("", "", "")


def viewed(stream: Stream) -> SimpleNamespace:
    """The view of somebody who was sent what `stream` has read, and whether it is at its end."""
    given = specified_fold()
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
        words = iter(shlex.split(text)[1:])
        headers, url, body = {}, "", ""
        for word in words:
            match word:
                case "-N":
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

    def send(self, address: str, task_id: str) -> list[dict[str, Any]]:
        """The JSON that is answered: one value, or the events of a stream."""
        url = self.url.replace(ADDRESS, address).replace("TASK_ID", task_id)
        body = self.body.replace("TASK_ID", task_id)
        with httpx.Client(trust_env=False, timeout=30) as http:
            answer = http.request("POST" if body else "GET", url, content=body, headers=self.headers)
        assert answer.status_code == 200, answer.text
        if answer.headers["content-type"].startswith("text/event-stream"):
            return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]
        return [answer.json()]


CURLS = [
    Curl.read("curl " + text) for block in blocks(README, "sh") for text in re.split(r"^curl ", block, flags=re.M)[1:]
]


@pytest.mark.parametrize(
    "curl", CURLS, ids=[f"{number}-{curl.url[len(ADDRESS) :]}" for number, curl in enumerate(CURLS)]
)
def test_every_curl_command_is_answered(curl: Curl, address: str) -> None:
    events = [event.get("result", event) for event in curl.send(address, a_task(address))]
    assert not any("error" in event for event in events)
    if "tream" in curl.url + curl.body:
        assert "task" in events[0]
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert any("artifactUpdate" in event for event in events)
    else:
        assert events[0].get("id") or events[0]["tasks"]


def test_the_curl_commands_try_both_http_bindings_and_all_of_their_methods() -> None:
    methods = {json.loads(curl.body)["method"] for curl in CURLS if curl.url == ADDRESS + "/"}
    assert methods == {"SendStreamingMessage", "GetTask", "ListTasks"}
    assert {curl.url.removeprefix(ADDRESS) for curl in CURLS} == {"/", "/rest/message:stream", "/rest/tasks/TASK_ID"}


def a_task(address: str) -> str:
    """The id of a task that there is."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    [answer] = Curl(f"{ADDRESS}/rest/message:send", headers, json.dumps({"message": message})).send(address, "")
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
