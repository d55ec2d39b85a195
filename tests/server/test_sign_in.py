"""Signing in with an OpenID provider, the session that follows, and signed addresses; the provider is one of ours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.accounts.browser_session import SESSION_LIMIT, SESSION_SECONDS
from a2a_canvas.server.accounts.sql import recent_reads
from a2a_canvas.server.assembly.engine import Clock as AppClock
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.protocols.identity.attempts import BURST
from a2a_canvas.server.protocols.identity.browser_sessions import COOKIE, OWN_PAGE
from a2a_canvas.server.protocols.sign_in.session_routes import FLOW_COOKIE, FLOW_SECONDS
from a2a_canvas.server.tasks.journal import cursors
from tests.database_fixtures import postgresql_url
from tests.fakes import Clock
from tests.free_port import free_port
from tests.loopback import serving_app
from tests.open_id_provider import CLIENT, Provider, signing_in_with
from tests.server.app_server import Served, asking, envelope, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = {OWN_PAGE: "1"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    async with serving_app(made.app):
        yield made


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(provider: Provider, clock: Clock) -> AsyncIterator[Served]:
    async with serving(grpc=False, clock=AppClock(now=clock), **signing_in_with(provider.url)) as running:
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
    browser: httpx.AsyncClient, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "a2a_canvas.server.protocols.sign_in.session_routes")
    assert (await browser.get("/auth/session")).json()["signIn"] == "auth/sign-in"
    answer = await browser.get("/auth/callback", params=await begin(browser, provider, "/?x=1#/notes"))
    assert (answer.status_code, answer.headers["Location"]) == (303, "/?x=1#/notes")
    [line] = [record for record in caplog.records if record.name.endswith(".session_routes")]
    assert (line.getMessage(), line.fields) == ("A user signed in", {"user": "ann"})  # type: ignore[attr-defined]
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


NOT_SIGNED_IN: dict[str, tuple[dict[str, str], int, str]] = {
    "denied": ({"code": "", "error": "access_denied"}, 403, "The provider did not sign you in."),
    "another state": ({"state": "another"}, 400, "This sign-in was started in another browser, or took too long."),
    "a used code": ({"code": "used"}, 403, "The provider rejected this sign-in"),
}


@pytest.mark.parametrize(("changed", "status", "says"), NOT_SIGNED_IN.values(), ids=NOT_SIGNED_IN)
async def test_a_browser_that_is_not_signed_in_is_told_why_and_led_back(
    browser: httpx.AsyncClient, provider: Provider, changed: dict[str, str], status: int, says: str
) -> None:
    begun = await begin(browser, provider)
    hostile = {"error_description": "<script>alert(1)</script>"}
    assert_told(await browser.get("/auth/callback", params=begun | hostile | changed), status, says)


async def test_so_it_is_when_it_took_too_long(browser: httpx.AsyncClient, provider: Provider, clock: Clock) -> None:
    begun = await begin(browser, provider)
    clock.move(timedelta(seconds=FLOW_SECONDS))
    assert_told(await browser.get("/auth/callback", params=begun), 400, "or took too long")


async def test_so_it_is_while_the_provider_is_away() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    options = {"jwt_issuer": nowhere, "jwt_audience": "canvas", "oidc_client_id": CLIENT}
    async with serving(grpc=False, **options) as served:
        assert_told(await served.http.get("/auth/sign-in"), 503, "The provider cannot be reached now.")


def assert_told(answer: httpx.Response, status: int, says: str) -> None:
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert says in answer.text
    assert '<a href="sign-in">Sign in again</a>' in answer.text
    assert "script" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(("trusted", "secure"), [("127.0.0.1", True), ("192.0.2.1", False)], ids=["trusted", "another"])
async def test_behind_a_proxy_with_https_the_cookies_are_secure(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, trusted: str, secure: bool
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    async with serving(grpc=False, **signing_in_with(provider.url)) as served:
        forwarded = {"X-Forwarded-Proto": "https"}
        begun = await served.http.get("/auth/sign-in", headers=forwarded)
        flow = begun.headers["Set-Cookie"]
        code, asked = provider.code_for(begun.headers["Location"])
        back = {"code": code, "state": asked["state"]}
        cookie = {"Cookie": flow.partition(";")[0]}
        ended = await served.http.get("/auth/callback", params=back, headers=forwarded | cookie)
    for each in (flow, *ended.headers.get_list("Set-Cookie")):
        assert each.endswith("; Secure") == secure


async def test_a_code_signs_in_once(browser: httpx.AsyncClient, provider: Provider) -> None:
    given = await begin(browser, provider)
    begun = browser.cookies[FLOW_COOKIE]
    assert (await browser.get("/auth/callback", params=given)).status_code == 303
    browser.cookies.clear()
    assert (await browser.get("/auth/callback", params=given)).status_code == 400
    again = {"Cookie": f"{FLOW_COOKIE}={begun}"}
    await assert_refused(browser, await browser.get("/auth/callback", params=given, headers=again), 403)


async def test_who_begins_to_sign_in_costs_the_provider_nothing(browser: httpx.AsyncClient, provider: Provider) -> None:
    await begin(browser, provider)
    before = provider.described
    for _ in range(20):
        await begin(browser, provider)
    assert provider.described == before


async def test_codes_that_are_made_up_are_counted_as_wrong_credentials(provider: Provider) -> None:
    async with serving(grpc=False, **signing_in_with(provider.url)) as served:
        given = await begin(served.http, provider)
        flow = {"Cookie": f"{FLOW_COOKIE}={served.http.cookies[FLOW_COOKIE]}"}
        asked, statuses = provider.redeemed, []
        for number in range(BURST + 2):
            made_up = {**given, "code": f"made up {number}"}
            statuses.append((await served.http.get("/auth/callback", params=made_up, headers=flow)).status_code)
    assert statuses == [403] * BURST + [429] * 2
    assert provider.redeemed - asked == BURST


async def test_who_signs_in_often_is_not_slowed_down(provider: Provider) -> None:
    async with serving(grpc=False, **signing_in_with(provider.url)) as served:
        for _ in range(BURST + 1):
            async with httpx.AsyncClient(base_url=served.url, trust_env=False) as browser:
                assert (await sign_in(browser, provider)).status_code == 303


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


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
async def test_another_page_embeds_nothing_with_the_cookie(
    browser: httpx.AsyncClient, provider: Provider, site: str
) -> None:
    await sign_in(browser, provider)
    headers = {"Sec-Fetch-Site": site}
    assert (await browser.get("/artifacts", headers=headers)).status_code == 401
    assert (await browser.get("/auth/session", headers=headers)).json()["signedIn"] is False


async def test_a_second_cookie_of_the_name_signs_nobody_in(
    browser: httpx.AsyncClient, served: Served, provider: Provider
) -> None:
    await sign_in(browser, provider)
    own = with_cookie(browser)["Cookie"]
    assert (await served.http.get("/artifacts", headers={"Cookie": f"{own}; {own}"})).status_code == 401


async def test_the_page_itself_works_with_the_cookie(browser: httpx.AsyncClient, provider: Provider) -> None:
    await sign_in(browser, provider)
    headers = {**PAGE, "A2A-Version": "1.0", "Sec-Fetch-Site": "same-origin"}
    assert "result" in (await browser.post("/", json=SENDING, headers=headers)).json()


async def test_who_signs_out_is_not_known_any_more(browser: httpx.AsyncClient, provider: Provider) -> None:
    await sign_in(browser, provider)
    assert (await browser.post("/auth/sign-out", headers=PAGE)).status_code == 204
    assert (await browser.get("/artifacts")).status_code == 401


def with_cookie(browser: httpx.AsyncClient) -> dict[str, str]:
    """A copy of the cookie that a browser has."""
    return {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}


async def test_a_copy_of_the_cookie_is_worth_nothing_either(
    browser: httpx.AsyncClient, served: Served, provider: Provider
) -> None:
    await sign_in(browser, provider)
    copy, address = with_cookie(browser), await signed(browser, "/artifacts")
    assert (await served.http.get("/artifacts", headers=copy)).status_code == 200
    assert (await served.http.get(address)).status_code == 200
    await browser.post("/auth/sign-out", headers=PAGE)
    assert (await served.http.get("/artifacts", headers=copy)).status_code == 401
    assert (await served.http.get(address)).status_code == 401
    told = (await served.http.get("/auth/session", headers=copy)).json()
    assert (told["signedIn"], told["required"]) == (False, True)


async def test_another_session_of_the_same_user_goes_on(
    browser: httpx.AsyncClient, served: Served, provider: Provider
) -> None:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as other:
        await sign_in(other, provider)
        await sign_in(browser, provider)
        await browser.post("/auth/sign-out", headers=PAGE)
        assert (await other.get("/artifacts")).status_code == 200


async def test_a_session_ends_when_the_browser_has_not_been_here_for_hours(
    browser: httpx.AsyncClient, served: Served, provider: Provider, clock: Clock
) -> None:
    await sign_in(browser, provider)
    copy = with_cookie(browser)
    clock.move(timedelta(seconds=SESSION_SECONDS - 1))
    assert (await served.http.get("/artifacts", headers=copy)).status_code == 200
    clock.move(timedelta(seconds=1))
    assert (await served.http.get("/artifacts", headers=copy)).status_code == 401


async def test_whoever_uses_it_keeps_it_but_not_for_ever_and_can_sign_out_of_it_all(
    browser: httpx.AsyncClient, served: Served, provider: Provider, clock: Clock
) -> None:
    await sign_in(browser, provider)
    first, began = with_cookie(browser), clock.time
    assert "Set-Cookie" not in (await browser.get("/artifacts")).headers
    clock.move(timedelta(seconds=SESSION_SECONDS - 60))
    renewed = (await browser.get("/artifacts")).headers["Set-Cookie"]
    assert f"HttpOnly; Max-Age={SESSION_SECONDS}; Path=/; SameSite=lax" in renewed
    assert with_cookie(browser) != first

    last = with_cookie(browser)
    while (await browser.get("/artifacts")).status_code == 200:
        last = with_cookie(browser)
        clock.move(timedelta(hours=6))
    assert clock.time - began >= timedelta(seconds=SESSION_LIMIT)
    assert clock.time - began < timedelta(seconds=SESSION_LIMIT, hours=6)
    clock.time = began
    assert (await served.http.get("/artifacts", headers=first)).status_code == 200
    assert (await browser.post("/auth/sign-out", headers=PAGE | last)).status_code == 204
    for copy in (first, last):
        assert (await served.http.get("/artifacts", headers=copy)).status_code == 401


@pytest.mark.parametrize("cookie", [{}, {"Cookie": f"{COOKIE}=e30.x"}], ids=["no cookie", "a wrong cookie"])
async def test_a_signed_address_gives_nobody_a_session(
    browser: httpx.AsyncClient, served: Served, provider: Provider, clock: Clock, cookie: dict[str, str]
) -> None:
    await sign_in(browser, provider)
    clock.move(timedelta(seconds=SESSION_SECONDS - 30))
    answer = await served.http.get(await signed(browser, "/artifacts"), headers=cookie)
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers


async def test_the_stream_of_a_session_ends_while_the_browser_can_renew_it(
    browser: httpx.AsyncClient,
    served: Served,
    provider: Provider,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cursors, "CHECK_SECONDS", 0.01)
    await sign_in(browser, provider)
    begun = envelope("SendMessage", {"message": MessageToDict(asking("write report", context="c").message)})
    served.gate.open()
    await browser.post("/", json=begun, headers={**PAGE, "A2A-Version": "1.0"})
    async with browser.stream("GET", "/artifacts/c/events") as events:
        lines = events.aiter_lines()
        await anext(lines)
        clock.move(timedelta(seconds=SESSION_SECONDS - 60))
        async with asyncio.timeout(10):
            async for _ in lines:
                pass
    async with browser.stream("GET", "/artifacts/c/events") as events:
        assert events.status_code == 200
        assert COOKIE in events.headers["Set-Cookie"]
        lines = events.aiter_lines()
        await anext(lines)
        await browser.post("/auth/sign-out", headers=PAGE)
        async with asyncio.timeout(10):
            async for _ in lines:
                pass


@pytest.mark.postgres
async def test_two_servers_of_a_database_take_the_cookie_of_either_until_it_is_revoked(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_reads, "MAX_AGE", 0)
    options = {"database": postgresql_url(), "grpc": False, **signing_in_with(provider.url)}
    assert await asyncio.to_thread(main, ("db", "upgrade", "--database", options["database"])) == 0
    async with (
        serving(**options) as first,
        serving(**options) as second,
        httpx.AsyncClient(base_url=first.url, trust_env=False) as browser,
    ):
        await sign_in(browser, provider)
        copy = with_cookie(browser)
        for server in (first, second):
            assert (await server.http.get("/artifacts", headers=copy)).status_code == 200
        assert (await second.http.post("/auth/sign-out", headers=copy | PAGE)).status_code == 204
        for server in (first, second):
            assert (await server.http.get("/artifacts", headers=copy)).status_code == 401

        await sign_in(browser, provider)
        copy = with_cookie(browser)
        revoke = ("session", "revoke", "ann", "--database", options["database"])
        assert await asyncio.to_thread(main, revoke) == 0
        for server in (first, second):
            assert (await server.http.get("/artifacts", headers=copy)).status_code == 401


async def test_a_cookie_of_another_server_is_none(browser: httpx.AsyncClient, provider: Provider) -> None:
    await sign_in(browser, provider)
    options = {"jwt_issuer": provider.url, "jwt_audience": "canvas", "oidc_client_id": CLIENT}
    async with serving(grpc=False, **options) as other:
        assert (await other.http.get("/artifacts", headers=with_cookie(browser))).status_code == 401


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


NO_PATHS = ["", "artifacts", "//evil", "/%2fevil", "/auth/session", "/%61uth/session", "/a?signature=x", "/a b", "/ä"]


@pytest.mark.parametrize("path", [*NO_PATHS, 1, None])
async def test_what_is_no_path_is_not_signed(browser: httpx.AsyncClient, provider: Provider, path: Any) -> None:
    await sign_in(browser, provider)
    answer = await browser.post("/auth/signed-urls", json={"path": path}, headers=PAGE)
    assert answer.status_code == 400


async def test_nobody_signs_without_credentials(served: Served) -> None:
    assert (await served.http.post("/auth/signed-urls", json={"path": "/artifacts"})).status_code == 401


async def test_the_provider_must_describe_itself() -> None:
    from a2a_canvas.server.settings.settings import SettingsError

    with pytest.raises(SettingsError, match=re.escape("--oidc-client-id needs --jwt-issuer")):
        async with serving(grpc=False, oidc_client_id=CLIENT):
            pass
