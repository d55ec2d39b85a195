"""Signing in with an OpenID provider, the session that follows, and signed addresses; the provider is one of ours."""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from a2a_canvas.server.protocols.identity.browser_sessions import COOKIE, OWN_PAGE
from a2a_canvas.server.protocols.identity.security import DISCOVERY_PATH
from a2a_canvas.server.protocols.identity.session_routes import FLOW_COOKIE
from tests.server.app_server import Served, serving
from tests.server.client.client_harness import serving as serving_app
from tests.server.protocols.identity.tokens import SigningKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLIENT, SECRET = "canvas-page", "a secret of the client"
PAGE = {OWN_PAGE: "1"}


@dataclass
class Provider:
    """Signs everybody in as ann, with one code for each sign-in."""

    url: str = ""
    key: SigningKey = field(default_factory=lambda: SigningKey("1"))
    codes: dict[str, str] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)

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
                Route(DISCOVERY_PATH, lambda _: JSONResponse(described)),
                Route("/keys", lambda _: JSONResponse({"keys": [self.key.public]})),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    def code_for(self, address: str) -> tuple[str, dict[str, str]]:
        """What a browser comes back with, and what it was sent with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked["code_challenge"]
        self.claims = {"iss": self.url, "aud": CLIENT, "nonce": asked["nonce"]}
        return code, asked

    async def authorize(self, request: Request) -> Response:
        code, asked = self.code_for(str(request.url))
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")

    async def token(self, request: Request) -> Response:
        given = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        challenge = urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest()).decode().rstrip("=")
        right = request.headers.get("Authorization") == httpx.BasicAuth(CLIENT, SECRET)._auth_header
        if not right or self.codes.pop(given["code"], "") != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"id_token": self.key.token(**self.claims)})


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    async with serving_app(made.app):
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(provider: Provider) -> AsyncIterator[Served]:
    options = {"jwt_issuer": provider.url, "jwt_audience": "canvas"}
    async with serving(grpc=False, oidc_client_id=CLIENT, oidc_client_secret=SECRET, **options) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def browser(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        yield client


async def begin(browser: httpx.AsyncClient, provider: Provider, back: str = "/") -> dict[str, str]:
    """Go to the provider; what it sends back."""
    answer = await browser.get("/auth/sign-in", params={"return": back})
    assert answer.status_code == 303
    code, asked = provider.code_for(answer.headers["Location"])
    assert asked["redirect_uri"] == f"{str(browser.base_url).rstrip('/')}/auth/callback"
    assert asked["code_challenge_method"] == "S256"
    return {"code": code, "state": asked["state"]}


async def sign_in(browser: httpx.AsyncClient, provider: Provider) -> httpx.Response:
    return await browser.get("/auth/callback", params=await begin(browser, provider))


async def test_who_has_signed_in_is_known_and_goes_on_where_they_were(
    browser: httpx.AsyncClient, provider: Provider
) -> None:
    assert (await browser.get("/auth/session")).json()["signIn"] == "auth/sign-in"
    answer = await browser.get("/auth/callback", params=await begin(browser, provider, "/?x=1#/notes"))
    assert (answer.status_code, answer.headers["Location"]) == (303, "/?x=1#/notes")
    cookie = next(each for each in answer.headers.get_list("Set-Cookie") if each.startswith(COOKIE))
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    told = (await browser.get("/auth/session")).json()
    assert told == {"signedIn": True, "required": False, "user": "ann", "signIn": "auth/sign-in"}
    assert (await browser.get("/artifacts")).status_code == 200


@pytest.mark.parametrize("back", ["//evil.example.com", "https://evil.example.com", "/\\evil.example.com", "x", "/\tx"])
async def test_nobody_is_sent_on_to_another_server(browser: httpx.AsyncClient, provider: Provider, back: str) -> None:
    answer = await browser.get("/auth/callback", params=await begin(browser, provider, back))
    assert answer.headers["Location"] == "/"


WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "foreign nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "expired": {"exp": 1},
    "for another client": {"aud": "another"},
    "of another issuer": {"iss": "https://another.example.com"},
    "for another party": {"azp": "another"},
}


@pytest.mark.parametrize("claims", WRONG_CLAIMS.values(), ids=WRONG_CLAIMS)
async def test_an_id_token_that_is_not_for_this_sign_in_is_refused(
    browser: httpx.AsyncClient, provider: Provider, claims: dict[str, Any]
) -> None:
    given = await begin(browser, provider)
    provider.claims |= claims
    await assert_refused(browser, await browser.get("/auth/callback", params=given), 403)


async def test_a_wrong_state_is_refused(browser: httpx.AsyncClient, provider: Provider) -> None:
    given = await begin(browser, provider)
    await assert_refused(browser, await browser.get("/auth/callback", params={**given, "state": "another"}), 400)


async def test_a_code_is_refused_in_a_browser_that_has_not_begun(
    browser: httpx.AsyncClient, served: Served, provider: Provider
) -> None:
    given = await begin(browser, provider)
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as other:
        await assert_refused(other, await other.get("/auth/callback", params=given), 400)


async def test_a_code_signs_in_once(browser: httpx.AsyncClient, provider: Provider) -> None:
    given = await begin(browser, provider)
    begun = browser.cookies[FLOW_COOKIE]
    assert (await browser.get("/auth/callback", params=given)).status_code == 303
    browser.cookies.clear()
    assert (await browser.get("/auth/callback", params=given)).status_code == 400
    again = {"Cookie": f"{FLOW_COOKIE}={begun}"}
    await assert_refused(browser, await browser.get("/auth/callback", params=given, headers=again), 403)


async def assert_refused(browser: httpx.AsyncClient, answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status
    assert COOKIE not in browser.cookies
    assert (await browser.get("/artifacts")).status_code == 401


# --------------------------------------------------------------------------------- the session

SENDING = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
FOREIGN: dict[str, dict[str, str]] = {
    "no header of the page": {},
    "another site": {**PAGE, "Sec-Fetch-Site": "cross-site"},
    "another origin of the site": {**PAGE, "Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
async def test_another_page_changes_nothing_with_the_cookie(
    browser: httpx.AsyncClient, provider: Provider, headers: dict[str, str]
) -> None:
    await sign_in(browser, provider)
    for method, path in (("POST", "/"), ("PATCH", "/artifacts/c"), ("DELETE", "/artifacts/c")):
        assert (await browser.request(method, path, json=SENDING, headers=headers)).status_code == 401
    assert (await browser.post("/auth/sign-out", headers=headers)).status_code == 403


async def test_the_page_itself_works_with_the_cookie(browser: httpx.AsyncClient, provider: Provider) -> None:
    await sign_in(browser, provider)
    headers = {**PAGE, "A2A-Version": "1.0", "Sec-Fetch-Site": "same-origin"}
    assert "result" in (await browser.post("/", json=SENDING, headers=headers)).json()


async def test_who_signs_out_is_not_known_any_more(browser: httpx.AsyncClient, provider: Provider) -> None:
    await sign_in(browser, provider)
    assert (await browser.post("/auth/sign-out", headers=PAGE)).status_code == 204
    assert (await browser.get("/artifacts")).status_code == 401


async def test_a_cookie_of_another_server_is_none(browser: httpx.AsyncClient, provider: Provider) -> None:
    await sign_in(browser, provider)
    options = {"jwt_issuer": provider.url, "jwt_audience": "canvas", "oidc_client_id": CLIENT}
    async with serving(grpc=False, **options) as other:
        cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
        assert (await other.http.get("/artifacts", headers=cookie)).status_code == 401


# --------------------------------------------------------------------------- signed addresses


async def signed(browser: httpx.AsyncClient, path: str) -> str:
    answer = await browser.post("/auth/signed-urls", json={"path": path}, headers=PAGE)
    assert answer.status_code == 200
    url: str = answer.json()["url"]
    return url


async def test_a_signed_address_needs_no_header(browser: httpx.AsyncClient, served: Served, provider: Provider) -> None:
    await sign_in(browser, provider)
    for path in ("/artifacts", "/artifacts?query=%C3%A4"):
        assert (await served.http.get(await signed(browser, path))).status_code == 200


async def test_it_is_for_that_address_and_for_reading_alone(
    browser: httpx.AsyncClient, served: Served, provider: Provider
) -> None:
    await sign_in(browser, provider)
    url = await signed(browser, "/artifacts?query=a")
    for changed in (url.replace("query=a", "query=b"), url.replace("/artifacts", "/artifacts/c"), f"{url}x"):
        assert (await served.http.get(changed)).status_code == 401
    for method in ("POST", "HEAD", "DELETE"):
        assert (await served.http.request(method, url)).status_code == 401


@pytest.mark.parametrize("path", ["", "artifacts", "//evil", "/auth/session", "/a?signature=x", "/a b", "/ä", 1, None])
async def test_what_is_no_path_is_not_signed(browser: httpx.AsyncClient, provider: Provider, path: Any) -> None:
    await sign_in(browser, provider)
    answer = await browser.post("/auth/signed-urls", json={"path": path}, headers=PAGE)
    assert answer.status_code == 400


async def test_nobody_signs_without_credentials(served: Served) -> None:
    assert (await served.http.post("/auth/signed-urls", json={"path": "/artifacts"})).status_code == 401


async def test_the_provider_must_describe_itself() -> None:
    from a2a_canvas.server.settings import SettingsError

    with pytest.raises(SettingsError, match=re.escape("--oidc-client-id needs --jwt-issuer")):
        async with serving(grpc=False, oidc_client_id=CLIENT):
            pass
