"""Signing in with the issuer of tokens: OpenID Connect, authorization code flow with PKCE (RFC 7636).

Rule 1: state, nonce and PKCE's verifier are random and kept in a signed cookie: a code that comes back in another
        browser, or for another sign-in, is refused.
Rule 2: only the ID token of the answer counts; it is checked like any token, with this client as its audience.
Rule 3: a browser is redirected only to a path of this server.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt

from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable, JwtVerifier
from a2a_canvas.server.protocols.identity.cached_fetch import CachedFetch
from a2a_canvas.server.protocols.identity.configuration import reserved_users
from a2a_canvas.server.protocols.identity.issuer import JSON, IssuedTokens, Issuer, IssuerRefuses, request_json
from a2a_canvas.server.protocols.identity.signed_claims import Claims
from a2a_canvas.server.protocols.pipeline.entrance import CALLBACK
from a2a_canvas.server.settings.settings import Settings, SettingsError, option_name
from a2a_canvas.server.settings.value_types import is_trusted_url

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """An issuer's authorization and token endpoints."""

    authorization: str
    token: str

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Endpoints:
        """The endpoints in a discovery document; raises `IssuerUnavailable`."""
        return cls(_endpoint(description, "authorization_endpoint"), _endpoint(description, "token_endpoint"))


class SignInRefused(Exception):
    """A user could not be signed in; `str()` is for the user."""


@dataclass(frozen=True, slots=True)
class OpenIdClient:
    """This server as a client of the issuer.

    Attributes:
        endpoints: those of the issuer.
        redirect_uri: where the issuer sends browsers back.
        id_tokens: checks the ID tokens for this client.
    """

    endpoints: CachedFetch[Endpoints]
    id_tokens: JwtVerifier
    client_id: str
    redirect_uri: str
    client_secret: str = ""

    async def address_for(self, flow: Claims) -> str:
        """Where a browser signs in; raises `IssuerUnavailable`."""
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": "openid",
            "state": flow["state"],
            "nonce": flow["nonce"],
            "code_challenge": _challenge(flow["verifier"]),
            "code_challenge_method": "S256",
        }
        endpoint = (await self.endpoints.get()).authorization
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def user_of(self, code: str, flow: Claims) -> str:
        """The user who has signed in.

        Raises:
            SignInRefused: the issuer's answer does not identify a user.
            IssuerUnavailable: the issuer cannot be reached.
        """
        token = (await self._redeem(code, flow)).get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("The provider did not say who signed in.")
        valid = await self.id_tokens.verify(token)
        if valid is None:
            raise SignInRefused("The provider sent an ID token that is not valid.")
        # Its signature has just been checked.
        claims = jwt.decode(token, options={"verify_signature": False})
        if not is_for(claims, flow["nonce"], self.client_id):
            raise SignInRefused("The provider's answer belongs to another sign-in.")
        return valid.user

    async def _redeem(self, code: str, flow: Claims) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "client_id": self.client_id,
            "code_verifier": flow["verifier"],
        }
        credentials = httpx.BasicAuth(self.client_id, self.client_secret) if self.client_secret else httpx.Auth()
        endpoint = (await self.endpoints.get()).token
        try:
            return await request_json("POST", endpoint, data=form, auth=credentials, headers=JSON)
        except IssuerRefuses:
            raise SignInRefused(
                "The provider rejected this sign-in: it may have expired or been used already."
            ) from None
        except IssuerUnavailable as error:
            logger.warning("A sign-in failed. %s", error)
            raise


def open_id_client(settings: Settings) -> OpenIdClient | None:
    """The client of the issuer that users sign in with; None if there is none.

    Raises:
        SettingsError: the settings lack the issuer, or name one without a discovery document.
    """
    if not settings.oidc_client_id:
        return None
    if not settings.jwt_issuer or settings.jwt_jwks_url:
        raise SettingsError(
            f"{option_name('oidc_client_id')} needs {option_name('jwt_issuer')}, and an issuer that describes itself, "
            f"so without {option_name('jwt_jwks_url')}."
        )
    issuer = Issuer(settings.jwt_issuer)

    async def read_endpoints() -> Endpoints:
        return Endpoints.from_description(await issuer.description())

    endpoints = CachedFetch("endpoints", read_endpoints, time.monotonic)
    reserved = reserved_users(settings)
    id_tokens = IssuedTokens(issuer, settings.oidc_client_id, settings.jwt_user_claim, time.monotonic, reserved)
    redirect_uri = f"{settings.url}{CALLBACK}"
    return OpenIdClient(endpoints, id_tokens, settings.oidc_client_id, redirect_uri, settings.oidc_client_secret or "")


def _endpoint(description: Mapping[str, Any], name: str) -> str:
    found = description.get(name)
    if not isinstance(found, str) or not is_trusted_url(found):
        raise IssuerUnavailable(f"The issuer of tokens names no HTTPS address for its {name}.")
    return found


def new_flow(back: str, start: str) -> Claims:
    """The state of a new sign-in (rule 1), after which the browser is redirected to `back`."""
    values = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
    return values | {"return": local_path(back, start)}


def local_path(given: str, start: str) -> str:
    """`given` if it is a path of this server, otherwise `start` (rule 3)."""
    # Browsers take a backslash for a slash, and leave out control characters.
    safe = given.startswith("/") and not given.startswith("//") and "\\" not in given and given.isprintable()
    return given if safe else start


def is_for(claims: Mapping[str, Any], nonce: str, client_id: str) -> bool:
    """Whether the claims of an ID token are for this sign-in of this client."""
    given = str(claims.get("nonce", ""))
    return hmac.compare_digest(given.encode(), nonce.encode()) and claims.get("azp", client_id) == client_id


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
