"""One attempt over HTTP: where it is connected to, and what it does not do."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from a2a_canvas.server.outbound import addresses
from a2a_canvas.server.outbound.addresses import SystemLookup
from a2a_canvas.server.push import http_sender
from a2a_canvas.server.push.places import PER_USER
from a2a_canvas.server.push.retries import DeliveryAccepted, DeliveryFailed, Outcome
from a2a_canvas.server.push.sending import PushSender, TargetCheck
from a2a_canvas.server.push.targets import AllowedTargets, TargetRefused
from tests.certificates import issue
from tests.server.protocols.push_fixtures import FixedLookup
from tests.server.push.receiver import Notification, Receiver, receiving

LOOPBACK = AllowedTargets.parse(["127.0.0.0/8"])


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def send(url: str, *answers: Sequence[str], allowed: AllowedTargets = LOOPBACK, body: bytes = b"{}") -> Outcome:
    sender = PushSender(TargetCheck(allowed, FixedLookup(*answers or [["127.0.0.1"]])))
    try:
        return await sender(url, {"X-A2A-Notification-Token": "t0ken"}, body)
    finally:
        await sender.close()


async def test_it_posts_to_the_address_of_the_lookup_with_the_name_of_the_url(receiver: Receiver) -> None:
    assert await send(f"http://hooks.example.com:{receiver.port}/a?b=c%20d") == DeliveryAccepted()
    [got] = receiver.got
    assert (got.path, got.body) == ("/a?b=c%20d", b"{}")
    assert got.headers["host"] == f"hooks.example.com:{receiver.port}"
    assert got.headers["x-a2a-notification-token"] == "t0ken"


async def test_a_name_that_changes_its_address_after_it_was_registered_is_refused(receiver: Receiver) -> None:
    url = f"https://hooks.example.com:{receiver.port}/x"
    lookup = FixedLookup(["93.184.216.34"], ["127.0.0.1"])
    check = TargetCheck(AllowedTargets(), lookup)
    await check(url)
    sender = PushSender(check)
    refused = await sender(url, {}, b"{}")
    await sender.close()
    assert refused == DeliveryFailed(
        "its url names a host, hooks.example.com, that has no address on the public internet"
    )
    assert lookup.asked == ["hooks.example.com"] * 2  # once for each: what was checked is connected to
    assert receiver.got == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "0", "0.0.0.0", "127.0.0.1", "127.0.0.1.", "localhost"),
        *("localhost.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"),
    ],
)
async def test_no_way_to_write_this_machine_passes(host: str) -> None:
    check = TargetCheck(AllowedTargets(), SystemLookup())
    with pytest.raises(TargetRefused):
        await check(f"https://{host}/")


async def test_a_host_that_cannot_be_found_is_refused() -> None:
    with pytest.raises(TargetRefused, match="has no address on the public internet"):
        await TargetCheck(AllowedTargets(), FixedLookup([]))("https://nowhere.example/")


async def test_an_allowed_name_that_cannot_be_looked_up_is_refused_for_this_reason() -> None:
    async def lookup(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    check = TargetCheck(AllowedTargets.parse(["hooks.internal"]), lookup)
    with pytest.raises(TargetRefused, match=r"names a host, hooks.internal, that cannot be looked up"):
        await check("https://hooks.internal/")
    with pytest.raises(TargetRefused, match="has no address on the public internet"):
        await check("https://nowhere.example/")


async def test_names_whose_name_servers_hang_hold_up_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as one user can have asked for within the time that a name server takes."""
    answers, hanging = threading.Event(), threading.Semaphore(0)

    def look_up(host: str, port: int, type: int) -> list[Any]:
        if "slow" in host:
            hanging.release()
            answers.wait()
        return [(socket.AF_INET, type, 0, "", ("1.1.1.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    lookup = SystemLookup()
    slow = [asyncio.create_task(lookup(f"slow{number}.example", 443)) for number in range(2 * PER_USER)]
    try:
        for _ in slow:
            await asyncio.to_thread(hanging.acquire)
        assert await lookup("fast.example", 443) == ("1.1.1.1",)
    finally:
        answers.set()
    assert await asyncio.gather(*slow) == [("1.1.1.1",)] * len(slow)


async def test_a_name_server_that_hangs_is_left_and_keeps_its_thread_until_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()

    def look_up(*_: Any, **__: Any) -> list[Any]:
        answers.wait()
        return []

    monkeypatch.setattr(addresses, "CONNECT_SECONDS", 0.01)
    monkeypatch.setattr(addresses, "LOOKUPS", 1)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    lookup = SystemLookup()
    check = TargetCheck(AllowedTargets(), lookup)
    for host in ("slow.example", "other.example"):
        with pytest.raises(TargetRefused, match="has no address on the public internet"):
            await check(f"https://{host}/")
    assert lookup._threads.locked()
    answers.set()
    await lookup._threads.acquire()


async def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    async def elsewhere(notification: Notification) -> web.Response:
        return web.Response(status=307, headers={"Location": f"http://127.0.0.1:{receiver.port}/secret"})

    receiver.answer = elsewhere
    assert await send(receiver.url) == DeliveryFailed("the receiver answered 307")
    assert [each.path for each in receiver.got] == ["/hook"]


async def test_a_proxy_of_the_environment_is_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await send(receiver.url) == DeliveryAccepted()


async def test_a_receiver_that_hangs_is_left(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(notification: Notification) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    receiver.answer = hang
    monkeypatch.setattr(http_sender, "TOTAL_SECONDS", 0.1)
    assert await send(receiver.url) == DeliveryFailed("the receiver did not answer within 0.1 seconds")


async def test_a_certificate_must_be_that_of_the_urls_host_at_the_address_that_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, served_with = issue("hooks.example.com", tmp_path)
    async with receiving(served_with) as receiver:
        url = f"https://{{}}:{receiver.port}/hook"
        refused = DeliveryFailed("the receiver's certificate is not valid")
        assert await send(url.format("hooks.example.com")) == refused  # nobody knows who vouches for it
        trusting = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
        assert await send(url.format("hooks.example.com")) == DeliveryAccepted()
        assert await send(url.format("hooks.example.com.")) == DeliveryAccepted()
        for other in ("other.example.com", "127.0.0.1", "example.com"):
            assert await send(url.format(other)) == refused
        assert len(receiver.got) == 2


async def test_a_receiver_that_does_not_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sender, "TOTAL_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
        assert await send(url, body=b"x" * 2**23) == DeliveryFailed("the receiver did not answer within 0.1 seconds")


async def test_a_body_without_end_is_not_read(receiver: Receiver) -> None:
    async def endless(notification: Notification) -> web.Response:
        return web.Response(body=b"x" * 2**23)

    receiver.answer = endless
    assert await send(receiver.url) == DeliveryAccepted()


async def test_nobody_there_is_a_reason_without_the_url() -> None:
    refused = await send("http://127.0.0.1:9/s3cret?token=s3cret")
    assert isinstance(refused, DeliveryFailed)
    assert refused.reason.startswith("the receiver cannot be reached")
    assert "s3cret" not in refused.reason
