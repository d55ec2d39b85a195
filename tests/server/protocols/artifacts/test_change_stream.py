"""The stream of an artifact's changes: a reader that folds it has the artifact, or has to begin again."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from a2a_canvas.server.accounts.access import Access
from a2a_canvas.server.accounts.sharing import InMemoryShares, Sharing
from a2a_canvas.server.agent.events import State, StatusChanged, TurnEvent
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.protocols.artifacts import change_stream
from a2a_canvas.server.protocols.artifacts.change_forms import (
    POLL_TICKS,
    TICK_SECONDS,
    TickEnds,
    last_tick_of_poll,
    next_cursor,
    seconds_to_tick,
    tick_at,
)
from a2a_canvas.server.protocols.artifacts.routes import artifact_routes
from a2a_canvas.server.protocols.edge.http_requests import STREAM_CHECK
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError
from a2a_canvas.server.tasks.contexts import Contexts
from a2a_canvas.server.tasks.journal import context_log
from a2a_canvas.server.tasks.journal.artifact_readings import After, Place
from a2a_canvas.server.tasks.journal.cursors import Check
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal import context_changes
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.store.changes import AppendParts, Change, EditText, ReplaceParts, Undo
from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.models import Ref, text_part
from a2a_canvas.store.text.spans import Span
from tests.fakes import ids, said
from tests.server.protocols.artifacts.artifact_fixtures import served
from tests.server.protocols.artifacts.test_event_stream import adding, some_change, writing
from tests.server.tasks.context_harness import BACKENDS, ContextHarness, open_contexts
from tests.sse_events import sse_events

HERE = [pytest.param(each, marks=[pytest.mark.postgres] if each == "postgresql" else []) for each in BACKENDS]
Shown = tuple[str, str, list[Any], list[Any]]


class Door:
    """The artifact `doc` of one context, which tasks change, and its stream over HTTP."""

    def __init__(self, harness: ContextHarness, client: httpx.AsyncClient) -> None:
        self.backend, self.clock, self.client = harness.backend, harness.clock, client
        self.credential_ended = False
        self._writers: dict[str, EventedArtifactStore] = {}

    async def writer(self, task: str) -> EventedArtifactStore:
        async def emit(event: TurnEvent) -> None:
            await self.backend.journal.append(task, event)

        if task not in self._writers:
            key = context_key("", "ctx")
            await self.backend.journal.create(TaskRecord(task, key, "", self.clock(), history=(said("m", "Go"),)))
            await self.backend.journal.flushed(task)
            self._writers[task] = EventedArtifactStore(self.backend.store, listener(emit))
        return self._writers[task]

    async def check_credential(self) -> None:
        if self.credential_ended:
            raise UnauthenticatedError

    async def change(self, change: Change, task: str = "a", artifact: str = "doc") -> None:
        writer, ref = await self.writer(task), Ref(context_key("", "ctx"), artifact, task)
        await writer.prepare(ref)
        await writer.apply(ref, change)
        await self.backend.journal.flushed(task)

    async def close(self, task: str) -> None:
        await (await self.writer(task)).close_all()
        await self.backend.journal.flushed(task)

    async def end(self, task: str = "a") -> None:
        await self.close(task)
        await self.backend.journal.append(task, StatusChanged(State.COMPLETED))
        await self.backend.journal.flushed(task)

    async def get(self, offset: str = "-1", artifact: str = "doc", **query: str) -> httpx.Response:
        params = {"offset": offset, **query}
        return await self.client.get(f"/artifacts/ctx/{artifact}/stream", params=params)

    async def offset(self) -> str:
        return next_offset(await self.get("now"))

    async def fall_behind(self) -> str:
        """The offset of a reader who has the first of four changes."""
        await self.change(adding("0"))
        offset = await self.offset()
        for n in range(3):
            await self.change(adding(str(n)))
        return offset

    async def shown(self) -> Shown:
        return shown_of((await self.client.get("/artifacts/ctx/doc")).json())


class Copy:
    """A reader's copy: what a client does with the messages, as docs/artifacts.md says."""

    def __init__(self) -> None:
        self.artifact: dict[str, Any] = {}
        self.offset = "-1"
        self.closed: dict[int, set[str]] = {}

    def take(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            match message["type"]:
                case "replace" | "rollback":
                    self.artifact = message["artifact"]
                case "append":
                    self.artifact["parts"] = [*self.artifact["parts"], *message["parts"]]
                case "edit":
                    self._edit(message)
                case other:
                    assert other == "close"
            if message["closed"]:
                self.closed.setdefault(message["version"], set()).add(shown_of(self.artifact)[1])

    def _edit(self, message: dict[str, Any]) -> None:
        units = "".join(part.get("text", "") for part in self.artifact["parts"]).encode("utf-16-le")
        edited = units[: 2 * message["start"]] + message["text"].encode("utf-16-le") + units[2 * message["end"] :]
        others = [part for part in self.artifact["parts"] if "text" not in part]
        self.artifact["parts"] = [{"text": edited.decode("utf-16-le")}, *others]

    async def read_on(self, door: Door) -> bool:
        """Whether it has everything now."""
        response = await door.get(self.offset)
        assert response.status_code == 200
        self.take(response.json())
        self.offset = next_offset(response)
        return "Stream-Up-To-Date" in response.headers


def shown_of(artifact: dict[str, Any]) -> Shown:
    """The name, the text, the files and the data."""
    parts = artifact.get("parts", [])
    return (
        artifact.get("name", ""),
        "".join(part.get("text", "") for part in parts),
        [part for part in parts if "raw" in part],
        [part for part in parts if "data" in part],
    )


def next_offset(response: httpx.Response) -> str:
    assert response.status_code < 300, response.text
    return response.headers["Stream-Next-Offset"]


@asynccontextmanager
async def open_door(backend: str, folder: Path) -> AsyncIterator[Door]:
    async with open_contexts(backend, folder) as harness:
        parts, shares = harness.backend, InMemoryShares(harness.clock)
        access = Access(parts.journal, shares)
        contexts = Contexts(access, parts.journal, parts.store, parts.contexts)
        sharing = Sharing(access, shares, harness.clock, ids("share"), "http://here")
        app = Starlette(routes=[*artifact_routes(contexts, sharing, BodyLimits())])
        checked = _Checked(app)
        async with served(checked) as client:
            door = Door(harness, client)
            checked.check = door.check_credential
            yield door


class _Checked:
    """Serves requests with a credential that may end."""

    check: Check

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, STREAM_CHECK: self.check}, receive, send)


