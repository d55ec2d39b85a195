"""What is removed because of its age, what stays however old it is, and what those who kept it still read."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Table, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import DropTable

from a2a_canvas.server.accounts.sql.sql_api_keys import api_keys
from a2a_canvas.server.accounts.sql.sql_secrets import server_secrets
from a2a_canvas.server.accounts.sql.sql_sessions import ended_sessions
from a2a_canvas.server.accounts.sql.sql_shares import shares
from a2a_canvas.server.accounts.sql.sql_usage import usage
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.push.sql.outbox_rows import push_configs, push_outbox
from a2a_canvas.server.tasks.sql.journal import prune as prune_module
from a2a_canvas.server.tasks.sql.journal import sweep_size
from a2a_canvas.server.tasks.sql.journal.prune import BATCH_SIZE, PruneResult, Retention, prune
from a2a_canvas.server.tasks.sql.journal.removal import of_context, remove_context
from a2a_canvas.server.tasks.sql.projections import annotation_rows
from a2a_canvas.server.tasks.sql.projections.annotation_rows import artifact_annotations
from a2a_canvas.server.tasks.sql.projections.context_holders import context_holders, hold_annotations
from a2a_canvas.server.tasks.sql.projections.context_rows import contexts, hash_of_removed, removed_contexts
from a2a_canvas.server.tasks.sql.projections.inbox_messages import inbox_messages
from a2a_canvas.server.tasks.sql.projections.latest_changes import latest_changes
from a2a_canvas.server.tasks.sql.projections.loop_values import loop_values, states_before
from a2a_canvas.server.tasks.sql.projections.message_files import message_files, unnamed_files
from a2a_canvas.server.tasks.sql.projections.message_keys import message_keys
from a2a_canvas.server.tasks.sql.projections.owned_rows import owned_contexts
from a2a_canvas.server.tasks.sql.projections.pages import pages
from a2a_canvas.server.tasks.sql.projections.records import task_contexts, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import brokers, replicas
from a2a_canvas.server.tasks.sql.projections.task_counts import task_counts
from a2a_canvas.server.tasks.sql.projections.watchers import context_watchers
from a2a_canvas.store.annotations.annotation_places import place_annotations
from a2a_canvas.store.changes import Change, EditText, Restore, Undo
from a2a_canvas.store.errors import InvalidChange, Unavailable, VersionNotFound, VersionPruned
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Version
from a2a_canvas.store.sql import kept
from a2a_canvas.store.sql.database import Database, insert_on
from a2a_canvas.store.sql.kept import add_kept, kept_bytes
from a2a_canvas.store.sql.reading import Key
from a2a_canvas.store.sql.tables import artifacts, drafts, metadata, versions
from a2a_canvas.store.sql.times import to_microseconds
from a2a_canvas.store.text.spans import Span
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.new_database import create_tables
from tests.property_examples import examples
from tests.server.tasks.kept_count import counted, recounted
from tests.store.annotations.test_annotation_places import annotation
from tests.store.artifact_builders import by, delta, replacing
from tests.store.sql.sql_fixtures import FakeReplica, SqlStoreHarness, open_store

NOW = datetime(2030, 6, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)
OLD, YOUNG = NOW - 10 * DAY, NOW - 2 * DAY
KEEP = Retention(5 * DAY, 5 * DAY, 5 * DAY)
OF_NO_CONTEXT = {
    *("brokers", "replicas", "removed_contexts", "task_counts"),
    *("api_keys", "ended_sessions", "server_secrets", "usage"),
}
Url = Callable[[Path], str]


@functools.cache
def shared_postgresql() -> str:
    """A database that is made once for all tests here."""
    return postgresql_url()


BOTH = {"params": [sqlite_url, lambda _: shared_postgresql()], "ids": ["sqlite", "postgresql"]}


@asynccontextmanager
async def emptied(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        await create_tables(database)
        async with database.write() as connection:
            for table in metadata.sorted_tables:
                await connection.execute(delete(table))
        yield database
    finally:
        await database.close()


@pytest.fixture(**BOTH)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with emptied(request.param(tmp_path)) as opened:
        yield opened


class Counting(Database):
    """Counts the transactions that write."""

    writes = 0

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        self.writes += 1
        async with super().write() as connection:
            yield connection


async def put(database: Database, table: Table, **values: Any) -> None:
    async with database.write() as connection:
        await connection.execute(insert(table).values(**values))


async def alter(database: Database, table: Table, context_id: str, **values: Any) -> None:
    async with database.write() as connection:
        await connection.execute(update(table).where(table.c.context_id == context_id).values(**values))


async def count(database: Database, table: Table) -> int:
    async with database.read() as connection:
        return await connection.scalar(select(func.count()).select_from(table)) or 0


async def everything(database: Database) -> dict[str, list[Any]]:
    """All rows of all tables."""
    async with database.read() as connection:
        return {
            name: sorted((await connection.execute(select(table))).all(), key=str)
            for name, table in metadata.tables.items()
        }


async def add_task(
    database: Database, name: str, at: datetime = OLD, state: State = State.COMPLETED, **values: Any
) -> None:
    """A task of a context of its own, with three pages; `name` is the id of both."""
    row = {
        "number": 1,
        "owner": "",
        "state": state.value,
        "changed_at": to_microseconds(at),
        "epoch": 1,
        "generation": 30,
        "resumptions": 0,
        "cancel_requested": False,
        "push": False,
        "snapshot": 30,
        "head": "{}",
        "transcript": "[]",
        "artifacts": "{}",
    }
    await put(database, contexts, context_id=name, tasks=1, position=0, changed_at=to_microseconds(at), incarnation=1)
    await put(database, tasks, context_id=name, task_id=name, **(row | values))
    await put(database, task_contexts, context_id=name, task_id=name)
    await put(database, context_watchers, context_id=name, replica_id="gone", streams=1)
    config = {"context_id": name, "task_id": name, "config_id": "c"}
    texts = ("registrant", "link", "version", "url", "target", "token", "scheme", "credentials", "failure")
    told = dict.fromkeys(texts, "")
    await put(database, push_configs, **config, **told, attempts=0)
    await put(database, push_outbox, **config, generation=2, epoch=1, written_at=0, entry="[]")
    times = dict.fromkeys(("created_at", "changed_at"), to_microseconds(at))
    await put(database, owned_contexts, context_id=name, owner="", request="", agents_suggest=False, **times)
    for first in (1, 11, 21):
        facts = {"first": first, "last": first + 9, "epoch": 1, "entries": b"0123456789"}
        await put(database, pages, context_id=name, task_id=name, **facts)


async def tasks_with_entries(database: Database) -> set[str]:
    async with database.read() as connection:
        return set(await connection.scalars(select(pages.c.task_id)))


# ---------------------------------------------------------------------------- journals


async def test_the_entries_of_tasks_that_have_ended_go_and_the_tasks_stay(database: Database) -> None:
    for state in State:
        await add_task(database, state.value, state=state)
    await add_task(database, "young", YOUNG)
    await add_task(database, "behind", snapshot=20)
    pruned = await prune(database, Retention(5 * DAY), NOW, dry_run=False)
    assert pruned == PruneResult(journals=4, bytes=4 * 30)
    not_ended = {state.value for state in State if not state.terminal}
    assert await tasks_with_entries(database) == not_ended | {"young", "behind"}
    assert await count(database, tasks) == len(State) + 2


@pytest.mark.parametrize("page", [4, 7, 1000])
@pytest.mark.parametrize("url", BOTH["params"], ids=BOTH["ids"])
async def test_many_tasks_go_in_pages_and_in_batches_that_grow_while_they_are_short(
    url: Url, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(prune_module, "TASK_PAGE", page)
    monkeypatch.setattr(sweep_size, "SMALLEST", 2)
    monkeypatch.setattr(sweep_size, "SHORT_SECONDS", math.inf)
    async with emptied(where := url(tmp_path)) as database:
        for number in range(14):
            await add_task(database, f"t{number}", state=State.CANCELED if number % 2 else State.COMPLETED)
        counting = Counting(where)
        assert await prune(counting, Retention(5 * DAY), NOW) == PruneResult(journals=14, bytes=14 * 30)
        await counting.close()
        forgotten = 3
        assert counting.writes - forgotten == {4: 2 + 1 + 1 + 1, 7: 3 + 1, 1000: 3}[page]
        assert await tasks_with_entries(database) == set()


async def test_a_task_that_cannot_be_pruned_leaves_few_others_for_the_next_time(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sweep_size, "SHORT_SECONDS", math.inf)
    entries = prune_module._entries

    async def without_one(database: Database, some: Sequence[Key], dry_run: bool) -> dict[Key, int]:
        if ("t55", "t55") in some:
            raise ValueError("this one")
        return await entries(database, some, dry_run)

    monkeypatch.setattr(prune_module, "_entries", without_one)
    caplog.set_level(logging.DEBUG, prune_module.__name__)
    for number in range(10, 100):
        await add_task(database, f"t{number}")
    pruned = await prune(database, Retention(5 * DAY), NOW)
    left = await tasks_with_entries(database)
    assert "t55" in left
    assert len(left) == sweep_size.SMALLEST
    assert pruned.journals == 90 - len(left)
    said = [(record.levelname, "this one" in str(record.exc_info)) for record in caplog.records]
    assert said == [("DEBUG", True), ("ERROR", True)]


async def test_the_smallest_batch_that_fails_is_tried_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Sequence[Key]] = []

    async def failing(database: Database, some: Sequence[Key], dry_run: bool) -> dict[Key, int]:
        tried.append(some)
        raise ValueError("these")

    monkeypatch.setattr(prune_module, "_entries", failing)
    await add_task(database, "t")
    await prune(database, Retention(5 * DAY), NOW)
    assert tried == [[("t", "t")]]


@pytest.mark.parametrize("table", [message_keys, inbox_messages, shares, task_counts], ids=lambda table: table.name)
async def test_what_cannot_be_cleared_by_age_keeps_no_journal(
    database: Database, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    await add_task(database, "t")
    async with database.write() as connection:
        await connection.execute(DropTable(table))
    pruned = await prune(database, Retention(5 * DAY), NOW)
    assert pruned.journals == 1
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert table.name.replace("_", " ") in record.getMessage()


# ---------------------------------------------------------------------------- contexts


def test_the_count_of_a_context_is_the_last_of_its_rows_that_a_removal_locks() -> None:
    assert of_context()[-1] is kept_bytes


@pytest.mark.postgres
@pytest.mark.parametrize("table", [pages, push_configs, push_outbox], ids=lambda table: table.name)
async def test_a_context_is_removed_while_rows_of_it_are_removed_and_counted(table: Table) -> None:
    async with emptied(shared_postgresql()) as database:
        await add_task(database, "c")
        await add_artifact(database, "c")
        async with database.write() as connection:
            await connection.execute(delete(table))
            removal = asyncio.create_task(remove_context(database, "c", lambda _: nullcontext(True), always))
            await waiting_for_a_lock(database)
            await connection.run_sync(add_kept, {"c": -30})
        assert await removal
        assert await count(database, kept_bytes) == 0


async def always(_: AsyncConnection) -> bool:
    return True


def test_every_table_is_known_to_have_something_of_a_context_or_to_be_a_directory() -> None:
    assert set(metadata.tables.values()) - {*of_context()} == {
        *(task_contexts, removed_contexts, task_counts, replicas, brokers),
        *(api_keys, ended_sessions, server_secrets, usage),
    }


async def add_artifact(database: Database, context_id: str, at: datetime = OLD, **values: Any) -> None:
    row = {
        "revision": 3,
        "changed": to_microseconds(at),
        "changed_by": context_id,
        "current": 1,
        "newest": 1,
        "pruned": 0,
        "draft_dirty": False,
        "incarnation": 1,
    }
    version = {"number": 1, "parent": 0, "author": "agent", "task_id": context_id, "incomplete": False}
    await put(database, artifacts, context_id=context_id, artifact_id="a", **(row | values))
    await put(database, versions, context_id=context_id, artifact_id="a", content="{}", made_at=at, **version)
    await put(database, drafts, context_id=context_id, artifact_id="a", seq=0, kind="whole", content="{}")
    standing = {"artifact_id": "a", "position": 1, "task_id": context_id, "closed": True, "name": "A"}
    await put(database, latest_changes, context_id=context_id, **standing)
    letter = {"task_id": context_id, "inbox_id": "m", "sent_at": to_microseconds(NOW), "key": "", "message": "{}"}
    await put(database, inbox_messages, context_id=context_id, **letter)
    file = {"context_id": context_id, "digest": "d"}
    await put(database, message_files, **file, content=b"file")
    await put(database, unnamed_files, **file, size=4, written_at=to_microseconds(NOW))
    await put(database, loop_values, context_id=context_id, name="", value=b"{}", size=2, digest="d")
    await put(database, states_before, context_id=context_id, task_id=context_id, value=b"")
    await put(database, context_holders, context_id=context_id, subject="values", task_id=context_id, replica_id="r")
    annotation = {"artifact_id": "a", "annotation_id": "n", "number": 1, "version": 1, "open": True}
    await put(database, artifact_annotations, context_id=context_id, **annotation, annotation=b"{}")
    await put(database, kept_bytes, context_id=context_id, bytes=40)
    given = {"owner": "", "level": "read", "made_at": 0, "user_name": "bob", "token_hash": ""}
    await put(database, shares, context_id=context_id, share_id=context_id, **given)
    await put(
        database,
        message_keys,
        context_id=context_id,
        key=context_id,
        task_id=context_id,
        accepted_at=to_microseconds(NOW),
    )


async def contexts_of(database: Database) -> dict[str, set[str]]:
    """The contexts of which there is a row, by table."""
    rows = await everything(database)
    return {name: {row.context_id for row in rows[name]} for name in rows if name not in OF_NO_CONTEXT}


@pytest.fixture(params=[prune_module.LARGE_CONTEXT_BYTES, 0], ids=["at once", "thinned out before"])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune_module, "LARGE_CONTEXT_BYTES", request.param)


@pytest.mark.usefixtures("large")
async def test_a_context_goes_with_all_it_has_and_another_stays_with_all_it_has(database: Database) -> None:
    for name, at in {"old": OLD, "young": YOUNG}.items():
        await add_task(database, name, at)
        await add_artifact(database, name, at)
    pruned = await prune(database, Retention(5 * DAY, contexts=5 * DAY), NOW, dry_run=False)
    assert (pruned.contexts, pruned.journals, pruned.versions) == (1, 0, 0)
    assert pruned.bytes == 40
    of_running_tasks = {table.name: set() for table in (states_before, context_holders)}
    stays = {name: {"young"} for name in metadata.tables if name not in OF_NO_CONTEXT}
    assert await contexts_of(database) == stays | of_running_tasks


async def test_only_the_ids_of_contexts_that_can_be_shared_with_users_are_remembered_as_hashes(
    database: Database,
) -> None:
    unique = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d70"
    for name in (unique, "notes"):
        await add_task(database, name, OLD)
    await prune(database, KEEP, NOW, dry_run=False)
    rows = (await everything(database))["removed_contexts"]
    assert [row.key_hash for row in rows] == [hash_of_removed(unique)]
    assert unique not in str(rows)


async def beginning(database: Database) -> None:
    await alter(database, contexts, "c", changed_at=to_microseconds(YOUNG))


async def going_on(database: Database) -> None:
    await alter(database, tasks, "c", changed_at=to_microseconds(YOUNG))


async def working(database: Database) -> None:
    await alter(database, tasks, "c", state="working")


async def waiting(database: Database) -> None:
    await alter(database, tasks, "c", state="input-required")


async def writing(database: Database) -> None:
    await alter(database, artifacts, "c", changed=to_microseconds(YOUNG))


async def holding(database: Database) -> None:
    await put(database, replicas, replica_id="alive", heartbeat_at=0, commits=0)
    await alter(database, artifacts, "c", holder="alive")


Happening = Callable[[Database], Awaitable[None]]
HAPPENINGS = [beginning, going_on, working, waiting, writing, holding]


@pytest.mark.parametrize("happening", HAPPENINGS)
async def test_a_context_in_which_something_happens_stays(database: Database, happening: Happening) -> None:
    await add_task(database, "c")
    await add_artifact(database, "c")
    await happening(database)
    assert (await prune(database, Retention(100 * DAY, contexts=5 * DAY), NOW, dry_run=False)).contexts == 0
    assert await count(database, tasks) == 1
    assert await count(database, versions) == 1


async def test_what_a_dead_replica_held_goes(database: Database) -> None:
    await add_task(database, "c")
    await add_artifact(database, "c", holder="dead")
    assert (await prune(database, KEEP, NOW, dry_run=False)).contexts == 1
    assert await count(database, artifacts) == 0


class Meddled(Database):
    """Something happens in it between the first look and what follows."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        async with super().read() as connection:
            yield connection
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("url", BOTH["params"], ids=BOTH["ids"])
@pytest.mark.parametrize("happening", HAPPENINGS)
async def test_who_comes_back_in_time_finds_everything(url: Url, tmp_path: Path, happening: Happening) -> None:
    where = url(tmp_path)
    async with emptied(where) as database:
        await add_task(database, "c")
        await add_artifact(database, "c")
        meddled = Meddled(where)
        meddled.meanwhile = lambda: happening(database)
        try:
            assert (await prune(meddled, Retention(100 * DAY, contexts=5 * DAY), NOW, dry_run=False)).contexts == 0
        finally:
            await meddled.close()
        assert await count(database, pages) == 3


