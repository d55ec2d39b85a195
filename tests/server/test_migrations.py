"""The schema: what an upgrade makes is what the code expects, on both databases, whoever else upgrades."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, column, inspect, select, table, text

from a2a_canvas.server.backend.migrations import REVISIONS, SchemaError, check, newest, prepare, upgrade
from a2a_canvas.server.backend.migrations.schema import FOLDER, run_revisions
from a2a_canvas.server.tasks.sql.journal.journal_tables import page_columns, page_entries, pages
from a2a_canvas.store.changes import EditText
from a2a_canvas.store.models import Content, text_part
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.rows import content_json
from a2a_canvas.store.text.spans import Span
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.server.tasks.kept_count import assert_tasks_counted, counted, recounted
from tests.store.artifact_builders import by
from tests.store.sql.sql_fixtures import FakeReplica, open_store
from tests.store.sql.test_compression import compress_with_zlib

ROOT = Path(__file__).parents[2]
Url = Callable[[Path], str]
BOTH = pytest.mark.parametrize("url", [sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        yield database
    finally:
        await database.close()


async def set_revision(database: Database, revision: str) -> None:
    async with database.write() as connection:
        await connection.execute(text(f"UPDATE {REVISIONS} SET version_num = :new"), {"new": revision})


async def tables_of(database: Database) -> list[str]:
    async with database.read() as connection:
        return await connection.run_sync(lambda sync: inspect(sync).get_table_names())


@BOTH
async def test_an_upgraded_database_is_what_the_code_expects(url: Url, tmp_path: Path) -> None:
    # They add themselves to the metadata.
    from a2a_canvas.server.accounts.sql import account_tables as _identity
    from a2a_canvas.server.accounts.sql import sql_usage as _usage
    from a2a_canvas.server.tasks.sql.journal import journal_tables as _tasks
    from a2a_canvas.store.sql.tables import metadata

    assert _tasks
    assert _identity
    assert _usage

    def differences(connection: Connection) -> object:
        options = {"version_table": REVISIONS, "compare_type": True, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    async with opened(url(tmp_path)) as database:
        await upgrade(database)
        async with database.read() as connection:
            assert await connection.run_sync(differences) == []
            primary = await connection.run_sync(primary_keys)
    assert primary == {table.name: [column.name for column in table.primary_key] for table in metadata.tables.values()}


def primary_keys(connection: Connection) -> dict[str, list[str]]:
    """Alembic does not compare them."""
    found = inspect(connection)
    names = [name for name in found.get_table_names() if name != REVISIONS]
    return {name: found.get_pk_constraint(name)["constrained_columns"] for name in names}


@BOTH
async def test_a_second_upgrade_does_nothing(url: Url, tmp_path: Path) -> None:
    async with opened(url(tmp_path)) as database:
        await upgrade(database)
        before = await tables_of(database)
        await upgrade(database)
        assert await tables_of(database) == before
        assert await check(database) == newest()


@BOTH
async def test_what_is_kept_survives_a_second_upgrade(url: Url, tmp_path: Path) -> None:
    where = url(tmp_path)
    async with opened(where) as database:
        await upgrade(database)
        async with database.write() as connection:
            await connection.execute(text("INSERT INTO task_contexts (task_id, context_id) VALUES ('t', 'c')"))
    async with opened(where) as database:
        await upgrade(database)
        async with database.read() as connection:
            assert (await connection.execute(text("SELECT task_id, context_id FROM task_contexts"))).one() == ("t", "c")


async def begin_with(database: Database, revision: str) -> None:
    """The schema as it was at a revision."""
    async with database.write() as connection:
        await connection.run_sync(run_revisions, revision)


@BOTH
async def test_each_step_of_an_upgrade_is_named_before_it_runs(url: Url, tmp_path: Path) -> None:
    lines: list[str] = []
    async with opened(url(tmp_path)) as database:
        await begin_with(database, "0001")
        await upgrade(database, progress=lines.append)
        await upgrade(database, progress=lines.append)
        assert await check(database) == newest()
    number = len(lines)
    assert number == int(newest()) - 1
    assert lines[0] == f"Upgrading the database {database.name} from schema 0001 to 0002 (1 of {number})…"
    assert lines[-1].endswith(f"to {newest()} ({number} of {number})…")


def test_a_revision_has_the_name_of_its_file_and_the_newest_is_the_head() -> None:
    scripts = ScriptDirectory(str(FOLDER))
    assert {Path(script.path).stem: script.revision for script in scripts.walk_revisions()} == {
        path.stem: path.stem.removeprefix("revision_") for path in (FOLDER / "versions").glob("revision_*.py")
    }
    assert scripts.get_current_head() == newest()


ROWS_OF_0001: dict[str, dict[str, Any]] = {
    "contexts": {"context_id": "c", "tasks": 2, "position": 7, "changed_at": 1},
    "artifacts": {"context_id": "c", "artifact_id": "a", "revision": 5, "changed": 1, "changed_by": "t"}
    | {"current": 1, "newest": 1, "pruned": 0, "draft_dirty": False},
    "versions": {"context_id": "c", "artifact_id": "a", "number": 1, "parent": 0, "author": "agent", "task_id": "t"}
    | {"incomplete": False, "made_at": datetime(2026, 1, 1, tzinfo=UTC)}
    | {"content": content_json(Content(parts=(text_part("old"),)))},
    "messages": {"key": "k", "task_id": "t", "context_id": "c", "accepted_at": 1},
}


@BOTH
async def test_what_revision_0001_kept_is_kept_and_can_be_changed(url: Url, tmp_path: Path) -> None:
    async with opened(url(tmp_path)) as database:
        await begin_with(database, "0001")
        async with database.write() as connection:
            for name, row in ROWS_OF_0001.items():
                await connection.execute(table(name, *map(column, row)).insert().values(row))
        await upgrade(database)
        async with database.read() as connection:
            rows = await connection.execute(text("SELECT context_id, tasks, position, incarnation FROM contexts"))
            assert rows.all() == [("c", 2, 7, 0)]
            assert await connection.scalar(text("SELECT task_id FROM message_keys")) == "t"
        async with open_store(database, FakeReplica()) as kept:
            assert (await kept.store.get(by("t"))).text == "old"
            await kept.store.apply(by("t"), EditText(Span(0, 3), "new", base=1))
            await kept.store.close(by("t"))
            await kept.commits.flushed()
        async with open_store(database, FakeReplica()) as kept:
            assert [version.content.text for version in await kept.store.versions(by("t"))] == ["old", "new"]


@BOTH
async def test_pages_of_revision_0004_are_read_beside_new_ones(url: Url, tmp_path: Path) -> None:
    page = {"context_id": "c", "task_id": "t", "epoch": 1}
    texts = {first: f"[{first}, {'0, ' * 50}0]" for first in (1, 2, 3)}
    async with opened(url(tmp_path)) as database:
        await begin_with(database, "0004")
        zlib = compress_with_zlib(texts[2])
        compressed = zlib if database.dialect == "sqlite" else f"z1:{b64encode(zlib).decode()}"
        async with database.write() as connection:
            for first, entries in ((1, texts[1]), (2, compressed)):
                row = {**page, "first": first, "last": first, "entries": entries}
                await connection.execute(table("pages", *map(column, row)).insert().values(row))
        await upgrade(database)
        async with database.write() as connection:
            new = {"first": 3, "last": 3, **page_columns(texts[3])}
            await connection.execute(pages.insert().values(**page, **new))
        async with database.read() as connection:
            found = {row.first: page_entries(row) for row in await connection.execute(select(pages))}
    assert found == texts


ROWS_OF_0011: dict[str, dict[str, Any]] = {
    "contexts": {"tasks": 1, "position": 1, "changed_at": 1},
    "tasks": {"task_id": "t", "number": 1, "owner": "", "state": "completed", "changed_at": 1, "epoch": 1}
    | {"generation": 1, "resumptions": 0, "cancel_requested": False, "snapshot": 1}
    | {"head": "{}", "transcript": '["\u03c0"]', "artifacts": "[]"},
    "pages": {"task_id": "t", "first": 1, "last": 1, "epoch": 1, "entries": "", "compressed": b"12345"},
    "versions": {"artifact_id": "a", "number": 1, "parent": 0, "author": "agent", "task_id": "t"}
    | {"incomplete": False, "made_at": datetime(2026, 1, 1, tzinfo=UTC), "replacement": '"new"'},
    "push_configs": {"task_id": "t", "config_id": "p", "registrant": "", "link": "", "version": "1.0", "url": "u"}
    | {"target": "t", "token": "", "scheme": "", "credentials": "secret", "attempts": 0, "failure": ""},
}
"""Of every context; their sizes are 2 + 6 + 2, 5, 5, and 1 + 1 + 6 bytes."""
SHARE_OF_0011 = {"owner": "ann", "level": 1, "made_at": 1, "user_name": "joe", "token_hash": ""}
"""Of every context; its size is 4 + 4 + 3 + 3 bytes."""


@BOTH
async def test_what_revision_0011_kept_is_counted(url: Url, tmp_path: Path) -> None:
    contexts = [f"c{number:03}" for number in range(450)]  # of several steps
    async with opened(url(tmp_path)) as database:
        await begin_with(database, "0011")
        async with database.write() as connection:
            for name, row in ROWS_OF_0011.items():
                rows = [{"context_id": context_id, **row} for context_id in contexts]
                await connection.execute(table(name, *map(column, rows[0])).insert(), rows)
            given = [{"share_id": context_id, "context_id": context_id, **SHARE_OF_0011} for context_id in contexts]
            await connection.execute(table("shares", *map(column, given[0])).insert(), given)
        await upgrade(database)
        assert await counted(database) == await recounted(database) == dict.fromkeys(contexts, 28 + 14)
        await assert_tasks_counted(database)


@BOTH
@pytest.mark.process
def test_servers_that_upgrade_at_the_same_moment_do_not_collide(url: Url, tmp_path: Path) -> None:
    where = url(tmp_path)
    program = (
        "import asyncio, sys\n"
        "from a2a_canvas.server.backend.migrations import upgrade, check\n"
        "from a2a_canvas.store.sql.database import Database\n"
        "async def main():\n"
        "    database = Database(sys.argv[1])\n"
        "    sys.stdin.readline()\n"
        "    await upgrade(database)\n"
        "    print(await check(database))\n"
        "    await database.close()\n"
        "asyncio.run(main())\n"
    )
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, where]
    several = [subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for process in several:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate() for process in several]
    assert [out for out, _ in said] == [f"{newest()}\n"] * 3, said


@pytest.mark.postgres
async def test_several_upgrades_in_one_process_do_not_collide_either() -> None:
    where = postgresql_url()
    databases = [Database(where) for _ in range(3)]
    await asyncio.gather(*(upgrade(database) for database in databases))
    assert [await check(database) for database in databases] == [newest()] * 3
    for database in databases:
        await database.close()


async def test_an_upgrade_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async with opened(sqlite_url(tmp_path)) as database:
        async with database.write() as connection:
            await connection.execute(text("CREATE TABLE replicas (of_somebody_else TEXT)"))
        with pytest.raises(SchemaError, match="has a table replicas of another program"):
            await upgrade(database)
        assert await tables_of(database) == ["replicas"]


# ---------------------------------------------------------------------- what is refused


async def test_a_sqlite_file_is_brought_up_to_date_by_whoever_opens_it(tmp_path: Path) -> None:
    async with opened(sqlite_url(tmp_path)) as database:
        await prepare(database)
        assert await check(database) == newest()


@pytest.mark.postgres
async def test_an_empty_postgresql_is_refused_with_the_command_that_fills_it() -> None:
    async with opened(postgresql_url()) as database:
        with pytest.raises(SchemaError) as caught:
            await prepare(database)
        assert str(caught.value) == (
            f"The database {database.name} has no tables of a2a-canvas yet. Run a2a-canvas db upgrade first, "
            "with the same --database or A2A_CANVAS_DATABASE."
        )
        assert await tables_of(database) == []


@pytest.mark.postgres
async def test_a_database_that_a_server_uses_is_upgraded_only_by_force() -> None:
    async with opened(postgresql_url()) as database:
        async with database.write() as connection:
            await connection.run_sync(run_revisions, "0013")
            beat = "INSERT INTO replicas (replica_id, heartbeat_at, commits) VALUES ('a', extract(epoch FROM now()), 0)"
            await connection.execute(text(beat))
        with pytest.raises(SchemaError, match=r"1 server uses the database .* or use --force"):
            await upgrade(database)
        await upgrade(database, force=True)
        assert await check(database) == newest()


@pytest.mark.postgres
async def test_a_password_is_not_in_the_command() -> None:
    where = postgresql_url().replace("postgres@", "postgres:hunter2@")
    async with opened(where) as database:
        with pytest.raises(SchemaError) as caught:
            await check(database)
        assert "hunter2" not in str(caught.value)


@BOTH
async def test_a_newer_schema_is_refused_and_left_as_it_is(url: Url, tmp_path: Path) -> None:
    async with opened(url(tmp_path)) as database:
        await upgrade(database)
        await set_revision(database, "9999")
        for attempt in (prepare, check, upgrade):
            with pytest.raises(SchemaError) as caught:
                await attempt(database)
            assert str(caught.value) == (
                f"The database {database.name} is of a newer schema (9999): this server is too old. "
                "Use the version that made it."
            )


@pytest.mark.postgres
async def test_an_older_schema_is_refused_on_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(postgresql_url()) as database:
        await upgrade(database)
        monkeypatch.setattr("a2a_canvas.server.backend.migrations.schema.newest", lambda: "9999")
        with pytest.raises(SchemaError) as caught:
            await prepare(database)
        assert f"is of an older schema ({newest()}). Run a2a-canvas db upgrade first" in str(caught.value)


@BOTH
async def test_the_levels_of_shares_of_revision_0014_are_kept_by_their_words(url: Url, tmp_path: Path) -> None:
    given = [
        {"share_id": f"s{level}", "context_id": "c", **SHARE_OF_0011, "level": level, "user_name": f"u{level}"}
        for level in (1, 2)
    ]
    async with opened(url(tmp_path)) as database:
        await begin_with(database, "0014")
        async with database.write() as connection:
            await connection.execute(table("shares", *map(column, given[0])).insert(), given)
        await upgrade(database)
        async with database.read() as connection:
            found = await connection.execute(select(column("share_id"), column("level")).select_from(table("shares")))
            assert sorted((share, level) for share, level in found) == [("s1", "read"), ("s2", "edit")]
