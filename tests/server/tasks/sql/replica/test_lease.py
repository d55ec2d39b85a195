"""Who may say of another replica that it is dead. Time is the test's: rows are made old, and the clock is moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

import pytest
from sqlalchemy import func, select, text, update

from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.replica import lease as lease_module
from a2a_canvas.server.tasks.sql.replica.lease import Lease, LeaseTiming
from a2a_canvas.store.sql.commit import LeaseLost
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url
from tests.new_database import create_tables

WAITING = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
LEASE_TIMING = LeaseTiming(heartbeat=1.0, expiry=4.0)


class Two:
    """A replica that judges, `own`, and one that lives, `other`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.time = 100.0
        self.own = Lease(database, LEASE_TIMING, lambda: self.time)
        self.other = Lease(database, LEASE_TIMING, lambda: self.time)

    async def pass_(self, seconds: float, *standing_still: Lease) -> None:
        """Time passes: the rows of those who stand still are older by so much than they will be when these beat."""
        self.time += seconds
        older = update(replicas).where(replicas.c.replica_id.in_([lease.id for lease in standing_still]))
        async with self.database.write() as connection:
            await connection.execute(older.values(heartbeat_at=replicas.c.heartbeat_at - seconds))

    async def steady(self) -> None:
        """Both have kept their beat for longer than a lease."""
        for _ in range(6):
            await self.pass_(1.0, self.own, self.other)
            await self.beat(self.own, self.other)

    async def beat(self, *leases: Lease) -> None:
        for lease in leases:
            assert await lease.heartbeat()

    async def write(self, lease: Lease) -> None:
        """A transaction of a replica."""
        begun = lease.collect()
        await self.database.transact(begun.write)
        begun.done()

    async def alive(self) -> set[str]:
        async with self.database.read() as connection:
            return set(await connection.scalars(select(replicas.c.replica_id)))


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    database = Database(postgresql_url())
    await create_tables(database)
    both = Two(database)
    await both.own.register()
    await both.other.register()
    yield both
    await database.close()


def ids(leases: Iterable[Lease]) -> set[str]:
    return {lease.id for lease in leases}


async def test_a_transaction_is_counted_once_a_heartbeat_has_let_go_of_the_row(two: Two) -> None:
    await two.write(two.own)
    async with two.database.write() as heartbeat:
        beat = update(replicas).where(replicas.c.replica_id == two.own.id).values(heartbeat_at=1.0)
        await heartbeat.execute(beat)
        writing = asyncio.create_task(two.write(two.own))
        async with two.database.read() as connection:
            while not await connection.scalar(WAITING):
                pass
    await writing
    async with two.database.read() as connection:
        row = (await connection.execute(select(replicas).where(replicas.c.replica_id == two.own.id))).one()
    assert (row.commits, row.heartbeat_at > 1.0) == (2, True)


async def test_a_replica_that_does_not_beat_for_a_lease_is_dead(two: Two) -> None:
    await two.steady()
    judged = []
    for _ in range(5):
        await two.pass_(1.0, two.own, two.other)
        await two.beat(two.own)
        await two.own.expire_dead()
        judged.append(await two.alive() == ids([two.own]))
    assert judged == [False, False, False, True, True]


@pytest.mark.parametrize("stall", [3.1, 5.0, 10.0, 100.0])
async def test_after_everything_has_stood_still_nobody_is_dead_who_goes_on(two: Two, stall: float) -> None:
    """The database, or every process: no error is raised, the beat only takes so long."""
    await two.steady()
    await two.pass_(0.99, two.own, two.other)
    await two.beat(two.own)
    await two.pass_(stall, two.own, two.other)
    await two.beat(two.own)
    await two.own.expire_dead()
    await two.beat(two.other)
    await two.steady()
    await two.own.expire_dead()
    assert await two.alive() == ids([two.own, two.other])


async def test_who_has_stood_still_itself_judges_again_when_it_was_steady_for_a_lease(two: Two) -> None:
    await two.steady()
    await two.pass_(10.0, two.own, two.other)
    await two.beat(two.own)
    judged = []
    for _ in range(5):
        await two.own.expire_dead()
        judged.append(two.other.id not in await two.alive())
        await two.pass_(1.0, two.own, two.other)
        await two.beat(two.own)
    assert judged == [False, False, False, False, True]


async def test_others_are_judged_as_of_ones_own_last_beat(two: Two) -> None:
    """The database may stand still between that and the judgement."""
    await two.steady()
    await two.pass_(10.0, two.own, two.other)
    await two.own.expire_dead()
    assert await two.alive() == ids([two.own, two.other])


async def test_who_has_just_started_does_not_judge_after_a_stall_either(two: Two) -> None:
    await two.pass_(5.0, two.own, two.other)
    await two.beat(two.own)
    await two.own.expire_dead()
    assert await two.alive() == ids([two.own, two.other])


# --------------------------------------------------------------------------- failovers


@pytest.fixture(params=[30.0, -30.0], ids=["fast", "slow"])
def other_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Gives the database another clock."""
    now = func.extract("epoch", func.clock_timestamp()) + request.param
    return lambda: monkeypatch.setattr(lease_module, "_NOW", now)


async def test_after_a_failover_to_another_clock_nobody_is_dead_who_goes_on(
    two: Two, other_clock: Callable[[], None]
) -> None:
    await two.steady()
    other_clock()
    await two.write(two.own)  # its row has the new time now, before its heartbeat has seen that
    await two.own.expire_dead()
    for _ in range(4):
        await two.pass_(0.9, two.own, two.other)
        await two.beat(two.own)
        await two.own.expire_dead()
    assert await two.alive() == ids([two.own, two.other])
    await two.beat(two.other)
    for _ in range(6):
        await two.pass_(1.0, two.own, two.other)
        await two.beat(two.own, two.other)
        await two.own.expire_dead()
    assert await two.alive() == ids([two.own, two.other])


async def test_who_died_with_the_old_database_is_dead_after_a_lease(two: Two, other_clock: Callable[[], None]) -> None:
    await two.steady()
    other_clock()
    for _ in range(6):
        await two.pass_(1.0, two.own, two.other)
        await two.beat(two.own)
        await two.own.expire_dead()
    assert await two.alive() == ids([two.own])


async def test_a_replica_whose_commits_are_lost_discards_its_memory(two: Two) -> None:
    """A standby that was behind has become the primary."""
    for _ in range(2):
        await two.write(two.own)
    async with two.database.write() as connection:
        await connection.execute(update(replicas).values(commits=1))
    with pytest.raises(LeaseLost, match="has lost transactions"):
        await two.write(two.own)
    two.own.renew()
    await two.write(two.own)