# ---------------------------------------------------------------------------- versions


@dataclass(frozen=True)
class Typed:
    """Somebody types a text at a place of the current version."""

    at: int
    text: str


Step = Change | Typed
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.text("xyz", max_size=8).map(replacing),
    st.builds(Typed, st.integers(0, 3), st.text("ab", min_size=1, max_size=3)),
    st.just(Undo()),
    st.integers(1, 6).map(Restore),
)


async def changed(harness: SqlStoreHarness, *steps: Step, context: str = "c") -> None:
    """Every step that can be done, each a version of its own."""
    ref = by("t", context=context)
    for step in steps:
        if isinstance(step, Typed):
            current = (await harness.store.get(ref)).version
            step = EditText(Span(step.at, step.at), step.text, base=current)
        try:
            await harness.store.apply(ref, step)
            await harness.store.close(ref)
        except (InvalidChange, VersionNotFound):
            continue
    await harness.commits.flushed()


async def aged(database: Database, ages: dict[int, datetime]) -> None:
    async with database.write() as connection:
        for number, at in ages.items():
            await connection.execute(update(versions).where(versions.c.number == number).values(made_at=at))


def contents(found: tuple[Version, ...]) -> dict[int, Any]:
    return {version.number: None if version.pruned else version.content for version in found}


