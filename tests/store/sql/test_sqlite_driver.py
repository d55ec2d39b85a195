"""SQLite's driver: what of a transaction runs in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import sqlite_url

INSERT = text("INSERT INTO words VALUES (:word)")
SELECT = text("SELECT word FROM words ORDER BY word")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(sqlite_url(tmp_path))
    async with opened.write() as connection:
        await connection.execute(text("CREATE TABLE words (word TEXT)"))
        await connection.execute(INSERT, [{"word": word} for word in "abc"])
    async with opened.read():
        pass  # connects
    yield opened
    await opened.close()


@pytest.fixture
def handed_over(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was handed over to a thread."""
    names: list[str] = []
    run = database.threads.run

    async def recorded(call: Any) -> Any:
        names.append(call.func.__name__)
        return await run(call)

    monkeypatch.setattr(database.threads, "run", recorded)
    return names


async def test_a_read_hands_over_each_statement_with_its_rows_and_nothing_else(
    database: Database, handed_over: list[str]
) -> None:
    async with database.read() as connection:
        assert [*await connection.scalars(SELECT)] == ["a", "b", "c"]
        assert (await connection.execute(SELECT)).first() == ("a",)
        assert (await connection.execute(SELECT)).fetchmany(2) == [("a",), ("b",)]
    assert handed_over == ["execute"] * 3


async def test_a_write_hands_over_its_beginning_and_its_commit_too(database: Database, handed_over: list[str]) -> None:
    async with database.write() as connection:
        await connection.execute(INSERT, {"word": "d"})
        await connection.execute(INSERT, [{"word": "e"}, {"word": "f"}])
    assert handed_over == ["execute", "execute", "executemany", "commit"]


async def test_a_transaction_of_one_function_hands_over_nothing_else(
    database: Database, handed_over: list[str]
) -> None:
    inserting = text("INSERT INTO words VALUES (:word) RETURNING word")
    assert await database.transact(lambda connection: connection.scalar(inserting, {"word": "d"})) == "d"
    assert handed_over == ["execute", "commit"]


async def test_rows_that_are_streamed_come_as_they_are_asked_for(database: Database) -> None:
    async with database.read() as connection:
        streamed = await connection.stream(SELECT)
        assert [[*some] async for some in streamed.scalars().partitions(2)] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("ends", ["returns", "raises"])
async def test_a_call_is_waited_for_though_its_caller_is_cancelled(database: Database, ends: str) -> None:
    begun, go_on, ended = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def call() -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        ended.append(ends)
        if ends == "raises":
            raise OSError

    calling = asyncio.create_task(database.threads.run(call))
    await begun.wait()
    calling.cancel()
    await asyncio.sleep(0)
    assert not calling.done()
    go_on.set()
    await asyncio.wait([calling])
    assert calling.cancelled()
    assert ended == [ends]
