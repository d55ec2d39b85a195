"""Artifacts in a database: what a crash leaves, what other replicas may do, and what it costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, func, select, update
from sqlalchemy.util import await_only

from a2a_canvas.store import mutation
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.errors import (
    ArtifactBusy,
    ArtifactNotFound,
    StoreError,
    Unavailable,
    VersionConflict,
    VersionPruned,
)
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Artifact, Document, FilePart, Limits, Ref
from a2a_canvas.store.sql import artifact_lease, reading
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.reading import Cache
from a2a_canvas.store.sql.rows import ArtifactHead, StoredDocument
from a2a_canvas.store.sql.tables import artifacts, drafts, versions
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples
from tests.store.artifact_builders import appending, by, delta, replacing, result
from tests.store.sql.random_steps import STEPS, Step, do, done
from tests.store.sql.sql_fixtures import FakeReplica, SqlStoreHarness, open_store, postgresql_database, sqlite_database

T = TypeVar("T")

Databases = Callable[[], AbstractAsyncContextManager[Database]]


@pytest.fixture(params=[sqlite_database, postgresql_database], ids=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with request.param() as opened:
        yield opened


@pytest.fixture
async def postgresql() -> AsyncIterator[Database]:
    async with postgresql_database() as opened:
        yield opened


def first(database: Database) -> FakeReplica:
    return FakeReplica() if database.dialect == "sqlite" else FakeReplica(living={"r1"})


def second(database: Database, *others: str) -> FakeReplica:
    """The replica after it, for which `others` live."""
    return FakeReplica("r2") if database.dialect == "sqlite" else FakeReplica("r2", {"r2", *others})


@pytest.fixture
async def harness(database: Database) -> AsyncIterator[SqlStoreHarness]:
    async with open_store(database, first(database)) as opened:
        yield opened


@pytest.fixture
async def two(postgresql: Database) -> AsyncIterator[tuple[SqlStoreHarness, SqlStoreHarness]]:
    """Two replicas that live."""
    living = {"r1", "r2"}
    async with AsyncExitStack() as stack:
        one, other = [
            await stack.enter_async_context(open_store(postgresql, FakeReplica(name, living))) for name in ("r1", "r2")
        ]
        yield one, other


# ------------------------------------------------------------------------------------------------- crashes


async def rows_of(database: Database, artifact_id: str = "a") -> Document | None:
    """The document as its rows have it, draft and all."""
    key = "c", artifact_id
    async with database.read() as connection:
        found = await reading.read_head(connection, key)
        return (await Cache().read(connection, key, found)).document if found and found.exists else None


class Witness:
    """Joins the group commit, and remembers what was in memory when a transaction was collected, and committed."""

    def __init__(self) -> None:
        self.memory: dict[str, Document] = {each: Document(each) for each in "ab"}
        self.on_its_way = self.committed = self.memory

    def collect(self, contexts: object = None) -> Witness:
        self.on_its_way = {**self.memory}
        return self

    def write(self, connection: Connection) -> None:
        pass

    def done(self) -> None:
        self.committed = self.on_its_way


MOMENTS = st.sampled_from([None, None, "pause", "commit", "crash"])
WALK = st.lists(st.tuples(STEPS, st.sampled_from("aab"), MOMENTS), max_size=20)


async def walk(database: Database, steps: list[tuple[Step, str, str | None]]) -> None:
    """Steps to two artifacts, commits and crashes: what is read again is what memory had at the last commit."""
    living: set[str] | None = None if database.dialect == "sqlite" else set()
    witness = Witness()
    async with AsyncExitStack() as stack:
        harness = await begun(stack, database, living, witness)
        for step, artifact_id, moment in steps:
            await do(harness.store, witness.memory[artifact_id], step, artifact_id)
            witness.memory = {**witness.memory, artifact_id: done(witness.memory[artifact_id], step)}
            if moment == "pause":
                await asyncio.sleep(0)
            if moment == "commit":
                await harness.commits.flushed()
                assert await all_rows(database) == witness.committed == witness.memory
            if moment == "crash":
                await harness.commits.stop()
                rows = await all_rows(database)
                assert rows in (witness.committed, witness.on_its_way)
                witness.memory = rows
                harness = await begun(stack, database, living, witness)
                for each, document in rows.items():
                    assert await shown(harness.store, each) == (document.artifact if document.exists else None)


async def begun(
    stack: AsyncExitStack, database: Database, living: set[str] | None, witness: Witness
) -> SqlStoreHarness:
    replica = FakeReplica(uuid4().hex, living)
    if living is not None:
        living.clear()
        living.add(replica.id)
    harness = await stack.enter_async_context(open_store(database, replica))
    harness.commits.join(witness)
    return harness


async def all_rows(database: Database) -> dict[str, Document]:
    return {each: await rows_of(database, each) or Document(each) for each in "ab"}


async def shown(store: ArtifactStore, artifact_id: str) -> Artifact | None:
    try:
        return await store.get(by("", artifact_id))
    except ArtifactNotFound:
        return None


@settings(max_examples=examples(15))
@given(WALK)
def test_a_crash_leaves_what_memory_had_at_the_last_commit_on_sqlite(steps: list[tuple[Step, str, str | None]]) -> None:
    asyncio.run(walked(sqlite_database, steps))


@settings(max_examples=examples(6))
@given(WALK)
@pytest.mark.postgres
def test_a_crash_leaves_what_memory_had_at_the_last_commit_on_postgresql(
    steps: list[tuple[Step, str, str | None]],
) -> None:
    asyncio.run(walked(postgresql_database, steps))


async def walked(databases: Databases, steps: list[tuple[Step, str, str | None]]) -> None:
    async with databases() as database:
        await walk(database, steps)


async def test_a_draft_goes_on_after_a_crash_where_the_last_completed_call_left_it(database: Database) -> None:
    async with open_store(database, first(database)) as before:
        await before.store.apply(by("t1"), replacing("kept "))
        await before.store.apply(by("t1"), delta(appending("cut off")))
        await before.commits.flushed()
    async with open_store(database, second(database)) as after:
        assert (await after.store.get(by("t1"))).text == "kept cut off"
        with pytest.raises(ArtifactBusy) as caught:
            await after.store.apply(by("t2"), appending("mine"))
        assert caught.value.task_id == "t1"
        back = await after.store.discard(by("t1"))
        assert back
        assert back.artifact.text == "kept "
        closed = await after.store.close(by("t1"))
        assert closed
        assert (closed.version, closed.artifact.text) == (1, "kept ")


async def test_a_thousand_versions_are_read_again_and_only_new_ones_after_that(harness: SqlStoreHarness) -> None:
    await harness.store.apply(by("t1"), replacing("0" * 1000, last_chunk=True))
    for number in range(1, 200):
        await harness.store.apply(by("t1"), EditText(Span(number, number + 1), "x", number))
    await harness.commits.flushed()
    made = await harness.store.versions(by("t1"))
    harness.store.forget()
    assert await harness.store.versions(by("t1")) == made
    before = await harness.store.versions(by("t1"))
    await harness.store.apply(by("t1"), Undo())
    after = await harness.store.versions(by("t1"))
    assert all(one is other for one, other in zip(before, after, strict=True))


# -------------------------------------------------------------------------------------- visible is durable


@pytest.fixture
async def idle(database: Database) -> AsyncIterator[SqlStoreHarness]:
    """A store whose group commit has not been started yet."""
    harness = SqlStoreHarness(database, first(database))
    yield harness
    await harness.commits.stop()


async def waits(awaitable: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """It has been begun, and waits for something."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait([task], timeout=0.05)
    assert not done
    return task


