"""Shares of contexts: who has which, until when; in memory and in a database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import event

from a2a_canvas.server.accounts import sharing as sharing_module
from a2a_canvas.server.accounts.access import ANONYMOUS, Access, Caller, ContextGrant, Level, Share
from a2a_canvas.server.accounts.errors import ContextNotFound, InvalidShare, NobodyToShare, ReadOnly
from a2a_canvas.server.accounts.sharing import (
    MAX_FROM_ONE,
    MAX_OF_USER,
    ShareRequest,
    Sharing,
    has_room,
    hash_of_link,
    is_link_token,
    new_link_token,
)
from a2a_canvas.server.accounts.sql.recent_reads import MAX_AGE
from a2a_canvas.server.accounts.sql.sql_shares import SqlShares
from a2a_canvas.server.tasks.sql.projections.context_rows import lock_to_share
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import context_key
from tests.fakes import Seconds
from tests.server.tasks.context_harness import BACKENDS, ContextHarness, open_contexts

NOTES = context_key("ann", "notes")
MADE = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d70", "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d71"
BOB, CAROL = Caller("bob"), Caller("carol")


@pytest.fixture
def sharing(world) -> Sharing:
    shares, ids = world.backend.shares, map(str, count(1))
    return Sharing(Access(world.backend.journal, shares), shares, world.clock, lambda shard=None: next(ids))


def share(id: str, context: str = NOTES, level: Level = Level.READ, **more) -> Share:
    made_at = MADE + timedelta(seconds=int(id))
    return Share(id, context, "ann", level, made_at, **({"user": "bob"} | more))


@pytest.fixture(params=BACKENDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContextHarness]:
    """Where ann has the contexts `notes` and `plan`."""
    async with open_contexts(request.param, tmp_path) as opened:
        await opened.run("t1", "notes", "ann")
        await opened.run("t2", "plan", "ann")
        yield opened


async def test_those_who_have_a_share_are_told_of_it_the_oldest_first(world) -> None:
    shares, plan = world.backend.shares, share("1", context_key("ann", "plan"))
    first, link = share("2"), share("3", user="", token_hash="hash")
    for each in (first, plan, link):
        await shares.add(each)
    assert await shares.for_caller(BOB) == (plan, first)
    assert await shares.for_caller(Caller(link="3")) == (link,)
    assert await shares.list(NOTES) == (first, link)
    assert (await shares.link("hash"), await shares.link("other")) == (link, None)
    for nobody in (CAROL, ANONYMOUS, Caller("3"), Caller(link="1 ")):
        assert await shares.for_caller(nobody) == ()


async def test_a_second_share_with_a_user_replaces_the_first(world) -> None:
    shares = world.backend.shares
    for each in (share("1"), share("2", user="carol"), share("3", level=Level.EDIT)):
        await shares.add(each)
    assert [each.share_id for each in await shares.list(NOTES)] == ["2", "3"]
    assert [each.level for each in await shares.for_caller(BOB)] == [Level.EDIT]


async def test_the_shares_of_a_user_are_counted_by_their_givers(world) -> None:
    of_carol = Share("4", context_key("carol", "x"), "carol", Level.READ, MADE, "bob")
    await world.run("t3", "x", "carol")
    shares, soon = world.backend.shares, world.clock() + timedelta(seconds=1)
    for each in (share("1"), share("2", context_key("ann", "plan"), expires_at=soon), share("3", user="dan"), of_carol):
        await shares.add(each)
    assert await shares.givers("bob") == {"ann": 2, "carol": 1}
    world.clock.move(timedelta(seconds=1))
    assert await shares.givers("bob") == {"ann": 1, "carol": 1}
    assert await shares.givers("eve") == {}


def test_whatever_others_give_there_is_room_for_a_share_of_everybody() -> None:
    assert has_room({"ann": MAX_FROM_ONE - 1}, "ann")
    assert not has_room({"ann": MAX_FROM_ONE}, "ann")
    full = {f"stranger {number}": MAX_FROM_ONE for number in range(MAX_OF_USER // MAX_FROM_ONE)}
    assert has_room(full, "ann")
    assert not has_room(full | {"ann": 1}, "ann")


@pytest.mark.parametrize("world", ["memory"], indirect=True)
async def test_a_giver_with_no_room_left_is_refused_and_replaces_a_share(
    world, sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing_module, "MAX_FROM_ONE", 1)
    await world.run("t3", OLD, "ann")
    await world.run("t4", NEW, "ann")
    ann, read, edit = Caller("ann"), ShareRequest(Level.READ, "bob"), ShareRequest(Level.EDIT, "bob")
    for asked in (read, edit):
        await sharing.share(ann, OLD, asked)
    with pytest.raises(InvalidShare, match="cannot receive more shares from you"):
        await sharing.share(ann, NEW, read)
    await sharing.share(ann, NEW, ShareRequest(Level.READ))
    [given] = await sharing.shares(BOB, OLD)
    assert given.level is Level.EDIT
    await sharing.revoke(BOB, OLD, given.share_id)
    await sharing.share(ann, NEW, read)


async def test_a_user_sees_and_ends_what_it_was_given_and_nothing_else(world, sharing) -> None:
    await world.run("t3", OLD, "ann")
    for request in (ShareRequest(Level.READ, "bob"), ShareRequest(Level.READ, "carol"), ShareRequest(Level.EDIT)):
        await sharing.share(Caller("ann"), OLD, request)
    of_bob, of_carol, link = await sharing.shares(Caller("ann"), OLD)
    assert await sharing.shares(BOB, OLD) == (of_bob,)
    for other in (of_carol, link):
        with pytest.raises(ReadOnly):
            await sharing.revoke(BOB, OLD, other.share_id)
    with pytest.raises(ReadOnly):
        await sharing.revoke(Caller(link=link.share_id), OLD, link.share_id)
    assert await sharing.revoke(BOB, OLD, of_bob.share_id) == ()
    with pytest.raises(ContextNotFound):
        await sharing.shares(BOB, OLD)
    assert await sharing.shares(Caller("ann"), OLD) == (of_carol, link)


async def test_the_log_says_who_shared_what_with_whom_and_when_that_ended(
    world, sharing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "a2a_canvas.server.accounts.sharing")
    await world.run("t3", OLD, "ann")
    link = await sharing.share(Caller("ann"), OLD, ShareRequest(Level.READ))
    await sharing.share(Caller("ann"), OLD, ShareRequest(Level.EDIT, "bob"))
    await sharing.revoke(Caller("ann"), OLD, "1")
    await sharing.revoke(BOB, OLD, "2")
    given = {"context": OLD, "by": "ann"}
    assert [(record.getMessage(), record.fields) for record in caplog.records] == [
        ("A context was shared", given | {"share": "1", "with": "link", "level": "read"}),
        ("A context was shared", given | {"share": "2", "with": "bob", "level": "edit"}),
        ("A share was revoked", given | {"share": "1"}),
        ("A share was revoked", given | {"share": "2", "by": "bob"}),
    ]
    assert link.token not in caplog.text


async def test_a_share_that_an_own_context_hides_can_be_ended(world, sharing) -> None:
    await world.run("t3", OLD, "ann")
    made = await sharing.share(Caller("ann"), OLD, ShareRequest(Level.READ, "bob"))
    await world.run("t4", OLD, "bob")
    await sharing.revoke(BOB, OLD, made.share.share_id)
    assert await sharing.shares(Caller("ann"), OLD) == ()


async def test_a_share_is_revoked_in_its_own_context_alone(world) -> None:
    shares = world.backend.shares
    await shares.add(share("1"))
    assert not await shares.revoke(context_key("ann", "plan"), "1")
    assert await shares.revoke(NOTES, "1")
    assert not await shares.revoke(NOTES, "1")
    assert (await shares.for_caller(BOB), await shares.list(NOTES)) == ((), ())


async def test_an_expired_share_is_none(world) -> None:
    shares, soon = world.backend.shares, world.clock() + timedelta(seconds=1)
    await shares.add(share("1", expires_at=soon))
    await shares.add(share("2", user="", token_hash="hash", expires_at=soon))
    assert await shares.for_caller(BOB)
    assert await shares.link("hash")
    world.clock.move(timedelta(seconds=1))
    assert (await shares.for_caller(BOB), await shares.list(NOTES), await shares.link("hash")) == ((), (), None)


async def test_a_removed_context_loses_its_shares(world) -> None:
    shares = world.backend.shares
    await shares.add(share("1"))
    await world.contexts.remove(NOTES, "ann")
    await world.run("t3", "notes", "ann")
    assert await shares.list(NOTES) == ()
    if isinstance(shares, SqlShares):
        await world.contexts.remove(NOTES, "ann")
        with pytest.raises(ContextNotFound):
            await shares.add(share("2"))


async def test_shared_contexts_are_listed_among_the_own_ones(world) -> None:
    await world.run("t3", "mine", "bob")
    await world.run("t4", "notes", "ann")
    shares = world.backend.shares
    for number, context in enumerate(("notes", "plan")):
        await shares.add(share(str(number), context_key("ann", context)))
    access = Access(world.backend.journal, shares)
    listed = tuple(await access.find_shares(BOB))
    found = await world.page("bob", shared=listed)
    assert [each.title for each in found.contexts] == ["Go"] * 3
    assert [each.context_id for each in found.contexts] == [NOTES, context_key("bob", "mine"), listed[1]]


async def test_an_own_context_hides_a_shared_one_of_the_same_id(world) -> None:
    access = Access(world.backend.journal, world.backend.shares)
    await world.backend.shares.add(share("1"))
    found = await access.find(BOB, "notes")
    assert found
    assert (found.key, found.level, list(await access.find_shares(BOB))) == (NOTES, Level.READ, [NOTES])
    await world.run("t3", "notes", "bob")
    found = await access.find(BOB, "notes")
    assert found
    assert (found.key, found.level, await access.find_shares(BOB)) == (context_key("bob", "notes"), Level.OWN, {})


async def test_an_id_that_a_user_has_used_never_means_anothers_context(world, sharing) -> None:
    access = Access(world.backend.journal, world.backend.shares)
    await world.run("t3", OLD, "ann")
    await world.contexts.remove(context_key("ann", OLD), "ann")
    await world.run("t4", OLD, "bob")
    own, shared = ContextGrant(context_key("ann", OLD), "ann", Level.OWN), context_key("bob", OLD)
    for user in ("ann", "carol"):
        await sharing.share(BOB, OLD, ShareRequest(Level.EDIT, user))
    assert (await access.find(Caller("ann"), OLD), await access.find_shares(Caller("ann"))) == (own, {})
    assert await access.find(CAROL, OLD) == ContextGrant(shared, "bob", Level.EDIT)
    await world.run("t5", OLD, "ann")
    assert await access.find(Caller("ann"), OLD) == own


async def test_an_adopted_context_comes_before_a_shared_one_also_when_it_was_removed(world, sharing) -> None:
    access = Access(world.backend.journal, world.backend.shares, adopter="ann")
    await world.run("t3", OLD)
    await world.run("t4", OLD, "bob")
    await sharing.share(BOB, OLD, ShareRequest(Level.EDIT, "ann"))
    assert await access.find(Caller("ann"), OLD) == ContextGrant(OLD, "", Level.OWN)
    await world.contexts.remove(OLD, "")
    assert await access.find(Caller("ann"), OLD) == ContextGrant(context_key("ann", OLD), "ann", Level.OWN)


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_another_server_knows_of_a_change_when_what_it_has_is_too_old(world) -> None:
    seconds = Seconds()
    here, there = world.backend.shares, SqlShares(world.backend._database, lock_to_share, world.clock, seconds)
    assert await there.for_caller(BOB) == ()
    await here.add(share("1"))
    assert (len(await here.for_caller(BOB)), await there.for_caller(BOB)) == (1, ())
    seconds.now += MAX_AGE
    assert len(await there.for_caller(BOB)) == 1
    await here.revoke(NOTES, "1")
    seconds.now += MAX_AGE
    assert (await here.for_caller(BOB), await there.for_caller(BOB)) == ((), ())
    assert MAX_AGE < 1


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_a_hundred_shares_are_found_with_one_query(world) -> None:
    shares, asked = world.backend.shares, []
    for number in range(100):
        await world.begin(f"s{number}", f"c{number}", "ann")
        await shares.add(share(f"{number}", context_key("ann", f"c{number}")))
    access = Access(world.backend.journal, shares)
    await access.grants(BOB)
    event.listen(world.backend._database._reader.sync_engine, "before_cursor_execute", lambda *a: asked.append(a[2]))
    assert len(await access.find_shares(BOB)) == 100
    assert len(asked) == 1


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_the_same_question_is_asked_of_the_database_once(world) -> None:
    shares, asked = world.backend.shares, []
    event.listen(world.backend._database._reader.sync_engine, "before_cursor_execute", lambda *a: asked.append(a[2]))
    for _ in range(3):
        await shares.for_caller(BOB)
    assert len(asked) == 1


def test_the_token_of_a_link_is_known_by_its_form() -> None:
    token = new_link_token(NOTES)
    assert is_link_token(token)
    assert not any(map(is_link_token, (token[:-1], token + "a", token[5:], "a2al_", f"{token}\n", "")))
    assert token not in hash_of_link(token)
    assert new_link_token(NOTES) != token


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_after_a_failure_the_database_is_asked_again(world, monkeypatch: pytest.MonkeyPatch) -> None:
    shares, database = world.backend.shares, world.backend._database
    await shares.add(share("1"))

    def away() -> None:
        raise Unavailable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(database, "read", away)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await shares.for_caller(BOB)
    assert len(await shares.for_caller(BOB)) == 1


async def test_whoever_has_adopted_a_context_of_anonymous_callers_shares_it(world) -> None:
    await world.run("t3", OLD)
    shares = world.backend.shares
    access = Access(world.backend.journal, shares, adopter="ann")
    sharing = Sharing(access, shares, world.clock, lambda shard=None: "1")
    await sharing.share(Caller("ann"), OLD, ShareRequest(Level.EDIT, "bob"))
    found = await access.find(BOB, OLD)
    assert found == ContextGrant(OLD, "", Level.EDIT)
    with pytest.raises(NobodyToShare):
        await sharing.shares(ANONYMOUS, OLD)
    assert [each.user for each in await sharing.shares(BOB, OLD)] == ["bob"]
    with pytest.raises(ContextNotFound):
        await sharing.shares(CAROL, OLD)
