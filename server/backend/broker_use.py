"""Which broker a server uses, and which others of its database use.

Rule 1: a server with a broker publishes after its commits, and makes no NOTIFY in them. It listens to both, and polls.
Rule 2: a server without one, or with another one than other servers of its database, is right, but late: it does not
        hear them, and polls. The log says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from sqlalchemy.exc import DBAPIError

from a2a_canvas.server.accounts.server_secrets import BROKER, ServerSecrets
from a2a_canvas.server.accounts.sql.sql_secrets import SqlSecrets
from a2a_canvas.server.backend.open_database import DatabaseError, open_database
from a2a_canvas.server.broker.broker import Broker, BrokerError, publish_once
from a2a_canvas.server.broker.signatures import Signatures
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.tasks.sql.projections.replicas import read_brokers, record_broker
from a2a_canvas.server.tasks.sql.replica.broker_exchange import REVOCATION, BrokerExchange
from a2a_canvas.server.tasks.sql.replica.notifications import Notify, notify, notify_by
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.text.wording import choice

logger = logging.getLogger(__name__)

RECORD_SECONDS = 3600.0
"""The interval in which a server with a broker records it, and looks whether others have another one."""
LOOK_SECONDS = 5.0
"""The interval in which a server without a broker looks whether others have one."""


class BrokerUse:
    """The use of a broker by one server.

    Args:
        addresses: of the broker; empty for none.

    Attributes:
        broker: None without one.
        notify: how this server notifies the others within a transaction.
        elsewhere: the brokers of other servers that this one does not use.
    """

    def __init__(self, database: Database, addresses: Sequence[str], secrets: ServerSecrets, metrics: Metrics) -> None:
        self.broker = Broker(addresses) if addresses else None
        self.notify: Notify = notify_by(self._publish) if self.broker else notify
        self.elsewhere: tuple[str, ...] = ()
        self.exchange: BrokerExchange | None = None
        self._database = database
        self._secrets = secrets
        self._metrics = metrics
        self._counted: dict[str, int] = {}
        self._recording: asyncio.Task[None] | None = None

    @property
    def concerns(self) -> bool:
        """Whether notifications may be lost, because this server or another one of its database has a broker."""
        return self.broker is not None or bool(self.elsewhere)

    async def start(self, make_exchange: Callable[[Broker, bytes], BrokerExchange]) -> None:
        """Begin to connect. A broker that cannot be used is tried again and again.

        Raises:
            Unavailable: the database cannot be used.
        """
        if self.broker:
            self.exchange = make_exchange(self.broker, await self._secrets.secret(BROKER))
            self.exchange.start()
            self._metrics.refreshers.append(self._report)
        if self._database.dialect == "postgresql":
            await self._record()
            self._recording = asyncio.create_task(self._record_regularly(), name="use of a broker")

    async def stop(self) -> None:
        if self._recording:
            self._recording.cancel()
            await asyncio.wait((self._recording,))
        if self.broker:
            await self.broker.stop()

    def revoke(self) -> None:
        """Tell the other servers that a share or a credential has ended."""
        if self.exchange:
            self.exchange.revoke()

    def _publish(self, payload: str) -> None:
        if self.exchange:
            self.exchange.notify(payload)

    async def _record_regularly(self) -> None:
        while True:
            await asyncio.sleep(RECORD_SECONDS if self.broker else LOOK_SECONDS)
            try:
                await self._record()
            except Unavailable:
                continue
            except Exception:
                logger.exception("The use of a broker could not be recorded")

    async def _record(self) -> None:
        own = self.broker.places if self.broker else ""
        if own:
            async with self._database.write() as connection:
                await record_broker(connection, own)
        async with self._database.read() as connection:
            found = tuple(place for place in await read_brokers(connection) if place != own)
        if found and found != self.elsewhere:
            logger.warning("%s %s", with_another_broker(found, own), SAME_BROKER)
        self.elsewhere = found

    async def _report(self) -> None:
        assert self.broker
        self._metrics.broker_connected.set(self.broker.connected.is_set())
        for outcome in ("sent", "received", "dropped", "forged"):
            count = getattr(self.broker, outcome)
            self._metrics.broker_messages.labels(outcome).inc(count - self._counted.get(outcome, 0))
            self._counted[outcome] = count


SAME_BROKER = "Start all servers with the same --broker. A broker that no server uses is forgotten after a day."
"""What to do about a server whose database has servers with another broker."""


def with_another_broker(places: Sequence[str], own: str = "") -> str:
    """What is wrong with it.

    Args:
        own: its own broker; empty for none.
    """
    has = f"--broker {own}" if own else "no --broker"
    return (
        f"Servers of this database use the broker {choice(places, 'and')}, and this one has {has}: it polls, and shows "
        "what they do up to a second late."
    )


async def find_brokers(url: str, seconds: float) -> tuple[str, ...]:
    """The brokers that servers of a database use; none if it cannot be read in time."""
    with suppress(DatabaseError, Unavailable, DBAPIError, TimeoutError):
        async with asyncio.timeout(seconds), open_database(url, shared=True) as database, database.read() as connection:
            return await read_brokers(connection)
    return ()


async def announce_revocation(settings: Settings, database: Database) -> None:
    """Tell the servers of a database that a credential has ended, if there is a broker. Without it they find out."""
    for address in settings.broker:
        with suppress(BrokerError, Unavailable):
            key = await SqlSecrets(database, lambda: datetime.now(UTC)).secret(BROKER)
            await publish_once(address, Signatures(key), REVOCATION)
            return
