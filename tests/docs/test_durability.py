"""docs/durability.md: its backups are whole, and its commands for the database can be given."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from a2a.utils.errors import A2A_ERROR_MAPPING

from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.protocols.edge.availability import RETRY_AFTER, UnavailableError
from a2a_canvas.server.settings.settings import PREFIX
from tests.database_fixtures import postgresql_url
from tests.docs.pages import blocks, page, section

PAGE = page("durability")


def test_an_unavailable_database_is_answered_with_the_codes_of_the_server() -> None:
    mapping = A2A_ERROR_MAPPING[UnavailableError]
    [retry_after] = RETRY_AFTER.items()
    told = section(PAGE, "Database outages")
    codes = ("-32603", str(mapping.http_code), mapping.grpc_status, "`{}: {}`".format(*retry_after))
    assert all(code in told for code in codes)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A SQLite file whose latest transactions are in its write-ahead log alone, because it is open elsewhere."""
    path = tmp_path / "a2a-canvas.db"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"{PREFIX}DATABASE", f"sqlite:///{path}")
    assert main(["db", "upgrade"]) == 0
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO task_contexts VALUES ('t', 'c')")
    connection.commit()
    assert path.with_name(path.name + "-wal").stat().st_size
    yield path
    connection.close()


def backups() -> list[str]:
    umask, *commands = blocks(section(PAGE, "Backups"), "sh")[0].splitlines()
    return [command if command.startswith("docker ") else f"{umask}; {command}" for command in commands]


@pytest.mark.parametrize("number", range(3), ids=["backup", "vacuum", "container"])
def test_every_backup_of_sqlite_is_whole(number: int, database: Path) -> None:
    command = backups()[number]
    container = command.startswith("docker exec canvas ")
    if container:
        assert "--name canvas " in section(page("deploy"), "One server")
        command = command.removeprefix("docker exec canvas ").replace("/data/", f"{database.parent}/")
        command = command.replace("python ", f"{sys.executable} ", 1)
    elif not shutil.which("sqlite3"):
        pytest.skip("needs the command sqlite3")
    subprocess.run(["bash", "-c", command], cwd=database.parent, check=True)
    [copy] = database.parent.glob("backup*.db")
    assert not copy.stat().st_mode & 0o077
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT context_id FROM task_contexts").fetchall() == [("c",)]
    connection.close()
    assert main(["db", "check", "--database", f"sqlite:///{copy}"]) == 0


@pytest.mark.postgres
def test_a_backup_of_postgresql_can_be_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("pg_dump"):
        pytest.skip("needs PostgreSQL's programs: install the Debian package postgresql-client")
    umask, pg_dump, restore = blocks(section(PAGE, "Backups"), "sh")[1].splitlines()
    dump = f"{umask}; {pg_dump}"
    first, second = postgresql_url(), postgresql_url()
    for url, command in ((first, dump), (second, restore)):
        monkeypatch.setenv(f"{PREFIX}DATABASE", url)
        if command is dump:
            assert main(["db", "upgrade"]) == 0
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert not next(tmp_path.iterdir()).stat().st_mode & 0o077
    assert main(["db", "check"]) == 0


def test_every_command_for_the_database_can_be_given(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    a2a-canvas (db .*)$", PAGE, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[-2:]] == ["Would", "Removed"]