@given(st.lists(STEPS, min_size=2, max_size=9), st.sets(st.integers(1, 9)), st.lists(STEPS, max_size=3))
@settings(max_examples=examples(30))
def test_versions_that_stay_read_as_before_whatever_they_were_made_of(
    steps: list[Step], old: set[int], later: list[Step]
) -> None:
    async def run() -> None:
        with TemporaryDirectory() as folder:
            async with emptied(sqlite_url(Path(folder))) as database:
                await check_versions(database, [replacing("zero"), *steps], old, later)

    asyncio.run(run())


async def check_versions(database: Database, steps: list[Step], old: set[int], later: list[Step]) -> None:
    async with open_store(database, FakeReplica()) as harness:
        await changed(harness, *steps)
        before, shown = contents(await harness.store.versions(by("t"))), await harness.store.get(by("t"))
    await aged(database, {number: OLD if number in old else YOUNG for number in before})
    going = {number for number in before if number in old and number != shown.version}
    pruned = await prune(database, Retention(5 * DAY, 5 * DAY), NOW, dry_run=False)
    assert pruned.versions == len(going)
    expected = {number: None if number in going else content for number, content in before.items()}
    async with open_store(database, FakeReplica()) as harness:
        assert contents(await harness.store.versions(by("t"))) == expected
        assert await harness.store.get(by("t")) == shown
        await changed(harness, *later)
        after = contents(await harness.store.versions(by("t")))
    async with open_store(database, FakeReplica()) as harness:
        assert contents(await harness.store.versions(by("t"))) == after
    assert {number: after[number] for number in expected} == expected


