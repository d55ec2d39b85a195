"""The database from the command line: what is refused, in one line and with exit code 2, and what is done."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from a2a_canvas.server.backend.migrations import REVISIONS, newest
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.commands.database_command import describe_pruned
from a2a_canvas.server.settings.settings import PREFIX
from a2a_canvas.server.tasks.sql.journal.prune import PruneResult
from a2a_canvas.store.sql.sqlite_file import FileLock
from tests.database_fixtures import execute, postgresql_url, private_postgresql, sqlite_url
from tests.free_port import free_port

ROOT = Path(__file__).parents[3]
SERVE = ("serve", "--model", "rehearsal", "--port")
NOBODY = 65534
MAKE_IT = "Make it, or name another file with --database."
CHECK_ADDRESS = "Check that PostgreSQL runs, and the address, the user and the password in --database."
Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.startswith((PREFIX, "ANTHROPIC_")):
            monkeypatch.delenv(name)


LOCKING = ["serve", "db upgrade", "db prune"]
WRITING = [*LOCKING, "key new ann"]
READING = ["db check", "db prune --dry-run", "usage"]


@pytest.fixture(params=LOCKING)
def refused(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Each of the commands that open a database for themselves, with what it says when it refuses one."""
    return lambda url: refusal(capsys, *words(request.param), "--database", url)


