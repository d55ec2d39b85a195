"""An application whose lifespan has not run."""

from __future__ import annotations

import httpx
import pytest

from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.guard.startup import NOT_STARTED
from a2a_canvas.server.settings.settings import Settings

OPERATIONS = [
    ("POST", "/"),
    ("GET", "/rest/tasks"),
    ("POST", "/rest/message:send"),
    ("GET", "/artifacts"),
    ("GET", "/artifacts/c/events"),
    ("POST", "/canvas/stream"),
]


@pytest.mark.parametrize("database", ["memory", "never-opened.db"])
async def test_it_is_not_ready_and_operations_say_what_is_missing(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(Settings(database=database, model="rehearsal"))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False) as http:
        assert (await http.get("/readyz")).status_code == 503
        assert NOT_STARTED in caplog.text
        for method, path in OPERATIONS:
            answer = await http.request(method, path)
            assert (answer.status_code, answer.json()["error"]["message"]) == (503, NOT_STARTED)
        for path in ("/healthz", "/.well-known/agent-card.json"):
            assert (await http.get(path)).status_code == 200


async def test_it_is_ready_when_it_is_started() -> None:
    app = create_app(Settings(database="memory", model="rehearsal"))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False) as http,
    ):
        assert (await http.get("/readyz")).status_code == 200
        assert (await http.get("/rest/tasks", headers={"A2A-Version": "1.0"})).status_code == 200
