"""`/healthz` and `/readyz`."""

import httpx
import pytest
from starlette.applications import Starlette

from a2a_canvas.server.protocols.edge.availability import health_route, ready_route


async def get(path: str, reason: str | None = None, method: str = "GET") -> httpx.Response:
    async def check() -> str | None:
        return reason

    app = Starlette(routes=[health_route(), ready_route(check)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False) as http:
        return await http.request(method, path)


@pytest.mark.parametrize("reason", [None, "the disk is full"])
async def test_a_server_that_answers_lives_whatever_it_can_do(reason: str | None) -> None:
    response = await get("/healthz", reason)
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_a_server_that_can_be_used_is_ready() -> None:
    response = await get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_one_that_cannot_says_that_it_may_pass_and_only_its_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = await get("/readyz", "the database does not answer")
    assert response.status_code == 503
    assert response.json() == {"status": "unavailable"}
    assert response.headers["retry-after"] == "1"
    assert caplog.messages == ["The server is not ready: the database does not answer"]


async def test_the_log_says_so_whenever_it_begins_however_often_somebody_asks(caplog: pytest.LogCaptureFixture) -> None:
    reasons = iter([None, "away", "away", None, "away again"])

    async def check() -> str | None:
        return next(reasons)

    transport = httpx.ASGITransport(Starlette(routes=[ready_route(check)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        statuses = [(await http.get("/readyz")).status_code for _ in range(5)]
    assert statuses == [200, 503, 503, 200, 503]
    assert caplog.messages == ["The server is not ready: away", "The server is not ready: away again"]


@pytest.mark.parametrize("reason", [None, "the database does not answer"])
async def test_the_answer_is_of_this_moment(reason: str | None) -> None:
    assert (await get("/readyz", reason)).headers["cache-control"] == "no-store"


async def test_a_load_balancer_may_ask_for_the_head_alone() -> None:
    assert (await get("/readyz", "away", method="HEAD")).status_code == 503
