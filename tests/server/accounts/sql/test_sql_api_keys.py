"""API keys in a database, as several servers see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from a2a_canvas.server.accounts.api_key import SHARED_USER, ApiKey
from a2a_canvas.server.accounts.sql.recent_reads import MAX_AGE
from a2a_canvas.server.accounts.sql.sql_api_keys import SqlApiKeys, add_key, list_keys, revoke_key
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database
from tests.fakes import Seconds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANN = ApiKey("ann", "ann", "hash of ann", NOW)
CI = ApiKey("ci", "ann", "hash of ci", NOW)


async def test_a_new_key_is_found_by_its_hash(database: Database) -> None:
    assert await add_key(database, ANN)
    keys = SqlApiKeys(database)
    assert await keys.find("hash of ann") == ANN
    assert await keys.find("hash of nobody") is None


async def test_servers_know_of_a_change_when_what_they_have_is_too_old(database: Database) -> None:
    clock = Seconds()
    first, second = SqlApiKeys(database, clock), SqlApiKeys(database, clock)
    assert not await first.exist()
    assert not await second.exist()
    await add_key(database, ANN)
    clock.now += MAX_AGE
    assert await first.exist()
    assert await second.find("hash of ann") == ANN
    await revoke_key(database, "ann", NOW)
    clock.now += MAX_AGE
    assert await first.find("hash of ann") is None
    assert await second.find("hash of ann") is None


async def test_a_key_of_the_user_of_the_shared_token_is_refused(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await add_key(database, ApiKey("old", SHARED_USER, "hash of old", NOW))
    await add_key(database, ANN)
    keys = SqlApiKeys(database)
    assert await keys.find("hash of old") is None
    assert await keys.find("hash of ann") == ANN
    assert await keys.exist()
    [line] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line.startswith("The API key old is rejected: ")
    assert "a2a-canvas key revoke old" in line


def test_what_they_have_is_never_older_than_two_seconds() -> None:
    assert MAX_AGE <= 2


async def test_after_the_last_key_is_revoked_there_still_were_keys(database: Database) -> None:
    await add_key(database, ANN)
    assert await revoke_key(database, "ann", NOW)
    assert await SqlApiKeys(database).exist()


async def test_two_keys_in_force_have_two_names(database: Database) -> None:
    assert await add_key(database, ANN)
    assert not await add_key(database, ApiKey("ann", "joe", "another", NOW))
    assert await add_key(database, CI)
    await revoke_key(database, "ann", NOW)
    assert await add_key(database, ApiKey("ann", "ann", "newer", NOW))
    assert {(key.name, key.key_hash, key.revoked_at) for key in await list_keys(database)} == {
        ("ann", "hash of ann", NOW),
        ("ann", "newer", None),
        ("ci", "hash of ci", None),
    }


async def test_a_key_that_is_not_in_force_cannot_be_revoked(database: Database) -> None:
    assert not await revoke_key(database, "ann", NOW)
    await add_key(database, ANN)
    assert await revoke_key(database, "ann", NOW)
    assert not await revoke_key(database, "ann", NOW)


@asynccontextmanager
async def unavailable() -> AsyncIterator[None]:
    raise Unavailable("it is away")
    yield


async def test_without_the_database_nobody_is_known(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Seconds()
    keys = SqlApiKeys(database, clock)
    await add_key(database, ANN)
    assert await keys.find("hash of ann") == ANN
    monkeypatch.setattr(database, "read", lambda: unavailable())
    assert await keys.find("hash of ann") == ANN
    clock.now += MAX_AGE
    with pytest.raises(Unavailable):
        await keys.find("hash of ann")
