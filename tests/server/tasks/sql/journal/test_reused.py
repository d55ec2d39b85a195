"""A context that was removed and is used again has nothing of the first, for whoever knew the first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.tasks.errors import StreamLost, TaskNotFound
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.prune import PruneResult, Retention, prune
from a2a_canvas.server.tasks.sql.projections.context_rows import contexts
from a2a_canvas.store.changes import Change, EditText, Undo
from a2a_canvas.store.errors import ArtifactNotFound, StoreError, VersionNotFound, VersionPruned
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.models import Artifact, Ref, Version
from a2a_canvas.store.sql import artifact_lease
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.sql_artifact_store import SqlArtifactStore
from a2a_canvas.store.sql.tables import versions
from a2a_canvas.store.text.spans import Span
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import answer, said, text, write
from tests.new_database import create_tables
from tests.property_examples import examples
from tests.server.tasks.runtime.runtime_harness import rest
from tests.server.tasks.sql.replica_harness import Replica
from tests.store.artifact_builders import by, delta, replacing
from tests.store.sql.sql_fixtures import FakeReplica, SqlStoreHarness, open_store

SOON = 60.0
"""Seconds after which a test says that what it waits for never comes."""
DOC = Ref("c", "doc", "")
DONE = answer(text("Done."))


class RemovalHarness:
    """Replicas on one database, of which one context is removed as if it were old."""

    def __init__(self, url: str, stack: AsyncExitStack) -> None:
        self.url = url
        self._stack = stack

    async def start(self, *texts: str) -> Replica:
        """A replica whose model writes these to `doc`, one for each message."""
        replica = Replica(self.url, [call for words in texts for call in (answer(write("T", words)), DONE)])
        await replica.backend.start(replica.runtime)
        self._stack.push_async_callback(replica.stop)
        return replica

    async def remove(self, by: Replica) -> None:
        """The sweep of a replica, much later."""
        await by.backend.commits.flushed()
        later = datetime.now(UTC) + timedelta(days=3)
        async with asyncio.timeout(SOON):
            while (await sweep(by, later)).contexts == 0:  # until nobody holds anything of it any more
                pass


async def sweep(by: Replica, now: datetime) -> PruneResult:
    keep = Retention(timedelta(days=100), contexts=timedelta(days=1))
    return await prune(by.backend._database, keep, now, by.backend.store.frozen)


@pytest.fixture(autouse=True)
def soon_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_lease, "IDLE_SECONDS", 0.01)


@pytest.fixture(params=[sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RemovalHarness]:
    async with _world(request.param(tmp_path)) as made:
        yield made


@pytest.fixture
async def two() -> AsyncIterator[RemovalHarness]:
    async with _world(postgresql_url()) as made:
        yield made


@asynccontextmanager
async def _world(url: str) -> AsyncIterator[RemovalHarness]:
    database = Database(url)
    await create_tables(database)
    await database.close()
    async with AsyncExitStack() as stack:
        yield RemovalHarness(url, stack)


async def wrote(replica: Replica, name: str, context: str = "c") -> None:
    """A message has been answered by writing `doc`."""
    await rest(await replica.send(said(f"m-{name}", name), context=context))


async def texts(replica: Replica) -> list[str]:
    return [version.content.text for version in await replica.backend.store.versions(DOC)]


# ------------------------------------------------------------------------------- artifacts


async def test_an_artifact_that_is_written_again_begins_anew_where_the_first_was_known(harness) -> None:
    a = await harness.start("one", "two", "new")
    await wrote(a, "1")
    await wrote(a, "2")
    assert await texts(a) == ["one", "two"]
    await harness.remove(a)
    with pytest.raises(ArtifactNotFound):
        await a.backend.store.get(DOC)
    await wrote(a, "3")
    artifact = await a.backend.store.get(DOC)
    assert (artifact.version, artifact.text, await texts(a)) == (1, "new", ["new"])
    with pytest.raises(VersionNotFound):
        await a.backend.store.version(DOC, 2)


async def test_it_can_be_edited_and_undone_before_and_after_a_restart(harness) -> None:
    a = await harness.start("one", "two", "three", "new")
    for name in ("1", "2", "3"):
        await wrote(a, name)
    await texts(a)
    await harness.remove(a)
    await wrote(a, "4")
    await edit(a, "!")
    await a.stop()
    b = await harness.start()
    await edit(b, "?")
    assert await texts(b) == ["new", "!new", "?!new"]
    await b.backend.store.apply(by("t", "doc"), Undo())
    assert (await b.backend.store.get(DOC)).text == "!new"


async def edit(replica: Replica, words: str) -> None:
    ref, current = by("t", "doc"), (await replica.backend.store.get(DOC)).version
    await replica.backend.store.apply(ref, EditText(Span(0, 0), words, base=current))
    await replica.backend.store.close(ref)
    await replica.backend.commits.flushed()


@pytest.mark.postgres
async def test_another_server_shows_the_new_text_at_whatever_revision_it_knew_the_old_one(two) -> None:
    a, b = await two.start("one", "new"), await two.start()
    await wrote(a, "1")
    assert await texts(b) == ["one"]
    await two.remove(b)
    await wrote(a, "2")
    assert await texts(b) == ["new"]
    await edit(b, "!")
    assert await texts(a) == ["new", "!new"]


# --------------------------------------------------------------------- what is said of it


async def test_who_follows_a_removed_context_is_told_and_finds_the_new_one_when_it_comes_back(harness) -> None:
    a = await harness.start("one", "two", "new")
    await wrote(a, "1")
    await wrote(a, "2")
    old = await a.backend.journal.follow_context("c")
    await harness.remove(a)
    with pytest.raises(StreamLost):
        async with asyncio.timeout(SOON):
            await anext(aiter(old))
    await wrote(a, "3")
    new = await a.backend.journal.follow_context("c")
    assert new.snapshot.incarnation not in (None, old.snapshot.incarnation)
    assert new.snapshot.artifacts["doc"].artifact.content.text == "new"


async def test_contexts_that_begin_in_one_transaction_have_incarnations_of_their_own(harness) -> None:
    journal, keys = (await harness.start()).backend.journal, [context_key(owner, "notes") for owner in ("ann", "bob")]
    for number, key in enumerate(keys):
        await journal.create(
            TaskRecord(f"t{number}", key, "", datetime(2026, 1, 1, tzinfo=UTC), history=(said("m", "Go"),))
        )
    await journal.flushed("t1")
    found = [(await journal.follow_context(key)).snapshot.incarnation for key in keys]
    assert None not in found
    assert len({*found}) == len(keys)


@pytest.mark.postgres
async def test_who_has_not_heard_of_the_removal_hears_of_it_from_the_next_change(two) -> None:
    a, b = await two.start("one", "new"), await two.start()
    await wrote(a, "1")
    old = aiter(await b.backend.journal.follow_context("c"))
    await b.backend._listener.stop()
    await two.remove(a)
    await wrote(a, "2")
    await b.backend.journal.refresh((), ("c",))
    with pytest.raises(StreamLost):
        async with asyncio.timeout(SOON):
            await anext(old)
    b.backend._listener.start()


@pytest.mark.postgres
async def test_who_follows_a_task_of_a_removed_context_is_told(two) -> None:
    a, b = await two.start("one"), await two.start()
    following = await a.send("1")
    task_id = following.snapshot.task_id
    await b.backend._listener.stop()  # it hears nothing of the task's end
    there = await b.runtime.follow(task_id, ANONYMOUS)
    await rest(following)
    await two.remove(a)
    await b.backend.journal.refresh_all()
    with pytest.raises(StreamLost):
        async with asyncio.timeout(SOON):
            await rest(there)
    b.backend._listener.start()


async def test_a_message_that_was_accepted_by_a_removed_context_begins_a_task_when_it_comes_again(harness) -> None:
    a = await harness.start("one", "new")
    first = await a.send("1")
    await rest(first)
    await harness.remove(a)
    with pytest.raises(TaskNotFound):
        await a.record(first.snapshot.task_id)
    again = await a.send("1")
    await rest(again)
    assert again.snapshot.task_id != first.snapshot.task_id
    assert await texts(a) == ["new"]


# ------------------------------------------------------------- SQLite: memory and the sweep


@asynccontextmanager
async def swept_beside() -> AsyncIterator[SqlStoreHarness]:
    """A store on a new file, in which a context has its row."""
    with TemporaryDirectory() as folder:
        database = Database(sqlite_url(Path(folder)))
        await create_tables(database)
        await begun(database)
        async with open_store(database, FakeReplica()) as harness:
            yield harness
        await database.close()


async def begun(database: Database) -> None:
    async with database.write() as connection:
        row = {"context_id": "c", "tasks": 1, "position": 0, "changed_at": 1, "incarnation": 1}
        await connection.execute(insert(contexts).values(row).prefix_with("OR IGNORE"))


async def written(harness: SqlStoreHarness, *words: str) -> None:
    for each in words:
        await harness.store.apply(by("t"), replacing(each, last_chunk=True))


async def let_go(harness: SqlStoreHarness) -> None:
    """Everything is committed, and nothing held any more."""
    await harness.commits.flushed()
    while True:
        with harness.store.frozen("c") as free:
            if free:
                return
        await asyncio.sleep(0)


async def pruned(harness: SqlStoreHarness, *, contexts: bool = False) -> PruneResult:
    """The sweep, much later."""
    keep = Retention(timedelta(days=100), timedelta(days=1), timedelta(days=1) if contexts else None)
    return await prune(harness.database, keep, datetime.now(UTC) + timedelta(days=3), harness.store.frozen)


async def test_a_sweep_leaves_versions_alone_while_a_change_of_their_artifact_is_staged() -> None:
    async with swept_beside() as harness:
        await written(harness, "one", "two")
        await let_go(harness)
        assert (await pruned(harness)).versions == 1
        await written(harness, "three")
        await let_go(harness)
        made = await made_at(harness)
        await harness.store.apply(by("t"), delta(replacing("four")))
        assert (await pruned(harness)).versions == 0
        await harness.store.close(by("t"))
        await let_go(harness)
        assert (await made_at(harness))[:3] == made
        with pytest.raises(VersionPruned):
            await harness.store.version(by("t"), 1)
        assert (await harness.store.apply(by("t"), Undo())).artifact.text == "three"
        await let_go(harness)
        assert (await pruned(harness)).versions == 2


async def made_at(harness: SqlStoreHarness) -> list[datetime]:
    async with harness.database.read() as connection:
        return list(await connection.scalars(select(versions.c.made_at).order_by(versions.c.number)))


async def test_a_context_stays_while_an_artifact_of_it_is_held_though_nothing_is_staged(monkeypatch) -> None:
    monkeypatch.setattr(artifact_lease, "IDLE_SECONDS", 3600.0)
    async with swept_beside() as harness:
        await written(harness, "one")
        await harness.commits.flushed()
        await harness.store.prepare(by("t"))
        assert (await pruned(harness, contexts=True)).contexts == 0
        await written(harness, "two")
        assert [version.content.text for version in await harness.store.versions(by("t"))] == ["one", "two"]


class Reuse:
    """An artifact in memory and in its rows, and the texts that its versions must have."""

    def __init__(self, harness: SqlStoreHarness) -> None:
        self._kept = harness
        self._texts: list[str] = []

    async def do(self, step: str) -> None:
        match step:
            case "write" | "type":
                await self._write(typing=step == "type" and bool(self._texts))
            case "undo" if self._texts:
                with suppress(StoreError):
                    await self._kept.store.apply(by("t"), Undo())
            case "wait":
                await let_go(self._kept)
            case "prune":
                await pruned(self._kept)
            case "remove":
                await begun(self._kept.database)
                if (await pruned(self._kept, contexts=True)).contexts:
                    self._texts = []

    async def _write(self, typing: bool) -> None:
        words = f"{len(self._texts)} "
        if typing:
            current = await self._kept.store.get(by("t"))
            change: Change = EditText(Span(0, 0), words, base=current.version)
            words += current.text
        else:
            change = replacing(words, last_chunk=True)
        await self._kept.store.apply(by("t"), change)
        await self._kept.store.close(by("t"))
        self._texts.append(words)

    async def check(self) -> None:
        """Memory and a store that reads the rows say the same, and nothing of what was removed."""
        await self._kept.commits.flushed()
        async with open_store(self._kept.database, FakeReplica("reader")) as reader:
            seen = [await of(store) for store in (self._kept.store, reader.store)]
        assert seen[0] == seen[1]
        found = seen[0][0]
        assert [version.number for version in found] == [*range(1, len(self._texts) + 1)]
        assert all(v.pruned or v.content.text == words for v, words in zip(found, self._texts, strict=True))


async def of(store: SqlArtifactStore) -> tuple[tuple[Version, ...], Artifact | None]:
    try:
        return await store.versions(by("t")), await store.get(by("t"))
    except ArtifactNotFound:
        return (), None


STEPS = ["write", "write", "type", "type", "undo", "wait", "wait", "prune", "remove"]


@given(st.lists(st.sampled_from(STEPS), max_size=20))
@settings(max_examples=examples(25))
def test_whatever_is_pruned_removed_and_used_again_memory_says_what_the_rows_say(steps: list[str]) -> None:
    async def run() -> None:
        async with swept_beside() as harness:
            reuse = Reuse(harness)
            for step in steps:
                await reuse.do(step)
                if step != "write":  # else what follows finds it staged
                    await reuse.check()
            await reuse.check()

    asyncio.run(run())
