"""A connection to NATS that is made again whenever it breaks. The only module that imports `nats`.

Rule 1: `publish`, `subscribe` and `unsubscribe` never wait. While there is no connection, messages are dropped, and
        subscriptions are made when there is one.
Rule 2: a broker that answers no ping within `ANSWER_SECONDS` is left, as one that closed the connection: it may be
        stopped, or cut off. Every address is tried in turn, `RETRY_SECONDS` after the last one.
Rule 3: a password is sent only over TLS, or on this machine.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from a2a_canvas.server.broker.signatures import PREFIX, Signatures

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

logger = logging.getLogger(__name__)

DEFAULT_PORT = 4222
CONNECT_SECONDS = 3
"""Seconds to connect to one address."""
RETRY_SECONDS = 1.0
PING_SECONDS = 1.0
"""The interval of pings."""
ANSWER_SECONDS = 2
"""Seconds that the broker has for the answer to a ping."""
CLOSE_SECONDS = 0.5
MAX_WAITING = 10_000
"""Messages that wait to be sent."""
MAX_WAITING_BYTES = 8 * 2**20
"""Bytes of messages that the broker has not taken; beyond them, messages are dropped."""

Receive = Callable[[bytes | None], None]
"""Takes the payload of a message; None for one that was forged."""


class BrokerError(Exception):
    """The broker cannot be used; `str()` says why."""


def place_of(address: str) -> str:
    """The host and the port of an address."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{parts.port or DEFAULT_PORT}"


