"""Presence over replicas: by notifications on PostgreSQL, whichever replica has the streams or gets the moves."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from a2a_canvas.server.tasks.presence.presence_changes import CursorMoved, PersonCame, PersonLeft
from a2a_canvas.server.tasks.presence.present_people import PresentPeople
from a2a_canvas.server.tasks.presence.roster import CursorPlace, Roster
from a2a_canvas.server.tasks.sql.replica.notifications import MAX_PAYLOAD_BYTES, PRESENCE_CHANNEL
from a2a_canvas.server.tasks.sql.replica.presence_exchange import MAX_CHANGES, PresenceExchange, payloads
from a2a_canvas.store.sql.database import Database
from tests.broker_fixtures import private_nats
from tests.postgresql_pair import PostgresqlPair, postgresql_pair, waits_for_standby
from tests.server.faults.server_processes import eventually
from tests.server.tasks.sql.replica_harness import BOTH_WAYS, Replica, Replicas, replicas

SOON = 30.0
AT = CursorPlace("doc", 1, 2, 8)


@pytest.fixture(scope="module")
def pair() -> Iterator[PostgresqlPair]:
    with postgresql_pair() as made:
        made.add_standby()
        yield made


@pytest.fixture
async def open_streams() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


class Told:
    """What a stream was told last."""

    def __init__(self, rosters: AsyncGenerator[Roster, None]) -> None:
        self.shown: dict[str, dict[str, CursorPlace]] = {}
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read(rosters))

    async def _read(self, rosters: AsyncGenerator[Roster, None]) -> None:
        async with aclosing(rosters):
            async for roster in rosters:
                async with self._news:
                    self.shown = {person.account: dict(person.cursors) for person in roster.people}
                    self._news.notify_all()

    async def wait_for(self, expected: dict[str, dict[str, CursorPlace]]) -> None:
        async with asyncio.timeout(SOON), self._news:
            await self._news.wait_for(lambda: self.shown == expected)

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait((self._reading,))


async def stream(stack: AsyncExitStack, replica: Replica, account: str) -> Told:
    told = Told(replica.backend.presence.watch("c", account))
    stack.push_async_callback(told.close)
    async with asyncio.timeout(SOON), told._news:
        await told._news.wait_for(lambda: account in told.shown)
    return told


async def is_told(told: Told, expected: dict[str, dict[str, CursorPlace]]) -> None:
    await told.wait_for(expected)


@BOTH_WAYS
async def test_people_of_all_replicas_see_each_other_and_go(several: Replicas, open_streams: AsyncExitStack) -> None:
    first, other, third = [await several.start() for _ in range(3)]
    ann = await stream(open_streams, first, "ann")
    async with AsyncExitStack() as leaving:
        bob = await stream(leaving, other, "bob")
        await is_told(ann, {"ann": {}, "bob": {}})
        await is_told(bob, {"ann": {}, "bob": {}})
        third.backend.presence.move("c", "bob", "w", AT)
        await is_told(ann, {"ann": {}, "bob": {"w": AT}})
        await is_told(bob, {"ann": {}, "bob": {"w": AT}})
        late = await stream(open_streams, third, "late")
        await is_told(late, {"ann": {}, "bob": {"w": AT}, "late": {}})
    await is_told(ann, {"ann": {}, "late": {}})


async def test_those_of_a_replica_that_fell_silent_are_gone(several: Replicas, open_streams: AsyncExitStack) -> None:
    first, other = await several.start(), await several.start()
    ann, _ = await stream(open_streams, first, "ann"), await stream(open_streams, other, "bob")
    await is_told(ann, {"ann": {}, "bob": {}})
    await other.backend._exchange.stop()
    first.backend._exchange._clock = lambda: 10**9
    await is_told(ann, {"ann": {}})


async def test_one_that_listens_again_asks_for_what_it_has_missed(
    several: Replicas, open_streams: AsyncExitStack
) -> None:
    first, other = await several.start(), await several.start()
    ann = await stream(open_streams, first, "ann")
    await stream(open_streams, other, "bob")
    await is_told(ann, {"ann": {}, "bob": {}})
    await first.backend._listener.stop()
    other.backend.presence.move("c", "bob", "w", AT)
    await other.backend._exchange.send()
    first.backend._listener.start()
    await is_told(ann, {"ann": {}, "bob": {"w": AT}})


async def test_without_the_broker_that_they_have_people_see_each_other_by_notifications(
    open_streams: AsyncExitStack,
) -> None:
    with private_nats() as nats:
        async with replicas(broker=nats.url) as several:
            first, other = await several.start(), await several.start()
            ann = await stream(open_streams, first, "ann")
            await stream(open_streams, other, "bob")
            await is_told(ann, {"ann": {}, "bob": {}})
            other.broker.tried.clear()
            nats.kill()
            async with asyncio.timeout(SOON):
                await other.broker.tried.wait()
            other.backend.presence.move("c", "bob", "w", AT)
            await is_told(ann, {"ann": {}, "bob": {"w": AT}})
            await open_streams.aclose()


async def commit_something(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("CREATE TABLE something (word TEXT)"))


async def one_waits(pair: PostgresqlPair) -> bool:
    return waits_for_standby(pair.primary.url()) == 1


@pytest.mark.postgres
async def test_presence_is_sent_while_no_standby_confirms(pair: PostgresqlPair) -> None:
    database = Database(pair.url(pair.primary.new_database()))
    exchange, heard = PresenceExchange(database, PresentPeople(lambda seconds, call: None)), asyncio.Event()
    try:
        async with database.listener() as driver, asyncio.timeout(SOON):
            await driver.add_listener(PRESENCE_CHANNEL, lambda *_: heard.set())
            assert pair.standby
            pair.standby.signal(signal.SIGSTOP)
            writing = asyncio.create_task(commit_something(database))
            await eventually(partial(one_waits, pair))
            writing.cancel()  # it is given up, and waits
            await asyncio.wait((writing,))
            await exchange.send()
            await heard.wait()
        assert waits_for_standby(pair.primary.url()) == 1
    finally:
        pair.standby.signal(signal.SIGCONT)
        await database.close()


# --------------------------------------------------------------------------- payloads and limits


def exchange() -> PresenceExchange:
    made = PresenceExchange(Database("sqlite+aiosqlite:///:memory:"), PresentPeople(lambda seconds, call: None))
    made.receive('{"r":"other","i":[]}')
    return made


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=256)


@given(st.lists(st.builds(PersonCame, texts, texts), max_size=60), st.just("f" * 32))
def test_whatever_is_told_fits_into_payloads_of_postgresql_and_none_is_lost(changes, replica) -> None:
    heard = []
    receiver = PresenceExchange(Database("sqlite+aiosqlite:///:memory:"), PresentPeople(lambda seconds, call: None))
    receiver._people.receive = lambda _, change: heard.append(change)  # type: ignore[method-assign]
    for payload in payloads(replica, changes):
        assert len(payload.encode()) <= MAX_PAYLOAD_BYTES
        receiver.receive(payload)
    assert heard == changes


def test_of_many_moves_of_a_window_the_newest_is_sent_and_who_came_and_left_only_leaves() -> None:
    made = exchange()
    for start in range(100):
        made.tell(CursorMoved("c", "bob", "w", CursorPlace("doc", 1, start, start)))
    made.tell(PersonCame("c", "bob"))
    made.tell(PersonLeft("c", "bob"))
    assert made._take_unsent() == [CursorMoved("c", "bob", "w", CursorPlace("doc", 1, 99, 99)), PersonLeft("c", "bob")]
    assert made._take_unsent() == []


def test_a_flood_in_one_context_delays_no_other_one() -> None:
    made = exchange()
    for number in range(3 * MAX_CHANGES):
        made.tell(CursorMoved("flood", "bob", f"w{number}", AT))
    quiet = CursorMoved("quiet", "ann", "w", AT)
    made.tell(quiet)
    sent = made._take_unsent()
    assert quiet in sent
    assert len(sent) <= MAX_CHANGES


def test_without_another_replica_nothing_is_kept_to_be_told() -> None:
    made = PresenceExchange(Database("sqlite+aiosqlite:///:memory:"), PresentPeople(lambda seconds, call: None))
    made.tell(PersonCame("c", "bob"))
    assert made._take_unsent() == []


@pytest.mark.parametrize(
    "payload", ["", "x", "[]", "{}", '{"r":"other"}', '{"r":"other","i":3}', '{"r":"o","i":[[1]]}']
)
def test_what_others_send_on_the_channel_is_ignored(payload: str) -> None:
    exchange().receive(payload)
