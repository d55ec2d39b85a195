"""The event stream of a context: whoever folds it, however often he reconnects, has what the store has."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_canvas.server.agent.events import State, StatusChanged
from a2a_canvas.server.backend.migrations import upgrade
from a2a_canvas.server.protocols.artifacts.event_stream import changed_since
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.server.tasks.journal.activity import Activity
from a2a_canvas.server.tasks.journal.context_log import ContextArtifact, ContextSnapshot
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.record import TaskArtifact
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.models import Content, DataPart, FilePart, Ref, text_of, text_part
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.text.spans import Span
from tests.database_fixtures import postgresql_url
from tests.server.app_server import asking, sent, serving, stoppable
from tests.server.protocols.artifacts.artifact_fixtures import ArtifactHarness, Event, activities, events, served

SOON = 30.0

CANVAS = "urn:a2a-canvas:canvas:v1"
WAY = ("JSONRPC", "1.0")
NOTHING: Any = ("", "", [], [])
Shown = dict[str, tuple[str, str, list[Any], list[Any]]]


def writing(text: str, last_chunk: bool = False) -> ReplaceParts:
    return ReplaceParts((text_part(text),), last_chunk=last_chunk)


def adding(text: str, last_chunk: bool = False) -> AppendParts:
    return AppendParts((text_part(text),), last_chunk=last_chunk)


class Reader:
    """A stock client's fold of a context: it replaces an artifact or extends its parts."""

    def __init__(self) -> None:
        self.task = pb.Task()
        self.last: str | None = None
        self.closed: dict[tuple[str, int], list[str]] = {}
        """The texts with which each version was seen to be closed."""

    def take(self, event: Event) -> pb.TaskArtifactUpdateEvent:
        update = ParseDict(event.update, pb.TaskArtifactUpdateEvent())
        append_artifact_to_task(self.task, update)
        self.last = event.id
        if update.last_chunk:
            name = update.artifact.artifact_id
            seen = self.closed.setdefault((name, int(update.metadata[CANVAS]["artifactVersion"])), [])
            seen.append(self.artifacts()[name][1])
        return update

    def artifacts(self) -> Shown:
        """By id: the name, and the parts grouped by kind, all text, all files, all data."""
        return {
            artifact.artifact_id: (
                artifact.name,
                "".join(part.text for part in artifact.parts),
                [MessageToDict(part) for part in artifact.parts if part.HasField("raw")],
                [MessageToDict(part) for part in artifact.parts if part.HasField("data")],
            )
            for artifact in self.task.artifacts
        }


async def stands(client: httpx.AsyncClient, context: str) -> Shown:
    """What the context has, as `GET` shows it, in the form of `Reader.artifacts`."""
    reader = Reader()
    for artifact in (await client.get(f"/artifacts/{context}")).json()["artifacts"]:
        shown = (await client.get(artifact["urls"]["artifact"])).json()
        del shown["version"], shown["open"]
        reader.task.artifacts.append(ParseDict(shown, pb.Artifact()))
    return reader.artifacts()


async def take(stream: AsyncIterator[Event], count: int) -> list[Event]:
    return [await anext(stream) for _ in range(count)]


async def test_the_end_of_a_version_is_an_event_before_the_replacement_that_closes_it() -> None:
    harness = ArtifactHarness()
    await harness.do(writing("one"))
    async with served(harness.app) as client, aclosing(events(client, "ctx")) as stream:
        shown = await take(stream, 1)
        await harness.do(writing("two", last_chunk=True))
        updates = [ParseDict(event.update, pb.TaskArtifactUpdateEvent()) for event in (*shown, *await take(stream, 2))]
    texts = ["".join(part.text for part in update.artifact.parts) for update in updates]
    versions = [int(update.metadata[CANVAS]["artifactVersion"]) for update in updates]
    ends = [update.last_chunk for update in updates]
    assert [*zip(texts, versions, ends, strict=True)] == [("one", 1, False), ("", 1, True), ("two", 2, True)]


# ------------------------------------------------------------------------- what is missed


def standing(artifact_id: str, position: int) -> ContextArtifact:
    return ContextArtifact(TaskArtifact(artifact_id, Content(), 1, "agent"), "task", position, False)


def snapshot(incarnation: int) -> ContextSnapshot:
    positions = (("a", 3), ("b", 5), ("c", 7))
    return ContextSnapshot(7, {name: standing(name, position) for name, position in positions}, incarnation)