@given(st.data(), st.lists(STEPS, min_size=2, max_size=9), st.sets(st.integers(1, 9)))
@settings(max_examples=examples(100))
def test_annotations_have_the_places_that_they_had_whichever_versions_go(
    data: st.DataObject, steps: list[Step], old: set[int]
) -> None:
    async def run() -> None:
        with TemporaryDirectory() as folder:
            async with emptied(sqlite_url(Path(folder))) as database:
                await check_places(data, database, [replacing("zero\none\ntwo\n"), *steps], old)

    asyncio.run(run())


async def check_places(data: st.DataObject, database: Database, steps: list[Step], old: set[int]) -> None:
    async with open_store(database, FakeReplica()) as harness:
        await changed(harness, *steps)
        before, current = await harness.store.versions(by("t")), (await harness.store.get(by("t"))).version
    made = []
    for number in range(1, 6):
        version = data.draw(st.sampled_from(before))
        text = version.content.text
        ends = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        made.append(annotation(number, version.number, text, Span(*ends)))
    async with database.write() as connection:
        await connection.run_sync(add_kept, await connection.run_sync(annotation_rows.rewrite, ContextKey("c"), made))
    places = [(each.span, each.state) for each in await place_annotations(made, before, current)]
    await aged(database, {each.number: OLD if each.number in old else YOUNG for each in before})
    await prune(database, Retention(5 * DAY, 5 * DAY), NOW)
    async with open_store(database, FakeReplica()) as harness:
        after = await harness.store.versions(by("t"))
    async with database.read() as connection:
        stored = await annotation_rows.read_annotations(connection, ContextKey("c"), "a")
    placed = await place_annotations(stored, after, current)
    assert [(each.span, each.state) for each in placed] == places
    assert not any(each.span and after[each.annotation.version - 1].pruned for each in placed)
    assert [each.quote for each in stored] == [each.quote for each in made]
    assert await counted(database) == await recounted(database)


