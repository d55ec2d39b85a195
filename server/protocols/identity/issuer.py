"""The issuer of tokens, over HTTP: how it describes itself (OpenID Connect discovery), and its keys.

Rule 1: only HTTPS is trusted with keys, or HTTP on this machine. No redirect is followed, an answer has at most
        MAX_BYTES and takes TIMEOUT seconds, and a description must be of the issuer that was asked for.
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
    """The issuer answers a request with an error."""


class Issuer:
    """Reads what an issuer publishes.

    Args:
        name: as it is in its tokens (`iss`).
        jwks_url: where its keys are; empty if its description says it.
    """

    def __init__(self, name: str, jwks_url: str = "") -> None:
        self.name = name
        self._jwks_url = jwks_url

    async def description(self) -> Mapping[str, Any]:
        """What the issuer says of itself.

        Raises:
            IssuerUnavailable: it cannot be read, or is another one's.
        """
        url = discovery_url(self.name)
        found = await asked("GET", url, headers=JSON)
        if found.get("issuer") != self.name:
            raise IssuerUnavailable(f"{url} describes another issuer than {self.name}.")
        return found

    async def keys(self) -> Sequence[Jwk]:
        """Its keys; raises `IssuerUnavailable`."""
        url = self._jwks_url or str((await self.description()).get("jwks_uri", ""))
        if not is_trusted_url(url):
            raise IssuerUnavailable(f"The issuer {self.name} names no HTTPS address of its keys.")
        keys = (await asked("GET", url, headers=JSON)).get("keys")
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


async def asked(method: str, url: str, **options: Any) -> Mapping[str, Any]:
    """The JSON object that an issuer answers with (rule 1).

    Args:
        options: those of httpx for a request.

    Raises:
        IssuerUnavailable: there is none.
        IssuerRefuses: it answers with an error.
    """
    try:
        # An issuer on this machine is asked past any proxy.
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
        raise IssuerUnavailable(f"{url} is no JSON object.")
    return found


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
