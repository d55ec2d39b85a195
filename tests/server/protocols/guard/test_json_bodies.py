"""The routes of our own read JSON as the bindings do."""

from collections.abc import AsyncIterator

import pytest

from tests.server.app_server import Served, serving


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(grpc=False, database="memory") as served:
        yield served


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[" * 60_000, "Nested deeper than 32 levels"),
        (b"[]" * 30_000, "More than 10000 values"),
        (b"9" * 60_000, "A number has 60000 characters and may have 1000"),
        (b"\xff", "Body is not UTF-8"),
        (b"", "The body is empty"),
    ],
)
async def test_what_is_no_json_is_refused_with_a_reason(served: Served, body: bytes, says: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await served.http.post("/auth/signed-urls", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(says)