# --------------------------------------------------------------------- the law, at random


@pytest.mark.parametrize("backend", HERE)
@pytest.mark.parametrize("seed", range(2))
async def test_from_every_offset_the_messages_fold_to_the_artifact(backend: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    async with open_door(backend, tmp_path) as door:
        await door.change(writing("begin 𝄞 here"))
        copies = [Copy() for _ in range(4)]
        for n in range(60):
            task, artifact = rng.choice("abc"), rng.choice(["doc", "doc", "plan"])
            try:
                if rng.random() < 0.1:
                    writer = await door.writer(task)
                    await writer.resend(Ref(context_key("", "ctx"), artifact, task))
                elif rng.random() < 0.1:
                    writer = await door.writer(task)
                    await writer.discard(Ref(context_key("", "ctx"), artifact, task))
                else:
                    await door.change(some_change(rng, n), task, artifact)
            except StoreError:
                await door.close(rng.choice("abc"))
            if rng.random() < 0.3:
                await rng.choice(copies).read_on(door)
        for task in "abc":
            await door.close(task)
        expected = await door.shown()
        versions = (await door.client.get("/artifacts/ctx/doc/versions")).json()["versions"]
        texts = {}
        for number in (each["number"] for each in versions):
            one = (await door.client.get(f"/artifacts/ctx/doc/versions/{number}")).json()
            texts[number] = {shown_of(one)[1]}
        for copy in (*copies, Copy()):
            while not await copy.read_on(door):
                pass
            assert shown_of(copy.artifact) == expected
            assert {number: texts[number] for number in copy.closed} == copy.closed


async def test_only_what_is_committed_is_read(tmp_path: Path) -> None:
    async with open_door("sqlite", tmp_path) as door:
        assert isinstance(door.backend, SqlBackend)
        await door.change(adding("x"))
        offset = await door.offset()
        waiting = asyncio.create_task(door.get(offset, live="long-poll"))
        await door.backend.commits.stop()
        await (await door.writer("a")).apply(
            Ref(context_key("", "ctx"), "doc", "a"), AppendParts((text_part("y"),), done=False)
        )
        seen = (await door.backend.journal.get("a")).artifacts["doc"].content.text
        assert (seen, (await door.get(offset)).json(), waiting.done()) == ("xy", [], False)
        waiting.cancel()


# --------------------------------------------------------------------- the forms


async def test_each_change_has_its_form(tmp_path: Path) -> None:
    async with open_door("memory", tmp_path) as door:
        await door.change(writing("one"))
        offset = await door.offset()
        await door.change(adding(" two"))
        await door.close("a")
        await door.change(EditText(Span(0, 3), "𝄞", base=1), task="b")
        await door.change(EditText(Span(1, 5), "!", base=2), task="b")
        await door.change(Undo(), task="b")
        await door.change(writing("three", last_chunk=True), task="b")
        messages = (await door.get(offset)).json()
    common = [("a", 1, False), ("a", 1, True), ("b", 2, True), ("b", 3, True), ("b", 2, True), ("b", 4, True)]
    assert [(each.pop("taskId"), each.pop("version"), each.pop("closed")) for each in messages] == common
    assert all(each.pop("author") == "agent" for each in messages)
    assert messages == [
        {"type": "append", "parts": [{"text": " two"}]},
        {"type": "close"},
        {"type": "edit", "start": 0, "end": 3, "text": "𝄞"},
        {"type": "edit", "start": 2, "end": 6, "text": "!"},
        {"type": "rollback", "artifact": {"artifactId": "doc", "parts": [{"text": "𝄞 two"}]}},
        {"type": "replace", "artifact": {"artifactId": "doc", "parts": [{"text": "three"}]}},
    ]


async def test_a_call_that_is_cut_off_is_rolled_back(tmp_path: Path) -> None:
    async with open_door("memory", tmp_path) as door:
        await door.change(ReplaceParts((text_part("kept"),), done=True))
        await door.change(AppendParts((text_part(" lost"),), done=False))
        offset = await door.offset()
        await (await door.writer("a")).discard(Ref(context_key("", "ctx"), "doc", "a"))
        (message,) = (await door.get(offset)).json()
    assert (message["type"], message["artifact"]["parts"]) == ("rollback", [{"text": "kept"}])


# --------------------------------------------------------------------- offsets


@pytest.mark.parametrize("backend", HERE)
async def test_offsets_sort_as_texts_and_now_is_the_end(backend: str, tmp_path: Path) -> None:
    async with open_door(backend, tmp_path) as door:
        offsets = []
        for n in range(12):
            await door.change(adding(str(n)))
            offsets.append(await door.offset())
        assert offsets == sorted(set(offsets))
        now, head = await door.get("now"), await door.client.head("/artifacts/ctx/doc/stream")
        assert (now.json(), next_offset(now), next_offset(head)) == ([], offsets[-1], offsets[-1])
        assert "ETag" not in now.headers
        assert [(await door.get(offsets[-1])).json(), next_offset(await door.get(offsets[-1]))] == [[], offsets[-1]]


@pytest.mark.parametrize("backend", HERE)
async def test_an_offset_that_does_not_continue_is_gone(backend: str, tmp_path: Path) -> None:
    async with open_door(backend, tmp_path) as door:
        await door.change(adding("x"))
        incarnation, position = (await door.offset()).split("-")
        for offset in (f"{int(incarnation) ^ 1:019}-{position}", f"{incarnation}-{int(position) + 1:018}"):
            response = await door.get(offset)
            assert (response.status_code, response.json()["error"]["status"]) == (410, "OUT_OF_RANGE")
            assert "offset=-1" in response.json()["error"]["message"]


@pytest.mark.parametrize("backend", [each for each in HERE if "memory" not in each.values])
async def test_an_offset_older_than_the_journal_is_gone_and_the_last_one_is_not(backend: str, tmp_path: Path) -> None:
    async with open_door(backend, tmp_path) as door:
        assert isinstance(door.backend, SqlBackend)
        await door.change(adding("one"))
        old = await door.offset()
        await door.change(adding(" two"))
        await door.end()
        last = await door.offset()
        await prune(door.backend._database, Retention(timedelta(days=1)), door.clock() + timedelta(days=2))
        assert [(await door.get(each)).status_code for each in (old, last, "-1")] == [410, 200, 200]
        await door.change(adding(" three"), task="b")
        assert [(await door.get(each)).status_code for each in (old, last, "-1")] == [410, 200, 200]


async def test_without_a_database_the_last_changes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_log, "KEPT_BYTES", 10)
    async with open_door("memory", tmp_path) as door:
        await door.change(adding("x"))
        offsets = [next_offset(await door.get())]
        for _ in range(12):
            await door.change(adding("y"))
            offsets.append(await door.offset())
        assert [(await door.get(each)).status_code for each in offsets] == [410, 410, *[200] * 11]


