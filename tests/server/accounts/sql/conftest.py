"""A database with the schema, of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from a2a_canvas.server.backend.migrations import upgrade
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url


@pytest.fixture(params=[sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    make: Callable[[Path], str] = request.param
    opened = Database(make(tmp_path))
    await upgrade(opened)
    yield opened
    await opened.close()
