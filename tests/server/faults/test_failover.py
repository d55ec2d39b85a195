"""A standby that lacks a commit is promoted. `bench/failover.py` has the failover test, in a long and a short form."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.new_database import with_tables
from tests.postgresql_pair import PostgresqlPair, cancel_waits, postgresql_pair
from tests.server.faults.fault_scripts import WRITE
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.outcome_checks import assert_written
from tests.server.faults.server_processes import PATIENCE, eventually, server_group

CANCELLED = 8
"""Waits, of heartbeats too: each transaction is tried again and again."""


@pytest.fixture
def pair() -> Iterator[PostgresqlPair]:
    with postgresql_pair() as servers:
        yield servers


async def test_a_commit_whose_wait_for_the_standby_was_cancelled_is_made_again_on_the_promoted_one(
    pair: PostgresqlPair, tmp_path: Path
) -> None:
    """The old primary has it and says so, but nobody was told of it: it was lost with that server."""
    standby, told = pair.add_standby(), ObservedTask()
    database = await with_tables(pair.primary.new_database())
    async with server_group(pair.url(database), tmp_path) as servers, asyncio.timeout(PATIENCE):
        server = await servers.start()
        async with server.sends(WRITE, told) as stream:
            await stream.until(lambda told: told.texts)
            standby.signal(signal.SIGSTOP)
            rest = asyncio.create_task(stream.rest())
            cancelled: list[int] = []

            async def are_enough() -> bool:
                cancelled.append(cancel_waits(pair.primary.url()))
                return sum(cancelled) >= CANCELLED

            await eventually(are_enough)
            await server.says("the standby has not confirmed a commit")
            pair.kill_primary()
            pair.restart_standby()
            pair.promote()
            await rest
        await assert_written(told, server)
        assert told.epoch == 1