@pytest.mark.parametrize(
    ("last_event_id", "ids"),
    [
        (None, "abc"),
        ("9-0", "abc"),
        ("9-2", "abc"),
        ("9-3", "bc"),
        ("9-4", "bc"),
        ("9-6", "c"),
        ("9-7", ""),
        ("9-8", "abc"),
        ("9-99999999999999999999", "abc"),
        ("99999999999999999999-3", "abc"),
        ("", "abc"),
        ("-3", "abc"),
        ("9-3 ", "abc"),
        ("9-３", "abc"),
        ("9-x", "abc"),
        ("8-7", "abc"),
        ("7", "abc"),
    ],
)
def test_what_changed_since_is_missed_and_all_of_it_if_that_cannot_be_known(last_event_id, ids) -> None:
    assert "".join(each.artifact.artifact_id for each in changed_since(snapshot(9), last_event_id)) == ids


# -------------------------------------------------------------------------- on the wire


async def test_a_stream_begins_with_what_stands_and_goes_on_with_every_change_of_every_task() -> None:
    harness = ArtifactHarness()
    await harness.do(writing("one "), artifact="doc", task="a")
    await harness.do(writing("plan", last_chunk=True), artifact="plan", task="b", author="user")
    await harness.do(adding("two "), artifact="doc", task="a")
    async with served(harness.app) as client, aclosing(events(client, "ctx")) as stream:
        first = await take(stream, 2)
        await harness.do(adding("three", last_chunk=True), artifact="doc", task="a")
        await harness.do(adding("!"), artifact="doc", task="b")
        live = await take(stream, 2)
    assert [event.id for event in first + live] == [await harness.event_id(position) for position in (2, 3, 4, 5)]
    common = {"contextId": "ctx"}
    assert [event.update for event in first + live] == [
        common
        | {
            "taskId": "b",
            "artifact": {"artifactId": "plan", "parts": [{"text": "plan"}]},
            "lastChunk": True,
            "metadata": {CANVAS: {"artifactVersion": 1, "author": "user"}},
        },
        common
        | {
            "taskId": "a",
            "artifact": {"artifactId": "doc", "parts": [{"text": "one two "}]},
            "metadata": {CANVAS: {"artifactVersion": 1, "author": "agent"}},
        },
        common
        | {
            "taskId": "a",
            "append": True,
            "lastChunk": True,
            "artifact": {"artifactId": "doc", "parts": [{"text": "three"}]},
            "metadata": {CANVAS: {"artifactVersion": 1, "author": "agent"}},
        },
        common
        | {
            "taskId": "b",
            "artifact": {"artifactId": "doc", "parts": [{"text": "one two three!"}]},
            "metadata": {CANVAS: {"artifactVersion": 2, "author": "agent"}},
        },
    ]
    assert all(ParseDict(event.data, pb.StreamResponse()).HasField("artifact_update") for event in first + live)


async def test_who_comes_back_is_first_sent_whole_what_changed_meanwhile() -> None:
    harness = ArtifactHarness()
    for artifact in ("doc", "plan", "notes"):
        await harness.do(writing(f"{artifact} "), artifact=artifact)
    await harness.do(adding("more"), artifact="doc")
    async with served(harness.app) as client, aclosing(events(client, "ctx", await harness.event_id(2))) as stream:
        missed = await take(stream, 2)
        await harness.do(adding("less"), artifact="plan")
        live = await take(stream, 1)
    seen = [(event.id, event.update["artifact"]["artifactId"], event.update.get("append", False)) for event in missed]
    assert seen == [(await harness.event_id(3), "notes", False), (await harness.event_id(4), "doc", False)]
    assert missed[1].update["artifact"]["parts"] == [{"text": "doc more"}]
    assert (live[0].id, live[0].update["append"]) == (await harness.event_id(5), True)


