"""A SQLite database that is private, and that is noticed to be gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import sqlite_url


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "canvas.db"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """One that is open, with a row in it."""
    opened = Database(sqlite_url(tmp_path))
    assert opened.file
    opened.file.create()
    await write(opened, "CREATE TABLE words (word TEXT)")
    opened.file.record_opened()
    await write(opened)
    yield opened
    await opened.close()


async def write(database: Database, statement: str = "INSERT INTO words VALUES ('one')") -> None:
    async with database.write() as connection:
        await connection.exec_driver_sql(statement)


async def count(database: Database) -> int:
    async with database.read() as connection:
        return int((await connection.exec_driver_sql("SELECT count(*) FROM words")).scalar_one())


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def remove_wal(path: Path) -> None:
    path.with_name("canvas.db-wal").unlink()


async def test_it_can_be_read_by_its_owner_alone(database: Database, path: Path) -> None:
    modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    assert modes == dict.fromkeys(["canvas.db", "canvas.db-shm", "canvas.db-wal"], 0o600)


def test_one_that_is_there_keeps_its_mode_and_its_operator_is_told(
    tmp_path: Path, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.touch()
    path.chmod(0o640)
    file = Database(sqlite_url(tmp_path)).file
    assert file
    file.create()
    assert path.stat().st_mode & 0o777 == 0o640
    file.warn_of_others()
    assert f"{path} (mode 640): chmod 600 it" in caplog.text


@pytest.mark.parametrize("happens", [remove, replace, remove_wal])
async def test_one_that_is_gone_takes_and_gives_nothing_more_and_says_so_once(
    database: Database, path: Path, happens: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(happens)
    happens(path)
    for _ in range(2):
        with pytest.raises(Unavailable, match="was removed or replaced"):
            await write(database)
        with pytest.raises(Unavailable):
            await count(database)
    [record] = caplog.records
    assert "Put back the same file, or stop the server" in record.getMessage()
    assert record.levelname == "CRITICAL"


async def test_what_goes_during_a_transaction_is_not_committed(database: Database, path: Path) -> None:
    aside = path.with_name("aside")
    with pytest.raises(Unavailable):
        async with database.write() as connection:
            await connection.exec_driver_sql("INSERT INTO words VALUES ('two')")
            os.rename(path, aside)
    os.rename(aside, path)
    assert await count(database) == 1


async def test_what_goes_during_a_transaction_in_one_function_is_not_committed_either(
    database: Database, path: Path
) -> None:
    aside = path.with_name("aside")

    def insert(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO words VALUES ('two')")
        os.rename(path, aside)

    with pytest.raises(Unavailable):
        await database.transact(insert)
    os.rename(aside, path)
    assert await count(database) == 1


async def test_connections_may_come_and_go(database: Database) -> None:
    await database._reader.dispose()
    await database._writer.dispose()  # the last: the -wal goes with it
    await write(database)
    assert await count(database) == 2
