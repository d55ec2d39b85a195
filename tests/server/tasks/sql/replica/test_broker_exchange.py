"""Replicas that wake each other by a broker: it makes them faster, and nothing is right because of it."""

from __future__ import annotations

import asyncio
import logging
import random
import string
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller, Level, Share
from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.backend import sql_backend as module
from a2a_canvas.server.backend.broker_use import announce_revocation
from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.broker.signatures import Signatures
from a2a_canvas.server.settings.settings import load
from a2a_canvas.server.tasks.errors import StreamLost
from a2a_canvas.server.tasks.journal import cursors
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.kept_files import LARGE_BYTES
from a2a_canvas.server.tasks.record import TaskRecord, fold
from a2a_canvas.server.tasks.sql.journal.page_messages import MAX_BYTES, PageMessage
from a2a_canvas.server.tasks.sql.replica.notifications import CHANNEL
from a2a_canvas.store.ids import context_key, new_id
from a2a_canvas.store.models import FilePart, text_part
from tests.broker_fixtures import PrivateNats, private_nats
from tests.fakes import Clock, Hold, answer, ask, text, write
from tests.metric_values import values
from tests.server.tasks.runtime.runtime_harness import rest
from tests.server.tasks.sql.replica_harness import SOON, Replica, Replicas, replicas

Publish = Callable[[PageMessage], None]
WORDS = "One two three four five six seven"
LONG = "".join(random.Random(1).choices(string.ascii_letters, k=2 * MAX_BYTES))
"""More than a message takes, also compressed."""


@pytest.fixture
async def two(nats: PrivateNats) -> AsyncIterator[Replicas]:
    """Replicas with a broker."""
    async with replicas(broker=nats.url) as opened:
        yield opened


