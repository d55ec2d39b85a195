"""One running application for the tests of a module; each test has contexts of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.server.app_server import Served, serving


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    """The arguments of `serving`; a module overrides it."""
    return {}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(app_options: dict[str, Any]) -> AsyncIterator[Served]:
    async with serving(**app_options) as running:
        yield running


@pytest.fixture
def served(server: Served) -> Served:
    """The module's server; its gate is closed, and its model has been asked nothing."""
    server.gate.close()
    server.model.requests.clear()
    return server


@pytest.fixture
def context() -> str:
    return str(uuid4())
