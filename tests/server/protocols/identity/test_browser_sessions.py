"""What a browser brings back: whose page sent it, and how its cookies are kept."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from a2a_canvas.server.browser_session import InMemoryEndedSessions
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
    assert sessions().may_use_cookie("GET", Headers(PAGE | headers))


def test_neither_does_what_has_no_header_of_the_page() -> None:
    assert not sessions().may_use_cookie("POST", Headers({"Host": "10.0.0.2:8000"}))


@pytest.mark.parametrize(
    ("url", "scheme", "attributes"),
    [
        ("https://canvas.example.com", "http", "Path=/; SameSite=lax; Secure"),
        ("http://127.0.0.1:8000", "https", "Path=/; SameSite=lax; Secure"),
        ("http://127.0.0.1:8000", "http", "Path=/; SameSite=lax"),
        ("https://example.com/team/canvas", "http", "Path=/team/canvas/; SameSite=lax; Secure"),
    ],
)
def test_a_cookie_is_for_the_paths_of_the_server_and_for_https_where_the_browser_has_it(
    url: str, scheme: str, attributes: str
) -> None:
    scope: dict[str, Any] = {"type": "http", "scheme": scheme}
    assert sessions(url).cookie("n", "v", 60, scope) == f"n=v; HttpOnly; Max-Age=60; {attributes}"


@pytest.mark.parametrize("raw_path", [b"/team/artifacts/%C3%A4", b"/artifacts/%C3%A4"], ids=["mounted", "stripped"])
def test_a_signed_address_is_the_same_below_a_path_of_a_proxy(raw_path: bytes) -> None:
    scope = {"raw_path": raw_path, "path": "", "query_string": b"q=1", "root_path": "/team"}
    assert address_of(scope) == "/artifacts/%C3%A4?q=1"