def streamed(words: str = WORDS, hold: Hold | None = None) -> list[list[object]]:
    """Two calls of a model that writes words in many pieces."""
    *call, end = write("T1", words, cut=max(4, len(words) // 3), last_chunk=True)
    return [answer(*([hold] if hold else []), *call, end), answer(text("Done."))]


async def seen_by(following: TaskSubscription) -> TaskRecord:
    """What a subscriber makes of what it gets."""
    record = following.snapshot
    async with asyncio.timeout(SOON):
        for entry in await rest(following):
            record = fold(record, entry)
    return record


async def follow(replica: Replica, task_id: str) -> TaskSubscription:
    """A subscription that misses no message from here on."""
    subscribed, subscribe = asyncio.Event(), replica.broker.subscribe

    def and_tell(subject: str, receive: Callable[..., None], ready: Callable[[], None] | None = None) -> None:
        def is_ready() -> None:
            if ready:
                ready()
            subscribed.set()

        subscribe(subject, receive, is_ready)

    replica.broker.subscribe = and_tell
    following = await replica.runtime.follow(task_id, ANONYMOUS)
    async with asyncio.timeout(SOON):
        await subscribed.wait()
        while reading := replica.backend.journal._tails._refreshing._reading:
            await asyncio.wait((reading,))
    return following


async def test_pages_in_order_are_shown_without_reading_the_database(two: Replicas) -> None:
    hold = Hold()
    a, b = await two.start(*streamed(hold=hold)), await two.start()
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    following, changes = await follow(b, task_id), aiter(await b.backend.journal.follow_context("c"))
    read, _ = b.backend.journal.pages
    hold.release.set()
    record = await seen_by(following)
    assert record == await a.record(task_id)  # with the content of the version that its last page names
    async with asyncio.timeout(SOON):
        while not (await anext(changes)).entry.event.last_chunk:
            pass
    assert b.backend.journal.pages[0] == read
    assert b.backend.journal.pages[1] > 1


async def test_a_page_that_names_a_large_file_of_a_message_is_read_with_it(two: Replicas) -> None:
    photo = UserMessage("photo", (text_part("Look"), FilePart(b"x" * (LARGE_BYTES + 1), name="photo.bin")))
    a, b = await two.start(answer(ask("T1", "Which?")), answer(text("Done."))), await two.start()
    asked = await (await a.send("Write")).wait_until_settled()
    following = await follow(b, asked.task_id)
    read, _ = b.backend.journal.pages
    await a.send(photo, task=asked.task_id)
    seen = await seen_by(following)
    assert seen == await a.record(asked.task_id)
    assert photo in seen.history
    assert b.backend.journal.pages[0] > read


def lost(publish: Publish) -> Publish:
    count = iter(range(1000))
    return lambda page: publish(page) if next(count) % 2 else None


def twice(publish: Publish) -> Publish:
    return lambda page: (publish(page), publish(page))[0]


def exchanged(publish: Publish) -> Publish:
    kept: list[PageMessage] = []

    def later(page: PageMessage) -> None:
        kept.append(page)
        if len(kept) == 2:
            publish(kept.pop())
            publish(kept.pop())

    return later


def of_another_epoch(publish: Publish) -> Publish:
    return lambda page: publish(replace(page, epoch=page.epoch + 1))


def as_numbers(publish: Publish) -> Publish:
    return lambda page: publish(replace(page, entries=None))


def of_another_incarnation(publish: Publish) -> Publish:
    return lambda page: publish(replace(page, incarnation=7))


@pytest.mark.parametrize("disturb", [lost, twice, exchanged, of_another_epoch, as_numbers, of_another_incarnation])
async def test_whatever_becomes_of_pages_followers_get_each_entry_once(
    two: Replicas, disturb: Callable[[Publish], Publish]
) -> None:
    hold = Hold()
    a, b = await two.start(*streamed(hold=hold)), await two.start()
    exchange = a.backend.broker.exchange
    exchange.publish = disturb(exchange.publish)
    task_id = (await a.send("Write", context="c")).snapshot.task_id
    await hold.reached.wait()
    following, changes = await follow(b, task_id), aiter(await b.backend.journal.follow_context("c"))
    hold.release.set()
    assert await seen_by(following) == await a.record(task_id)
    seen = []
    async with asyncio.timeout(SOON):
        while not seen or not seen[-1].entry.event.last_chunk:
            seen.append(await anext(changes))
    assert [change.position for change in seen] == list(range(1, len(seen) + 1))


async def test_forged_pages_are_dropped_and_counted_and_the_database_is_read(
    two: Replicas, caplog: pytest.LogCaptureFixture
) -> None:
    hold = Hold()
    a, b = await two.start(*streamed(hold=hold)), await two.start()
    a.broker._signatures = Signatures(b"another key".ljust(32))
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    following = await follow(b, task_id)
    hold.release.set()
    assert await seen_by(following) == await a.record(task_id)
    assert b.broker.forged > 0
    assert b.backend.journal.pages[1] == 0
    await b.backend.broker._report()
    assert b.metrics.registry.get_sample_value("a2a_canvas_broker_messages_total", {"outcome": "forged"}) > 0
    assert f"The broker {b.broker.places} has messages of others" in caplog.text


async def test_a_page_that_is_too_large_is_read(two: Replicas) -> None:
    hold = Hold()
    a, b = await two.start(*streamed(LONG, hold)), await two.start()
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    following = await follow(b, task_id)
    hold.release.set()
    assert (await seen_by(following)).artifacts["doc"].content.text == LONG
    assert b.backend.journal.pages[0] > 0


@pytest.mark.parametrize("named", [">", "*", "line\r\nPUB x 1"])
async def test_no_name_of_a_context_is_a_pattern_of_subjects(two: Replicas, named: str) -> None:
    a, b = await two.start(*streamed("Mine"), *streamed("Other")), await two.start()
    mine = aiter(await b.backend.journal.follow_context(named))
    other = aiter(await b.backend.journal.follow_context("other"))
    await rest(await a.send("Write", context=named))
    await rest(await a.send("Write more", context="other"))
    for changes, words in ((mine, "Mine"), (other, "Other")):
        async with asyncio.timeout(SOON):
            change = await anext(changes)
        assert words.startswith("".join(part.text for part in change.entry.event.parts))
    assert all(set(token) <= set("0123456789abcdef*") for token in subjects_of(b))


def subjects_of(replica: Replica) -> list[str]:
    """The tokens of the subjects of pages after their kind."""
    return [token for subject in replica.broker._wanted for token in subject.split(".")[3:]]


async def test_with_a_broker_no_transaction_notifies(two: Replicas) -> None:
    heard: list[str] = []
    listener = await asyncpg.connect(two.url)
    await listener.add_listener(CHANNEL, lambda *said: heard.append(said[-1]))
    a, b = await two.start(*streamed()), await two.start()
    task_id = (await a.send("Write")).snapshot.task_id
    await seen_by(await b.runtime.follow(task_id, ANONYMOUS))
    await listener.execute(f"NOTIFY {CHANNEL}, 'last'")
    async with asyncio.timeout(SOON):
        while "last" not in heard:
            await listener.execute("SELECT 1")
    await listener.close()
    assert heard == ["last"]


# ----------------------------------------------------------------------------- revocations


async def test_a_revoked_share_ends_a_stream_on_another_replica_before_its_next_check(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursors, "CHECK_SECONDS", 600.0)
    hold = Hold()
    a, b = await two.start(*streamed(hold=hold)), await two.start()
    bob, context = Caller("bob"), new_id()
    await a.send("Write", context=context)
    await hold.reached.wait()
    share = Share("s", context_key("", context), "", Level.READ, Clock()(), "bob")
    await a.backend.shares.add(share)
    opened = await b.runtime.contexts.open(bob, context)
    changes = aiter(await opened.follow())
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    assert await a.backend.shares.revoke(share.context, "s")
    with pytest.raises(StreamLost):
        async with asyncio.timeout(SOON):
            await waiting
    hold.release.set()


async def test_a_user_who_changes_a_share_all_the_time_has_the_streams_of_others_checked_now_and_then(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REVOCATION_INTERVAL", 600.0)
    a, b = await two.start(*streamed()), await two.start()
    await rest(await a.send("Write"))
    async with asyncio.timeout(SOON):  # which has all streams checked, too
        await asyncio.gather(a.broker.connected.wait(), b.broker.connected.wait())
    checked, told = list[Replica](), list[str]()
    for each in (a, b):
        each.backend.journal.check_again = partial(checked.append, each)
    a.backend.broker.revoke = partial(told.append, "revoked")
    share = Share("s", context_key("", "c"), "", Level.READ, Clock()(), "bob")
    for _ in range(10):
        await a.backend.shares.add(share)
        await a.backend.shares.revoke(share.context, "s")
    assert checked == [a]
    assert told == ["revoked"]


async def test_a_command_that_ends_a_credential_has_all_streams_check_theirs(two: Replicas) -> None:
    checked = asyncio.Event()
    a = await two.start()
    a.backend.journal.check_again = checked.set
    settings = load({"database": two.url, "broker": two.broker})
    await announce_revocation(settings, a.backend._database)
    async with asyncio.timeout(SOON):
        await checked.wait()


# --------------------------------------------------------------------------------- faults


async def test_a_broker_that_is_killed_and_one_that_stands_still_cost_a_delay_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with private_nats() as nats:
        async with replicas(broker=nats.url) as several:
            holds = [[Hold() for _ in range(3)] for _ in range(3)]
            owners = [await several.start(*in_steps(steps)) for steps in holds]
            b = await several.start()
            tasks = [(await owner.send("Write", context=f"c{n}")).snapshot.task_id for n, owner in enumerate(owners)]
            watching = [asyncio.create_task(seen_by(await b.runtime.follow(each, ANONYMOUS))) for each in tasks * 4]
            for step, disturb in enumerate((nats.kill, nats.start, nats.pause)):
                await asyncio.gather(*(steps[step].reached.wait() for steps in holds))
                disturb()
                for steps in holds:
                    steps[step].release.set()
            records = dict(
                zip(tasks, [await owner_s_record(*each) for each in zip(owners, tasks, strict=True)], strict=True)
            )
            for seen in await asyncio.gather(*watching):
                assert seen == records[seen.task_id]
            nats.resume()
            await b.broker.connected.wait()
    said = [each.getMessage() for each in caplog.records]
    assert any("cannot be used" in line and "up to a second late" in line for line in said)


def in_steps(holds: list[Hold]) -> list[list[object]]:
    return [answer(*streamed_piece(n), hold) for n, hold in enumerate(holds)] + [answer(text("Done."))]


def streamed_piece(number: int) -> list[object]:
    return write(f"T{number}", f"Step {number}. " * 5, cut=4, append=number > 0, last_chunk=True)


async def owner_s_record(owner: Replica, task_id: str) -> TaskRecord:
    await seen_by(await owner.runtime.follow(task_id, ANONYMOUS))
    return await owner.record(task_id)


async def test_a_replica_starts_without_its_broker_and_uses_it_when_it_comes(caplog: pytest.LogCaptureFixture) -> None:
    with private_nats() as nats:
        nats.kill()
        async with replicas() as several:
            a = await several.start(*streamed(), broker=nats.url)
            b = await several.start(broker=nats.url)
            task_id = (await a.send("Write")).snapshot.task_id
            assert await seen_by(await b.runtime.follow(task_id, ANONYMOUS)) == await a.record(task_id)
            assert a.broker.fault
            assert await connected(a) == 0
            nats.start()
            async with asyncio.timeout(SOON):
                await a.broker.connected.wait()
            assert await connected(a) == 1
    lines = [each.getMessage() for each in caplog.records if "cannot be used" in each.getMessage()]
    assert len(lines) == 2  # one for each replica, however often it tries
    assert all(b.broker.places in line for line in lines)


async def connected(replica: Replica) -> float:
    """What `/metrics` says of the broker."""
    for refresh in replica.metrics.refreshers:
        await refresh()
    return values(replica.metrics.broker_connected)[()]


@pytest.mark.parametrize(("theirs", "named"), [("", "no --broker"), ("nats://127.0.0.1:1", "--broker 127.0.0.1:1")])
async def test_replicas_without_the_broker_of_others_show_each_other_everything(
    nats: PrivateNats, theirs: str, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    hold, other = Hold(), Hold()
    async with replicas() as several:
        a = await several.start(*streamed(hold=hold), broker=nats.url)
        b = await several.start(*streamed(hold=other), broker=theirs)
        assert b.backend.broker.concerns
        for owner, watcher, held in ((a, b, hold), (b, a, other)):
            here = await owner.send("Write", context=f"c{held is hold}")
            task_id = here.snapshot.task_id
            await held.reached.wait()
            following = await watcher.runtime.follow(task_id, ANONYMOUS)
            activity = watcher.backend.journal.watch(context_key("", f"c{held is hold}"))
            held.release.set()
            seen, _ = await seen_by(following), await rest(here)  # the owner may see its own commit last
            assert seen == await owner.record(task_id)
            await activity.aclose()
    [line] = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert f"use the broker {a.broker.places}, and this one has {named}: it polls" in line


@pytest.mark.parametrize("user", ["", "ann:wrong@"])
async def test_a_broker_that_refuses_the_user_is_named_with_its_reason(user: str) -> None:
    settings = 'authorization { user: "ann", password: "right" }'
    with private_nats(settings, user) as nats:
        broker = Broker([nats.url])
        broker.start(Signatures(b"k" * 32))
        async with asyncio.timeout(SOON):
            await broker.tried.wait()
        await broker.stop()
        assert "Authorization" in broker.fault or "a wrong user or password" in broker.fault
        assert "wrong" not in broker.fault
