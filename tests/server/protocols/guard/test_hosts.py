"""Which hosts a server answers to and whose pages may use it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from a2a_canvas.server.protocols.guard.hosts import Hosts
from tests.server.app_server import Served, asking, envelope, sent, serving

LOOPBACK = Hosts.for_server("127.0.0.1")


def status(hosts: Hosts, host: str | None, origin: str | None = None) -> int | None:
    """What a request with these headers is refused with; None if it passes."""
    refusal = hosts.check(host, origin)
    return refusal.http_status if refusal else None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:9", "LocalHost", "localhost.", "[::1]:80"])
def test_localhost_is_always_a_name_of_the_server(host: str) -> None:
    assert status(LOOPBACK, host) is None
    assert status(Hosts.for_server("192.168.0.7"), host) is None


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
    assert status(Hosts.for_server("192.168.0.7"), "192.168.0.7:8000") is None
    assert status(Hosts.for_server("192.168.0.7"), "192.168.0.8:8000") == 421


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::", ""])
def test_a_server_on_all_addresses_takes_any_address_and_the_name_of_its_machine_but_no_other_name(
    everywhere: str,
) -> None:
    hosts = Hosts.for_server(everywhere)
    assert status(hosts, "10.1.2.3:8000") is None
    assert status(hosts, "[2001:db8::7]:8000") is None
    assert status(hosts, socket.gethostname()) is None
    assert status(hosts, "evil.com") == 421


def test_the_public_address_is_a_name_and_its_page_may_use_the_server_also_by_another_name() -> None:
    hosts = Hosts.for_server("127.0.0.1", "https://Agent.Example.com:444/base")
    assert status(hosts, "agent.example.com") is None
    assert status(hosts, "127.0.0.1:8000", "https://agent.example.com:444") is None
    assert status(hosts, "127.0.0.1:8000", "http://agent.example.com:444") == 403


def test_an_operator_adds_names_and_whole_domains() -> None:
    hosts = Hosts.for_server("127.0.0.1", None, ("canvas", "*.example.org"))
    assert status(hosts, "Canvas:8000") is None
    assert status(hosts, "a.b.example.org") is None
    assert status(hosts, "example.org") == 421
    assert status(hosts, "evilexample.org") == 421


def test_a_star_allows_every_host_but_not_every_origin() -> None:
    hosts = Hosts.for_server("127.0.0.1", None, ("*",))
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
        assert (refused.status_code, refused.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
        assert (await served.http.get(f"/rest/v1/tasks/{task.id}")).json()["status"]["state"] == "TASK_STATE_WORKING"
        own = await served.http.post(cancel, headers={"Origin": served.url})
        assert own.json()["status"]["state"] == "TASK_STATE_CANCELLED"


# ------------------------------------------------------------------------------- pages of other origins

PAGE = "https://app.example.com"
CROSS_ORIGIN = [
    ("POST", "/", envelope("ListTasks", {}), 200),
    ("POST", "/", envelope("GetTask", {"id": "none"}), 200),
    ("GET", "/rest/tasks", None, 200),
    ("GET", "/rest/tasks/none", None, 404),
    ("DELETE", "/rest/tasks/none/pushNotificationConfigs/x", None, 404),
    ("GET", "/rest/nothing", None, 404),
    ("GET", "/artifacts/c/events", None, 404),
    ("POST", "/canvas/stream", {"messages": 7}, 400),
    ("POST", "/canvas/stream", {"message": "write report", "thread_id": "t"}, 200),
    ("GET", "/.well-known/agent-card.json", None, 200),
    ("GET", "/healthz", None, 200),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crossed() -> AsyncIterator[Served]:
    """A server that pages of `PAGE` may use."""
    async with serving(grpc=False, database="memory", cors_origin=f"{PAGE},http://localhost:3000") as served:
        yield served


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("method", "path", "body", "status"), CROSS_ORIGIN)
async def test_an_allowed_page_may_ask_for_anything_and_read_every_answer(
    crossed: Served, method: str, path: str, body: Any, status: int
) -> None:
    headers = [
        "Authorization",
        "A2A-Version",
        "A2A-Extensions",
        "X-A2A-Extensions",
        "If-None-Match",
        "Last-Event-ID",
        "Content-Type",
    ]
    preflight = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": ", ".join(headers).lower()}
    allowed = await crossed.http.options(path, headers={"Origin": PAGE, **preflight})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, PAGE)
    assert method in allowed.headers["access-control-allow-methods"].split(", ")
    assert {name.lower() for name in headers} <= set(
        allowed.headers["access-control-allow-headers"].lower().split(", ")
    )
    answer = await crossed.http.request(method, path, json=body, headers={"Origin": PAGE, "A2A-Version": "1.0"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, PAGE)
    assert {*answer.headers["access-control-expose-headers"].split(", ")} == {
        *("A2A-Extensions", "X-A2A-Extensions", "ETag", "Content-Disposition"),
        *("WWW-Authenticate", "Retry-After", "Allow", "Accept-Encoding"),
        *("Stream-Next-Offset", "Stream-Up-To-Date", "Stream-Closed", "Stream-Cursor"),
    }
    assert "Origin" in answer.headers["vary"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/", {"Host": "evil.com"}, b"{}", 421),
        ("/", {"Content-Type": "text/plain"}, b"{}", 200),
        ("/", {"A2A-Version": "9"}, b"{}", 200),
        ("/rest/message:send", {"Content-Type": "text/plain"}, b"{}", 400),
        ("/rest/message:send", {}, b"x" * 2000, 413),
        ("/healthz", {}, b"x" * 2000, 413),
    ],
)
async def test_it_can_read_why_the_guard_refuses_it(path: str, headers: Any, body: bytes, status: int) -> None:
    async with serving(grpc=False, database="memory", cors_origin=PAGE, max_body_bytes=1024) as served:
        sent_headers = {"Content-Type": "application/json", "Origin": PAGE, **headers}
        answer = await served.http.post(path, headers=sent_headers, content=body)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, PAGE)
    assert answer.json()["error"]["message"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("origin", ["https://evil.com", "https://app.example.com.evil.com", "null"])
async def test_no_other_page_may_although_some_may(crossed: Served, origin: str) -> None:
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    asked = await crossed.http.options("/", headers={"Origin": origin, **preflight})
    answer = await crossed.http.post(
        "/", headers={"Origin": origin, "A2A-Version": "1.0"}, json=envelope("ListTasks", {})
    )
    assert (asked.status_code, answer.status_code) == (400, 403)
    assert "access-control-allow-origin" not in asked.headers
    assert "access-control-allow-origin" not in answer.headers
    assert "--cors-origin" in answer.json()["error"]["message"]


@pytest.mark.asyncio(loop_scope="module")
async def test_an_allowed_page_reads_a_stream_with_its_extensions(crossed: Served) -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "write report"}]}
    extension = "urn:a2a-canvas:turn:v1"
    headers = {"Origin": PAGE, "A2A-Version": "1.0", "A2A-Extensions": extension}
    body = envelope("SendStreamingMessage", {"message": message})
    async with crossed.http.stream("POST", "/", json=body, headers=headers) as response:
        assert (response.headers["access-control-allow-origin"], response.headers["a2a-extensions"]) == (
            PAGE,
            extension,
        )
        assert "TASK_STATE_COMPLETED" in [line async for line in response.aiter_lines() if line][-1]


async def test_without_the_setting_there_is_no_cors() -> None:
    async with serving(grpc=False, database="memory") as served:
        asked = await served.http.options("/", headers={"Origin": PAGE, "Access-Control-Request-Method": "POST"})
        answer = await served.http.get("/healthz", headers={"Origin": served.url})
    assert (asked.status_code, answer.status_code) == (403, 200)
    assert not [name for name in (*asked.headers, *answer.headers) if name.startswith("access-control")]
