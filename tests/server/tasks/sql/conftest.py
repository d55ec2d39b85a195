"""Replicas on one database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.broker_fixtures import PrivateNats, private_nats
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.server.tasks.sql.replica_harness import Replicas, replicas


@pytest.fixture(scope="session")
def nats() -> Iterator[PrivateNats]:
    """One that runs all the time."""
    with private_nats() as server:
        yield server


@pytest.fixture
async def several(request: pytest.FixtureRequest) -> AsyncIterator[Replicas]:
    """As many as a test starts, on PostgreSQL; with a broker, if its parameter says so."""
    broker = request.getfixturevalue("nats").url if getattr(request, "param", "") == "broker" else ""
    async with replicas(broker=broker) as opened:
        yield opened


@pytest.fixture(params=[sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
async def started(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Replicas]:
    """The same on either database; SQLite has one at a time."""
    async with replicas(request.param(tmp_path)) as opened:
        yield opened
