"""Cookies: what they are called, where they go, and which of them counts."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from a2a_canvas.server.browser_session import InMemoryEndedSessions
from a2a_canvas.server.protocols.identity.browser_sessions import BrowserSessions, may_use_cookie


async def secret() -> bytes:
    return b"0" * 32


def sessions(url: str) -> BrowserSessions:
    return BrowserSessions(secret, InMemoryEndedSessions(), url, lambda: 0.0)


def scope(*cookies: str, scheme: str = "http") -> dict[str, Any]:
    return {"type": "http", "scheme": scheme, "headers": [(b"cookie", each.encode()) for each in cookies]}


@pytest.mark.parametrize(
    ("url", "scheme", "begins", "ends"),
    [
        ("http://127.0.0.1:8000", "http", "a=v; ", "Path=/; SameSite=lax"),
        ("https://agent.example.com", "http", "__Host-a=v; ", "Path=/; SameSite=lax; Secure"),
        ("http://127.0.0.1:8000", "https", "__Host-a=v; ", "Path=/; SameSite=lax; Secure"),
        ("https://agent.example.com/canvas", "http", "a=v; ", "Path=/canvas/; SameSite=lax; Secure"),
    ],
)
def test_with_https_no_other_host_of_the_domain_can_set_a_cookie(url: str, scheme: str, begins: str, ends: str) -> None:
    cookie = sessions(url).cookie("a", "v", 60, scope(scheme=scheme))
    assert cookie.startswith(begins)
    assert cookie.endswith(ends)
    assert sessions(url).value_of("a", scope(cookie.partition(";")[0], scheme=scheme)) == "v"


@pytest.mark.parametrize(
    ("cookies", "value"),
    [
        (["a=1"], "1"),
        (["b=2; a=1; c=3"], "1"),
        (["b=2", "a=1"], "1"),
        (["a=1; a=2"], ""),
        (["a=1", "a=1"], ""),
        (["__Host-a=1"], ""),
        (["aa=1; =2; a"], ""),
        ([], ""),
    ],
    ids=str,
)
def test_a_cookie_counts_if_it_is_the_only_one_of_its_name(cookies: list[str], value: str) -> None:
    assert sessions("http://127.0.0.1:8000").value_of("a", scope(*cookies)) == value


def test_a_cookie_without_the_prefix_is_none_where_there_could_be_one() -> None:
    assert sessions("https://agent.example.com").value_of("a", scope("a=1")) == ""


@pytest.mark.parametrize(
    ("site", "may_read"),
    [(None, True), ("same-origin", True), ("none", True), ("same-site", False), ("cross-site", False)],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_other_page_reads_with_a_cookie(method: str, site: str | None, may_read: bool) -> None:
    assert may_use_cookie(method, Headers({"Sec-Fetch-Site": site} if site else {})) is may_read
