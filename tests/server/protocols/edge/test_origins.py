"""Where requests come from, with proxies before the server and without."""

from __future__ import annotations

import pytest

from a2a_canvas.server.protocols.edge.origins import PEER, GrpcOrigins, Origin, origin_of

PROXY, CLIENT, MADE_UP = "10.0.0.1", "192.0.2.1", "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.1:5000", CLIENT),
        ("ipv6:%5B2001:db8::1%5D:5000", "2001:db8::1"),
        ("ipv6:%5B::ffff:192.0.2.1%5D:5000", CLIENT),
        ("unix:/run/canvas", "unix:/run/canvas"),
        ("", ""),
    ],
)
def test_a_call_comes_from_the_other_end_of_its_connection(peer: str, address: str) -> None:
    assert GrpcOrigins({}).origin_of(peer, ()) == Origin(address, address)


@pytest.mark.parametrize(
    ("trusted", "forwarded", "address"),
    [
        (PROXY, [CLIENT], CLIENT),
        (PROXY, [f"{MADE_UP}, {CLIENT}"], CLIENT),
        (PROXY, [MADE_UP, CLIENT], CLIENT),
        ("10.0.0.0/8", [f"{MADE_UP}, {CLIENT}, 10.0.0.2"], CLIENT),
        ("10.0.0.0/8,127.0.0.1", [f"[2001:db8::1]:5000, {PROXY}"], "2001:db8::1"),
        (PROXY, [""], PROXY),
        (None, [CLIENT], PROXY),
        ("10.0.0.2", [CLIENT], PROXY),
        ("*", [f"{MADE_UP}, {CLIENT}"], MADE_UP),
    ],
)
def test_a_trusted_proxy_says_whom_it_calls_for_as_over_http(
    trusted: str | None, forwarded: list[str], address: str
) -> None:
    origins = GrpcOrigins({} if trusted is None else {"FORWARDED_ALLOW_IPS": trusted})
    metadata = [("a2a-version", "1.0"), *(("x-forwarded-for", value) for value in forwarded)]
    assert origins.origin_of(f"ipv4:{PROXY}:5000", metadata) == Origin(address, PROXY)


@pytest.mark.parametrize(
    ("scope", "origin"),
    [
        ({"client": (CLIENT, 5000), "state": {PEER: PROXY}}, Origin(CLIENT, PROXY)),
        ({"client": (CLIENT, 5000)}, Origin(CLIENT)),
        ({"client": None}, Origin("")),
    ],
    ids=["behind a proxy", "another server program", "a socket of the file system"],
)
def test_of_an_http_request_the_server_program_says_both(scope: dict[str, object], origin: Origin) -> None:
    assert origin_of(scope) == origin
