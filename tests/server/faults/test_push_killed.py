"""A server that is killed while it delivers: the next one, or another one, goes on, in order, and nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from tests.database_fixtures import execute, postgresql_url, sqlite_url
from tests.new_database import with_tables
from tests.server.faults.fault_scripts import WRITE
from tests.server.faults.server_processes import message, server_group
from tests.server.push.receiver import Notification, accept, receiving, state_of


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_what_a_killed_server_was_delivering_is_delivered_in_order_and_nothing_is_lost(
    database: str, tmp_path: Path
) -> None:
    async def hang_at_the_second(notification: Notification) -> web.Response:
        if len(receiver.got) > 1:
            await asyncio.Event().wait()
        return web.Response()

    url = sqlite_url(tmp_path) if database == "sqlite" else await with_tables(postgresql_url())
    async with (
        receiving() as receiver,
        server_group(url, tmp_path, A2A_CANVAS_PUSH_ALLOW="127.0.0.1") as servers,
    ):
        receiver.answer = hang_at_the_second
        first = await servers.start()
        config = {"taskPushNotificationConfig": {"url": receiver.url}}
        await first.call("SendMessage", {"message": message(WRITE), "configuration": config})
        await receiver.until(lambda got: len(got) == 2)
        await first.kill()
        receiver.answer = accept
        if database == "postgresql":  # as if the time of its claim had passed
            execute(url, "UPDATE push_configs SET due_at = 0")
        await servers.start()
        got = await receiver.until_state("TASK_STATE_COMPLETED")
    generations = [int(each.headers["webhook-id"].rpartition(":")[2]) for each in got]
    assert generations == sorted(generations)
    assert generations[1] == generations[2]  # the one that was under way came again, and no other one
    assert len({*generations}) == len(got) - 1
    told = [state_of(each) or "a version" for each in got[1:]]
    assert told == [*["a version"] * 2, "TASK_STATE_WORKING", "a version", "TASK_STATE_COMPLETED"]
