"""The server of the tests of artifacts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.server.app_server import Served, serving
from tests.server.canvas_client import SCRIPT


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(SCRIPT, grpc=False) as served:
        served.gate.open()
        yield served
