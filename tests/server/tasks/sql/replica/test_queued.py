"""Turns that wait on one replica, and others that take them up: nothing is lost, and no limit is passed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State, StatusChanged
from a2a_canvas.server.agent.model import ModelEvent, ModelRequest, ModelText
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.record import Entry, fold
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.turns import MAX_RESUMPTIONS
from a2a_canvas.server.tasks.sql.journal import sql_journal
from a2a_canvas.server.tasks.sql.replica.lease import LeaseTiming
from a2a_canvas.server.tasks.sql.replica.takeover import CLAIM_LIMIT
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import Hold, answer, broken, text, tool
from tests.server.tasks.runtime.runtime_harness import rest, states
from tests.server.tasks.sql import replica_harness
from tests.server.tasks.sql.replica_harness import Replica

HELLO = answer(text("Hello"))


async def busy(replica: Replica, hold: Hold, context: str) -> TaskSubscription:
    """A turn of the replica that runs until `hold` is released."""
    following = await replica.send(f"Busy {context}", context=context)
    await hold.reached.wait()
    return following


async def queued(replica: Replica, words: str, context: str) -> TaskSubscription:
    """A turn that waits, and has been told so."""
    following = await replica.send(words, context=context)
    await waits(replica, following.snapshot.task_id)
    return following


async def waits(replica: Replica, task_id: str, epoch: int = 1) -> None:
    """Come back when the task has been told its place."""
    following = await replica.runtime.follow(task_id, ANONYMOUS)
    record = following.snapshot
    while not (record.epoch == epoch and record.message and record.message.text.startswith("Waiting")):
        record = fold(record, await anext(aiter(following)))


def places(entries: list[Entry]) -> list[tuple[State, str]]:
    """(state, text) of the labels that tell a place in the queue."""
    said = [(event.state, event.message.text) for event in statuses(entries) if event.message]
    return [(state, words) for state, words in said if words.startswith("Waiting")]


def statuses(entries: list[Entry]) -> list[StatusChanged]:
    return [entry.event for entry in entries if isinstance(entry.event, StatusChanged)]


async def test_a_dead_replicas_turns_wait_at_one_that_is_full_and_what_had_begun_goes_first(several) -> None:
    theirs, ours = Hold(), Hold()
    a = await several.start(broken(theirs), admission=Admission(1, 10, interval=0))
    b = await several.start(answer(ours), HELLO, HELLO, HELLO, HELLO, admission=Admission(1, 0, interval=0))
    await busy(b, ours, "ours")
    working = await busy(a, theirs, "working")
    waiting = [await queued(a, words, words) for words in ("One", "Two")]
    there = {f: await b.runtime.follow(f.snapshot.task_id, ANONYMOUS) for f in (working, *waiting)}
    await a.backend.commits.flushed()
    await a.crash()
    for following in there:
        await waits(b, following.snapshot.task_id, epoch=2)
    assert len(b.llm.requests) == 1
    ours.release.set()
    for following, seen in there.items():
        entries = await rest(seen)
        assert states(entries)[-1] is State.COMPLETED
        kept = State.WORKING if following is working else State.SUBMITTED  # as it was
        assert {state for state, _ in places(entries) if entries[-1].epoch == 2} == {kept}
    assert b.llm.requests[1].messages[0].content == (ModelText("Busy working"),)


async def test_what_waits_when_its_replica_stops_goes_on_at_another_one(several) -> None:
    hold = Hold()
    a = await several.start(broken(hold), admission=Admission(1, 10, interval=0))
    b = await several.start(*[HELLO] * 4, admission=Admission(1, 10, interval=0))
    following = [await busy(a, hold, "busy"), *[await queued(a, words, words) for words in ("One", "Two", "Three")]]
    there = [await b.runtime.follow(each.snapshot.task_id, ANONYMOUS) for each in following]
    await a.runtime.close()
    for seen in there:
        assert states(await rest(seen))[-1] is State.COMPLETED
    assert a.llm.requests[1:] == []


async def test_what_waits_is_cancelled_and_written_to_from_another_replica(several) -> None:
    hold = Hold()
    a = await several.start(answer(hold), HELLO, admission=Admission(1, 10, interval=0))
    b = await several.start()
    await busy(a, hold, "busy")
    one, two = [await queued(a, words, words) for words in ("One", "Two")]
    await b.send("And more", two.snapshot.task_id, "Two")
    assert (await b.runtime.cancel(one.snapshot.task_id, ANONYMOUS)).state is State.CANCELED
    assert len(a.llm.requests) == 1
    hold.release.set()
    await rest(two)
    assert ModelText("And more") in a.llm.requests[-1].messages[-1].content


async def test_crashes_of_its_servers_are_not_counted_against_what_only_waited(several) -> None:
    task_id = ""
    for epoch in range(1, MAX_RESUMPTIONS + 2):
        hold = Hold()
        replica = await several.start(broken(hold), admission=Admission(1, 10, interval=0))
        if not task_id:
            await busy(replica, hold, "busy")
            task_id = (await queued(replica, "Wait", "wait")).snapshot.task_id
        await hold.reached.wait()
        await waits(replica, task_id, epoch)
        await replica.backend.commits.flushed()
        await replica.crash()
    last = await several.start(HELLO, HELLO)
    assert states(await rest(await last.runtime.follow(task_id, ANONYMOUS)))[-1] is State.COMPLETED


async def test_alone_what_waited_is_taken_up_in_the_order_in_which_it_came(tmp_path: Path) -> None:
    count = CLAIM_LIMIT + 5
    async with replica_harness.replicas(sqlite_url(tmp_path)) as started:
        hold = Hold()
        first = await started.start(broken(hold), admission=Admission(1, 100, interval=0))
        await busy(first, hold, "busy")
        for number in range(count):
            await queued(first, f"{number}", f"c-{number % 3}")
        await first.crash()
        second = await started.start(*[HELLO] * (count + 1), admission=Admission(1, 0, interval=0))
        async with asyncio.timeout(30):
            await second.runtime.idle()
        asked = [request.messages[-1].content[-1].text for request in second.llm.requests]
        assert asked == ["Busy busy", *map(str, range(count))]


# ------------------------------------------------------------------------------- two hundred

GREEDY, OTHERS = 40, 16
"""Turns of one context, and how many contexts have ten each."""
MOST = 40
WORDS = "".join(f"{number} " for number in range(50))


class Busy:
    """An `LLM` that writes an artifact, named as it is asked, and knows how many of it are at work.

    Nobody gets on until `go` is set.
    """

    name = "busy"
    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.full = asyncio.Event()
        self.asked = 0
        self.at_work = 0
        self.most = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        said = request.messages[-1].content[-1]
        if isinstance(said, ModelText):
            self.asked += 1
            self.at_work += 1
            self.most = max(self.most, self.at_work)
            if self.at_work == MOST:
                self.full.set()
            await self.go.wait()
            artifact = {"artifact_id": said.text.split()[0], "parts": [{"kind": "text", "text": WORDS}]}
            steps = answer(tool("T1", "artifact_update", {"append": False, "artifact": artifact}, cut=20))
        else:
            steps = answer(text("Done."))
            self.at_work -= 1
        for step in steps:
            await asyncio.sleep(0)
            yield step  # type: ignore[misc]


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
@pytest.mark.slow
async def test_two_hundred_turns_at_once(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All exact, in a fair order, never more at work than may be, and no lease lost."""
    monkeypatch.setattr(sql_journal, "COMMIT_TIMEOUT", 60.0)  # on a busy machine a commit takes longer than shipped
    url = postgresql_url() if where == "postgresql" else sqlite_url(tmp_path)
    contexts = ["greedy"] * GREEDY + [f"c-{number % OTHERS}" for number in range(10 * OTHERS)]
    llm = Busy()
    async with replica_harness.replicas(url) as started:
        server = await started.start(llm=llm, timing=LeaseTiming(), admission=Admission(MOST, 1000, interval=0))
        if where == "postgresql":
            await started.start(timing=LeaseTiming())  # it would take over what a lost lease leaves
        lease = server.backend._lease.id
        sent = await asyncio.gather(
            *(server.send(f"{number} {context}", context=context) for number, context in enumerate(contexts))
        )
        assert all(following.snapshot.state is State.SUBMITTED for following in sent)
        await llm.full.wait()
        llm.go.set()
        begun = sorted(await asyncio.gather(*(assert_exact(server, following) for following in sent)))
        assert server.backend._lease.id == lease
    assert (llm.asked, llm.most) == (200, MOST)
    assert_fair([context for _, context in begun[MOST:]])


async def assert_exact(server: Replica, following: TaskSubscription) -> tuple[datetime, str]:
    """When the turn began to work, and its context."""
    record, entries = following.snapshot, await rest(following)
    for entry in entries:
        record = fold(record, entry)
    assert (record.state, record.epoch) == (State.COMPLETED, 1)
    assert [artifact.content.text for artifact in record.artifacts.values()] == [WORDS]
    assert record == await server.record(record.task_id)
    began = min(entry.at for entry in entries if states([entry]) == [State.WORKING])
    return began, record.context_id


def assert_fair(begun: list[str]) -> None:
    """However many turns a context has waiting, others get theirs in between."""
    left, had = Counter(begun), Counter[str]()
    for context in begun:
        had[context] += 1
        left[context] -= 1
        assert all(had[context] - had[other] <= 1 for other in left if left[other])