class Broker:
    """One connection at a time, to the first of several addresses that can be used.

    Args:
        addresses: as the settings have them.

    Attributes:
        on_connected: called whenever a connection was made and has all subscriptions.
        connected: set while messages are sent and received.
        tried: set once a connection was made, or has failed.
        fault: why messages are not sent and received; empty if they are.
        sent, received, dropped, forged: numbers of messages.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.places = ", ".join(sorted(map(place_of, addresses)))
        self.connected, self.tried = asyncio.Event(), asyncio.Event()
        self.fault = "it has not answered yet"
        self.sent = self.received = self.dropped = self.forged = 0
        self._addresses = addresses
        self.on_connected: Callable[[], None] = lambda: None
        self._signatures: Signatures | None = None
        self._wanted: dict[str, tuple[Receive, Callable[[], None] | None]] = {}
        self._made: dict[str, Subscription] = {}
        self._client: Client | None = None
        self._steps: asyncio.Queue[Coroutine[Any, Any, object]] = asyncio.Queue()
        self._running: asyncio.Task[None] | None = None
        self._reported = False

    def start(self, signatures: Signatures) -> None:
        """Begin to connect."""
        self._signatures = signatures
        self._running = asyncio.create_task(self._run(), name="broker")

    async def stop(self) -> None:
        if self._running:
            await _end([self._running])

    # ------------------------------------------------------------------------ messages

    def publish(self, subject: str, payload: bytes) -> None:
        """Send a message to those who subscribe to its subject, other than this server."""
        client = self._client
        if client is None or self._steps.qsize() >= MAX_WAITING or client.pending_data_size > MAX_WAITING_BYTES:
            self.dropped += 1
            return
        assert self._signatures
        message = self._signatures.sign(subject, payload)
        if len(message) > client.max_payload:  # the library would fail, and the connection with it
            self.dropped += 1
            return
        self.sent += 1
        self._steps.put_nowait(client.publish(subject, message))

    def subscribe(self, subject: str, receive: Receive, ready: Callable[[], None] | None = None) -> None:
        """Receive the messages of a subject.

        Args:
            ready: called whenever none is missed from then on.
        """
        self._wanted[subject] = receive, ready
        if self._client:
            self._steps.put_nowait(self._subscribe(self._client, subject))

    def unsubscribe(self, subject: str) -> None:
        self._wanted.pop(subject, None)
        if self._client:
            self._steps.put_nowait(self._unsubscribe(subject))

    async def _subscribe(self, client: Client, *subjects: str) -> None:
        for subject in subjects:
            if subject in self._wanted and subject not in self._made:
                self._made[subject] = await client.subscribe(subject, cb=partial(self._receive, subject))
        await client.flush(ANSWER_SECONDS)
        for subject in subjects:
            _, ready = self._wanted.get(subject, (None, None))
            if ready:
                ready()

    async def _unsubscribe(self, subject: str) -> None:
        if subject not in self._wanted and (made := self._made.pop(subject, None)):
            await made.unsubscribe()

    async def _receive(self, subject: str, message: Msg) -> None:
        assert self._signatures
        if (wanted := self._wanted.get(subject)) is None:
            return
        payload = self._signatures.open(message.subject, message.data)
        if payload is None:
            self.forged += 1
            if self.forged == 1:
                logger.error(
                    "The broker %s has messages of others: who else may publish there? They are dropped, and counted.",
                    self.places,
                )
        else:
            self.received += 1
        try:
            wanted[0](payload)
        except Exception:
            logger.exception("A message of another server could not be handled")

    # ---------------------------------------------------------------------- connecting

    async def _run(self) -> None:
        while True:
            for address in self._addresses:
                try:
                    await self._use(address)
                except BrokerError as error:
                    self._report_fault(str(error))
            await asyncio.sleep(RETRY_SECONDS)

    def _report_fault(self, fault: str) -> None:
        self.fault = fault
        self.tried.set()
        if not self._reported:
            self._reported = True
            logger.error(
                "The broker %s cannot be used: %s. Streams show what other servers do up to a second late; it is "
                "tried again.",
                *(self.places, fault),
            )

    async def _use(self, address: str) -> None:
        client = await connect(address)
        self._client, self._steps, self._made = client, asyncio.Queue(), {}
        try:
            await self._subscribe(client, *self._wanted)
            self.connected.set()
            self.tried.set()
            self.fault = ""
            logger.info("The broker %s is connected.", place_of(address))
            self._reported = False
            self.on_connected()
            await _first_of(self._send(self._steps), self._ping(client))
        except Exception as error:
            raise BrokerError(_reason(error)) from error
        finally:
            self.connected.clear()
            self._client = None
            while not self._steps.empty():
                self._steps.get_nowait().close()
            await close(client)

    async def _send(self, steps: asyncio.Queue[Coroutine[Any, Any, object]]) -> None:
        while True:
            await (await steps.get())

    async def _ping(self, client: Client) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            await client.flush(ANSWER_SECONDS)


async def measure(address: str) -> float:
    """The seconds that a broker takes to answer.

    Raises:
        BrokerError: it cannot be used.
    """
    client = await connect(address)
    try:
        begun = time.perf_counter()
        await client.flush(ANSWER_SECONDS)
        return time.perf_counter() - begun
    except Exception as error:
        raise BrokerError(_reason(error)) from error
    finally:
        await close(client)


async def publish_once(address: str, signatures: Signatures, kind: str) -> None:
    """Send a message of a kind, without a payload, to all servers.

    Raises:
        BrokerError: the broker cannot be used.
    """
    client, subject = await connect(address), signatures.subject(kind)
    try:
        await client.publish(subject, signatures.sign(subject, b""))
        await client.flush(ANSWER_SECONDS)
    except Exception as error:
        raise BrokerError(_reason(error)) from error
    finally:
        await close(client)


async def connect(address: str) -> Client:
    """A connection to one address, which does not reconnect.

    Raises:
        BrokerError: it cannot be made.
    """
    from nats.aio.client import Client
    from nats.errors import Error

    parts = urlsplit(address)
    tls = parts.scheme == "tls"
    fault: Exception | None = None  # the last one: a broker may report one for every message
    client = Client()

    async def note(error: Exception) -> None:
        nonlocal fault
        if "permissions violation" in str(error).lower() and not fault:
            logger.error(
                "The broker %s reports: %s. Allow the user in --broker to publish and to subscribe to %s.>",
                *(place_of(address), _reason(error), PREFIX),
            )
        fault = error

    def password() -> str:
        # Evaluated after the handshake, if there was one: a line that nobody has signed asks for it.
        if tls and not client._server_info.get("tls_required"):
            raise Error("it does not use TLS, which its address asks for")
        return unquote(parts.password or "")

    options: dict[str, Any] = {"tls": ssl.create_default_context()} if tls else {}
    if parts.username:
        options |= {"user": unquote(parts.username), "password": password}
    try:
        connecting = asyncio.create_task(
            client.connect(
                [f"{parts.scheme}://{place_of(address)}"],
                error_cb=note,
                name="a2a-canvas",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=CONNECT_SECONDS,
                ping_interval=3600,  # `_ping` finds out sooner
                no_echo=True,
                pending_size=2 * MAX_WAITING_BYTES,
                **options,
            )
        )
        try:
            # Not by `asyncio.timeout`: the library may swallow its cancellation, and would hang.
            await asyncio.wait([connecting], timeout=CONNECT_SECONDS)
            if not connecting.done():
                raise TimeoutError
            connecting.result()
        finally:
            await _end([connecting])
    except Exception as error:
        await close(client)
        raise BrokerError(_reason(fault or error)) from error
    return client


async def close(client: Client) -> None:
    """Close a connection; one that does not take what is left is given up."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()


async def _first_of(*loops: Coroutine[Any, Any, None]) -> None:
    """Run loops until one of them fails."""
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await _end(tasks)


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended: the library may swallow a cancellation that comes with an answer."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "it does not answer"
        case ConnectionResetError():  # its last words may be lost with the connection
            return "it closed the connection, as it does with a wrong user or password"
        case OSError(strerror=str(words)):
            return words
        case _:
            words = str(error).removeprefix("nats: ").strip("'. ") or type(error).__name__
            return words[:200]
