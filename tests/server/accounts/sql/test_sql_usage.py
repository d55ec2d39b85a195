"""What users have used, in a database: stored by day, and known to the other servers of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from a2a_canvas.server.accounts.errors import QuotaReached
from a2a_canvas.server.accounts.quotas import DAY, EVERYBODY, Meter, Quota
from a2a_canvas.server.accounts.sql.sql_usage import ALIVE, KEPT_DAYS, STALE, SharedUsage, read_usage, usage
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import Clock


class Replica:
    """A server with a meter of its own."""

    def __init__(self, database: Database, clock: Clock, of_user: Quota | None = None) -> None:
        self.meter = Meter(clock, of_user)
        self.usage = SharedUsage(database, self.meter, clock, lambda: None)


def day_of(clock: Clock) -> int:
    return int(clock().timestamp()) // DAY


async def test_what_was_used_is_stored_by_user_and_day(database: Database) -> None:
    clock = Clock()
    server = Replica(database, clock)
    server.meter.count_request("ann")
    await server.usage.exchange()
    with server.meter.turn("ann"):
        server.meter.spend("ann", 100, 20)
    server.meter.count_request("")
    await server.usage.exchange()
    clock.move(timedelta(days=1))
    server.meter.count_request("ann")
    await server.usage.exchange()
    today = day_of(clock)
    found = [
        (each.user, each.day - today, each.requests, each.turns, each.tokens_in, each.tokens_out)
        for each in await read_usage(database, today - 1)
    ]
    assert found == [("ann", 0, 1, 0, 0, 0), ("", -1, 1, 0, 0, 0), ("ann", -1, 1, 1, 100, 20)]
    assert [each.day for each in await read_usage(database, today, "ann")] == [today]


async def test_after_a_restart_the_tokens_of_today_still_count(database: Database) -> None:
    clock, quota = Clock(), Quota(tokens=100)
    before = Replica(database, clock, quota)
    before.meter.spend("ann", 99, 1)
    await before.usage.exchange()
    after = Replica(database, clock, quota)
    await after.usage.exchange()
    with pytest.raises(QuotaReached):
        after.meter.check_tokens("ann")
    after.meter.check_tokens("joe")


async def rows_of(database: Database) -> list[tuple[str, int]]:
    async with database.read() as connection:
        return [(row[0], row[1]) for row in await connection.execute(select(usage.c.user_name, usage.c.day))]


async def test_restarts_do_not_multiply_the_rows_of_a_day(database: Database) -> None:
    clock = Clock()
    today = day_of(clock)
    for _ in range(5):
        server = Replica(database, clock)
        await server.usage.exchange()
        with server.meter.turn("ann"):
            server.meter.spend("ann", 100, 20)
        server.meter.count_request("ann")
        await server.usage.exchange()
    clock.move(timedelta(days=2))
    server = Replica(database, clock)
    await server.usage.exchange()
    await server.usage.exchange()
    assert sorted(await rows_of(database)) == sorted((user, today) for user in ("ann", EVERYBODY))
    [ann] = await read_usage(database, today)
    assert (ann.user, ann.requests, ann.turns, ann.tokens_in, ann.tokens_out) == ("ann", 5, 5, 500, 100)


@pytest.mark.parametrize("database", [sqlite_url], ids=["sqlite"], indirect=True)
async def test_on_sqlite_a_day_has_one_row_of_earlier_servers_and_their_requests_still_count(
    database: Database,
) -> None:
    clock = Clock()
    for _ in range(5):
        server = Replica(database, clock, Quota(requests=5))
        await server.usage.exchange()
        server.meter.count_request("ann")
        await server.usage.exchange()
    assert len(await rows_of(database)) == 4  # of ann and of everybody: one merged, and that of the last server
    server = Replica(database, clock, Quota(requests=5))
    await server.usage.exchange()
    with pytest.raises(QuotaReached):
        server.meter.count_request("ann")


async def test_rows_older_than_they_are_kept_are_removed_also_by_a_server_that_nobody_uses(database: Database) -> None:
    clock = Clock()
    server = Replica(database, clock)
    server.meter.count_request("ann")
    await server.usage.exchange()
    clock.move(timedelta(days=KEPT_DAYS + 1))
    await Replica(database, clock).usage.exchange()
    assert await rows_of(database) == []


@pytest.mark.parametrize("database", [lambda _: postgresql_url()], ids=["postgresql"], indirect=True)
async def test_servers_share_what_is_used_open_and_asked(database: Database) -> None:
    clock, quota = Clock(), Quota(requests=2, streams=1, turns=1)
    a, b = Replica(database, clock, quota), Replica(database, clock, quota)
    await b.usage.exchange()
    with a.meter.stream("ann"), a.meter.turn("ann"):
        a.meter.count_request("ann")
        for each in (a, b):
            await each.usage.exchange()
        assert not b.meter.may_run("ann")
        with pytest.raises(QuotaReached), b.meter.stream("ann"):
            pass
        b.meter.count_request("ann")
        with pytest.raises(QuotaReached):
            b.meter.count_request("ann")
        clock.move(ALIVE)
        for each in (a, b):
            await each.usage.exchange()
        clock.move(STALE - ALIVE)
        await b.usage.exchange()
        assert not b.meter.may_run("ann")
    clock.move(STALE)  # the other server is gone
    await b.usage.exchange()
    assert b.meter.may_run("ann")
    with b.meter.stream("ann"):
        pass
