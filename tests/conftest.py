"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_file_in_the_working_directory() -> Iterator[None]:
    """A server keeps what it has in memory, unless its test names a database: no test finds what another one left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A2A_CANVAS_DATABASE", "memory")
        yield
