"""The servers that share a database: a row for each that is alive (`replica/lease.py` has the rules), and one for each
broker that they use, which tells those that were started without it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ColumnElement, Float, Integer, Table, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.sql.database import insert
from a2a_canvas.store.sql.tables import Text, artifacts, metadata

replicas = Table(
    "replicas",
    metadata,
    Column("replica_id", Text, primary_key=True),
    Column("heartbeat_at", Float, nullable=False),  # seconds by the clock of the database
    Column("commits", BigInteger, nullable=False),  # number of its transactions that were committed
    Column("room", Integer, nullable=False, server_default="0"),  # further turns that it could run
    Column("room_at", Float, nullable=False, server_default="0"),  # since when; commits renew `heartbeat_at`, too
)


def has_lease() -> ColumnElement[bool]:
    """A living replica has the lease of the artifact."""
    return artifacts.c.holder.in_(select(replicas.c.replica_id))


brokers = Table(
    "brokers",
    metadata,
    Column("place", Text, primary_key=True),  # hosts and ports, without credentials
    Column("used_at", Float, nullable=False),  # seconds by the clock of the database
)

USED_SECONDS = 86_400.0
"""How long a broker counts as used. A server says so every hour."""

_NOW = func.extract("epoch", func.clock_timestamp())


async def record_broker(connection: AsyncConnection, place: str) -> None:
    """A server uses this broker now; those that none has used for long are removed."""
    await connection.execute(delete(brokers).where(brokers.c.used_at <= _NOW - USED_SECONDS))
    used = insert(connection, brokers).values(place=place, used_at=_NOW)
    await connection.execute(
        used.on_conflict_do_update(index_elements=["place"], set_={"used_at": used.excluded.used_at})
    )


async def read_brokers(connection: AsyncConnection) -> tuple[str, ...]:
    """The brokers that were used in the last day. On SQLite there are none."""
    if connection.dialect.name == "sqlite":
        return ()
    recent = select(brokers.c.place).where(brokers.c.used_at > _NOW - USED_SECONDS).order_by(brokers.c.place)
    return tuple(await connection.scalars(recent))
