"""A connection to NATS: with TLS and a password, or none; what others do to it costs messages, and nothing else."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path

import pytest

from a2a_canvas.server.broker import broker as module
from a2a_canvas.server.broker.broker import Broker, BrokerError, connect, measure, place_of
from a2a_canvas.server.broker.signatures import SIGNATURE_BYTES, Signatures
from tests.broker_fixtures import private_nats
from tests.certificates import issue

pytestmark = pytest.mark.process
SOON = 30.0
KEY = Signatures(b"k" * 32)


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("nats://localhost", "localhost:4222"),
        ("tls://me:secret@nats.internal:4443", "nats.internal:4443"),
        ("nats://[::1]", "[::1]:4222"),
    ],
)
def test_the_place_of_an_address_has_no_password(address: str, place: str) -> None:
    assert place_of(address) == place


async def test_messages_go_to_other_connections_over_tls_and_with_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem, _ = issue("localhost", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    tls = f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}'
    with private_nats(f'authorization {{ user: "me", password: "p@ss" }}\n{tls}') as nats:
        address = f"tls://me:p%40ss@localhost:{nats.port}"
        one, other = Broker(["nats://127.0.0.1:1", address]), Broker([address])
        heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        other.subscribe("a.b", heard.put_nowait)
        one.subscribe("a.b", heard.put_nowait)
        for each in (one, other):
            each.start(KEY)
        async with asyncio.timeout(SOON):
            await asyncio.gather(one.connected.wait(), other.connected.wait())
            one.publish("a.b", b"Hello")
            assert await heard.get() == b"Hello"
        other.unsubscribe("a.b")
        await one.stop()
        await other.stop()
        assert heard.empty()
        with pytest.raises(BrokerError, match=r"(?i)certificate"):
            monkeypatch.setenv("SSL_CERT_FILE", str(issue("other", tmp_path)[0]))
            await measure(address)


async def test_a_user_who_may_not_publish_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(module.logger, "error", lambda text, *values: said.put_nowait(text % values))
    settings = 'authorization { users: [{ user: me, password: secret, permissions: { publish: "other.>" } }] }'
    with private_nats(settings, "me:secret@") as nats:
        broker = Broker([nats.url])
        broker.start(KEY)
        async with asyncio.timeout(SOON):
            await broker.connected.wait()
            for _ in range(2):
                broker.publish("a2a_canvas.x", b"Hello")
            line = await said.get()
        assert line.startswith(f"The broker {broker.places} reports: ")
        assert line.endswith("Allow the user in --broker to publish and to subscribe to a2a_canvas.>")
        await broker.stop()
        assert said.empty()


async def test_no_password_goes_to_a_server_without_the_tls_that_its_address_asks_for() -> None:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"auth_required": true, "max_payload": 1048576}\r\n')
        heard.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(BrokerError, match="it does not use TLS, which its address asks for"):
        await connect(f"tls://me:secret@127.0.0.1:{port}")
    server.close()
    assert b"secret" not in b"".join(heard)


async def test_what_a_broker_that_stands_still_does_not_take_is_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 10)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 1)
    left = asyncio.Event()
    monkeypatch.setattr(module.logger, "error", lambda *said: left.set())
    with private_nats() as nats:
        broker = Broker([nats.url])
        broker.publish("a", b"before there is a connection")
        broker.start(KEY)
        async with asyncio.timeout(SOON):
            await broker.connected.wait()
            nats.pause()
            for _ in range(100):
                broker.publish("a", b"x")
            assert (broker.sent, broker.dropped) == (10, 91)
            await left.wait()
            nats.resume()
            await broker.connected.wait()
        await broker.stop()
        assert broker.fault == ""


async def test_a_message_of_nobody_we_know_is_counted_and_told_to_its_subscriber() -> None:
    with private_nats() as nats:
        broker, stranger = Broker([nats.url]), await connect(nats.url)
        heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        broker.subscribe("a", heard.put_nowait)
        broker.start(KEY)
        async with asyncio.timeout(SOON):
            await broker.connected.wait()
            await stranger.publish("a", b"x" * 50)
            assert await heard.get() is None
        await stranger.close()
        await broker.stop()
        assert (broker.received, broker.forged) == (0, 1)


async def test_a_message_that_is_larger_than_the_broker_takes_is_dropped_and_counted() -> None:
    with private_nats("max_payload: 1000") as nats:
        one, other = Broker([nats.url]), Broker([nats.url])
        heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        other.subscribe("a", heard.put_nowait)
        for each in (one, other):
            each.start(KEY)
        async with asyncio.timeout(SOON):
            await asyncio.gather(one.connected.wait(), other.connected.wait())
            client = one._client
            for size in (1000 - SIGNATURE_BYTES, 1001 - SIGNATURE_BYTES, 1):
                one.publish("a", b"x" * size)
            assert [len(await heard.get() or b"") for _ in range(2)] == [1000 - SIGNATURE_BYTES, 1]
        assert one._client is client
        assert (one.sent, one.dropped) == (2, 1)
        await one.stop()
        await other.stop()


async def test_of_what_a_broker_reports_only_the_last_is_kept() -> None:
    class Reported(Exception):
        pass

    with private_nats() as nats:
        client = await connect(nats.url)
        known = weakref.WeakSet[Reported]()
        for _ in range(10):
            error = Reported()
            known.add(error)
            await client._error_cb(error)
        del error
        assert len(known) == 1
        await client.close()
