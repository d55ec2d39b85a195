"""A context that was removed and is used again has nothing of the first, for whoever knew the first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from server.tasks.errors import StreamLost, TaskNotFound
from server.tasks.sql.prune import Keep, Pruned, prune
from server.tasks.sql.tables import metadata
from store.changes import EditText, Undo
from store.errors import ArtifactNotFound, VersionNotFound
from store.models import Ref
from store.sql import holding
from store.sql.database import Database
from store.text import Span
from tests.databases import postgresql_url, sqlite_url
from tests.fakes import answer, said, text, write
from tests.server.tasks.sql.replica import Replica
from tests.server.tasks.test_runtime import rest
from tests.store.making import by

SOON = 10.0
"""Seconds after which a test says that what it waits for never comes."""
DOC = Ref("c", "doc", "")
DONE = answer(text("Done."))


class World:
    """Replicas on one database, of which one context is removed as if it were old."""

    def __init__(self, url: str, stack: AsyncExitStack) -> None:
        self.url = url
        self._stack = stack

    async def start(self, *texts: str) -> Replica:
        """A replica whose model writes these to `doc`, one for each message."""
        replica = Replica(self.url, [call for words in texts for call in (answer(write("T", words)), DONE)])
        await replica.house.start(replica.runtime)
        self._stack.push_async_callback(replica.stop)
        return replica

    async def remove(self, by: Replica) -> None:
        """The sweep of a replica, much later."""
        await by.house.commits.settled()
        later = datetime.now(UTC) + timedelta(days=3)
        async with asyncio.timeout(SOON):
            while (await sweep(by, later)).contexts == 0:  # until nobody holds anything of it any more
                pass


async def sweep(by: Replica, now: datetime) -> Pruned:
    keep = Keep(timedelta(days=100), contexts=timedelta(days=1))
    return await prune(by.house._database, keep, now, by.house.store.closed)


@pytest.fixture(autouse=True)
def soon_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "UNUSED", 0.01)


@pytest.fixture(params=[sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with _world(request.param(tmp_path)) as made:
        yield made


@pytest.fixture
async def two() -> AsyncIterator[World]:
    async with _world(postgresql_url()) as made:
        yield made


@asynccontextmanager
async def _world(url: str) -> AsyncIterator[World]:
    database = Database(url)
    async with database.write() as connection:
        await connection.run_sync(metadata.create_all)
    await database.close()
    async with AsyncExitStack() as stack:
        yield World(url, stack)


async def wrote(replica: Replica, name: str, context: str = "c") -> None:
    """A message has been answered by writing `doc`."""
    await rest(await replica.send(said(f"m-{name}", name), context=context))


async def texts(replica: Replica) -> list[str]:
    return [version.content.text for version in await replica.house.store.versions(DOC)]


# ------------------------------------------------------------------------------- artifacts


async def test_an_artifact_that_is_written_again_begins_anew_where_the_first_was_known(world) -> None:
    a = await world.start("one", "two", "new")
    await wrote(a, "1")
    await wrote(a, "2")
    assert await texts(a) == ["one", "two"]
    await world.remove(a)
    with pytest.raises(ArtifactNotFound):
        await a.house.store.get(DOC)
    await wrote(a, "3")
    artifact = await a.house.store.get(DOC)
    assert (artifact.version, artifact.text, await texts(a)) == (1, "new", ["new"])
    with pytest.raises(VersionNotFound):
        await a.house.store.version(DOC, 2)


async def test_it_can_be_edited_and_undone_before_and_after_a_restart(world) -> None:
    a = await world.start("one", "two", "three", "new")
    for name in ("1", "2", "3"):
        await wrote(a, name)
    await texts(a)
    await world.remove(a)
    await wrote(a, "4")
    await edit(a, "!")
    await a.stop()
    b = await world.start()
    await edit(b, "?")
    assert await texts(b) == ["new", "!new", "?!new"]
    await b.house.store.apply(by("t", "doc"), Undo())
    assert (await b.house.store.get(DOC)).text == "!new"


async def edit(replica: Replica, words: str) -> None:
    ref, current = by("t", "doc"), (await replica.house.store.get(DOC)).version
    await replica.house.store.apply(ref, EditText(Span(0, 0), words, base=current))
    await replica.house.store.close(ref)
    await replica.house.commits.settled()


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


async def test_who_follows_a_removed_context_is_told_and_finds_the_new_one_when_it_comes_back(world) -> None:
    a = await world.start("one", "two", "new")
    await wrote(a, "1")
    await wrote(a, "2")
    old = await a.house.journal.follow_context("c")
    await world.remove(a)
    with pytest.raises(StreamLost):
        async with asyncio.timeout(SOON):
            await anext(aiter(old))
    await wrote(a, "3")
    new = await a.house.journal.follow_context("c")
    assert new.snapshot.incarnation not in (None, old.snapshot.incarnation)
    assert new.snapshot.artifacts["doc"].artifact.content.text == "new"


async def test_who_has_not_heard_of_the_removal_hears_of_it_from_the_next_change(two) -> None:
    a, b = await two.start("one", "new"), await two.start()
    await wrote(a, "1")
    old = aiter(await b.house.journal.follow_context("c"))
    await b.house._wakeups.stop()
    await two.remove(a)
    await wrote(a, "2")
    await b.house.journal.news((), ("c",))
    with pytest.raises(StreamLost):
        async with asyncio.timeout(SOON):
            await anext(old)
    b.house._wakeups.start()


async def test_who_follows_a_task_of_a_removed_context_is_told(two) -> None:
    a, b = await two.start("one"), await two.start()
    following = await a.send("1")
    task_id = following.snapshot.task_id
    await b.house._wakeups.stop()  # it hears nothing of the task's end
    there = await b.runtime.follow(task_id, "")
    await rest(following)
    await two.remove(a)
    await b.house.journal.catch_up()
    with pytest.raises(StreamLost):
        async with asyncio.timeout(SOON):
            await rest(there)
    b.house._wakeups.start()


async def test_a_message_that_was_accepted_by_a_removed_context_begins_a_task_when_it_comes_again(world) -> None:
    a = await world.start("one", "new")
    first = await a.send("1")
    await rest(first)
    await world.remove(a)
    with pytest.raises(TaskNotFound):
        await a.record(first.snapshot.task_id)
    again = await a.send("1")
    await rest(again)
    assert again.snapshot.task_id != first.snapshot.task_id
    assert await texts(a) == ["new"]
