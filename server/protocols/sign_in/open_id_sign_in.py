"""Signing in with the issuer of tokens: OpenID Connect, authorization code flow with PKCE (RFC 7636).

Rule 1: state, nonce and PKCE's verifier are random, and in a signed cookie of the browser that began: a code that comes
        back in another browser, or for another sign-in, is refused.
Rule 2: of the answer only the ID token counts, checked like any token, for the audience of this client.
Rule 3: a browser is sent on only to a path of this server.
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
from a2a_canvas.server.protocols.identity.configuration import reserved_users
from a2a_canvas.server.protocols.identity.issuer import JSON, IssuedTokens, Issuer, IssuerRefuses, asked
from a2a_canvas.server.protocols.identity.published import Published
from a2a_canvas.server.protocols.identity.signed_claims import Claims
from a2a_canvas.server.protocols.pipeline.entrance import CALLBACK
from a2a_canvas.server.settings.settings import Settings, SettingsError, option_name
from a2a_canvas.server.settings.value_types import is_trusted_url

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where an issuer signs people in, and says who they are."""

    authorization: str
    token: str

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Endpoints:
        """Those in its discovery document; raises `IssuerUnavailable`."""
        return cls(_endpoint(description, "authorization_endpoint"), _endpoint(description, "token_endpoint"))


class SignInRefused(Exception):
    """Somebody could not be signed in; `str()` is for them."""


@dataclass(frozen=True, slots=True)
class OpenIdClient:
    """This server as a client of the issuer.

    Attributes:
        endpoints: those of the issuer.
        redirect_uri: where the issuer sends browsers back.
        id_tokens: checks those for this client.
    """

    endpoints: Published[Endpoints]
    id_tokens: JwtVerifier
    client_id: str
    redirect_uri: str
    client_secret: str = ""

    async def address_for(self, flow: Claims) -> str:
        """Where a browser signs in; raises `IssuerUnavailable`."""
        asked = {
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
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    async def user_of(self, code: str, flow: Claims) -> str:
        """Who has signed in.

        Raises:
            SignInRefused: nobody that is known.
            IssuerUnavailable: the issuer cannot be asked.
        """
        token = (await self._redeemed(code, flow)).get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("The provider has not said who signed in.")
        valid = await self.id_tokens.verify(token)
        if valid is None:
            raise SignInRefused("What the provider says of who signed in is not valid.")
        # Its signature has just been checked.
        claims = jwt.decode(token, options={"verify_signature": False})
        if not is_for(claims, flow["nonce"], self.client_id):
            raise SignInRefused("What the provider says is of another sign-in.")
        return valid.user

    async def _redeemed(self, code: str, flow: Claims) -> Mapping[str, Any]:
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
            return await asked("POST", endpoint, data=form, auth=credentials, headers=JSON)
        except IssuerRefuses:
            raise SignInRefused(
                "The provider does not take this sign-in: perhaps it is over, or was used before."
            ) from None
        except IssuerUnavailable as error:
            logger.warning("Somebody could not sign in. %s", error)
            raise


def open_id_client(settings: Settings) -> OpenIdClient | None:
    """The client of the issuer that people sign in with; None if there is none.

    Raises:
        SettingsError: the settings lack the issuer, or name one that does not describe itself.
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
        return Endpoints.of(await issuer.description())

    endpoints = Published("endpoints", read_endpoints, time.monotonic)
    reserved = reserved_users(settings)
    id_tokens = IssuedTokens(issuer, settings.oidc_client_id, settings.jwt_user_claim, time.monotonic, reserved)
    redirect_uri = f"{settings.url}{CALLBACK}"
    return OpenIdClient(endpoints, id_tokens, settings.oidc_client_id, redirect_uri, settings.oidc_client_secret or "")


def _endpoint(description: Mapping[str, Any], name: str) -> str:
    found = description.get(name)
    if not isinstance(found, str) or not is_trusted_url(found):
        raise IssuerUnavailable(f"The issuer of tokens names no HTTPS address of its {name}.")
    return found


def begun(back: str, start: str) -> Claims:
    """What a sign-in remembers in the browser that began it (rule 1), which goes on to `back` after it."""
    values = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
    return values | {"return": local_path(back, start)}


def local_path(given: str, start: str) -> str:
    """A path of this server to go on to; that of the start page for anything else (rule 3)."""
    # Browsers take a backslash for a slash, and leave out control characters.
    safe = given.startswith("/") and not given.startswith("//") and "\\" not in given and given.isprintable()
    return given if safe else start


def is_for(claims: Mapping[str, Any], nonce: str, client_id: str) -> bool:
    """Whether the claims of an ID token are for this sign-in of this client."""
    given = str(claims.get("nonce", ""))
    return hmac.compare_digest(given.encode(), nonce.encode()) and claims.get("azp", client_id) == client_id


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
