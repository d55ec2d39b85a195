"""Texts in columns: what is compressed is read as it was written, and takes less."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Column, MetaData, Table, select, text

from a2a_canvas.store.sql.database import Database, TextSize
from a2a_canvas.store.sql.tables import CompressedText
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.store.sql.test_compression import CHANGE

DAMAGED = "z1:no Base64"
notes = Table("notes", MetaData(), Column("note", CompressedText))


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(sqlite_url(tmp_path) if request.param == "sqlite" else postgresql_url())
    async with opened.write() as connection:
        await connection.run_sync(notes.create)
    yield opened
    await opened.close()


async def test_a_row_takes_less_and_reads_the_same(database: Database) -> None:
    page = f"[{','.join([CHANGE] * 20)}]"
    async with database.write() as connection:
        await connection.execute(notes.insert(), {"note": page})
    async with database.read() as connection:
        assert await connection.scalar(select(notes.c.note)) == page
        stored = await connection.scalar(select(TextSize(notes.c.note)))
    assert stored < len(page) / 8


async def test_what_is_not_compressed_or_is_damaged_is_read_as_it_is(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("INSERT INTO notes VALUES (:note)"), {"note": CHANGE})
        await connection.execute(notes.insert(), [{"note": None}, {"note": DAMAGED}])
    async with database.read() as connection:
        found = (await connection.scalars(select(notes.c.note))).all()
    assert set(found) == {CHANGE, DAMAGED, None}