@pytest.fixture(params=WRITING)
def refused_to_write(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Each of the commands that open a database to write, with what it says when it refuses one."""
    return lambda url: refusal(capsys, *words(request.param), "--database", url)


@pytest.fixture(params=[*WRITING, *READING])
def refused_by_all(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Each of the commands that open a database, with what it says when it refuses one."""
    return lambda url: refusal(capsys, *words(request.param), "--database", url)


def words(command: str) -> list[str]:
    return [*SERVE, str(free_port())] if command == "serve" else command.split()


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says that ends with code 2: one line."""
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("a2a-canvas: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("a2a-canvas: ")[:-1]


def done(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says that went well: one line."""
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.count("\n") == 1
    return said.out[:-1]


# ------------------------------------------------------------------------------ SQLite


def test_a_folder_that_is_not_there(refused: Refused, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none/canvas.db"
    assert refused(url) == f"The database {url} cannot be opened: there is no folder {tmp_path}/none. {MAKE_IT}"


def test_a_folder_in_place_of_a_file(refused: Refused, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}"
    assert refused(url) == f"The database {url} cannot be opened: it is a folder. Name another file with --database."


def test_a_file_that_is_no_database(refused_by_all: Refused, tmp_path: Path) -> None:
    (tmp_path / "canvas.db").write_text("My diary. " * 100)
    url = sqlite_url(tmp_path)
    assert refused_by_all(url) == (
        f"The database {url} cannot be opened: it is not a SQLite database. Name another file with --database."
    )
    assert (tmp_path / "canvas.db").read_text() == "My diary. " * 100
    assert os.listdir(tmp_path) == ["canvas.db"]


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("table", ["customers", "tasks"])
def test_a_database_of_another_program_is_left_as_it_is(
    refused_by_all: Refused, tmp_path: Path, table: str, journal: str
) -> None:
    file = tmp_path / "canvas.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute(f"CREATE TABLE {table} (name TEXT)")
    before = file.read_bytes()
    url = sqlite_url(tmp_path)
    assert refused_by_all(url) == (
        f"The database {url} belongs to another program: it has the table {table}. Name another file with --database."
    )
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["canvas.db"]


@pytest.mark.parametrize("table", ["customers", "tasks"])
def test_a_database_that_another_program_left_in_a_crash_is_left_as_it_is(
    refused_by_all: Refused, tmp_path: Path, table: str
) -> None:
    written, crashed = tmp_path / "written.db", tmp_path / "crashed"
    crashed.mkdir()
    with closing(sqlite3.connect(written, isolation_level=None)) as connection:
        connection.execute(f"CREATE TABLE {table} (name TEXT)")
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {table} VALUES (?)", [("x" * 1000,)] * 1000)
        for ending in ("", "-journal"):
            shutil.copy(f"{written}{ending}", crashed / f"canvas.db{ending}")
    before = {file.name: file.read_bytes() for file in crashed.iterdir()}
    assert f"belongs to another program: it has the table {table}." in refused_by_all(sqlite_url(crashed))
    assert {file.name: file.read_bytes() for file in crashed.iterdir()} == before


def test_a_database_that_another_program_has_open_is_left_as_it_is(refused: Refused, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "canvas.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE customers (name TEXT)")
        connection.execute("CREATE TABLE invoices (number INTEGER)")
        assert "it has the tables customers and invoices." in refused(sqlite_url(tmp_path))
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (2,)


def test_of_many_tables_the_first_are_named(refused: Refused, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "canvas.db")) as connection:
        for name in ("one", "two", "three", "four", "five"):
            connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    assert "it has the tables five, four, one and 2 more." in refused(sqlite_url(tmp_path))


@pytest.mark.parametrize("there", [True, False], ids=["a file", "no file"])
def test_a_folder_without_permission(refused_to_write: Refused, there: bool) -> None:
    with without_privileges() as folder:
        url = sqlite_url(folder)
        if there:
            (folder / "canvas.db").touch()
        folder.chmod(0o555)
        assert refused_to_write(url) == (
            f"The database {url} cannot be opened: the folder {folder} is read-only. Make it writable, or name "
            "another file with --database."
        )


def test_a_file_without_permission(refused_to_write: Refused) -> None:
    with without_privileges() as folder:
        url = sqlite_url(folder)
        (folder / "canvas.db").touch()
        (folder / "canvas.db").chmod(0o444)
        assert refused_to_write(url) == (
            f"The database {url} cannot be opened: the file is read-only. Make it writable, or name another file with "
            "--database."
        )


def test_a_file_that_cannot_be_read(refused_by_all: Refused) -> None:
    with without_privileges() as folder:
        url = sqlite_url(folder)
        (folder / "canvas.db").touch()
        (folder / "canvas.db").chmod(0)
        assert "cannot be opened: you may not read the file. " in refused_by_all(url)


@contextmanager
def without_privileges() -> Iterator[Path]:
    """A folder of somebody who may not do everything, and this process as that somebody."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        if root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)
            Path(folder).chmod(0o755)


def test_a_file_that_a_server_has_open(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "canvas.db").touch()
    lock = FileLock(tmp_path / "canvas.db")
    lock.acquire()
    assert refused(sqlite_url(tmp_path)) == (
        f"The database {tmp_path}/canvas.db is open in another server (process {os.getpid()}). "
        "Stop it, choose another (--database second.db), or use postgresql:// for several servers."
    )
    lock.release()
    assert (tmp_path / "canvas.db").read_bytes() == b""


def test_a_file_with_two_names(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "canvas.db").touch()
    (tmp_path / "other.db").hardlink_to(tmp_path / "canvas.db")
    assert "the file has a second name (a hard link)" in refused(sqlite_url(tmp_path))


def test_a_file_that_is_gone_while_its_wal_is_there(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "canvas.db-wal").write_bytes(b"what was written last")
    assert "restore the file, or remove the -wal to start with an empty database" in refused(sqlite_url(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["canvas.db-wal"]


def test_what_is_not_there_is_not_made_to_be_pruned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["db", "prune", "--dry-run", "--database", sqlite_url(tmp_path)]) == 2
    assert "there is no such file yet" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_a_server_keeps_others_from_its_file_until_it_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = sqlite_url(tmp_path)
    command = [sys.executable, "-m", "a2a_canvas", *SERVE, str(free_port()), "--database", url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert b" listens on " in process.stdout.readline()
            said = refusal(capsys, *SERVE, str(free_port()), "--database", url)
            assert said.startswith(
                f"The database {tmp_path}/canvas.db is open in another server (process {process.pid})."
            )
            assert refusal(capsys, "db", "prune", "--database", url) == said
            assert done(capsys, "db", "prune", "--dry-run", "--database", url).startswith("Would remove 0 journals, ")
        finally:
            process.kill()
    done(capsys, "db", "prune", "--database", url)


def test_a_file_of_another_schema(refused_by_all: Refused, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = sqlite_url(tmp_path)
    done(capsys, "db", "upgrade", "--database", url)
    with closing(sqlite3.connect(tmp_path / "canvas.db")) as connection, connection:
        connection.execute(f"UPDATE {REVISIONS} SET version_num = '0016'")
    before = (tmp_path / "canvas.db").read_bytes()
    assert refused_by_all(url) == (
        f"The database {url} is of another schema (0016) than this server's ({newest()}). "
        "Name another file with --database."
    )
    assert (tmp_path / "canvas.db").read_bytes() == before


# -------------------------------------------------------------------------- PostgreSQL


def test_a_server_that_is_not_there(refused: Refused) -> None:
    port = free_port()
    url = f"postgresql://me:hunter2@127.0.0.1:{port}/canvas"
    assert refused(url) == (
        f"The database postgresql://me:***@127.0.0.1:{port}/canvas cannot be used: "
        f"Connect call failed ('127.0.0.1', {port}). {CHECK_ADDRESS}"
    )


def test_a_host_that_is_none(refused: Refused) -> None:
    url = "postgresql://nowhere.invalid/canvas"
    assert refused(url).startswith(f"The database {url} cannot be used: ")


@pytest.mark.postgres
def test_a_database_that_is_not_there(refused: Refused) -> None:
    url = urlsplit(postgresql_url())._replace(path="/nowhere").geturl()
    assert refused(url) == f'The database {url} cannot be used: database "nowhere" does not exist. {CHECK_ADDRESS}'


@pytest.mark.postgres
def test_a_wrong_password(capsys: pytest.CaptureFixture[str]) -> None:
    with private_postgresql() as server:
        server.new_database()
        execute(server.url(), "CREATE ROLE me LOGIN PASSWORD 'right'")
        server.require_passwords()
        url = server.url().replace("postgres@", "me:hunter2@")
        shown = url.replace("hunter2", "***")
        for command in ("upgrade", "check", "prune"):
            said = refusal(capsys, "db", command, "--database", url)
            assert said == (
                f'The database {shown} cannot be used: password authentication failed for user "me". {CHECK_ADDRESS}'
            )


@pytest.mark.postgres
def test_a_user_who_may_not_make_tables(capsys: pytest.CaptureFixture[str]) -> None:
    url = postgresql_url()
    name = f"guest_{urlsplit(url).path[-6:]}"
    execute(url, f"CREATE ROLE {name} LOGIN")
    execute(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    url = url.replace("postgres@", f"{name}@")
    said = refusal(capsys, "db", "upgrade", "--database", url)
    assert said == f"The database {url} cannot be used: permission denied for schema public. {CHECK_ADDRESS}"


@pytest.mark.postgres
def test_an_empty_one_is_not_filled_by_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    url = postgresql_url()
    upgrade = "Run a2a-canvas db upgrade first, with the same --database or A2A_CANVAS_DATABASE."
    said = f"The database {url} has no tables of a2a-canvas yet. {upgrade}"
    assert refusal(capsys, *SERVE, str(free_port()), "--database", url) == said
    assert refusal(capsys, "db", "check", "--database", url) == said
    assert refusal(capsys, "db", "prune", "--database", url) == said


@pytest.mark.postgres
def test_tables_of_another_program_do_no_harm_unless_their_names_are_ours(capsys: pytest.CaptureFixture[str]) -> None:
    url = postgresql_url()
    execute(url, "CREATE TABLE customers (name TEXT)")
    done(capsys, "db", "upgrade", "--database", url)
    url = postgresql_url()
    execute(url, "CREATE TABLE tasks (name TEXT)")
    assert refusal(capsys, "db", "upgrade", "--database", url) == (
        f"The database {url} has a table tasks of another program, and a2a-canvas needs that name. "
        "Name another database with --database."
    )
    assert execute(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")[0][0] == 1


# ---------------------------------------------------------------------- what is done


@pytest.mark.parametrize("url_of", [sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
def test_an_upgrade_can_be_repeated_and_then_the_check_is_content(
    url_of: Callable[[Path], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = url_of(tmp_path)
    content = f"The database {url} is of schema {newest()}, which this version needs."
    for command in ("upgrade", "upgrade", "check"):
        assert done(capsys, "db", command, "--database", url) == content


def test_the_environment_names_the_database_as_it_does_for_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A2A_CANVAS_DATABASE", sqlite_url(tmp_path))
    done(capsys, "db", "upgrade")
    assert (tmp_path / "canvas.db").exists()


def test_without_a_word_it_is_the_file_in_the_working_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done(capsys, "db", "upgrade")
    assert (tmp_path / "a2a-canvas.db").exists()


def test_a_check_makes_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = sqlite_url(tmp_path)
    assert refusal(capsys, "db", "check", "--database", url) == (
        f"The database {url} cannot be opened: there is no such file yet; "
        "a2a-canvas serve makes it, and so does a2a-canvas db upgrade."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["check"], ["prune", "--dry-run"]], ids=" ".join)
def test_what_only_reads_is_for_a_file_that_a_server_has_open_too(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = sqlite_url(tmp_path)
    done(capsys, "db", "upgrade", "--database", url)
    lock = FileLock(tmp_path / "canvas.db")
    lock.acquire()
    done(capsys, "db", *command, "--database", url)
    lock.release()


@pytest.mark.parametrize("command", ["upgrade", "check", "prune"])
def test_there_is_nothing_to_do_for_memory(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "db", command, "--database", "memory")
    assert said.startswith("--database memory stores nothing: ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["db", "burn"], "a2a-canvas: No such command 'burn'. See a2a-canvas db --help.\n"),
        (["db", "prunee"], "a2a-canvas: No such command 'prunee'. Did you mean 'prune'? See"),
        (["db", "check", "--port", "9"], "a2a-canvas: No such option '--port'. See a2a-canvas db check --help.\n"),
    ],
)
def test_a_wrong_command_is_one_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(line)


def test_an_empty_database_has_nothing_to_prune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = sqlite_url(tmp_path)
    done(capsys, "db", "upgrade", "--database", url)
    nothing = "0 journals, 0 old versions, 0 conversations: about 0 bytes."
    assert done(capsys, "db", "prune", "--database", url) == f"Removed {nothing}"
    assert done(capsys, "db", "prune", "--dry-run", "--database", url) == f"Would remove {nothing}"


@pytest.mark.parametrize(
    ("tasks", "dry_run", "said"),
    [
        (1, False, "Artifacts of 1 task are affected: they say that the version is gone."),
        (2, True, "Artifacts of 2 tasks are affected: they would say that the version is gone."),
    ],
)
def test_a_prune_says_how_many_tasks_show_a_version_that_is_gone(tasks: int, dry_run: bool, said: str) -> None:
    assert describe_pruned(PruneResult(0, 3, tasks, 0, 10), dry_run).endswith(f"about 10 bytes. {said}")
