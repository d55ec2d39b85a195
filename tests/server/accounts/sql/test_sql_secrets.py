"""The secrets of servers in a database, as several servers see them."""

from __future__ import annotations

from asyncio import gather
from datetime import UTC, datetime

from a2a_canvas.server.accounts.server_secrets import SECRET_BYTES
from a2a_canvas.server.accounts.sql.sql_secrets import SqlSecrets
from a2a_canvas.store.sql.database import Database


async def test_servers_that_ask_at_the_same_time_have_the_same_secret(database: Database) -> None:
    servers = [SqlSecrets(database, lambda: datetime.now(UTC)) for _ in range(3)]
    found = await gather(*(server.secret("sessions") for server in servers))
    assert len(set(found)) == 1
    assert len(found[0]) == SECRET_BYTES
    assert await servers[0].secret("sessions") == found[0]
    assert await servers[0].secret("another") != found[0]
