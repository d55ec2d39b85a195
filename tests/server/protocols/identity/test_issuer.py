"""What an issuer publishes, read over HTTP."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
import respx

from a2a_canvas.server.protocols.identity import issuer
from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable
from a2a_canvas.server.protocols.identity.issuer import MAX_BYTES, IssuedTokens, Issuer, request_json
from a2a_canvas.server.protocols.identity.security import discovery_url
from tests.extreme_values import deep
from tests.server.protocols.identity.tokens import AUDIENCE, ISSUER, SigningKey

KEY = SigningKey("1")
KEYS_URL = f"{ISSUER}/keys"


@pytest.mark.parametrize("issuer", [ISSUER, f"{ISSUER}/", f"{ISSUER}/realms/one"])
async def test_its_keys_are_where_its_description_says(issuer: str, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(discovery_url(issuer)).respond(json={"issuer": issuer, "jwks_uri": KEYS_URL})
    respx_mock.get(KEYS_URL).respond(json={"keys": [KEY.public, "nonsense"]})
    assert await Issuer(issuer).keys() == [KEY.public]


async def test_an_issuer_that_does_not_describe_itself_has_its_keys_where_the_operator_says(
    respx_mock: respx.MockRouter,
) -> None:
    respx_mock.get(KEYS_URL).respond(json={"keys": [KEY.public]})
    tokens = IssuedTokens(Issuer(ISSUER, KEYS_URL), AUDIENCE, "sub", lambda: 0.0)
    valid = await tokens.verify(KEY.token())
    assert valid
    assert valid.user == "ann"
    assert await tokens.verify(KEY.token(aud="another")) is None
    assert await tokens.verify(SigningKey("1").token()) is None


@pytest.mark.parametrize(
    "described",
    [
        {"issuer": "https://evil.example.com", "jwks_uri": KEYS_URL},
        {"jwks_uri": KEYS_URL},
        {"issuer": ISSUER},
        {"issuer": ISSUER, "jwks_uri": "http://login.example.com/keys"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"},
        {"issuer": ISSUER, "jwks_uri": ["https://login.example.com/keys"]},
        [],
    ],
    ids=str,
)
async def test_a_description_that_is_not_its_own_is_not_trusted(described: Any, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(discovery_url(ISSUER)).respond(json=described)
    with pytest.raises(IssuerUnavailable):
        await Issuer(ISSUER).keys()


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(302, headers={"Location": "https://evil.example.com/keys"}),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json={"keys": "none"}),
        httpx.Response(200, json=[]),
        httpx.Response(200, text=deep(100_000)),
        httpx.Response(200, content=b" " * (MAX_BYTES + 1)),
        httpx.Response(200, content=gzip.compress(b" " * MAX_BYTES), headers={"Content-Encoding": "gzip"}),
        httpx.ConnectError("no route"),
        httpx.ReadTimeout("slow"),
    ],
    ids=[
        "error",
        "redirect",
        "no json",
        "no keys",
        "a list",
        "too deep",
        "too large",
        "compressed",
        "no connection",
        "too slow",
    ],
)
async def test_keys_that_cannot_be_read_are_unavailable(
    answer: httpx.Response | Exception, respx_mock: respx.MockRouter
) -> None:
    route = respx_mock.get(KEYS_URL)
    if isinstance(answer, Exception):
        route.mock(side_effect=answer)
    else:
        route.mock(return_value=answer)
    with pytest.raises(IssuerUnavailable):
        await Issuer(ISSUER, KEYS_URL).keys()


@asynccontextmanager
async def dripping() -> AsyncIterator[str]:
    """The address of an issuer that sends a byte now and then, and never ends."""
    ended = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        gone = asyncio.create_task(reader.read())
        with suppress(ConnectionError):
            while not gone.done():
                writer.write(b" ")
                await writer.drain()
                await asyncio.wait((gone,), timeout=0.01)
        gone.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await ended.wait()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_answer_that_drips_has_the_time_of_a_whole_one(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer, "TIMEOUT", 0.2)
    async with dripping() as url:
        with pytest.raises(IssuerUnavailable, match="cannot be read: TimeoutError"):
            await request_json(method, url)


async def test_an_issuer_is_asked_for_plain_answers_and_no_secret_follows_a_redirect(
    respx_mock: respx.MockRouter,
) -> None:
    elsewhere = respx_mock.post("https://evil.example.com/token").respond(json={})
    token = respx_mock.post(f"{ISSUER}/token").respond(307, headers={"Location": "https://evil.example.com/token"})
    with pytest.raises(IssuerUnavailable):
        await request_json("POST", f"{ISSUER}/token", auth=httpx.BasicAuth("us", "s3cret"))
    assert token.calls.last.request.headers["accept-encoding"] == "identity"
    assert not elsewhere.called


async def test_an_issuer_on_this_machine_is_asked_past_any_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()
        await writer.wait_closed()

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # where nobody listens
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        assert await request_json("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys") == {}
