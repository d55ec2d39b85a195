"""Statements for many rows: what the driver is given is what SQLAlchemy would have given it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, bindparam, select, text

from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import kept_bytes
from a2a_canvas.store.sql.row_statement import RowStatement, StatementGroup, upsert
from a2a_canvas.store.sql.tables import artifacts, drafts, with_shard
from tests.property_examples import examples
from tests.store.sql.sql_fixtures import postgresql_database, sqlite_database

ADD = RowStatement(lambda _: drafts.insert(), drafts.c.keys())
CUT = RowStatement(
    lambda _: drafts.delete().where(drafts.c.artifact_id == bindparam("of"), drafts.c.seq >= bindparam("from"))
)


@pytest.fixture(params=[sqlite_database, postgresql_database], ids=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with request.param() as opened:
        yield opened


def rows(*numbers: int, content: str = "x") -> list[dict[str, object]]:
    common = {"context_id": "c", "artifact_id": "a", "kind": "append", "content": content}
    return [{"seq": number, **common} for number in numbers]


async def found(database: Database) -> list[tuple[int, str]]:
    async with database.read() as connection:
        return [(row.seq, row.content) for row in await connection.execute(select(drafts).order_by(drafts.c.seq))]


async def test_it_is_executed_for_each_row_and_for_none(database: Database) -> None:
    def change(connection: Connection) -> None:
        ADD.execute(connection, rows(1, 2, 3))
        ADD.execute(connection, [])
        ADD.execute(connection, rows(4))
        CUT.execute(connection, [{"of": "a", "from": 3}])

    await database.transact(change)
    assert await found(database) == [(1, "x"), (2, "x")]


async def test_values_are_converted_as_their_columns_say(database: Database) -> None:
    head = {"revision": 0, "changed": 0, "changed_by": "", "current": 0, "newest": 0, "pruned": 0, "incarnation": 0}
    row = {"context_id": "c", "artifact_id": "a", **head, "draft_dirty": True}
    add = RowStatement(lambda _: artifacts.insert(), row)

    def insert(connection: Connection) -> None:
        ADD.execute(connection, rows(1, content="half \ud83d, nothing \0"))
        add.execute(connection, [row])

    await database.transact(insert)
    assert await found(database) == [(1, "half \ufffd, nothing \ufffd")]
    async with database.read() as connection:
        assert await connection.scalar(select(artifacts.c.draft_dirty)) is True


async def test_what_is_written_is_counted_when_it_is_committed(database: Database) -> None:
    def change(connection: Connection) -> None:
        ADD.execute(connection, rows(1, 2))

    def fails(connection: Connection) -> None:
        ADD.execute(connection, rows(3, content="x" * 1000))
        raise ValueError

    await database.transact(change)
    with pytest.raises(ValueError):
        await database.transact(fails)
    await database.transact(lambda connection: None)
    assert database.written_bytes == 2 * len(with_shard("c") + "aappendx")


KEPT = RowStatement(upsert(kept_bytes, added=["bytes"]), kept_bytes.c.keys())
NAMES = st.sampled_from("abcde")
ROWS = st.tuples(
    st.lists(st.integers(1, 30), unique=True, max_size=12),
    st.dictionaries(NAMES, st.integers(-5, 5), max_size=5),
    st.integers(1, 30),
)


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROWS, max_size=4))
async def test_statements_together_write_what_they_write_one_after_another(
    database: Database, transactions: list[tuple[list[int], dict[str, int], int]]
) -> None:
    async def write(*, together: bool) -> list[object]:
        def change(connection: Connection) -> None:
            for number, (added, kept, first) in enumerate(transactions):
                group = StatementGroup()
                artifact = {"artifact_id": f"a{number}"}
                group.add(connection, ADD, [{**row, **artifact} for row in rows(*added, content="$1 :x")])
                group.add(connection, KEPT, [{"context_id": key, "bytes": kept[key]} for key in sorted(kept)])
                group.add(connection, CUT, [{"of": f"a{number - 1}", "from": first}])
                if together:
                    group.execute(connection)
                else:
                    for each in group._added:
                        connection.exec_driver_sql(*each)

        await database.transact(change)
        async with database.write() as connection:
            found: list[object] = []
            for table in (drafts, kept_bytes):
                found += (await connection.execute(select(table).order_by(*table.primary_key))).all()
                await connection.execute(table.delete())
        return found

    assert await write(together=True) == await write(together=False)


@pytest.mark.postgres
async def test_statements_together_are_executed_in_the_order_in_which_they_were_added() -> None:
    """Two transactions that lock rows in different orders can wait for each other."""
    async with postgresql_database() as database:
        adding = [RowStatement(lambda _: drafts.insert(), drafts.c.keys()) for _ in range(3)]

        def change(connection: Connection) -> None:
            group = StatementGroup()
            for statement, numbers in zip(adding, [(5, 1), (9,), (3, 7)], strict=True):
                group.add(connection, statement, rows(*numbers))
            group.execute(connection)

        await database.transact(change)
        async with database.read() as connection:
            written = await connection.scalars(select(drafts.c.seq).order_by(text("ctid")))
        assert [*written] == [5, 1, 9, 3, 7]