async def test_a_closed_version_is_seen_when_it_is_committed(idle: SqlStoreHarness) -> None:
    await idle.store.apply(by("t1"), replacing("A", last_chunk=True))
    looks = [idle.store.get(by("")), idle.store.versions(by("")), idle.store.version(by(""), 1), idle.store.list("c")]
    waiting = [await waits(look) for look in looks]
    idle.commits.start()
    artifact, made, version, listed = await asyncio.gather(*waiting)
    assert (artifact.text, version, listed) == ("A", made[0], (artifact,))
    assert await rows_of(idle.database)


async def test_a_draft_is_seen_at_once(idle: SqlStoreHarness) -> None:
    await idle.store.apply(by("t1"), replacing("A"))
    assert (await idle.store.get(by(""))).text == "A"
    assert [each.text for each in await idle.store.list("c")] == ["A"]
    assert await idle.store.versions(by("")) == ()
    assert await rows_of(idle.database) is None


async def test_what_is_held_changes_without_waiting(idle: SqlStoreHarness) -> None:
    await idle.store.prepare(by("t1"))
    assert result(idle.store.apply(by("t1"), appending("A"))).artifact.text == "A"
    result(idle.store.complete_call(by("t1")))
    assert result(idle.store.discard(by("t1"))) is None
    assert result(idle.store.close(by("t1")))


