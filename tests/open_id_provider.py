"""An OpenID provider, for tests of signing in."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from a2a_canvas.server.protocols.identity.security import DISCOVERY_PATH
from tests.server.protocols.identity.tokens import SigningKey

CLIENT, SECRET = "canvas-page", "a secret of the client"


@dataclass
class Provider:
    """Signs everybody in as one user, with one code for each sign-in.

    Attributes:
        codes: the code challenge and the nonce of each sign-in that has begun.
        claims: in place of those of the next ID token; a claim that is None is left out.
    """

    url: str = ""
    user: str = "ann"
    key: SigningKey = field(default_factory=lambda: SigningKey("1"))
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    begun: int = 0
    described: int = 0
    redeemed: int = 0

    def app(self, url: str) -> Starlette:
        self.url = url
        described = {
            "issuer": url,
            "jwks_uri": f"{url}/keys",
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
        }
        return Starlette(
            routes=[
                Route(DISCOVERY_PATH, partial(self.describe, described)),
                Route("/keys", lambda _: JSONResponse({"keys": [self.key.public]})),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    async def describe(self, described: dict[str, str], request: Request) -> Response:
        self.described += 1
        return JSONResponse(described)

    def code_for(self, address: str) -> tuple[str, dict[str, str]]:
        """The code that a browser comes back with, and the parameters that it was sent with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        self.begun += 1
        code = f"code-{self.begun}"
        self.codes[code] = asked["code_challenge"], asked["nonce"]
        self.claims = {}
        return code, asked

    async def authorize(self, request: Request) -> Response:
        code, asked = self.code_for(str(request.url))
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")

    async def token(self, request: Request) -> Response:
        self.redeemed += 1
        given = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        challenge = urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest()).decode().rstrip("=")
        right = request.headers.get("Authorization") == httpx.BasicAuth(CLIENT, SECRET)._auth_header
        expected, nonce = self.codes.pop(given["code"], ("", ""))
        if not right or expected != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        claims = {"iss": self.url, "aud": CLIENT, "nonce": nonce, "sub": self.user} | self.claims
        return JSONResponse({"id_token": self.key.token(**claims)})


def signing_in_with(issuer: str) -> dict[str, str]:
    """The settings of a server with which an issuer signs users in."""
    return {
        "jwt_issuer": issuer,
        "jwt_audience": "canvas",
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SECRET,
    }
