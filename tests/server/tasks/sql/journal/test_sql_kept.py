"""What a database says that it keeps: counted with every write and every removal, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller, Level, Share
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.server.tasks.sql.journal.sql_kept import GOOD_FOR, SqlKeptBytes, UserBytes, read_kept
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.tables import with_shard
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import answer, said, text, write
from tests.server.tasks.kept_count import counted, recounted
from tests.server.tasks.sql.replica_harness import Replica, Replicas, replicas

LONG_AGO = timedelta(days=1)


@pytest.fixture(params=[sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
async def several(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Replicas]:
    make: Callable[[Path], str] = request.param
    async with replicas(make(tmp_path)) as started:
        yield started


@pytest.fixture
async def database(several: Replicas) -> AsyncIterator[Database]:
    opened = Database(several.url)
    yield opened
    await opened.close()


async def write_in(replica: Replica, context: str, words: str = "Write") -> str:
    """The id of a task that has written an artifact."""
    return (await (await replica.send(words, context=context)).wait_until_settled()).task_id


def writing(*words: str) -> list[list[object]]:
    return [calls for each in words for calls in ([*answer(*write("T1", each))], [*answer(text("Done"))])]


async def test_every_version_counts_and_what_is_removed_does_not(several: Replicas, database: Database) -> None:
    replica = await several.start(*writing("Tide " * 300, "Moon " * 300, "Sun " * 300))
    await write_in(replica, "c")
    first = await counted(database)
    await write_in(replica, "c", "Again")
    await write_in(replica, "d")
    both = await counted(database)
    assert both["c"] > first["c"]
    await replica.backend.contexts.remove("c", "")
    assert await counted(database) == await recounted(database) == {"d": both["d"]}


async def test_what_retention_removes_does_not_count(several: Replicas, database: Database) -> None:
    replica = await several.start(*writing("Tide " * 300, "Moon " * 300))
    await write_in(replica, "c")
    await write_in(replica, "c", "Again")
    await several.stop()
    sizes = [(await counted(database))["c"]]
    for keep in (Retention(LONG_AGO), Retention(LONG_AGO, LONG_AGO)):
        pruned = await prune(database, keep, datetime.now(UTC) + 2 * LONG_AGO)
        assert await counted(database) == await recounted(database)
        sizes.append((await counted(database))["c"])
        assert sizes[-2] - sizes[-1] == pruned.bytes > 0
    pruned = await prune(database, Retention(LONG_AGO, contexts=LONG_AGO), datetime.now(UTC) + 2 * LONG_AGO)
    assert (await counted(database), pruned.bytes) == ({}, sizes[-1])


async def test_push_configs_count(several: Replicas, database: Database) -> None:
    replica = await several.start(*writing("Tide"))
    task = await write_in(replica, "c")
    before = (await counted(database))["c"]
    config = PushConfig(ConfigKey("c", task, "p"), ANONYMOUS, "1.0", "https://a.example/", "a.example:443", "secret")
    for _ in range(2):  # the second replaces the first
        await replica.backend.push.add(config)
        assert (await counted(database))["c"] == before + len("https://a.example/a.example:443secret")
    await replica.backend.push.remove(config.key)
    assert (await counted(database))["c"] == before


async def test_a_push_config_that_comes_with_a_message_counts(several: Replicas, database: Database) -> None:
    replica = await several.start(*writing("Tide"))
    config = PushConfig(ConfigKey("c", "", "p"), ANONYMOUS, "1.0", "https://a.example/", "a.example:443", "secret")
    await (
        await replica.runtime.send(Incoming(said("m", "Write"), "", "c", push=config), ANONYMOUS)
    ).wait_until_settled()
    counts = [await counted(database), await recounted(database)]
    assert counts[0] == counts[1]


async def test_shares_count(several: Replicas, database: Database) -> None:
    replica = await several.start(*writing("Tide"))
    await write_in(replica, "c")
    before, now = (await counted(database))["c"], datetime.now(UTC)
    for share_id, given in (("1", {"user": "joe"}), ("2", {"user": "joe"}), ("3", {"expires_at": now + LONG_AGO})):
        await replica.backend.shares.add(Share(share_id, "c", "ann", Level.READ, now, **given))  # joe has one at most
    assert (await counted(database))["c"] == before + len(f"2{with_shard('c')}annjoe") + len(f"3{with_shard('c')}ann")
    assert await replica.backend.shares.revoke("c", "2")
    assert (await counted(database))["c"] == before + len(f"3{with_shard('c')}ann")
    await prune(database, Retention(100 * LONG_AGO), now + 3 * LONG_AGO)
    assert (await counted(database))["c"] == before


async def test_users_are_told_from_one_another_and_the_largest_comes_first(
    several: Replicas, database: Database
) -> None:
    replica = await several.start(*writing("Tide", "Moon", "Sun"))
    for name, context in (("ann", "c"), ("joe", "c"), ("joe", "d")):
        message = said(f"m-{name}-{context}", "Write")
        await (await replica.runtime.send(Incoming(message, "", context), Caller(name))).wait_until_settled()
    found = await read_kept(database)
    assert [(each.user, each.contexts) for each in found] == [("joe", 2), ("ann", 1)]
    kept = SqlKeptBytes(database)
    ann, joe = await kept.sum_of(("ann",)), await kept.sum_of(("joe",))
    assert [each.kept_bytes for each in found] == [joe, ann]
    assert await kept.sum_of(("ann", "")) == ann
    assert await kept.sum_of_all() == await kept.sum_of(("ann", "joe")) == ann + joe
    assert await kept.sum_of(("bob",)) == 0
    assert await read_kept(database, "joe") == [UserBytes("joe", joe, 2)]


async def test_who_asks_at_once_shares_one_reading(several: Replicas, database: Database) -> None:
    replica = await several.start(*writing("Tide"))
    await write_in(replica, "c")
    asked: list[str] = []
    event.listen(database._reader.sync_engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    kept = SqlKeptBytes(database)
    sums = await asyncio.gather(*(kept.sum_of([""]) for _ in range(10)), kept.sum_of_all())
    assert len(set(sums)) == 1
    assert sum("sum(" in each for each in asked) == 2


async def test_a_sum_that_took_long_is_good_for_longer(several: Replicas, database: Database) -> None:
    time = iter([0.0, 1.0, GOOD_FOR - 0.5, GOOD_FOR + 0.5, GOOD_FOR + 0.5])
    kept = SqlKeptBytes(database, lambda: next(time))
    assert await kept.sum_of_all() == 0
    replica = await several.start(*writing("Tide"))
    await write_in(replica, "c")
    assert await kept.sum_of_all() == 0
    assert await kept.sum_of_all() > 0
