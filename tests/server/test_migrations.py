"""The schema: what an upgrade makes is what the code expects, on both databases, whoever else upgrades."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

import a2a_canvas.server.backend.durable_backend  # noqa: F401  (it enters all tables)
from a2a_canvas.server.backend.migrations import REVISIONS, SchemaError, check, newest, prepare, schema, upgrade
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.tables import metadata
from tests.database_fixtures import postgresql_url, sqlite_url

ROOT = Path(__file__).parents[2]
SECOND = Path(__file__).parent / "revisions" / "revision_0002.py"
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


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Releases a version with a second revision (`revisions/revision_0002.py`)."""
    folder = tmp_path / "revisions"
    folder.mkdir()
    for file in (*schema.VERSIONS.glob("revision_*.py"), SECOND):
        shutil.copy(file, folder)
    return lambda: monkeypatch.setattr(schema, "VERSIONS", folder)


@BOTH
async def test_the_next_revision_keeps_the_rows_and_each_step_is_named_before_it_runs(
    url: Url, release: Callable[[], None], tmp_path: Path
) -> None:
    lines: list[str] = []
    async with opened(url(tmp_path)) as database:
        await upgrade(database, progress=lines.append)
        async with database.write() as connection:
            await connection.execute(text("INSERT INTO task_contexts (task_id, context_id) VALUES ('t', 'c')"))
        release()
        for _ in range(2):
            await upgrade(database, progress=lines.append)
        assert await check(database) == newest() == "0002"
        async with database.read() as connection:
            assert (await connection.execute(text("SELECT * FROM task_contexts"))).one() == ("t", "c", "none")
    assert lines == [f"Upgrading the database {database.name} from schema 0001 to 0002 (1 of 1)…"]


@BOTH
async def test_a_new_database_gets_all_revisions_without_a_word(
    url: Url, release: Callable[[], None], tmp_path: Path
) -> None:
    lines: list[str] = []
    release()
    async with opened(url(tmp_path)) as database:
        await upgrade(database, progress=lines.append)
        assert await check(database) == "0002"
    assert lines == []


async def test_a_sqlite_file_of_the_release_before_is_upgraded_by_the_server(
    release: Callable[[], None], tmp_path: Path
) -> None:
    async with opened(sqlite_url(tmp_path)) as database:
        await prepare(database)
        release()
        await prepare(database)
        assert await check(database) == "0002"


@pytest.mark.postgres
async def test_an_upgrade_that_two_run_at_the_same_time_is_done_once(release: Callable[[], None]) -> None:
    where, lines = postgresql_url(), list[str]()
    async with opened(where) as one, opened(where) as other:
        await upgrade(one)
        release()
        await asyncio.gather(upgrade(one, progress=lines.append), upgrade(other, progress=lines.append))
        assert await check(one) == "0002"
    assert len(lines) == 1


def test_a_revision_has_the_name_of_its_file_and_the_newest_is_the_head() -> None:
    scripts = ScriptDirectory(str(schema.FOLDER))
    assert {Path(script.path).stem: script.revision for script in scripts.walk_revisions()} == {
        path.stem: path.stem.removeprefix("revision_") for path in schema.VERSIONS.glob("revision_*.py")
    }
    assert scripts.get_current_head() == newest()


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


@pytest.mark.postgres
async def test_the_transaction_of_an_upgrade_may_be_idle_for_as_long_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL ends one of a server after seconds: its locks must not outlive the server's lease."""
    seen: list[object] = []

    def observed(connection: Connection, to: str = "head") -> None:
        seen.append(connection.scalar(text("SHOW idle_in_transaction_session_timeout")))
        run_revisions(connection, to)

    run_revisions = schema.run_revisions
    monkeypatch.setattr(schema, "run_revisions", observed)
    async with opened(postgresql_url()) as database:
        await upgrade(database)
    assert seen == ["0"]


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
async def test_a_database_that_a_server_uses_is_upgraded_only_by_force(release: Callable[[], None]) -> None:
    async with opened(postgresql_url()) as database:
        await upgrade(database)
        async with database.write() as connection:
            beat = "INSERT INTO replicas (replica_id, heartbeat_at, commits) VALUES ('a', extract(epoch FROM now()), 0)"
            await connection.execute(text(beat))
        release()
        with pytest.raises(SchemaError, match=r"1 server uses the database .* or use --force"):
            await upgrade(database)
        await upgrade(database, force=True)
        assert await check(database) == "0002"


@pytest.mark.postgres
async def test_a_password_is_not_in_the_command() -> None:
    where = postgresql_url().replace("postgres@", "postgres:hunter2@")
    async with opened(where) as database:
        with pytest.raises(SchemaError) as caught:
            await check(database)
        assert "hunter2" not in str(caught.value)


@BOTH
@pytest.mark.parametrize("revision", ["0016", "9999"])
async def test_an_unknown_schema_is_refused_and_left_as_it_is(url: Url, revision: str, tmp_path: Path) -> None:
    async with opened(url(tmp_path)) as database:
        await upgrade(database)
        await set_revision(database, revision)
        other = "file" if database.dialect == "sqlite" else "database"
        for attempt in (prepare, check, upgrade):
            with pytest.raises(SchemaError) as caught:
                await attempt(database)
            assert str(caught.value) == (
                f"The database {database.name} is of another schema ({revision}) than this server's (0001). "
                f"Name another {other} with --database."
            )
        async with database.read() as connection:
            assert await connection.scalar(text(f"SELECT version_num FROM {REVISIONS}")) == revision


@pytest.mark.postgres
async def test_an_older_schema_is_refused_on_postgresql(release: Callable[[], None]) -> None:
    async with opened(postgresql_url()) as database:
        await upgrade(database)
        release()
        with pytest.raises(SchemaError) as caught:
            await prepare(database)
        assert "is of an older schema (0001). Run a2a-canvas db upgrade first" in str(caught.value)
