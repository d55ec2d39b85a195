"""What answers say of who else may have them."""

from __future__ import annotations

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from a2a_canvas.server.protocols.pipeline.http_answers import Answers


async def answered(headers: dict[str, str], status: int = 200) -> httpx.Headers:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("", status, headers)(scope, receive, send)

    transport = httpx.ASGITransport(Answers(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return (await client.get("/")).headers


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_what_does_not_say_that_it_may_be_stored_is_not(status: int) -> None:
    headers = await answered({}, status)
    assert headers["cache-control"] == "no-store"
    assert "vary" not in headers


@pytest.mark.parametrize(
    ("given", "vary"),
    [
        ({"Cache-Control": "public, max-age=300"}, None),
        ({"Cache-Control": "no-cache", "Vary": "Accept"}, "Accept"),
        ({"Cache-Control": "private, no-cache"}, "Authorization, Cookie"),
        ({"Cache-Control": "private, no-cache", "Vary": "Accept"}, "Accept, Authorization, Cookie"),
    ],
)
async def test_what_may_be_stored_for_its_caller_says_what_tells_the_caller(
    given: dict[str, str], vary: str | None
) -> None:
    headers = await answered(given)
    assert headers["cache-control"] == given["Cache-Control"]
    assert headers.get("vary") == vary


@pytest.mark.parametrize(
    ("caching", "status", "policy"),
    [
        ("no-store", 200, "same-origin"),
        ("private, no-cache", 200, "same-origin"),
        ("private, no-cache", 304, "same-origin"),
        ("no-cache", 200, None),
        ("public, max-age=300", 200, None),
        ("no-store", 404, None),
    ],
)
async def test_no_other_origin_embeds_an_answer_for_its_caller(caching: str, status: int, policy: str | None) -> None:
    assert (await answered({"Cache-Control": caching}, status)).get("cross-origin-resource-policy") == policy
