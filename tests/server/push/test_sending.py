"""One attempt over HTTP: where it is connected to, and what it does not do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from aiohttp import web

from a2a_canvas.server.push import http_sender
from a2a_canvas.server.push.retries import Accepted, NotAccepted, Outcome
from a2a_canvas.server.push.sending import PushSender, SystemLookup, TargetCheck
from a2a_canvas.server.push.targets import AllowedTargets, TargetRefused
from tests.server.protocols.push_fixtures import FixedLookup
from tests.server.push.receiver import Notification, Receiver, receiving

LOOPBACK = AllowedTargets.of(["127.0.0.0/8"])


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def send(url: str, *answers: Sequence[str], allowed: AllowedTargets = LOOPBACK) -> Outcome:
    sender = PushSender(TargetCheck(allowed, FixedLookup(*answers or [["127.0.0.1"]])))
    try:
        return await sender(url, {"X-A2A-Notification-Token": "t0ken"}, b"{}")
    finally:
        await sender.close()


async def test_it_posts_to_the_address_of_the_lookup_with_the_name_of_the_url(receiver: Receiver) -> None:
    assert await send(f"http://hooks.example.com:{receiver.port}/a?b=c%20d") == Accepted()
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
    assert refused == NotAccepted("its url names a host, hooks.example.com, that is not on the public internet")
    assert lookup.asked == ["hooks.example.com"] * 2  # once for each: what was checked is connected to
    assert receiver.got == []


@pytest.mark.parametrize("host", ["127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "localhost", "[::1]", "127.0.0.1"])
async def test_no_way_to_write_this_machine_passes(host: str) -> None:
    check = TargetCheck(AllowedTargets(), SystemLookup())
    with pytest.raises(TargetRefused):
        await check(f"https://{host}/")
    check.close()


async def test_a_host_that_cannot_be_found_is_refused() -> None:
    with pytest.raises(TargetRefused, match="has no address"):
        await TargetCheck(AllowedTargets(), FixedLookup([]))("https://nowhere.example/")


async def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    async def elsewhere(notification: Notification) -> web.Response:
        return web.Response(status=307, headers={"Location": f"http://127.0.0.1:{receiver.port}/secret"})

    receiver.answer = elsewhere
    assert await send(receiver.url) == NotAccepted("the receiver answered 307")
    assert [each.path for each in receiver.got] == ["/hook"]


async def test_a_proxy_of_the_environment_is_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await send(receiver.url) == Accepted()


async def test_a_receiver_that_hangs_is_left(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(notification: Notification) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    receiver.answer = hang
    monkeypatch.setattr(http_sender, "TOTAL_SECONDS", 0.1)
    assert await send(receiver.url) == NotAccepted("the receiver did not answer within 0.1 seconds")


async def test_a_body_without_end_is_not_read(receiver: Receiver) -> None:
    async def endless(notification: Notification) -> web.Response:
        return web.Response(body=b"x" * 2**23)

    receiver.answer = endless
    assert await send(receiver.url) == Accepted()


async def test_nobody_there_is_a_reason_without_the_url() -> None:
    refused = await send("http://127.0.0.1:9/s3cret?token=s3cret")
    assert isinstance(refused, NotAccepted)
    assert refused.reason.startswith("the receiver cannot be reached")
    assert "s3cret" not in refused.reason