@pytest.mark.parametrize(
    "bound",
    [
        {"PAGES_PER_READING": 3},
        {"PAGES_PER_READING": 3, "PAGES_PER_QUERY": 1},
        {"BYTES_PER_READING": 40_000, "PAGES_PER_QUERY": 2, "BYTES_PER_STEP": 1},
    ],
)
async def test_a_reading_is_bounded_and_continues(
    bound: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bound.items():
        monkeypatch.setattr(context_changes, name, value)
    async with open_door("sqlite", tmp_path) as door:
        await door.change(adding("0"))
        copy = Copy()
        await copy.read_on(door)
        for n in range(1, 8):
            await door.change(adding(str(n) * 12_000))
        complete = [await copy.read_on(door) for _ in range(3)]
        expected = "".join(["0", *(str(n) * 12_000 for n in range(1, 8))])
        assert (complete, shown_of(copy.artifact)[1]) == ([False, False, True], expected)


async def test_a_change_is_encoded_once_for_all_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, made = change_stream.change_json, []
    monkeypatch.setattr(change_stream, "change_json", lambda change: made.append(change.position) or make(change))
    monkeypatch.setattr(change_stream, "MESSAGES_PER_STEP", 1)
    async with open_door("sqlite", tmp_path) as door:
        await door.change(adding("0"))
        offset = await door.offset()
        for n in range(1, 4):
            await door.change(adding(str(n)))
        messages = [(await door.get(offset, **query)).json() for query in ({}, {"live": "long-poll"}, {})]
        assert (messages, [each["parts"][0]["text"] for each in messages[0]]) == ([messages[0]] * 3, ["1", "2", "3"])
        assert made == [2, 3, 4]


# --------------------------------------------------------------------- waiting


@pytest.mark.parametrize("backend", HERE)
async def test_a_long_poll_has_what_is_committed_until_the_tick_for_all_who_wait(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, wait = asyncio.Semaphore(0), change_stream._Waiting.wait

    def count_and_wait(self: change_stream._Waiting, until: float) -> Awaitable[bool]:
        waiting.release()
        return wait(self, until)

    monkeypatch.setattr(change_stream._Waiting, "wait", count_and_wait)
    async with open_door(backend, tmp_path) as door:
        await door.change(adding("x"))
        await door.change(adding("x"), artifact="other")
        early = await door.offset()
        first = asyncio.create_task(door.get(early, live="long-poll"))
        await door.change(adding("y"), artifact="other")
        late = await door.offset()
        second = asyncio.create_task(door.get(late, live="long-poll"))
        await waiting.acquire()
        await waiting.acquire()
        await door.change(adding("z"))
        answers = await asyncio.gather(first, second)
    assert [[each["type"] for each in answer.json()] for answer in answers] == [["append"]] * 2
    assert len({(next_offset(answer), answer.headers["Stream-Cursor"]) for answer in answers}) == 1


@pytest.mark.parametrize("backend", HERE)
async def test_events_are_messages_and_then_where_they_lead(backend: str, tmp_path: Path) -> None:
    async with open_door(backend, tmp_path) as door:
        await door.change(adding("x"))
        copy, url = Copy(), "/artifacts/ctx/doc/stream?offset=-1&live=sse&task=a"
        controls = []
        async with door.client.stream("GET", url) as response:
            async for fields in sse_events(response):
                if fields["event"] == "data":
                    copy.take(json.loads(fields["data"]))
                    continue
                controls.append(json.loads(fields["data"]))
                if len(controls) == 1:
                    await door.change(adding("y"))
                elif len(controls) == 2:
                    await door.end()
        assert shown_of(copy.artifact) == await door.shown()
        assert controls[-1] == {"streamNextOffset": await door.offset(), "streamClosed": True, "upToDate": True}
    assert all("streamCursor" in each for each in controls[:-1])


async def test_a_long_poll_that_other_changes_wake_ends_with_its_credential(tmp_path: Path) -> None:
    async with open_door("memory", tmp_path) as door:
        await door.change(adding("x"))
        polling = asyncio.create_task(door.get(await door.offset(), live="long-poll"))
        await door.get("now")
        door.credential_ended = True
        async with asyncio.timeout(8):
            while not polling.done():
                await door.change(adding("y"), artifact="other")
                await asyncio.sleep(0.1)
        assert polling.result().status_code == 401


@pytest.mark.parametrize("end", ["credential", "time"])
async def test_events_of_a_reader_who_is_behind_end_in_time(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_changes, "PAGES_PER_READING", 1)
    async with open_door("sqlite", tmp_path) as door:
        offset = await door.fall_behind()
        make, made = change_stream._event, []

        def end_after_first(answer: change_stream.StreamAnswer, cursor: int) -> bytes:
            made.append(answer.complete)
            door.credential_ended = end == "credential"
            return make(answer, cursor)

        monkeypatch.setattr(change_stream, "_event", end_after_first)
        monkeypatch.setattr(change_stream, "SSE_SECONDS", 60 if end == "credential" else 0)
        assert (await door.get(offset, live="sse")).status_code == 200
        assert made == [False]


@pytest.mark.parametrize("query", [{}, {"task": "a"}])
async def test_events_end_when_the_context_is_removed_between_readings(
    query: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_changes, "PAGES_PER_READING", 1)
    async with open_door("sqlite", tmp_path) as door:
        offset = await door.fall_behind()
        await door.end()
        read, readings = change_stream._ArtifactReader.read, []

        async def remove_and_read(self: change_stream._ArtifactReader, after: After, tick: int | None = None) -> Any:
            readings.append(after)
            if len(readings) == 2:
                assert (await door.client.delete("/artifacts/ctx")).status_code == 204
            return await read(self, after, tick)

        monkeypatch.setattr(change_stream._ArtifactReader, "read", remove_and_read)
        events = await door.get(offset, live="sse", **query)
        assert (events.status_code, events.text.count("streamNextOffset"), len(readings)) == (200, 1, 2)


# --------------------------------------------------------------------- the end of a task


@pytest.mark.parametrize("backend", HERE)
async def test_a_stream_of_a_task_ends_with_its_last_change(backend: str, tmp_path: Path) -> None:
    async with open_door(backend, tmp_path) as door:
        await door.change(adding("x"))
        offset = await door.offset()
        waiting = asyncio.create_task(door.get(offset, live="long-poll", task="a"))
        assert "Stream-Closed" not in (await door.get(offset, task="a")).headers
        await door.change(adding("y", last_chunk=True))
        await waiting
        end = await door.offset()
        await door.end()
        await door.change(adding("z", last_chunk=True), task="b")
        closed = [await door.get(each, task="a") for each in (offset, end, await door.offset(), "-1", "now")]
        polled = await door.get(end, live="long-poll", task="a")
        assert [len(each.json()) for each in closed] == [1, 0, 0, 1, 0]
        assert next_offset(closed[0]) == next_offset(closed[1]) == next_offset(polled) == end
        assert all(each.headers["Stream-Closed"] == "true" for each in (*closed, polled))
        assert polled.status_code == 204
        assert "Stream-Closed" not in (await door.get(end)).headers
        assert (await door.get(end, task="unknown")).status_code == 404


async def test_a_long_poll_of_a_task_is_answered_when_that_ends(tmp_path: Path) -> None:
    async with open_door("sqlite", tmp_path) as door:
        await door.change(adding("x", last_chunk=True))
        waiting = asyncio.create_task(door.get(await door.offset(), live="long-poll", task="a"))
        await door.get("now")
        await door.end()
        answer = await waiting
    assert (answer.status_code, answer.headers["Stream-Closed"]) == (204, "true")


# --------------------------------------------------------------------- ticks and cursors


def test_a_cursor_is_the_tick_and_greater_than_the_one_before() -> None:
    assert [next_cursor(7, returned) for returned in (-1, 6, 7, 9)] == [7, 7, 8, 10]
    assert (tick_at(20.0), tick_at(20.49), seconds_to_tick(20.2, 41)) == (40, 40, pytest.approx(0.3))
    assert seconds_to_tick(20.6, 41) == 0


@given(st.floats(0, 4e9))
def test_polls_end_together_after_ten_to_thirty_seconds(now: float) -> None:
    last = last_tick_of_poll(now)
    assert last % POLL_TICKS == 0
    assert 9.4 <= last * TICK_SECONDS - now <= 30.1


def test_all_polls_of_a_tick_see_what_the_first_one_saw() -> None:
    ends, one, other = TickEnds(), context_key("", "one"), context_key("", "other")
    assert [ends.end(1, one, Place(5, each)) for each in (10, 12)] == [(1, 10)] * 2
    assert [ends.end(1, other, Place(5, 3)), ends.end(1, one, Place(6, 4))] == [(1, 3), (1, 4)]
    assert [ends.end(tick, one, Place(5, 12 + tick)) for tick in (2, 1, 9)] == [(2, 14), (2, 14), (9, 21)]
    assert len(ends._ends) == 1


def test_polls_go_on_when_the_clock_is_set_back() -> None:
    ends, context = TickEnds(), context_key("", "c")
    ends.end(100, context_key("", "other"), Place(1, 1))
    assert [ends.end(tick, context, Place(5, n)) for n, tick in enumerate((100, 90, 90, 91))] == [
        (100, 0),
        (90, 1),
        (90, 1),
        (91, 3),
    ]
    assert len(ends._ends) == 1


# --------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("offset=", "offset"),
        ("offset=1-2", "offset"),
        ("offset=a,b", "offset"),
        ("offset=-1&offset=-1", "offset"),
        ("live=sse", "offset"),
        ("offset=-1&live=maybe", "live"),
        ("offset=-1&live=long-poll&cursor=1a", "cursor"),
        (f"offset=-1&live=long-poll&cursor={'1' * 19}", "cursor"),
        ("offset=-1&task=a%00", "task"),
    ],
)
async def test_a_wrong_parameter_is_named(query: str, field: str, tmp_path: Path) -> None:
    async with open_door("memory", tmp_path) as door:
        await door.change(adding("x"))
        response = await door.client.get(f"/artifacts/ctx/doc/stream?{query}")
    assert (response.status_code, field in response.json()["error"]["message"]) == (400, True)


async def test_what_does_not_exist_is_not_found(tmp_path: Path) -> None:
    async with open_door("memory", tmp_path) as door:
        await door.change(adding("x"))
        offset = await door.offset()
        found = [await door.get(each, artifact="none") for each in ("-1", "now", offset)]
        found.append(await door.client.get("/artifacts/none/doc/stream"))
    assert [each.status_code for each in found] == [404] * 4


async def test_who_has_an_answer_gets_304(tmp_path: Path) -> None:
    async with open_door("memory", tmp_path) as door:
        await door.change(adding("x"))
        offset = await door.offset()
        for each in ("-1", offset):
            known = {"If-None-Match": (await door.get(each)).headers["ETag"]}
            url = f"/artifacts/ctx/doc/stream?offset={each}"
            assert (await door.client.get(url, headers=known)).status_code == 304
        await door.change(adding("y"))
        assert (await door.client.get(url, headers=known)).status_code == 200