async def test_a_comment_on_a_deleted_version_moves_on_with_its_passage(database: Database) -> None:
    async with open_store(database, FakeReplica()) as harness:
        await changed(harness, replacing("one two"), Typed(5, "-"), Typed(0, "zero "))
    made = [annotation(1, 1, "one two", Span(4, 7)), annotation(2, 1, "one two", Span(5, 5))]
    async with database.write() as connection:
        await connection.run_sync(add_kept, await connection.run_sync(annotation_rows.rewrite, ContextKey("c"), made))
    await aged(database, dict.fromkeys((1, 2), OLD))
    await prune(database, Retention(DAY, 5 * DAY), NOW)
    async with database.read() as connection:
        first, second = await annotation_rows.read_annotations(connection, ContextKey("c"), "a")
    assert (first.version, first.span, first.quote.exact) == (3, Span(9, 13), "two")
    assert (second.version, second.span) == (3, Span(11, 11))


async def test_old_versions_go_but_for_the_current_one_and_only_once(database: Database) -> None:
    async with open_store(database, FakeReplica()) as harness:
        await changed(harness, replacing("one"), Typed(3, " two"), Typed(7, " three"), Undo())
    await aged(database, dict.fromkeys((1, 2, 3), OLD))
    assert (await prune(database, Retention(DAY, 5 * DAY), NOW, dry_run=False)).versions == 2
    assert await prune(database, Retention(DAY, 5 * DAY), NOW, dry_run=False) == PruneResult()
    async with open_store(database, FakeReplica()) as harness:
        assert (await harness.store.get(by("t"))).content.text == "one two"
        with pytest.raises(VersionPruned):
            await harness.store.version(by("t"), 1)


