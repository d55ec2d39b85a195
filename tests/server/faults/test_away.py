"""PostgreSQL goes away in the middle of turns and comes back: everybody is told to wait, nobody loses anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from typing import Literal
from uuid import uuid4

import grpc.aio
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub

from tests.database_fixtures import PrivatePostgresql, cut_connections, private_postgresql
from tests.new_database import with_tables
from tests.server.faults.fault_scripts import BEGUN, WRITE, Json
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.outcome_checks import assert_written
from tests.server.faults.server_processes import PATIENCE, ServerProcess, eventually, message, server_group
from tests.server.faults.sse_client import INTERNAL_ERROR, Refused, Stream

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURNS = 10
OUTAGE = 4.5
"""Seconds: no wait for anything, but the fault itself. By then the lease of every server has run out."""


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PrivatePostgresql]:
    with private_postgresql() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(postgresql: PrivatePostgresql) -> str:
    return await with_tables(postgresql.new_database())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[ServerProcess]]:
    async with server_group(url, tmp_path_factory.mktemp("script")) as servers:
        yield await servers.several(2)


async def test_a_turn_whose_connections_are_cut_misses_nothing(url: str, two: list[ServerProcess]) -> None:
    owner, other = two
    mine, theirs = ObservedTask(), ObservedTask()
    async with owner.sends(WRITE, mine) as own, asyncio.timeout(PATIENCE):
        await own.until(lambda told: told.task_id)
        theirs.task_id = mine.task_id
        async with other.joins(theirs) as watching:
            for length in (1, len(BEGUN) // 2, len(BEGUN) + 50):
                await own.until(partial(_has, length))
                assert cut_connections(url) >= 2
            await asyncio.gather(own.rest(), watching.rest())
    for told in (mine, theirs):
        assert told.epoch == 1
        await assert_written(told, other)


def _has(length: int, told: ObservedTask) -> bool:
    return len(told.texts.get("report", "")) >= length


# --------------------------------------------------------------------------- restarted


@pytest.mark.parametrize(("mode", "outage"), [("fast", 0), ("immediate", OUTAGE)])
async def test_ten_turns_wait_for_a_restarted_database_and_go_on(
    postgresql: PrivatePostgresql, two: list[ServerProcess], mode: Literal["fast", "immediate"], outage: float
) -> None:
    """Two servers, so that a turn could be taken over; but who could not say that it lives is not dead."""
    for server in two:  # its connections may be those that the test before has cut
        await _accepted(server, message(WRITE, context=str(uuid4())))
    writing = asyncio.Barrier(2 * TURNS + 1)
    turns = [asyncio.create_task(_watched(two[number % 2], two[1 - number % 2], writing)) for number in range(TURNS)]
    late = message(WRITE, context=str(uuid4()))
    try:
        async with asyncio.timeout(3 * PATIENCE):
            await _all_write(writing, turns)
            await asyncio.to_thread(postgresql.stop, mode)
            for server in two:
                await _assert_away(server, late)
            await asyncio.sleep(outage)
            await asyncio.to_thread(postgresql.start)
            for server in two if outage else ():
                assert await server.metric('lease_renewals_total{outcome="unavailable"}') > 0
            ended = await asyncio.gather(*turns)
            accepted = await _accepted(two[0], late)
    finally:
        for turn in turns:
            turn.cancel()
    for told in (told for both in ended for told in both):
        assert told.epoch == 1
        await assert_written(told, two[0])
    assert await _accepted(two[1], late) == accepted
    listed = await two[1].call("ListTasks", {"contextId": accepted[1]})
    assert listed["totalSize"] == 1


async def _all_write(writing: asyncio.Barrier, turns: list[asyncio.Task[tuple[ObservedTask, ObservedTask]]]) -> None:
    """Wait until every turn has text for both who watch it; raises what a turn raises before."""
    all_write = asyncio.ensure_future(writing.wait())
    await asyncio.wait((all_write, *turns), return_when=asyncio.FIRST_COMPLETED)
    for turn in turns:
        if turn.done():
            turn.result()
    await all_write


async def _watched(
    owner: ServerProcess, other: ServerProcess, writing: asyncio.Barrier
) -> tuple[ObservedTask, ObservedTask]:
    """A turn, and what was told of it by its owner and by the other server."""
    mine, theirs = ObservedTask(), ObservedTask()
    async with owner.sends(WRITE, mine) as own:
        await own.until(lambda told: told.task_id)
        theirs.task_id = mine.task_id
        async with other.joins(theirs) as watching:

            async def see(stream: Stream) -> None:
                await stream.until(lambda told: told.texts.get("report"))
                await writing.wait()
                await stream.rest()

            await asyncio.gather(see(own), see(watching))
    return mine, theirs


async def _assert_away(server: ServerProcess, late: Json) -> None:
    """Whatever is asked for is to be tried again, says each binding in its own way."""
    for method, params in (("SendMessage", {"message": late}), ("ListTasks", {}), ("GetTask", {"id": "t"})):
        with pytest.raises(Refused) as refused:
            await server.call(method, params)
        assert (refused.value.code, refused.value.retryable) == (INTERNAL_ERROR, True)
    headers = {"A2A-Version": "1.0"}
    answers = [await server.http.get(path, headers=headers) for path in ("/rest/tasks", "/artifacts/c", "/readyz")]
    assert [answer.status_code for answer in answers] == [503, 503, 503]
    assert [answer.headers.get("retry-after") for answer in answers[:2]] == ["1", "1"]
    async with grpc.aio.insecure_channel(server.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await A2AServiceStub(channel).ListTasks(pb.ListTasksRequest())
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def _accepted(server: ServerProcess, late: Json) -> tuple[str, str]:
    """The task and the context of a message that is sent until it is accepted."""
    found: list[tuple[str, str]] = []

    async def accepted() -> bool:
        with suppress(Refused):
            task = (await server.call("SendMessage", {"message": late}))["task"]
            found.append((task["id"], task["contextId"]))
        return bool(found)

    await eventually(accepted)
    return found[0]
