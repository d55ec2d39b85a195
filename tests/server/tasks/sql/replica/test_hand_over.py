"""Tasks that wait at a full replica go to one that has room: each runs once, and its streams go on where they are."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from sqlalchemy import select, update

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.record import fold
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.turns import TurnHandle
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.replica.hand_over import FRESH_SECONDS, HandOver, divide
from a2a_canvas.store.errors import Unavailable
from tests.fakes import Hold, answer, broken, text, write
from tests.server.tasks.runtime.runtime_harness import rest, states
from tests.server.tasks.sql.replica_harness import SOON, Replica, Replicas, ended

HELLO = answer(text("Hello"))


def one_place() -> Admission:
    return Admission(1, 100, interval=0)


async def has_room(replica: Replica, room: int) -> None:
    """Come back when others can read that it has this room."""
    ours = select(replicas.c.room).where(replicas.c.replica_id == replica.backend._lease.id)
    while True:
        async with replica.backend._database.read() as connection:
            if await connection.scalar(ours) == room:
                return
        await asyncio.sleep(0)


async def full(several: Replicas) -> tuple[Replica, Hold]:
    """A replica with one turn, which is all that it can run; it hands over the others."""
    hold = Hold()
    replica = await several.start(answer(hold), *[HELLO] * 9, admission=one_place(), hands_over=True)
    await replica.send("Busy", context="busy")
    await hold.reached.wait()
    return replica, hold


async def completed(replica: Replica, following: TaskSubscription) -> None:
    """Its stream, on the replica where it began, ends with a task that is whole, and equal to what is stored."""
    record = following.snapshot
    async with asyncio.timeout(SOON):
        for entry in await rest(following):
            record = fold(record, entry)
    assert record.state is State.COMPLETED
    assert record == await replica.record(record.task_id)


async def waits(replica: Replica, task_id: str) -> TurnHandle:
    """The turn of a task, once it waits there for a place."""
    while True:
        if (handle := replica.runtime._turns.get(task_id)) and handle.waits:
            return handle
        await asyncio.sleep(0)


def looks(replica: Replica) -> asyncio.Queue[None]:
    """Gets an item each time that it looks for room elsewhere."""
    room, looked = replica.backend._hand_over.room, asyncio.Queue[None]()

    async def look() -> dict[str, int]:
        looked.put_nowait(None)
        return await room()

    replica.backend._hand_over.room = look
    return looked


def asked(*several: Replica) -> list[str]:
    """What the models were asked, by any replica."""
    return sorted(request.messages[0].content[0].text for each in several for request in each.llm.requests)


def test_the_replica_with_the_most_room_gets_the_next_task() -> None:
    assert divide(["1", "2", "3", "4"], {"a": 1, "b": 3}) == {"b": ["1", "2", "3"], "a": ["4"]}
    assert divide(["1", "2", "3"], {"a": 1}) == {"a": ["1"]}
    assert divide(["1"], {}) == {}


async def test_what_waits_goes_to_a_replica_that_has_room_and_its_stream_goes_on(several: Replicas) -> None:
    a, hold = await full(several)
    waiting = await a.send("Wait", context="wait")
    b = await several.start(answer(write("T1", "words")), HELLO, admission=one_place(), hands_over=True)
    await completed(a, waiting)
    assert (await a.record(waiting.snapshot.task_id)).epoch == 2
    assert asked(b) == ["Wait", "Wait"]
    assert await a.text("doc", "wait") == "words"
    hold.release.set()


async def test_a_replica_gets_no_more_than_it_has_room_for(several: Replicas) -> None:
    a, hold = await full(several)
    there = Hold()
    b = await several.start(answer(there), HELLO, admission=one_place(), hands_over=True)
    await has_room(b, 1)
    b.backend._heartbeat.cancel()  # so nobody learns that its room is taken
    looked = looks(a)
    waiting = [await a.send(f"{number}", context=f"c-{number}") for number in range(3)]
    await there.reached.wait()
    for _ in range(2):
        await looked.get()
    owners = select(tasks.c.replica).where(tasks.c.state == "submitted")
    async with b.backend._database.read() as connection:
        assert set(await connection.scalars(owners)) == {a.backend._lease.id}
    hold.release.set()
    there.release.set()
    for each in waiting:
        await completed(a, each)
    assert len(asked(a, b)) == 4


async def test_the_room_of_a_replica_that_has_died_does_not_count_although_its_row_is_there(several: Replicas) -> None:
    a, b = [await several.start(admission=one_place()) for _ in range(2)]
    await has_room(b, 1)
    assert await a.backend._hand_over.room() == {b.backend._lease.id: 1}
    b.freeze()
    older = update(replicas).where(replicas.c.replica_id == b.backend._lease.id)
    async with a.backend._database.write() as connection:
        await connection.execute(older.values(room_at=replicas.c.room_at - FRESH_SECONDS))
    assert await a.backend._hand_over.room() == {}
    b.thaw()


async def test_what_is_handed_over_takes_messages_and_cancellations_at_both_replicas(several: Replicas) -> None:
    a, _ = await full(several)
    there = Hold()
    b = await several.start(answer(there), HELLO, admission=one_place(), hands_over=True)
    waiting = await a.send("Wait", context="wait")
    await there.reached.wait()
    task_id = waiting.snapshot.task_id
    await a.send("And more", task_id, "wait")
    there.release.set()
    await completed(a, waiting)
    assert "And more" in str(b.llm.requests[-1])
    again = await a.send("Again", context="again")
    assert (await a.runtime.cancel(again.snapshot.task_id, ANONYMOUS)).state is State.CANCELED


async def test_an_answer_that_nothing_records_stays_with_the_replica_that_has_it(several: Replicas) -> None:
    a, hold = await full(several)
    b = await several.start(admission=one_place(), hands_over=True)
    await has_room(b, 1)
    waiting = await a.send("Wait", context="wait")
    task_id = waiting.snapshot.task_id
    a.runtime._turns.get(task_id).credentials = "secret"
    looked = looks(a)
    for _ in range(3):  # it looks again and again
        await looked.get()
    assert (await a.record(task_id)).epoch == 1
    hold.release.set()
    await completed(a, waiting)


async def test_what_got_a_place_while_others_were_given_runs_on_where_it_is(several: Replicas) -> None:
    a, hold = await full(several)
    b = await several.start(HELLO, admission=one_place())
    await has_room(b, 1)
    busy = await a.runtime.follow(a.backend.journal.running[0][1], ANONYMOUS)
    await a.backend._hand_over.room()
    await a.backend._give(a.runtime, [busy.snapshot.task_id], b.backend._lease.id)
    hold.release.set()
    await completed(a, busy)
    assert ((await a.record(busy.snapshot.task_id)).epoch, asked(b)) == (1, [])


async def test_a_turn_that_had_begun_stays_with_the_replica_that_holds_its_draft(several: Replicas) -> None:
    written = Hold()
    dead = await several.start(write("T1", "words"), [written], admission=one_place())
    a, hold = await full(several)
    task_id = (await dead.send("Write", context="write")).snapshot.task_id
    await written.reached.wait()
    await dead.backend.commits.flushed()
    await dead.crash()
    handle = await waits(a, task_id)
    assert list(a.runtime._turns.admission.waiting_for_place()) == [handle.ticket]
    assert a.runtime.waiting_tasks() == []
    hold.release.set()
    assert (await ended(a, task_id)).state is State.COMPLETED


# ------------------------------------------------------------------------- what goes wrong


class Broken:
    """A hand-over that fails: `before` its statement, or `after` it, when nobody knows whether it was committed."""

    def __init__(self, hand_over: HandOver, when: str) -> None:
        self._give = hand_over.give
        self._when = when
        self.happened = asyncio.Event()
        hand_over.give = self.give  # type: ignore[method-assign]

    async def give(self, records, replica) -> None:
        first = not self.happened.is_set()
        if not first or self._when == "after":
            await self._give(records, replica)
        self.happened.set()
        if first:
            raise Unavailable("the connection broke")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_hand_over_that_fails_runs_each_task_once(several: Replicas, when: str) -> None:
    a, hold = await full(several)
    failing = Broken(a.backend._hand_over, when)
    b = await several.start(*[HELLO] * 4, admission=one_place(), hands_over=True)
    waiting = [await a.send(f"{number}", context=f"c-{number}") for number in range(3)]
    await failing.happened.wait()
    for each in waiting:
        await completed(a, each)
    hold.release.set()
    assert asked(a, b) == ["0", "1", "2", "Busy"]


@pytest.mark.parametrize("dies", ["giver", "taker"])
async def test_one_that_dies_in_a_hand_over_leaves_nothing_behind(several: Replicas, dies: str) -> None:
    a, _ = await full(several)
    b = await several.start(broken(Hold()), admission=one_place(), hands_over=True)
    b.backend._takeover.expect = lambda task_ids: None  # it does not get to it
    b.backend._take_over = asyncio.Event().wait
    c = await several.start(*[HELLO] * 4, admission=one_place())
    waiting = await a.send("Wait", context="wait")
    owner = select(tasks.c.replica).where(tasks.c.task_id == waiting.snapshot.task_id)
    theirs = None
    while theirs not in (b.backend._lease.id, c.backend._lease.id):
        async with c.backend._database.read() as connection:
            theirs = await connection.scalar(owner)
    there = await c.runtime.follow(waiting.snapshot.task_id, ANONYMOUS)
    await (a if dies == "giver" else b).crash()
    if dies == "giver":
        await b.crash()
    async with asyncio.timeout(SOON):
        assert states(await rest(there))[-1] is State.COMPLETED
    assert asked(b, c).count("Wait") == 1


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_fails_each_task_completes_and_is_asked_once_by_those_that_live(
    several: Replicas, seed: int
) -> None:
    """Three replicas hand over to each other; each third statement fails, before or after; one replica dies."""
    chance = random.Random(seed)
    a, b, c = [
        await several.start(*[HELLO] * 20, admission=Admission(2, 100, interval=0), hands_over=True) for _ in range(3)
    ]
    for replica in (a, b, c):
        give = replica.backend._hand_over.give

        async def fail_sometimes(records, to, give=give) -> None:
            fault = chance.choice(["", "", "before", "", "", "after"])
            if fault != "before":
                await give(records, to)
            if fault:
                raise Unavailable(fault)

        replica.backend._hand_over.give = fail_sometimes
    sent = [await a.send(f"{number}", context=f"c-{number}") for number in range(12)]
    there = [await b.runtime.follow(each.snapshot.task_id, ANONYMOUS) for each in sent]
    await (await a.runtime.follow(sent[0].snapshot.task_id, ANONYMOUS)).wait_until_settled()
    await c.crash()
    for each in there:
        await completed(b, each)
    assert Counter(asked(a, b)).most_common(1)[0][1] == 1
    assert {*asked(a, b, c)} == {str(number) for number in range(12)}


async def test_a_replica_with_a_newer_claim_keeps_its_task(several: Replicas) -> None:
    """The statement of a hand-over may be late; the task may have been claimed again since."""
    a, hold = await full(several)
    b = await several.start(admission=one_place())
    await has_room(b, 1)
    give, newer_claim = a.backend._hand_over.give, asyncio.Event()

    async def late(records, replica) -> None:
        newer = update(tasks).where(tasks.c.task_id == records[0].task_id).values(epoch=records[0].epoch + 1)
        async with a.backend._database.write() as connection:
            await connection.execute(newer)
        await give(records, replica)
        newer_claim.set()

    a.backend._hand_over.give = late
    waiting = await a.send("Wait", context="wait")
    await newer_claim.wait()
    hold.release.set()
    await completed(a, waiting)
    assert (asked(a), asked(b)) == (["Busy", "Wait"], [])