async def test_a_reader_who_had_the_versions_in_memory_sees_that_they_are_gone(database: Database) -> None:
    async with (
        open_store(database, FakeReplica()) as writer,
        open_store(database, FakeReplica("r2", {"r1", "r2"})) as reader,
    ):
        await changed(writer, replacing("one"), replacing("two"))
        assert (await reader.store.version(by("t"), 1)).content.text == "one"
        await aged(database, {1: OLD})
        await alter(database, artifacts, "c", holder=None)
        await prune(database, Retention(DAY, 5 * DAY), NOW, dry_run=False)
        with pytest.raises(VersionPruned):
            await reader.store.version(by("t"), 1)


@pytest.mark.parametrize("url", BOTH["params"], ids=BOTH["ids"])
async def test_many_versions_go_in_many_transactions_and_each_that_stays_is_made_whole_in_its_own(
    url: Url, tmp_path: Path
) -> None:
    where, going, staying = url(tmp_path), 2 * BATCH_SIZE + 1, 3
    async with emptied(where) as database:
        async with open_store(database, FakeReplica()) as harness:
            await changed(harness, *(replacing(f"old {n}") for n in range(going)))
            typed = Typed(0, "so ")  # each time to the last old one
            await changed(harness, typed, Undo(), typed, Undo(), typed)
        await aged(database, {number: OLD if number <= going else YOUNG for number in range(1, going + staying + 1)})
        counting = Counting(where)
        assert (await prune(counting, Retention(DAY, 5 * DAY), NOW)).versions == going
        await counting.close()
        forgotten, last_look = 3, 1
        assert counting.writes == forgotten + staying + 3 + last_look
        assert await counted(database) == await recounted(database)
        async with open_store(database, FakeReplica()) as harness:
            found = contents(await harness.store.versions(by("t")))
        assert [content and content.text for content in found.values()] == [None] * going + [f"so old {going - 1}"] * 3


