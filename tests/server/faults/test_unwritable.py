"""A turn whose version the database refuses, among others, as their clients see it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError

from a2a_canvas.server.tasks.runtime.turns import NOT_STORED
from tests.database_fixtures import sqlite_url
from tests.server.app_server import HTTP, Stream, asking, said, stoppable
from tests.server.faults.server_processes import eventually

RULE = (
    "CREATE TRIGGER rule BEFORE INSERT ON versions WHEN NEW.artifact_id = 'poison' BEGIN SELECT RAISE(ABORT, 'no'); END"
)


def _add_rule(file: Path) -> None:
    """In a thread: the server, which may just be writing, runs in this one."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(RULE)


async def test_one_task_fails_with_a_reason_and_the_others_end_as_ever(tmp_path: Path) -> None:
    async with asyncio.timeout(60), stoppable(database=sqlite_url(tmp_path)) as (_, _, served):
        await asyncio.to_thread(_add_rule, tmp_path / "canvas.db")
        client = served.client(*HTTP[0])
        healthy = [Stream(served.client(*way).send_message(asking("slowly notes"))) for way in HTTP]
        poisoned = Stream(client.send_message(asking("slowly poison")))
        for stream in (*healthy, poisoned):
            await stream.until_state(pb.TASK_STATE_WORKING)
        served.gate.open()
        served.gate.let(1000)
        with pytest.raises(A2AError, match="Subscribe to it again"):
            await poisoned.rest()
        for stream in healthy:
            await stream.rest()
        assert {stream.task.status.state for stream in healthy} == {pb.TASK_STATE_COMPLETED}
        asked = pb.GetTaskRequest(id=poisoned.task.id)

        async def failed() -> bool:
            return (await client.get_task(asked)).status.state == pb.TASK_STATE_FAILED

        await eventually(failed)
        assert said((await client.get_task(asked)).status) == NOT_STORED
        assert (await served.http.get("/readyz")).status_code == 200
