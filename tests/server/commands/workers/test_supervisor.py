"""What the parent of the workers refuses, and workers that cannot be started.

`tests/server/faults/test_workers.py` has the rest.
"""

from __future__ import annotations

import asyncio

import pytest

from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.commands.database_check import DatabaseState
from a2a_canvas.server.commands.workers import supervisor
from a2a_canvas.server.settings.settings import Settings
from tests.database_fixtures import postgresql_url
from tests.free_port import free_port
from tests.new_database import with_tables


@pytest.mark.postgres
def test_a_database_that_allows_too_few_connections_is_one_sentence_with_the_cure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = asyncio.run(with_tables(postgresql_url()))
    port = str(free_port())
    assert main(["serve", "--workers", "256", "--database", url, "--port", port, "--model", "rehearsal"]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith("a2a-canvas: --workers 256 needs 1536 connections to PostgreSQL, which allows ")
    assert "or fewer, or raise its max_connections to " in said


@pytest.mark.postgres
def test_a_database_without_tables_is_one_sentence_with_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    port = str(free_port())
    assert main(["serve", "--workers", "2", "--database", postgresql_url(), "--port", port]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert "a2a-canvas db upgrade" in said


async def test_a_worker_that_cannot_be_started_again_is_tried_later_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    workers = supervisor._Workers(Settings(port=free_port()), ["/no/such/program"], 6, DatabaseState(None))
    workers._serving.set()
    delays = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) == 3:
            workers._stopping.set()

    monkeypatch.setattr(workers, "_sleep", sleep)
    await workers._keep(2)
    assert (delays, workers._code) == ([0.5, 1, 2], 0)
    assert "it could not be started: [Errno 2] No such file" in caplog.text