async def test_what_cannot_be_pruned_is_left_for_the_next_time_and_nothing_else_with_it(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_store(database, FakeReplica()) as harness:
        for context in ("c1", "c2", "c3"):
            await changed(harness, replacing("one"), Typed(3, " two"), replacing("three"), context=context)
    await aged(database, {1: OLD, 2: YOUNG, 3: YOUNG})
    async with database.write() as connection:
        spoilt = versions.c.context_id == "c2", versions.c.number == 1
        await connection.execute(update(versions).where(*spoilt).values(content="no JSON"))
    await put(database, message_keys, key="old", task_id="t", context_id="c", accepted_at=to_microseconds(OLD))
    assert (await prune(database, Retention(DAY, 5 * DAY), NOW)).versions == 2
    assert await count(database, message_keys) == 0
    [left_alone] = [record for record in caplog.records if "Artifact 'a' could not be pruned" in record.getMessage()]
    assert vars(left_alone)["fields"] == {"context": "c2"}
    async with database.read() as connection:
        left = select(versions.c.context_id).where(versions.c.number == 1, versions.c.content.is_not(None))
        assert (await connection.scalars(left)).all() == ["c2"]


class Broken(Database):
    """It is away from the third transaction that writes on."""

    writes = 0

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        self.writes += 1
        if self.writes > 2:
            raise Unavailable("it is away")
        async with super().write() as connection:
            yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        if self.writes > 2:
            raise Unavailable("it is away")
        async with super().read() as connection:
            yield connection


async def test_a_database_that_goes_away_ends_the_sweep(tmp_path: Path) -> None:
    where = sqlite_url(tmp_path)
    async with emptied(where) as database:
        for name in ("t1", "t2"):
            await add_task(database, name)
        away = Broken(where)
        with pytest.raises(Unavailable):
            await prune(away, KEEP, NOW)
        await away.close()
        assert away.writes == 3
        assert await count(database, tasks) == 2


async def opened(harness: SqlStoreHarness) -> None:
    await harness.store.apply(by("t"), delta(replacing("three")))


async def held(harness: SqlStoreHarness) -> None:
    await put(harness.database, replicas, replica_id="alive", heartbeat_at=0, commits=0)
    await alter(harness.database, artifacts, "c", holder="alive")


@pytest.mark.parametrize("how", [opened, held])
async def test_an_artifact_that_is_being_changed_is_left_for_the_next_time(
    database: Database, how: Callable[[SqlStoreHarness], Awaitable[None]]
) -> None:
    async with open_store(database, FakeReplica()) as harness:
        await changed(harness, replacing("one"), replacing("two"))
        await how(harness)
        await harness.commits.flushed()
        await aged(database, {1: OLD})
        for dry_run in (True, False):
            assert (await prune(database, Retention(DAY, 5 * DAY), NOW, dry_run=dry_run)).versions == 0
        async with database.read() as connection:
            assert await connection.scalar(select(versions.c.content).where(versions.c.number == 1))


# ----------------------------------------------------------------------------- all of it


@dataclass(frozen=True)
class Filled:
    database: Database


@pytest.fixture
async def filled(database: Database) -> Filled:
    async with open_store(database, FakeReplica()) as harness:
        for name in ("old", "mixed", "young"):
            await changed(harness, replacing(name), Typed(0, "so "), context=name)
    for name, at in {"old": OLD, "mixed": OLD, "young": YOUNG}.items():
        await add_task(database, name, at)
        await alter(database, artifacts, name, changed=to_microseconds(at), holder=None)
        await alter(database, versions, name, made_at=at)
    await alter(database, contexts, "mixed", changed_at=to_microseconds(YOUNG))
    return Filled(database)


async def test_a_dry_run_says_what_is_then_removed_and_removes_nothing(filled: Filled) -> None:
    before = await everything(filled.database)
    said = await prune(filled.database, KEEP, NOW, dry_run=True)
    assert await everything(filled.database) == before
    assert (said.journals, said.versions, said.contexts) == (1, 1, 1)
    assert said.bytes > 0
    assert await prune(filled.database, KEEP, NOW, dry_run=False) == said
    assert await prune(filled.database, KEEP, NOW, dry_run=False) == PruneResult()


async def test_for_ever_is_for_ever(filled: Filled) -> None:
    pruned = await prune(
        filled.database, Retention(timedelta(days=36_500)), NOW + timedelta(days=36_000), dry_run=False
    )
    assert pruned == PruneResult()


async def test_what_has_no_use_after_a_day_goes(database: Database) -> None:
    await add_task(database, "c", NOW)
    for name, at in {"new": NOW - DAY / 2, "old": NOW - 2 * DAY}.items():
        await put(database, message_keys, key=name, task_id="c", context_id="c", accepted_at=to_microseconds(at))
        letter = {"task_id": "c", "inbox_id": name, "sent_at": to_microseconds(at), "key": "", "message": "{}"}
        await put(database, inbox_messages, context_id="c", **letter)
    await prune(database, Retention(DAY), NOW, dry_run=False)
    rows = await everything(database)
    assert [row.key for row in rows["message_keys"]] == ["new"]
    assert [row.inbox_id for row in rows["inbox_messages"]] == ["new"]


async def test_many_messages_are_forgotten_in_several_transactions(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "EXPIRED_AT_ONCE", 2)
    for name in "abcde":
        await put(database, message_keys, key=name, task_id="t", context_id="c", accepted_at=to_microseconds(OLD))
    await prune(database, Retention(DAY), NOW)
    assert await count(database, message_keys) == 0


@pytest.mark.postgres
async def test_a_message_that_is_accepted_again_while_the_sweep_waits_for_its_row_is_remembered() -> None:
    async with emptied(shared_postgresql()) as database:
        await put(database, message_keys, key="m", task_id="old", context_id="c", accepted_at=to_microseconds(OLD))
        async with database.write() as connection:
            await put_through(connection, "m", "new")
            sweep = asyncio.create_task(prune(database, Retention(DAY), NOW))
            await waiting_for_a_lock(database)
        await sweep
        rows = await everything(database)
        assert [(row.key, row.task_id) for row in rows["message_keys"]] == [("m", "new")]


async def put_through(connection: AsyncConnection, key: str, task_id: str) -> None:
    """As when a message is accepted: which task it went to, and then the task."""
    values = {"task_id": task_id, "accepted_at": to_microseconds(NOW)}
    await connection.execute(update(message_keys).where(message_keys.c.key == key).values(values))
    await connection.execute(insert(task_contexts).values(task_id=task_id, context_id="c"))


async def waiting_for_a_lock(database: Database) -> None:
    async with database.read() as connection:
        locks = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while await connection.scalar(locks) == 0:
            pass


@pytest.mark.postgres
async def test_annotations_that_a_task_holds_are_not_moved_and_a_task_waits_for_the_move() -> None:
    async def take(row: dict[str, str]) -> bool:
        new = insert_on("postgresql", context_holders).values(row).on_conflict_do_nothing()
        async with database.write() as connection:
            return await connection.scalar(new.returning(context_holders.c.task_id)) is not None

    held = {"context_id": "c", "subject": "annotations", "replica_id": "r", "task_id": "t"}
    async with emptied(shared_postgresql()) as database:
        async with database.write() as connection, hold_annotations(connection, ContextKey("c")) as alone:
            assert alone
            waiting = asyncio.create_task(take(held))
            await waiting_for_a_lock(database)
            assert not waiting.done()
        assert await waiting
        async with database.write() as connection, hold_annotations(connection, ContextKey("c")) as alone:
            assert not alone
        async with database.read() as connection:
            assert [tuple(row) for row in await connection.execute(select(context_holders))] == [tuple(held.values())]
