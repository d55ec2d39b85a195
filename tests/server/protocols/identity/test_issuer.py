"""What an issuer publishes, read over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import respx

from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable
from a2a_canvas.server.protocols.identity.issuer import MAX_BYTES, IssuedTokens, Issuer
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
        httpx.ConnectError("no route"),
        httpx.ReadTimeout("slow"),
    ],
    ids=["error", "redirect", "no json", "no keys", "a list", "too deep", "too large", "no connection", "too slow"],
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