async def test_steps_between_two_waits_are_written_together(harness: SqlStoreHarness) -> None:
    await harness.store.prepare(by("t1"))
    await harness.store.prepare(by("t1", "b"))
    await harness.commits.flushed()
    before = harness.commits.commits
    for artifact_id in "ab":
        result(harness.store.apply(by("t1", artifact_id), replacing("A", last_chunk=True)))
    await harness.commits.flushed()
    assert harness.commits.commits == before + 1


async def test_nothing_is_written_where_nothing_is_to_be_done(harness: SqlStoreHarness) -> None:
    await harness.store.apply(by("t1"), replacing("A", last_chunk=True))
    await harness.store.apply(by("t1", "b"), replacing("B"))
    await harness.commits.flushed()
    harness.store.forget()
    before = harness.commits.commits, await revisions(harness)
    await harness.store.complete_call(by("t1"))
    assert await harness.store.close(by("t1")) is None
    assert await harness.store.discard(by("t1")) is None
    assert await harness.store.close(by("t2", "b")) is None
    assert await harness.store.discard(by("t1", "none")) is None
    with pytest.raises(ArtifactBusy):
        await harness.store.complete_call(by("t2", "b"))
    for change in (harness.store.complete_call, harness.store.close):
        with pytest.raises(ArtifactNotFound):
            await change(by("t1", "none"))
    await harness.commits.flushed()
    assert (harness.commits.commits, await revisions(harness)) == before


async def revisions(harness: SqlStoreHarness) -> list[tuple[Any, ...]]:
    query = select(artifacts.c.artifact_id, artifacts.c.revision, artifacts.c.holder).order_by(artifacts.c.artifact_id)
    async with harness.database.read() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def test_a_growing_draft_is_never_written_again(harness: SqlStoreHarness) -> None:
    await harness.store.apply(by("t1"), delta(replacing("x" * 100_000)))
    for _ in range(10):
        await harness.store.apply(by("t1"), delta(appending("y" * 20)))
        await harness.commits.flushed()
    async with harness.database.read() as connection:
        sizes = [*await connection.scalars(select(func.length(drafts.c.content)).order_by(drafts.c.seq))]
    assert len(sizes) == 10
    assert sum(sizes) < 100_000 + 10 * 150
    await harness.store.apply(by("t1"), delta(appending("z")))
    await harness.store.close(by("t1"))
    await harness.commits.flushed()
    async with harness.database.read() as connection:
        assert await connection.scalar(select(func.count()).select_from(drafts)) == 0
    assert [holder for _, _, holder in await revisions(harness)] == [None]


async def pieces_of(database: Database) -> list[str]:
    """The texts of the rows of the draft."""
    async with database.read() as connection:
        found = await connection.scalars(select(drafts.c.content).order_by(drafts.c.seq))
        return [json.loads(content)["parts"][0]["body"] for content in found]


async def test_what_an_unfinished_call_shows_is_written_now_and_then_and_its_end_at_once(database: Database) -> None:
    async with open_store(database, first(database), shown_interval=3600) as harness:
        for text in ("a", "b", "c"):
            await harness.store.apply(by("t1"), delta(appending(text)))
            await harness.commits.flushed()
            assert await pieces_of(database) == ["a"]
        assert (await harness.store.get(by("t1"))).text == "abc"
        await harness.store.complete_call(by("t1"))
        await harness.commits.flushed()
        assert await pieces_of(database) == ["a", "bc"]
        for text in ("d", "e"):  # the first one begins another call
            await harness.store.apply(by("t1"), delta(appending(text)))
            await harness.commits.flushed()
            assert await pieces_of(database) == ["a", "bc", "d"]
        await harness.store.close(by("t1"))
        await harness.commits.flushed()
    async with open_store(database, second(database)) as after:
        assert (await after.store.get(by("t1"))).text == "abcde"


