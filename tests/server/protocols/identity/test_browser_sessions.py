"""What a browser brings back: whose page sent it, and how its cookies are kept."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from a2a_canvas.server.accounts.browser_session import InMemoryEndedSessions
from a2a_canvas.server.protocols.identity.browser_sessions import OWN_PAGE, BrowserSessions, address_of

PAGE = {OWN_PAGE: "1", "Host": "10.0.0.2:8000"}
PUBLIC = "https://Canvas.example.com"


async def secret() -> bytes:
    return b"secret"


def sessions(url: str = PUBLIC) -> BrowserSessions:
    return BrowserSessions(secret, InMemoryEndedSessions(), url, lambda: 0.0)


OWN: dict[str, dict[str, str]] = {
    "a program, or a browser that tells nothing": {},
    "the address that it was sent to": {"Origin": "http://10.0.0.2:8000"},
    "the public address, behind a proxy": {"Origin": "https://canvas.example.com"},
    "the same origin": {"Sec-Fetch-Site": "same-origin", "Origin": "https://canvas.example.com"},
}
FOREIGN: dict[str, dict[str, str]] = {
    "another origin": {"Origin": "https://evil.example.com"},
    "another port": {"Origin": "http://10.0.0.2:9000"},
    "a frame without an origin": {"Origin": "null"},
    "another site that says nothing of its origin": {"Sec-Fetch-Site": "cross-site"},
    "a neighbour": {"Sec-Fetch-Site": "same-site", "Origin": "https://canvas.example.com"},
}


@pytest.mark.parametrize("headers", OWN.values(), ids=OWN)
def test_the_page_itself_changes_something_with_a_cookie(headers: dict[str, str]) -> None:
    assert sessions().may_use_cookie("POST", Headers(PAGE | headers))


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_another_one_does_not_but_it_may_link_to_what_can_be_read(headers: dict[str, str]) -> None:
    assert not sessions().may_use_cookie("POST", Headers(PAGE | headers))
    assert sessions().may_use_cookie("GET", Headers(PAGE | headers | {"Sec-Fetch-Dest": "document"}))


@pytest.mark.parametrize(
    ("site", "may_read"),
    [(None, True), ("same-origin", True), ("none", True), ("same-site", False), ("cross-site", False)],
)
@pytest.mark.parametrize("destination", ["script", "image", "empty", "iframe"])
def test_nor_does_it_embed_what_can_be_read(site: str | None, may_read: bool, destination: str) -> None:
    headers = {"Sec-Fetch-Dest": destination} | ({"Sec-Fetch-Site": site} if site else {})
    assert sessions().may_use_cookie("GET", Headers(headers)) is may_read


def test_neither_does_what_has_no_header_of_the_page() -> None:
    assert not sessions().may_use_cookie("POST", Headers({"Host": "10.0.0.2:8000"}))


def scope(*cookies: str, scheme: str = "http") -> dict[str, Any]:
    return {"type": "http", "scheme": scheme, "headers": [(b"cookie", each.encode()) for each in cookies]}


@pytest.mark.parametrize(
    ("url", "scheme", "name", "attributes"),
    [
        ("https://canvas.example.com", "http", "__Host-n", "Path=/; SameSite=lax; Secure"),
        ("http://127.0.0.1:8000", "https", "__Host-n", "Path=/; SameSite=lax; Secure"),
        ("http://127.0.0.1:8000", "http", "n", "Path=/; SameSite=lax"),
        ("https://example.com/team/canvas", "http", "n", "Path=/team/canvas/; SameSite=lax; Secure"),
    ],
)
def test_a_cookie_is_for_the_paths_of_the_server_and_for_https_and_this_host_alone_where_the_browser_knows_them(
    url: str, scheme: str, name: str, attributes: str
) -> None:
    cookie = sessions(url).cookie("n", "v", 60, scope(scheme=scheme))
    assert cookie == f"{name}=v; HttpOnly; Max-Age=60; {attributes}"
    assert sessions(url).value_of("n", scope(f"{name}=v", scheme=scheme)) == "v"


def test_a_cookie_that_another_host_could_have_set_is_none_where_there_is_one_that_it_could_not() -> None:
    assert sessions(PUBLIC).value_of("n", scope("n=1")) == ""


@pytest.mark.parametrize(
    ("cookies", "value"),
    [
        (["n=1"], "1"),
        (["m=2; n=1; o=3"], "1"),
        (["m=2", "n=1"], "1"),
        (["n=1; n=2"], ""),
        (["n=1", "n=1"], ""),
        (["__Host-n=1"], ""),
        (["nn=1; =2; n"], ""),
        ([], ""),
    ],
    ids=str,
)
def test_a_cookie_counts_if_it_is_the_only_one_of_its_name(cookies: list[str], value: str) -> None:
    assert sessions("http://127.0.0.1:8000").value_of("n", scope(*cookies)) == value


@pytest.mark.parametrize("raw_path", [b"/team/artifacts/%C3%A4", b"/artifacts/%C3%A4"], ids=["mounted", "stripped"])
def test_a_signed_address_is_the_same_below_a_path_of_a_proxy(raw_path: bytes) -> None:
    request = {"raw_path": raw_path, "path": "", "query_string": b"q=1", "root_path": "/team"}
    assert address_of(request) == "/artifacts/%C3%A4?q=1"
