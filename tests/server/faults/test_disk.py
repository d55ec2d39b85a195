"""SQLite without room, or without its file: whoever comes is told to try again, and what was accepted is not lost."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.database_fixtures import sqlite_url
from tests.server.faults.fault_scripts import BEGUN, COMPLETED, WRITE
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.outcome_checks import assert_written
from tests.server.faults.server_processes import ServerProcess, message, server_group
from tests.server.faults.sse_client import INTERNAL_ERROR, Refused

FULL = Callable[[ServerProcess], Callable[[], object]]
"""Takes the room from a server; what comes back gives it back."""


def by_a_quota(folder: Path) -> FULL:
    """No file may grow beyond what the journal of the database has now."""

    def fill(server: ServerProcess) -> Callable[[], object]:
        before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        size = (folder / "canvas.db-wal").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, before[1]))
        return lambda: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)

    return fill


def by_a_full_disk(folder: Path) -> FULL:
    """Something else has taken the rest of a small disk."""

    def fill(server: ServerProcess) -> Callable[[], object]:
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"\0" * 4096)
        return filler.unlink

    return fill


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"needs a small disk: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


async def test_a_turn_beyond_its_quota_waits_and_goes_on(tmp_path: Path) -> None:
    await assert_waits_and_goes_on(tmp_path, tmp_path, by_a_quota(tmp_path), "disk I/O error")


async def test_a_turn_on_a_full_disk_waits_and_goes_on(small_disk: Path, tmp_path: Path) -> None:
    await assert_waits_and_goes_on(small_disk, tmp_path, by_a_full_disk(small_disk), "database or disk is full")


async def test_a_file_that_is_moved_away_is_noticed_and_used_again_when_it_is_back(tmp_path: Path) -> None:
    def by_moving_the_file(server: ServerProcess) -> Callable[[], object]:
        os.rename(tmp_path / "canvas.db", tmp_path / "elsewhere.db")
        return lambda: os.rename(tmp_path / "elsewhere.db", tmp_path / "canvas.db")

    await assert_waits_and_goes_on(tmp_path, tmp_path, by_moving_the_file, "was removed or replaced")


async def assert_waits_and_goes_on(disk: Path, folder: Path, full: FULL, reason: str) -> None:
    told, late = ObservedTask(), message(WRITE, context="late")
    async with server_group(sqlite_url(disk), folder) as servers:
        server = await servers.start()
        async with server.sends(WRITE, told) as stream:
            await stream.until(lambda told: len(told.texts.get("report", "")) > len(BEGUN) // 2)
            free = full(server)
            try:
                await server.says("Staged work waits.")
                assert (await server.http.get("/readyz")).status_code == 503
                await server.says("The server is not ready: ")
                assert any(reason in line for line in server.log if "The server is not ready: " in line)
                with pytest.raises(Refused) as refused:
                    await server.call("SendMessage", {"message": late})
                assert (refused.value.code, refused.value.retryable) == (INTERNAL_ERROR, True)
            finally:
                free()
            await server.says("The database can be used again.")
            assert await server.metric("commit_failures_total") > 0
            await stream.rest()
        assert told.epoch == 1
        await assert_written(told, server)
        accepted = (await server.call("SendMessage", {"message": late}))["task"]
        assert accepted["status"]["state"] == COMPLETED
        assert (await server.call("ListTasks", {}))["totalSize"] == 2
