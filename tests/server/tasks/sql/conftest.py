"""Replicas on one database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.database_fixtures import postgresql_url, sqlite_url
from tests.server.tasks.sql.replica_harness import Replicas, replicas


@pytest.fixture
async def several() -> AsyncIterator[Replicas]:
    """As many as a test starts, on PostgreSQL."""
    async with replicas() as opened:
        yield opened


@pytest.fixture(params=[sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
async def started(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Replicas]:
    """The same on either database; SQLite has one at a time."""
    async with replicas(request.param(tmp_path)) as opened:
        yield opened
