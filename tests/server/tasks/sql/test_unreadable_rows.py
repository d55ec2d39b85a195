"""A row that cannot be decoded is left out, no matter which user wrote it, and logged: everything else is read."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import delete, insert, select, update

from a2a_canvas.server.accounts.access import Access, Caller, Level, Share
from a2a_canvas.server.accounts.api_key import ApiKey
from a2a_canvas.server.accounts.sharing import Sharing
from a2a_canvas.server.accounts.sql.sql_api_keys import add_key, api_keys, list_keys
from a2a_canvas.server.accounts.sql.sql_shares import shares
from a2a_canvas.server.push.fair_choice import FreePlaces
from a2a_canvas.server.push.sql.outbox_rows import push_outbox
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import AppendParts, ReplaceParts, Undo
from a2a_canvas.store.errors import ArtifactUnreadable
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.models import Ref, text_part
from a2a_canvas.store.sql.tables import versions
from tests.database_fixtures import sqlite_url
from tests.server.app_server import serving
from tests.server.tasks.context_harness import ContextHarness, open_contexts

MADE = datetime(2026, 1, 1, tzinfo=UTC)
AFTER_9999 = 253_402_343_999_000_000
NOTES, PLAN = context_key("ann", "notes"), context_key("ann", "plan")
BOB = Caller("bob")
FREE = FreePlaces(10, 10, 10, 10, 10)


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContextHarness]:
    """Where ann has the contexts `notes` and `plan`, each with a task and an artifact."""
    async with open_contexts(request.param, tmp_path) as opened:
        for task, context in (("t1", "notes"), ("t2", "plan")):
            await opened.begin(task, context, "ann")
            await opened.write(task, "doc", f"Text of {context}")
            await opened.reach(task)
        yield opened


async def spoil(world: ContextHarness, table: Any, *where: Any, **values: Any) -> None:
    async with world.backend._database.write() as connection:
        done = await connection.execute(update(table).where(*where).values(**values))
        assert done.rowcount


def sharing(world: ContextHarness) -> Sharing:
    """With it a user leaves what others have shared."""
    access = Access(world.backend.journal, world.backend.shares)
    return Sharing(access, world.backend.shares, lambda: MADE, lambda: "new")


@pytest.mark.parametrize("values", [{"level": "everything"}, {"level": "1"}], ids=str)
async def test_a_share(world: ContextHarness, values: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    for number, context in enumerate((NOTES, PLAN)):
        await world.backend.shares.add(Share(f"s{number}", context, "ann", Level.READ, MADE, "bob"))
    await spoil(world, shares, shares.c.share_id == "s0", **values)
    assert [each.context for each in await world.backend.shares.for_caller(BOB)] == [PLAN]
    assert await world.backend.shares.list(NOTES) == ()
    await sharing(world).revoke(BOB, "plan", "s1")
    assert await world.backend.shares.for_caller(BOB) == ()
    assert "A stored share cannot be read and is skipped" in caplog.text


@pytest.mark.parametrize("column", ["made_at", "expires_at"])
async def test_a_time_beyond_the_calendar_is_read_as_its_end(world: ContextHarness, column: str) -> None:
    await world.backend.shares.add(Share("s", NOTES, "ann", Level.READ, MADE, "bob", expires_at=None))
    await spoil(world, shares, **{column: AFTER_9999})
    [share] = await world.backend.shares.for_caller(BOB)
    assert getattr(share, column) == datetime.max.replace(tzinfo=UTC)
    await sharing(world).revoke(BOB, "notes", "s")
    assert await world.backend.shares.for_caller(BOB) == ()


async def test_a_key(world: ContextHarness) -> None:
    database = world.backend._database
    for name in ("ann", "ci"):
        await add_key(database, ApiKey(name, name, f"hash of {name}", MADE))
    await spoil(world, api_keys, api_keys.c.name == "ci", made_at=-(2**62))
    assert [key.name for key in await list_keys(database)] == ["ci", "ann"]


@pytest.mark.parametrize("values", [{"named": "[["}, {"artifacts": "{"}, {"head": "[]"}], ids=str)
async def test_a_task(world: ContextHarness, values: dict[str, Any]) -> None:
    await spoil(world, tasks, tasks.c.task_id == "t1", **values)
    page = await world.backend.journal.list(TaskQuery(("ann",), artifacts=True))
    assert [each.task_id for each in page.records] == ["t2", "t1"]
    assert [each.task_id for each in await world.backend.journal.context(PLAN)] == ["t2"]
    assert len(await world.list("ann")) == 2
    assert (await world.backend.journal.follow_context(NOTES)).snapshot


async def test_a_version(world: ContextHarness) -> None:
    await spoil(world, versions, versions.c.context_id == NOTES, content="{")
    world.backend.store._cache.clear()
    page = await world.backend.journal.list(TaskQuery(("ann",), artifacts=True))
    assert [{*each.artifacts} for each in page.records] == [{"doc"}, {"doc"}]
    assert await world.backend.store.list(NOTES) == ()
    assert [each.artifact_id for each in await world.backend.store.list(PLAN)] == ["doc"]


async def test_an_artifact_that_cannot_be_read_is_neither_missing_nor_written_and_can_be_mended(
    world: ContextHarness,
) -> None:
    store, ref = world.backend.store, Ref(NOTES, "doc", "t9")
    [artifact] = await store.list(NOTES)
    async with world.backend._database.read() as connection:
        content = await connection.scalar(select(versions.c.content).where(versions.c.context_id == NOTES))
    await spoil(world, versions, versions.c.context_id == NOTES, content="{")
    store._cache.clear()
    for attempt in (
        lambda: store.get(ref),
        lambda: store.versions(ref),
        lambda: store.version(ref, 1),
        lambda: store.prepare(ref),
        lambda: store.apply(ref, ReplaceParts((text_part("new"),), last_chunk=True)),
        lambda: store.apply(ref, AppendParts((text_part("new"),))),
        lambda: store.apply(ref, Undo(1)),
    ):
        with pytest.raises(ArtifactUnreadable, match="'doc' cannot be read"):
            await attempt()
    await spoil(world, versions, versions.c.context_id == NOTES, content=content)
    assert await store.list(NOTES) == (artifact,)
    assert (await store.apply(ref, AppendParts((text_part("!"),), last_chunk=True))).version == 2


async def test_over_http_an_artifact_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    async with serving(grpc=False, database=url) as served:
        for name in ("broken", "whole"):
            await served.rpc("SendMessage", put(name))
    with closing(sqlite3.connect(tmp_path / "canvas.db")) as connection:
        connection.execute("UPDATE versions SET content = '{' WHERE artifact_id = 'broken'")
        connection.commit()
    async with serving(grpc=False, database=url) as served:
        answer = await served.http.get("/artifacts/c/broken")
        assert (answer.status_code, answer.json()["error"]["status"]) == (500, "INTERNAL")
        assert "'broken' cannot be read" in answer.json()["error"]["message"]
        assert (await served.http.get("/artifacts/c/whole")).status_code == 200
        assert "'broken' cannot be read" in (await served.rpc("SendMessage", put("broken")))["error"]["message"]
        assert "result" in await served.rpc("SendMessage", put("whole"))


def put(name: str) -> dict[str, Any]:
    operation = {"op": "put", "artifactId": name, "name": f"{name}.md", "text": str(uuid4())}
    parts, metadata = [{"text": "Put"}], {CANVAS: operation}
    message = {"messageId": str(uuid4()), "contextId": "c", "role": "ROLE_USER", "parts": parts, "metadata": metadata}
    return {"message": message}


async def test_a_push_notification(world: ContextHarness, caplog: pytest.LogCaptureFixture) -> None:
    push = world.backend.push
    for task, context in (("t3", NOTES), ("t4", PLAN)):
        await world.begin(task, "notes" if context == NOTES else "plan", "ann")
        await push.add(PushConfig(ConfigKey(context, task, "hook"), Caller("ann"), "1.0", "http://a/", "a:80"))
        await world.reach(task)
    await spoil(world, push_outbox, push_outbox.c.task_id == "t3", entry="[")
    claimed = await push.claim(FREE)
    assert [each.config.key.task_id for each in claimed] == ["t4"]
    assert "A stored push notification cannot be read" in caplog.text
    assert await push.claim(FREE) == ()


async def test_many_push_notifications_of_one_config_delay_those_of_nobody_else(world: ContextHarness) -> None:
    push, keys = world.backend.push, [ConfigKey(NOTES, "t3", "hook"), ConfigKey(PLAN, "t4", "hook")]
    for key, user in zip(keys, ("ann", "bob"), strict=True):
        await world.begin(key.task_id, "notes" if key.context_id == NOTES else "plan", "ann")
        await push.add(PushConfig(key, Caller(user), "1.0", "http://a/", "a:80"))
        await world.reach(key.task_id)
    async with world.backend._database.write() as connection:
        [row] = (await connection.execute(select(push_outbox).where(push_outbox.c.task_id == "t3"))).mappings().all()
        before = [{**row, "generation": row["generation"] - number, "entry": "["} for number in range(1, 1500)]
        await connection.execute(insert(push_outbox), before)
    assert [each.config.key for each in await push.claim(FREE)] == [keys[1]]
    assert (await push.backlog()).depth == 1500
    async with world.backend._database.write() as connection:
        await connection.execute(delete(push_outbox).where(push_outbox.c.generation < row["generation"] - 2))
    found = [[each.config.key for each in await push.claim(FREE)] for _ in range(3)]
    assert found == [[], [], [keys[0]]]
