"""Which hosts a server answers to and whose pages may use it."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from a2a_canvas.server.protocols.guard.hosts import Hosts
from tests.server.app_server import asking, envelope, sent, serving

LOOPBACK = Hosts.of("127.0.0.1")


def status(hosts: Hosts, host: str | None, origin: str | None = None) -> int | None:
    """What a request with these headers is refused with; None if it passes."""
    refusal = hosts.check(host, origin)
    return refusal.http_status if refusal else None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:9", "LocalHost", "localhost.", "[::1]:80"])
def test_localhost_is_always_a_name_of_the_server(host: str) -> None:
    assert status(LOOPBACK, host) is None
    assert status(Hosts.of("192.168.0.7"), host) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "evil.com:8000",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "192.168.0.7",
        "",
        ":80",
        "[::1",
        "a b",
        "localhost@evil.com",
        "evil.com#localhost",
        "localhost:80:80",
    ],
)
def test_any_other_name_is_refused(host: str) -> None:
    assert status(LOOPBACK, host) == 421


def test_the_address_bound_is_a_name() -> None:
    assert status(Hosts.of("192.168.0.7"), "192.168.0.7:8000") is None
    assert status(Hosts.of("192.168.0.7"), "192.168.0.8:8000") == 421


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::", ""])
def test_a_server_on_all_addresses_takes_any_address_and_the_name_of_its_machine_but_no_other_name(
    everywhere: str,
) -> None:
    hosts = Hosts.of(everywhere)
    assert status(hosts, "10.1.2.3:8000") is None
    assert status(hosts, "[2001:db8::7]:8000") is None
    assert status(hosts, socket.gethostname()) is None
    assert status(hosts, "evil.com") == 421


def test_the_public_address_is_a_name_and_its_page_may_use_the_server_also_by_another_name() -> None:
    hosts = Hosts.of("127.0.0.1", "https://Agent.Example.com:444/base")
    assert status(hosts, "agent.example.com") is None
    assert status(hosts, "127.0.0.1:8000", "https://agent.example.com:444") is None
    assert status(hosts, "127.0.0.1:8000", "http://agent.example.com:444") == 403


def test_an_operator_adds_names_and_whole_domains() -> None:
    hosts = Hosts.of("127.0.0.1", None, ("canvas", "*.example.org"))
    assert status(hosts, "Canvas:8000") is None
    assert status(hosts, "a.b.example.org") is None
    assert status(hosts, "example.org") == 421
    assert status(hosts, "evilexample.org") == 421


def test_a_star_allows_every_host_but_not_every_origin() -> None:
    hosts = Hosts.of("127.0.0.1", None, ("*",))
    assert status(hosts, "evil.com") is None
    assert status(hosts, "evil.com", "http://other.com") == 403


def test_who_sends_no_host_is_no_browser() -> None:
    assert status(LOOPBACK, None) is None


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("localhost", "https://localhost:443"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_the_servers_own_pages_may_use_it(host: str, origin: str) -> None:
    assert status(LOOPBACK, host, origin) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.com",
        "null",
        "",
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:8000",
        "localhost:8000",
        "file://localhost:8000",
        "chrome-extension://localhost:8000",
    ],
)
def test_no_other_page_may(origin: str) -> None:
    assert status(LOOPBACK, "localhost:8000", origin) == 403


def test_the_refusal_of_a_host_says_which_setting_allows_it() -> None:
    refusal = LOOPBACK.check("evil.com", None)
    assert refusal
    assert "'evil.com'" in refusal.message
    assert "--allowed-hosts" in refusal.message


# ---------------------------------------------------------------------------------- over the wire


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/", envelope("ListTasks", {})),
        ("GET", "/rest/tasks", None),
        ("GET", "/artifacts/c", None),
        ("POST", "/canvas/stream", {"message": "Hello"}),
        ("GET", "/.well-known/agent-card.json", None),
        ("GET", "/healthz", None),
    ],
)
async def test_a_name_that_leads_here_but_is_not_the_servers_reaches_nothing(method: str, path: str, body: Any) -> None:
    rebound = {"Host": "evil.com", "Origin": "http://evil.com", "A2A-Version": "1.0"}
    async with serving(grpc=False, database="memory") as served:
        response = await served.http.request(method, path, json=body, headers=rebound)
    assert response.status_code == 421
    assert "--allowed-hosts" in response.json()["error"]["message"]


async def test_a_foreign_page_can_cancel_nothing_with_a_request_that_needs_no_header() -> None:
    async with serving(grpc=False, database="memory") as served:
        task = await sent(served, ("JSONRPC", "1.0"), asking("slowly x", context="c", now=True))
        cancel = f"/rest/v1/tasks/{task.id}:cancel"
        refused = await served.http.post(cancel, headers={"Origin": "http://evil.com"})
        assert refused.status_code == 403
        assert (await served.http.get(f"/rest/v1/tasks/{task.id}")).json()["status"]["state"] == "TASK_STATE_WORKING"
        own = await served.http.post(cancel, headers={"Origin": served.url})
        assert own.json()["status"]["state"] == "TASK_STATE_CANCELLED"