async def test_proxies_are_told_to_pass_it_on_at_once() -> None:
    harness = ArtifactHarness()
    await harness.begin("task")
    async with served(harness.app) as client, client.stream("GET", "/artifacts/ctx/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["cache-control"] == "no-store"


async def test_a_reader_that_leaves_leaves_nothing_behind() -> None:
    harness = ArtifactHarness()
    await harness.do(writing("one"))
    log = harness.journal._context_logs["ctx"]
    async with served(harness.app) as client:
        stream = events(client, "ctx")
        await take(stream, 1)
        await stream.aclose()
        while log._waiting:  # the server learns of it while it does something else
            await client.get("/artifacts/ctx")
    assert not log._waiting


# --------------------------------------------------------------------- the law, at random


def some_change(rng: random.Random, n: int) -> Change:
    parts = (text_part(f"{n}é\n"), FilePart(b"x", name=str(n)), DataPart({"n": [n]}))
    kind = rng.choice([ReplaceParts, AppendParts, AppendParts, AppendParts, AppendParts, EditText, "step"])
    if kind is EditText:
        return EditText(Span(0, 1), f"<{n}>", rng.randint(1, 3))
    if kind == "step":
        return rng.choice([Undo(), Undo(), Redo(), Restore(1)])
    chosen = (parts[0],) if rng.random() < 0.7 else parts[: rng.randint(2, 3)]
    name = f"{n}.md" if rng.random() < 0.1 else None
    return kind(chosen, name=name, last_chunk=rng.random() < 0.2, done=rng.random() < 0.6)  # type: ignore[operator]


async def write_at_random(harness: ArtifactHarness, rng: random.Random, steps: int) -> None:
    """Three tasks change three artifacts, or abort edits of them; what the store refuses is not done."""
    tasks = ["a", "b", "c"]
    for n in range(steps):
        task, artifact = rng.choice(tasks), rng.choice(["doc", "plan", "notes"])
        try:
            if rng.random() < 0.15:
                await harness.resend(artifact, task)
            else:
                await harness.do(some_change(rng, n), artifact=artifact, task=task)
        except StoreError:
            await harness.close(rng.choice(tasks))
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)
    for task in tasks:
        await harness.close(task)
    await harness.do(writing("The end.", last_chunk=True), artifact="end", task="d")


async def read_with_breaks(client: httpx.AsyncClient, rng: random.Random) -> Reader:
    """Read to the end of the writing, from one connection after the other."""
    reader = Reader()
    while True:
        async with aclosing(events(client, "ctx", reader.last)) as stream:
            for _ in range(rng.randint(1, 12)):
                if reader.take(await anext(stream)).artifact.artifact_id == "end":
                    return reader


@pytest.mark.parametrize("seed", range(8))
async def test_who_reconnects_at_random_points_has_exactly_what_the_store_has(seed: int) -> None:
    rng = random.Random(seed)
    harness = ArtifactHarness()
    await harness.begin("a")
    async with served(harness.app) as client:
        readers = [asyncio.create_task(read_with_breaks(client, random.Random(rng.random()))) for _ in range(3)]
        await write_at_random(harness, rng, 150)
        early = await asyncio.gather(*readers)
        late = await read_with_breaks(client, rng)
        expected = await stands(client, "ctx")
    assert await harness.position() > 60
    assert len(expected) == 4
    assert [reader.artifacts() for reader in (*early, late)] == [expected] * 4
    texts = {
        (name, version.number): str(text.body) if (text := text_of(version.content.parts)) else ""
        for name in expected
        for version in await harness.store.versions(Ref("ctx", name, "a"))
    }
    for reader in (*early, late):
        assert {key: {*seen} for key, seen in reader.closed.items()} == {key: {texts[key]} for key in reader.closed}
    assert {reader.last for reader in early} == {await harness.event_id(await harness.position())}


# ---------------------------------------------------------------------- the whole server


async def test_two_tasks_of_one_context_are_seen_while_they_write() -> None:
    async with serving(grpc=False) as server:
        begun = await sent(server, WAY, asking("write report"))
        context = begun.context_id
        reader = Reader()
        async with aclosing(events(server.http, context)) as stream:
            reader.take(await anext(stream))
            await sent(server, WAY, asking("slowly notes", context=context, now=True))
            server.gate.let(13)
            await server.gate.reached.wait()
            while len(reader.artifacts().get("notes", NOTHING)[1]) < 10:
                update = reader.take(await anext(stream))
            assert update.task_id != begun.id
            server.gate.open()
            while reader.artifacts()["notes"][1] != "0123456789" * 10:
                reader.take(await anext(stream))
        assert reader.artifacts() == await stands(server.http, context)


@pytest.mark.postgres
async def test_a_reader_of_a_removed_context_is_let_go_and_begins_anew_when_it_is_used_again() -> None:
    url = postgresql_url()
    database = Database(url)
    await upgrade(database)
    async with serving(grpc=False, database=url) as server:
        await sent(server, WAY, asking("write report", context="notes"))
        reader = Reader()
        async with aclosing(events(server.http, "notes")) as stream:
            reader.take(await anext(stream))
            old = reader.last
            await remove_contexts(database)  # as `a2a-canvas db prune` does beside the server
            async for event in stream:
                reader.take(event)
        gone = await server.http.get("/artifacts/notes/events", headers={"Last-Event-ID": str(reader.last)})
        assert gone.status_code == 404
        await sent(server, WAY, asking("write report", context="notes"))
        for last in (None, old, reader.last):
            again = Reader()
            async with aclosing(events(server.http, "notes", last)) as stream:
                update = again.take(await anext(stream))
            assert (update.append, again.artifacts()) == (False, await stands(server.http, "notes"))
        versions = (await server.http.get("/artifacts/notes/report/versions")).json()["versions"]
        assert [version["number"] for version in versions] == [1]
    await database.close()