@pytest.mark.parametrize("committed_meanwhile", [(), ("another",)], ids=["nothing", "another context"])
async def test_what_an_unfinished_call_shows_is_written_though_nothing_follows(
    database: Database, committed_meanwhile: tuple[ContextKey, ...]
) -> None:
    async with open_store(database, first(database), shown_interval=0.05) as harness, asyncio.timeout(10):
        for text in ("a", "b"):
            await harness.store.apply(by("t1"), delta(appending(text)))
            await harness.commits.flushed()
        while await pieces_of(database) != ["a", "b"]:
            if committed_meanwhile:
                harness.store.collect(committed_meanwhile)


# ---------------------------------------------------------------------------------------------- two replicas


@pytest.mark.postgres
async def test_another_replica_sees_a_draft_and_may_not_write_it(two: tuple[SqlStoreHarness, SqlStoreHarness]) -> None:
    one, other = two
    await one.store.apply(by("t1"), replacing("A", name="n"))
    await one.commits.flushed()
    artifact = await other.store.get(by("t2"))
    assert (artifact.text, artifact.name, artifact.open, artifact.changed_by) == ("A", "n", True, "t1")
    for change in (appending("B"), ReplaceParts((FilePart(b"x"),)), Undo()):
        with pytest.raises(ArtifactBusy) as caught:
            await other.store.apply(by("t2"), change)
        assert caught.value.task_id == "t1"
    await other.store.prepare(by("t2"))
    await one.store.apply(by("t1"), appending("B", last_chunk=True))
    await one.commits.flushed()
    assert (await other.store.apply(by("t2"), appending("C"))).artifact.text == "ABC"


@pytest.mark.postgres
async def test_numbers_and_guards_hold_across_replicas(two: tuple[SqlStoreHarness, SqlStoreHarness]) -> None:
    one, other = two
    for number in range(1, 7):
        store = two[number % 2].store
        applied = await store.apply(by(f"t{number}"), replacing(str(number), last_chunk=True, base=number - 1))
        assert applied.version == number
    for store in (one.store, other.store):
        with pytest.raises(VersionConflict) as caught:
            await store.apply(by("t1"), EditText(Span(0, 1), "x", 5))
        assert (caught.value.base, caught.value.current) == (5, 6)
    await one.store.apply(by("t1"), Undo(base=6))
    assert (await other.store.apply(by("t2"), Redo(base=5))).version == 6
    await other.commits.flushed()
    assert await one.store.versions(by("")) == await other.store.versions(by(""))
    assert [version.content.text for version in await one.store.versions(by(""))] == [*"123456"]


@pytest.mark.postgres
async def test_of_replicas_that_write_at_once_each_gets_its_turn(two: tuple[SqlStoreHarness, SqlStoreHarness]) -> None:
    writers = [
        store.store.apply(by(f"t{number}"), appending(str(number), last_chunk=True))
        for number in range(6)
        for store in [two[number % 2]]
    ]
    applied = await asyncio.gather(*writers)
    for each in two:
        await each.commits.flushed()
    assert sorted(each.version for each in applied) == [1, 2, 3, 4, 5, 6]
    text = (await two[0].store.get(by(""))).text
    assert sorted(text) == [*"012345"]
    assert [version.content.text for version in await two[1].store.versions(by(""))] == [text[:n] for n in range(1, 7)]


@pytest.mark.postgres
async def test_artifacts_of_all_replicas_are_listed_in_the_order_of_their_last_change(
    two: tuple[SqlStoreHarness, SqlStoreHarness],
) -> None:
    one, other = two
    await one.store.apply(by("t1", "a"), replacing("a"))
    await other.store.apply(by("t2", "b"), replacing("b", last_chunk=True))
    await one.store.apply(by("t1", "d"), replacing("d"))
    for each in two:
        await each.commits.flushed()
    for each in two:
        assert [artifact.text for artifact in await each.store.list("c")] == ["a", "b", "d"]
    await one.store.apply(by("t1", "a"), appending("+"))
    assert [artifact.text for artifact in await one.store.list("c")] == ["b", "d", "a+"]


