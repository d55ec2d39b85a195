"""The issuer of tokens, over HTTP: how it describes itself (OpenID Connect discovery), and its keys.

Rule 1: only HTTPS is trusted with keys, or HTTP on this machine. No redirect is followed, an answer has at most
        MAX_BYTES and TIMEOUT seconds, and a description must be of the issuer that was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable
from a2a_canvas.server.protocols.identity.json_web_tokens import Jwk, TokenRules, ValidToken, header_of, read_token
from a2a_canvas.server.protocols.identity.key_set import KeySet
from a2a_canvas.server.protocols.identity.security import discovery_url
from a2a_canvas.server.settings import is_loopback, is_trusted_url
from a2a_canvas.server.wire import why_untrusted

TIMEOUT = 5.0
MAX_BYTES = 512 * 1024


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
        found = await _read(url)
        if found.get("issuer") != self.name:
            raise IssuerUnavailable(f"{url} describes another issuer than {self.name}.")
        return found

    async def keys(self) -> Sequence[Jwk]:
        """Its keys; raises `IssuerUnavailable`."""
        url = self._jwks_url or str((await self.description()).get("jwks_uri", ""))
        if not is_trusted_url(url):
            raise IssuerUnavailable(f"The issuer {self.name} names no HTTPS address of its keys.")
        keys = (await _read(url)).get("keys")
        if not isinstance(keys, list):
            raise IssuerUnavailable(f"{url} has no keys.")
        return [key for key in keys if isinstance(key, dict)]


class IssuedTokens:
    """A `JwtVerifier` of an issuer's tokens."""

    def __init__(self, issuer: Issuer, audience: str, user_claim: str, clock: Callable[[], float]) -> None:
        self._rules = TokenRules(issuer.name, audience, user_claim)
        self._keys = KeySet(issuer.keys, clock)

    async def verify(self, token: str) -> ValidToken | None:
        header = header_of(token)
        keys = await self._keys.keys_for(header) if header else ()
        read = (read_token(token, key, header, self._rules) for key in keys if header)
        return next((each for each in read if each), None)


async def _read(url: str) -> Mapping[str, Any]:
    """A JSON object at an address (rule 1)."""
    try:
        async with (
            # An issuer on this machine is asked past any proxy.
            httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False, trust_env=not is_loopback(_host(url))) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            response.raise_for_status()
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MAX_BYTES:
                    raise IssuerUnavailable(f"{url} answers with more than {MAX_BYTES} bytes.")
        found = json.loads(body)
    except (httpx.HTTPError, ValueError, RecursionError) as error:
        why = why_untrusted(error) or type(error).__name__
        raise IssuerUnavailable(f"The issuer at {_host(url)} cannot be read: {why}.") from error
    if not isinstance(found, dict):
        raise IssuerUnavailable(f"{url} is no JSON object.")
    return found


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
