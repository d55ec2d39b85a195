"""Texts in columns: what is packed is read as it was written, and takes less."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, Table, select, text

from a2a_canvas.store.sql.database import Database, text_size
from a2a_canvas.store.sql.tables import PACKED_AT_MOST, PackedText, pack, unpack
from a2a_canvas.store.text.unicode import replace_unstorable
from tests.database_fixtures import postgresql_url, sqlite_url

CHANGE = '[7,"2026-01-01T00:00:00+00:00",{"artifact_id":"doc","append":true,"parts":[{"body":"and so on"}]}]'
DAMAGED = "z1:no Base64"
notes = Table("notes", MetaData(), Column("note", PackedText))


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(sqlite_url(tmp_path) if request.param == "sqlite" else postgresql_url())
    async with opened.write() as connection:
        await connection.run_sync(notes.create)
    yield opened
    await opened.close()


@pytest.mark.parametrize("as_bytes", [True, False])
@given(given_text=st.text().map(replace_unstorable))
@example(given_text=f"[{CHANGE},{CHANGE}]")
def test_it_is_packed_if_that_is_shorter_and_read_as_it_was(given_text: str, as_bytes: bool) -> None:
    packed = pack(given_text, as_bytes=as_bytes)
    assert packed == given_text or len(packed) < len(given_text.encode())
    assert unpack(packed) == given_text


def test_a_long_text_is_not_packed() -> None:
    assert pack("a" * PACKED_AT_MOST, as_bytes=True) != "a" * PACKED_AT_MOST
    assert pack("a" * (PACKED_AT_MOST + 1), as_bytes=True) == "a" * (PACKED_AT_MOST + 1)


async def test_a_row_takes_less_and_reads_the_same(database: Database) -> None:
    page = f"[{','.join([CHANGE] * 20)}]"
    async with database.write() as connection:
        await connection.execute(notes.insert(), {"note": page})
    async with database.read() as connection:
        assert await connection.scalar(select(notes.c.note)) == page
        stored = await connection.scalar(select(text_size(connection, notes.c.note)))
    assert stored < len(page) / 8


async def test_what_was_written_before_or_is_damaged_is_read_as_it_is(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("INSERT INTO notes VALUES (:note)"), {"note": CHANGE})
        await connection.execute(notes.insert(), [{"note": None}, {"note": DAMAGED}])
    async with database.read() as connection:
        found = (await connection.scalars(select(notes.c.note))).all()
    assert set(found) == {CHANGE, DAMAGED, None}
