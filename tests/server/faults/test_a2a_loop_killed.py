"""A server whose loop is another A2A agent is killed: the agent's task is followed on, and is not begun again."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.database_fixtures import sqlite_url
from tests.server.app_server import serving
from tests.server.faults.fault_scripts import COMPLETED
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.server_processes import server_group

WRITTEN = "0123456789" * 10


@pytest.mark.parametrize("away", [False, True], ids=["while it writes", "until it has ended"])
async def test_its_task_is_followed_on_exactly_once(tmp_path: Path, away: bool) -> None:
    told = ObservedTask()
    async with serving(grpc=False) as other, server_group(sqlite_url(tmp_path), tmp_path) as servers:
        loop = ("--loop", f"a2a:{other.url}")
        first = await servers.start(*loop)
        async with first.sends("slowly log", told) as stream:
            await other.gate.reached.wait()
            other.gate.let(18)
            await stream.until(lambda told: len(told.texts.get("log", "")) > 20)
            await first.kill()
            with pytest.raises(httpx.TransportError):
                await stream.rest()
        if away:
            other.gate.open()
        second = await servers.start(*loop)
        async with second.joins(told) as stream:
            other.gate.open()
            await stream.rest()
        assert (told.state, told.texts) == (COMPLETED, {"log": WRITTEN})
        [there] = (await other.rpc("ListTasks", {}))["result"]["tasks"]
        assert there["status"]["state"] == "TASK_STATE_COMPLETED"
