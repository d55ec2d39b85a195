"""Where the runtime of a test keeps its tasks and artifacts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server.tasks.backend_fixtures import on_sqlite
from tests.server.tasks.runtime.runtime_harness import RuntimeHarness


@pytest.fixture(params=["memory", "sqlite"])
async def backend(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """Where every harness of a test keeps what it has."""
    if request.param == "memory":
        yield "memory"
        return
    async with on_sqlite(tmp_path) as make:
        monkeypatch.setattr(RuntimeHarness, "backend", staticmethod(make))
        yield "sqlite"
