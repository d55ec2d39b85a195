"""The secrets of servers in a database: all of its servers have the same. A row is a secret itself; none is deleted."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import BigInteger, Column, Table, select

from a2a_canvas.server.accounts.server_secrets import SECRET_BYTES
from a2a_canvas.store.sql.database import Database, insert
from a2a_canvas.store.sql.tables import Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

server_secrets = Table(
    "server_secrets",  # what servers of one database sign with, by what it is for
    metadata,
    Column("name", Text, primary_key=True),
    Column("secret", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)


class SqlSecrets:
    """`ServerSecrets` of a table."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now
        self._known: dict[str, bytes] = {}

    async def secret(self, name: str) -> bytes:
        if name not in self._known:
            self._known[name] = await self._read(name) or await self._make(name)
        return self._known[name]

    async def _read(self, name: str) -> bytes | None:
        async with self._database.read() as connection:
            found = await connection.scalar(select(server_secrets.c.secret).where(server_secrets.c.name == name))
        return bytes.fromhex(found) if found else None

    async def _make(self, name: str) -> bytes:
        """Another server may make it at the same time: what is stored first counts for both."""
        row = {"name": name, "secret": secrets.token_hex(SECRET_BYTES), "made_at": to_microseconds(self._now())}
        async with self._database.write() as connection:
            await connection.run_sync(
                lambda sync: sync.execute(insert(sync, server_secrets).values(row).on_conflict_do_nothing())
            )
        stored = await self._read(name)
        assert stored
        return stored
