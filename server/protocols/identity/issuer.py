"""Reads the discovery document (OpenID Connect) and the keys of the issuer of tokens, over HTTP.

Rule 1: keys are read over HTTPS, or over HTTP on this machine. No redirect is followed, an answer has at most
        MAX_BYTES and takes at most TIMEOUT seconds, and a discovery document must name the issuer that was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from a2a_canvas.server.outbound.over_httpx import UnreadableAnswer, client, json_of
from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable
from a2a_canvas.server.protocols.identity.json_web_tokens import Jwk, TokenRules, ValidToken, header_of, read_token
from a2a_canvas.server.protocols.identity.key_set import KeySet
from a2a_canvas.server.protocols.identity.security import discovery_url
from a2a_canvas.server.settings.value_types import is_loopback, is_trusted_url
from a2a_canvas.server.wire import why_untrusted

TIMEOUT = 5.0
MAX_BYTES = 512 * 1024
JSON = {"Accept": "application/json"}


class IssuerRefuses(IssuerUnavailable):
    """The issuer answered a request with an error."""


class Issuer:
    """Reads an issuer's discovery document and keys.

    Args:
        name: as in its tokens (`iss`).
        jwks_url: where its keys are; empty if its discovery document says so.
    """

    def __init__(self, name: str, jwks_url: str = "") -> None:
        self.name = name
        self._jwks_url = jwks_url

    async def description(self) -> Mapping[str, Any]:
        """The issuer's discovery document.

        Raises:
            IssuerUnavailable: it cannot be read, or describes another issuer.
        """
        url = discovery_url(self.name)
        found = await request_json("GET", url, headers=JSON)
        if found.get("issuer") != self.name:
            raise IssuerUnavailable(f"{url} describes an issuer other than {self.name}.")
        return found

    async def keys(self) -> Sequence[Jwk]:
        """The issuer's keys; raises `IssuerUnavailable`."""
        url = self._jwks_url or str((await self.description()).get("jwks_uri", ""))
        if not is_trusted_url(url):
            raise IssuerUnavailable(f"The issuer {self.name} names no HTTPS address for its keys.")
        keys = (await request_json("GET", url, headers=JSON)).get("keys")
        if not isinstance(keys, list):
            raise IssuerUnavailable(f"{url} has no keys.")
        return [key for key in keys if isinstance(key, dict)]


class IssuedTokens:
    """A `JwtVerifier` of an issuer's tokens."""

    def __init__(
        self,
        issuer: Issuer,
        audience: str,
        user_claim: str,
        clock: Callable[[], float],
        reserved: frozenset[str] = frozenset(),
    ) -> None:
        self._rules = TokenRules(issuer.name, audience, user_claim, reserved)
        self._keys = KeySet(issuer.keys, clock)

    async def verify(self, token: str) -> ValidToken | None:
        header = header_of(token)
        keys = await self._keys.keys_for(header) if header else ()
        read = (read_token(token, key, header, self._rules) for key in keys if header)
        return next((each for each in read if each), None)


async def request_json(method: str, url: str, **options: Any) -> Mapping[str, Any]:
    """Send a request to an issuer; the JSON object that it answers with (rule 1).

    Args:
        options: httpx's options for a request.

    Raises:
        IssuerUnavailable: there is no answer, or it is not a JSON object.
        IssuerRefuses: it answers with an error.
    """
    try:
        # Requests to an issuer on this machine bypass any proxy.
        async with asyncio.timeout(TIMEOUT), client(MAX_BYTES, trust_env=not is_loopback(_host(url))) as http:
            response = await http.request(method, url, **options)
        response.raise_for_status()
        found = json_of(response)
    except httpx.HTTPStatusError as error:
        raise IssuerRefuses(f"The issuer at {_host(url)} answers with HTTP {error.response.status_code}.") from error
    except UnreadableAnswer as error:
        raise IssuerUnavailable(f"The issuer at {_host(url)} cannot be read: {error}.") from error
    except (httpx.HTTPError, TimeoutError) as error:
        why = why_untrusted(error) or type(error).__name__
        raise IssuerUnavailable(f"The issuer at {_host(url)} cannot be read: {why}.") from error
    if not isinstance(found, dict):
        raise IssuerUnavailable(f"{url} is not a JSON object.")
    return found


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