@pytest.mark.postgres
async def test_a_refused_change_lets_go_of_the_artifact_and_makes_none(
    two: tuple[SqlStoreHarness, SqlStoreHarness],
) -> None:
    one, other = two
    for change in (Undo(), ReplaceParts(()), Restore(1)):
        with pytest.raises(StoreError):
            await one.store.apply(by("t1"), change)
        await one.commits.flushed()
    assert [holder for _, _, holder in await revisions(one)] == [None]
    for store in (one.store, other.store):
        assert await store.list("c") == ()
        with pytest.raises(ArtifactNotFound):
            await store.get(by("t1"))
    async with one.database.read() as connection:
        assert await reading.read_heads(connection, "c") == {}
    assert (await other.store.apply(by("t2"), appending("x", last_chunk=True))).version == 1


@pytest.mark.postgres
async def test_what_was_prepared_and_not_changed_is_let_go(
    two: tuple[SqlStoreHarness, SqlStoreHarness], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(artifact_lease, "IDLE_SECONDS", 0.1)
    await one.store.prepare(by("t1"))
    assert (await other.store.apply(by("t2"), appending("x", last_chunk=True))).version == 1


async def test_one_attempt_serves_all_who_ask_at_once_and_goes_on_when_they_leave(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(artifact_lease.Leases, "_acquire", counted(artifact_lease.Leases._acquire, begun))
    monkeypatch.setattr(artifact_lease, "IDLE_SECONDS", 0.1)
    async with open_store(database, first(database)) as harness:
        asking = [asyncio.create_task(harness.store.apply(by("t1"), appending("x"))) for _ in range(5)]
        leaving = asyncio.create_task(harness.store.prepare(by("t1", "b")))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(*asking)
        assert begun == ["a", "b"]
        await harness.store.close(by("t1"))
        async with open_store(database, second(database, "r1")) as other:
            assert (await other.store.apply(by("t2", "b"), appending("x"))).artifact.text == "x"


def counted(take: Callable[..., Coroutine[Any, Any, None]], begun: list[str]) -> Callable[..., Any]:
    async def counting(self: object, key: tuple[str, str], into: object) -> None:
        begun.append(key[1])
        await take(self, key, into)

    return counting


@pytest.mark.postgres
async def test_the_draft_of_a_task_that_came_over_is_waited_for_until_its_replica_lets_go(
    two: tuple[SqlStoreHarness, SqlStoreHarness],
) -> None:
    one, other = two
    await one.store.apply(by("t1"), replacing("A"))
    await one.commits.flushed()
    waiting = await waits(other.store.apply(by("t1"), appending("B")))
    other.replica.living.discard("r1")
    assert (await waiting).artifact.text == "AB"


@pytest.mark.postgres
async def test_who_is_not_let_in_is_told_to_try_again(
    two: tuple[SqlStoreHarness, SqlStoreHarness], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(artifact_lease, "ACQUIRE_SECONDS", 0.1)
    await one.store.apply(by("t1"), replacing("A"))
    await one.commits.flushed()
    with pytest.raises(Unavailable, match="does not release artifact 'a'"):
        await other.store.apply(by("t1"), appending("B"))
    assert (await one.store.apply(by("t1"), appending("C"))).artifact.text == "AC"


# --------------------------------------------------------------------------------------------------- fencing


@pytest.mark.postgres
async def test_a_replica_that_was_taken_for_dead_cannot_write_any_more(
    two: tuple[SqlStoreHarness, SqlStoreHarness],
) -> None:
    one, other = two
    await one.store.apply(by("t1"), replacing("A"))
    await one.commits.flushed()
    other.replica.living.discard("r1")
    assert (await other.store.close(by("t1"))) is not None
    assert (await other.store.apply(by("t2"), appending("B", last_chunk=True))).version == 2
    await other.commits.flushed()
    await one.store.apply(by("t1"), appending("late", last_chunk=True))
    with pytest.raises(Unavailable):
        await one.commits.flushed()
    assert one.lost == 1
    one.replica.id = "r3"
    one.replica.living.add("r3")
    for each in two:
        assert [version.content.text for version in await each.store.versions(by(""))] == ["A", "AB"]
    assert (await one.store.apply(by("t3"), appending("C", last_chunk=True))).version == 3


async def test_who_reads_what_will_never_be_committed_is_told_to_try_again(idle: SqlStoreHarness) -> None:
    await idle.store.apply(by("t1"), replacing("A", last_chunk=True))
    reading = await waits(idle.store.get(by("")))
    idle.store.forget()
    idle.commits.give_up()
    with pytest.raises(Unavailable, match="another replica has taken over"):
        await reading
    with pytest.raises(ArtifactNotFound):
        await idle.store.get(by(""))


async def test_what_was_being_asked_for_when_everything_was_forgotten_is_asked_for_again(
    harness: SqlStoreHarness,
) -> None:
    asking = asyncio.create_task(harness.store.apply(by("t1"), appending("A")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    harness.store.forget()
    assert (await asking).artifact.text == "A"
    await harness.commits.flushed()
    found = await rows_of(harness.database)
    assert found
    assert found.artifact.text == "A"


# ----------------------------------------------------------------------------------------------- unavailable


class Broken(Database):
    """A database whose transactions fail as long as `away` says. `tried` is set when one has failed and is repeated."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.away = False
        self.failed = False
        self.tried = asyncio.Event()

    async def transact(self, statements: Callable[[Connection], T]) -> T:
        if self.failed:
            self.tried.set()
        return await super().transact(lambda connection: self._unless_away(statements(connection)))

    def _unless_away(self, result: T) -> T:
        self.failed = self.away
        if self.away:
            raise Unavailable("it is away")
        return result


@pytest.fixture
async def broken(database: Database) -> AsyncIterator[tuple[SqlStoreHarness, Broken]]:
    opened = Broken(database.url.set(drivername=database.dialect).render_as_string(hide_password=False))
    async with open_store(opened, first(opened)) as harness:
        yield harness, opened
    await opened.close()


async def test_while_the_database_is_away_changes_wait_and_nothing_is_lost(
    broken: tuple[SqlStoreHarness, Broken],
) -> None:
    harness, database = broken
    await harness.store.apply(by("t1"), replacing("A"))
    await harness.store.apply(by("t1", "b"), replacing("B", last_chunk=True))
    await harness.commits.flushed()
    database.away = True
    await harness.store.apply(by("t1"), appending("+", last_chunk=True))
    await database.tried.wait()
    with pytest.raises(Unavailable, match="it is away"):
        await harness.store.get(by("t1"))
    assert (await harness.store.get(by("t1", "b"))).text == "B"
    database.away = False
    await harness.commits.flushed()
    assert (await harness.store.get(by("t1"))).text == "A+"
    found = await rows_of(database)
    assert found
    assert [version.content.text for version in found.versions] == ["A+"]


async def test_a_draft_that_grows_while_it_is_committed_is_stored_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async with sqlite_database() as database, open_store(database, FakeReplica()) as harness:
        committing, go_on, run = asyncio.Event(), asyncio.Event(), database.threads.run

        async def run_when_told(call: partial[None]) -> None:
            if call.func.__name__ == "commit":
                committing.set()
                await go_on.wait()
            await run(call)

        await harness.store.apply(by("t1"), delta(replacing("0 ")))
        await harness.commits.flushed()
        monkeypatch.setattr(database.threads, "run", run_when_told)
        for number in range(1, 20):
            await harness.store.apply(by("t1"), delta(appending(f"{number} ")))
            waiting = asyncio.create_task(harness.commits.flushed())
            await committing.wait()
            await harness.store.apply(by("t1"), delta(appending("and ")))
            assert (await harness.store.get(by("t1"))).text.endswith(f"{number} and ")
            go_on.set()
            await waiting
            committing.clear()
            go_on.clear()
        go_on.set()
        await harness.commits.flushed()
        monkeypatch.undo()
        found = await rows_of(database)
        assert found
        assert found.artifact.text == "0 " + "".join(f"{number} and " for number in range(1, 20))


# ------------------------------------------------------------------------------------------ rows, pruning


async def test_the_rows_show_what_is_committed(harness: SqlStoreHarness) -> None:
    await harness.store.apply(by("t1", "a"), replacing("a" * 50, last_chunk=True))
    for number in range(1, 5):
        await harness.store.apply(Ref("c", "a", "t2", "user"), EditText(Span(number, number + 1), "x", number))
    await harness.store.apply(by("t3", "a"), Undo())
    await harness.store.apply(by("t1", "b"), replacing("b", last_chunk=True))
    await harness.store.apply(Ref("c", "b", "t2", "user"), appending("+"))
    await harness.store.apply(by("t1", "d"), delta(replacing("d")))
    await harness.commits.flushed()
    harness.commits.pause()
    await harness.store.apply(by("t1", "d"), delta(appending("not yet")))
    async with harness.database.read() as connection:
        heads = await reading.read_heads(connection, "c")
        found = await reading.read_artifacts(connection, "c", heads)
    shown = [(each.artifact_id, each.text, each.version, each.open) for each in found]
    assert shown == [
        ("a", "axxx" + "a" * 46, 4, False),
        ("b", "b+", 1, True),
        ("d", "d", 0, True),
    ]


async def pruned(harness: SqlStoreHarness, *numbers: int) -> None:
    """As a sweep does it to an artifact that nobody holds."""
    async with harness.database.write() as connection:
        gone = versions.c.number.in_(numbers)
        await connection.execute(update(versions).where(gone).values(content=None, replacement=None))
        changed = {"pruned": len(numbers), "revision": artifacts.c.revision + 1}
        await connection.execute(update(artifacts).values(changed))


async def test_versions_pruned_meanwhile_are_gone_from_memory_too(harness: SqlStoreHarness) -> None:
    for text in "ABC":
        await harness.store.apply(by("t1"), replacing(text, last_chunk=True))
    assert len(await harness.store.versions(by(""))) == 3
    await harness.commits.flushed()
    await pruned(harness, 1)
    assert [version.pruned for version in await harness.store.versions(by(""))] == [True, False, False]
    for look in (harness.store.version(by(""), 1), harness.store.apply(by("t1"), Restore(1))):
        with pytest.raises(VersionPruned):
            await look
    assert (await harness.store.apply(by("t1"), Undo())).artifact.text == "B"


async def removed(harness: SqlStoreHarness) -> None:
    async with harness.database.write() as connection:
        for table in (artifacts, versions, drafts):
            await connection.execute(table.delete())


async def made_anew(harness: SqlStoreHarness) -> None:
    """By somebody who has come to the same revision."""
    async with harness.database.write() as connection:
        await connection.execute(update(artifacts).values(incarnation=artifacts.c.incarnation + 1))


@pytest.mark.parametrize("behind", [lambda harness: pruned(harness, 1), removed, made_anew])
async def test_memory_is_not_written_over_rows_that_were_changed_behind_it(behind) -> None:
    async with sqlite_database() as database, open_store(database, FakeReplica()) as harness:
        for text in "AB":
            await harness.store.apply(by("t1"), replacing(text, last_chunk=True))
        await harness.store.apply(by("t1"), delta(appending("draft")))
        await harness.commits.flushed()
        await behind(harness)
        before = await rows_of(database)
        await harness.store.discard(by("t1"))
        await harness.store.apply(by("t1"), Undo())
        with pytest.raises(Unavailable):
            await harness.commits.flushed()
        assert await rows_of(database) == before
        assert harness.lost == 1


async def test_nobody_gets_hold_of_an_artifact_whose_context_is_closed() -> None:
    async with sqlite_database() as database, open_store(database, FakeReplica()) as harness:
        with harness.store.frozen("c") as free, harness.store.frozen("c") as again:
            assert (free, again) == (True, False)
            changing = asyncio.create_task(harness.store.apply(by("t1"), replacing("A", last_chunk=True)))
            await harness.store.apply(by("t1", context="other"), replacing("B", last_chunk=True))
            assert not changing.done()
            with harness.store.frozen("other") as free:
                assert not free
        with harness.store.frozen("c") as free:
            assert not free  # somebody is about to
        assert (await changing).artifact.text == "A"
        with harness.store.frozen("c") as free:
            assert not free


@pytest.mark.postgres
async def test_an_artifact_whose_rows_another_replica_removed_is_not_written_again(
    two: tuple[SqlStoreHarness, SqlStoreHarness],
) -> None:
    one, _ = two
    await one.store.apply(by("t1"), replacing("A"))
    await one.commits.flushed()
    async with one.database.write() as connection:
        await connection.execute(artifacts.delete())
    await one.store.close(by("t1"))
    with pytest.raises(Unavailable):
        await one.commits.flushed()
    assert await one.store.list("c") == ()


async def test_who_has_waited_for_an_artifact_that_is_held_now_finds_it_as_it_has_been_changed(
    harness: SqlStoreHarness,
) -> None:
    await harness.store.apply(by("t1"), delta(appending("A")))
    await harness.store._leases.acquire(by("t1"))  # the next try of somebody else who waited
    await harness.store.apply(by("t1"), delta(appending("B")))
    await harness.commits.flushed()
    assert (await harness.store.get(by("t1"))).text == "AB"
    assert harness.lost == 0


class Slow:
    """Work of somebody else, which keeps the first transaction from its end."""

    def __init__(self) -> None:
        self.reached, self.release = asyncio.Event(), asyncio.Event()

    def collect(self, contexts: object = None) -> Slow | None:
        return None if self.reached.is_set() else self

    def write(self, connection: Connection) -> None:
        self.reached.set()
        await_only(self.release.wait())

    def done(self) -> None:
        pass


@pytest.mark.postgres
async def test_who_is_unused_while_it_is_let_go_is_let_go_once(
    two: tuple[SqlStoreHarness, SqlStoreHarness], monkeypatch
) -> None:
    monkeypatch.setattr(artifact_lease, "IDLE_SECONDS", 0.05)
    one, slow = two[0], Slow()
    await one.store.prepare(by("t1"))
    with pytest.raises(StoreError):
        await one.store.apply(by("t1"), Undo())
    one.commits.join(slow)
    one.commits.flush_now()
    await slow.reached.wait()
    asyncio.get_running_loop().call_later(2 * artifact_lease.IDLE_SECONDS, slow.release.set)
    await one.store.apply(by("t1"), replacing("A", last_chunk=True))
    await one.commits.flushed()
    assert one.lost == 0
    assert (await one.store.get(by("t1"))).text == "A"


def test_the_cache_keeps_what_was_used_last_within_its_bound() -> None:
    cache = Cache(limit=2500)

    def document(name: str, revision: int = 1) -> StoredDocument:
        made, _ = mutation.apply_change(Document(name), by("t1", name), replacing("x" * 500, last_chunk=True), Limits())
        return StoredDocument(made, ArtifactHead(revision=revision, newest=1, current=1), 0, (0,))

    for name in "abc":
        cache.put(("c", name), document(name))
        cache.fresh(("c", "a"), ArtifactHead(revision=1))
    assert [bool(cache.fresh(("c", name), ArtifactHead(revision=1))) for name in "abc"] == [True, False, True]
    assert cache.fresh(("c", "a"), ArtifactHead(revision=2)) is None
    cache.put(("c", "a"), document("a", 2))
    assert cache.fresh(("c", "c"), ArtifactHead(revision=1))
    cache.clear()
    assert cache.fresh(("c", "c"), ArtifactHead(revision=1)) is None


# ------------------------------------------------------------------------- odd ids


@pytest.mark.parametrize("odd", ["a\0b", "a\ud83db"])
async def test_an_odd_id_is_one_artifact_however_it_is_looked_for(harness: SqlStoreHarness, odd: str) -> None:
    """Nothing waits for ever: what is taken hold of is found again."""
    ref, plain = Ref(odd, odd, "t1"), Ref("a\ufffdb", "a\ufffdb", "t1")
    async with asyncio.timeout(20):
        await asyncio.gather(*(harness.store.apply(ref, appending("x")) for _ in range(20)))
        await harness.store.close(ref)
        await harness.commits.flushed()
        harness.store.forget()
        shown = [await harness.store.get(each) for each in (ref, plain)]
        listed = await harness.store.list(odd)
    assert [artifact.text for artifact in (*shown, *listed)] == ["x" * 20] * 3


async def test_who_cannot_get_hold_is_told_so_and_lets_others_run(
    harness: SqlStoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(ref: Ref) -> None:
        return

    monkeypatch.setattr(harness.store._leases, "acquire", nothing)
    monkeypatch.setattr("a2a_canvas.store.sql.sql_artifact_store.ACQUIRE_SECONDS", 0.05)
    others = asyncio.Event()
    asyncio.get_running_loop().call_soon(others.set)
    with pytest.raises(Unavailable):
        await harness.store.apply(Ref("c", "a", "t1"), appending("x"))
    assert others.is_set()