async def remove_contexts(database: Database) -> None:
    """All of them, as soon as nobody holds an artifact any more."""
    keep, later = Retention(timedelta(days=100), contexts=timedelta(days=1)), datetime.now(UTC) + timedelta(days=3)
    while (await prune(database, keep, later)).contexts == 0:
        pass


async def test_artifact_paths_are_below_no_tenant_and_an_id_keeps_its_slash() -> None:
    async with serving(grpc=False) as server:
        task = await sent(server, WAY, asking("write report"))
        answers = [
            await server.http.get(f"/artifacts/{task.context_id}{path}")
            for path in ("/report", "/report?raw=1", "/a%2Fb", "/events/")
        ]
        head = await server.http.head(f"/artifacts/{task.context_id}/report")
        refused = await server.http.post(f"/artifacts/{task.context_id}/report", json={})
    assert [answer.status_code for answer in answers] == [200, 200, 404, 404]
    assert answers[1].text == "# report\n\nHello, wörld 😀.\n"
    assert "'a/b'" in answers[2].json()["error"]["message"]
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", answers[0].headers["etag"])
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_the_stop_lets_a_reader_go_with_a_complete_answer_and_the_last_change() -> None:
    async with stoppable() as (server, running, here):
        begun = await sent(here, WAY, asking("slowly notes", now=True))
        here.gate.let(13)
        await here.gate.reached.wait()
        reader = Reader()
        async with aclosing(events(here.http, begun.context_id)) as stream:
            reader.take(await anext(stream))
            expected = (await stands(here.http, begun.context_id))["notes"]
            server.should_exit = True
            async for event in stream:  # an answer that is cut raises
                update = reader.take(event)
        await running
    assert reader.artifacts()["notes"] == expected
    assert update.last_chunk


# ------------------------------------------------------------------------------ activity


async def shows(stream: AsyncGenerator[Any, None], watchers: int, *working: str) -> None:
    """Until the stream says who watches and what works."""
    async with asyncio.timeout(SOON):
        async for told in stream:
            if (told["watchers"], told["working"]) == (watchers, [*working]):
                return


async def test_each_stream_is_told_who_watches_and_what_works() -> None:
    harness = ArtifactHarness()
    await harness.begin("t1")
    async with served(harness.app) as client, aclosing(activities(client, "ctx")) as first:
        await shows(first, 1, "t1")
        async with aclosing(activities(client, "ctx")) as second:
            await shows(second, 2, "t1")
            await shows(first, 2, "t1")
            await harness.begin("t2")
            await shows(second, 2, "t1", "t2")
            await shows(first, 2, "t1", "t2")
        await shows(first, 1, "t1", "t2")
        await harness.journal.append("t1", StatusChanged(State.INPUT_REQUIRED))
        await shows(first, 1, "t2")


async def test_how_many_tasks_there_were_and_when_one_changed_last_tell_what_a_stream_has_missed() -> None:
    harness = ArtifactHarness()
    await harness.begin("t1")
    async with served(harness.app) as client, aclosing(activities(client, "ctx")) as watcher:
        await anext(watcher)
        await harness.begin("t2")
        await harness.journal.append("t2", StatusChanged(State.COMPLETED))
        at = (await harness.journal.get("t2")).changed_at
        expected = {"watchers": 1, "working": ["t1"], "tasks": 2, "updatedAt": timestamp(at)}
        async with asyncio.timeout(SOON):
            while await anext(watcher) != expected:
                pass


async def test_who_is_refused_or_only_asks_for_the_head_does_not_count() -> None:
    harness = ArtifactHarness()
    await harness.begin("t1")
    async with served(harness.app) as client, aclosing(activities(client, "ctx")) as watcher:
        await shows(watcher, 1, "t1")
        assert (await client.get("/artifacts/nowhere/events")).status_code == 404
        assert (await client.head("/artifacts/ctx/events")).status_code == 200
        await harness.journal.append("t1", StatusChanged(State.COMPLETED))
        await shows(watcher, 1)


class Silent(InMemoryJournal):
    """Never knows what goes on."""

    async def watch(self, context_id: str) -> AsyncGenerator[Activity, None]:
        await asyncio.Event().wait()
        yield Activity(0, ())


async def test_changes_do_not_wait_for_an_activity_that_is_not_known() -> None:
    harness = ArtifactHarness(journal=Silent)
    await harness.do(writing("a"))
    async with served(harness.app) as client, aclosing(events(client, "ctx")) as stream:
        await anext(stream)
        await harness.do(adding("b"))
        assert (await anext(stream)).update["artifact"]["parts"][0]["text"] == "b"
