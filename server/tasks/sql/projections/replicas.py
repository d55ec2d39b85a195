"""The servers that share a database: a row for each that is alive. `replica/lease.py` has the rules."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ColumnElement, Float, Table, select

from a2a_canvas.store.sql.tables import Text, artifacts, metadata

replicas = Table(
    "replicas",
    metadata,
    Column("replica_id", Text, primary_key=True),
    Column("heartbeat_at", Float, nullable=False),  # seconds by the clock of the database
    Column("commits", BigInteger, nullable=False),  # number of its transactions that were committed
)


def has_lease() -> ColumnElement[bool]:
    """A living replica has the lease of the artifact."""
    return artifacts.c.holder.in_(select(replicas.c.replica_id))
