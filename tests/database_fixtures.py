"""Databases for tests: SQLite files, and a private PostgreSQL from the Debian package.

Nothing runs until a test asks for it. `TEST_DATABASE_URL` names a server to use in place of the private one; databases
are created in it and dropped at the end. Where there is no PostgreSQL a test that needs it is skipped, or fails if
`TESTS_NEED_POSTGRESQL=1`.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from tests.free_port import free_port

ACCOUNT = "postgres"
"""Who runs the server where the tests run as root, which PostgreSQL refuses."""
permitted = True
"""Whether the test that runs is marked as one that needs PostgreSQL (`conftest.py`)."""


def sqlite_url(folder: Path) -> str:
    """The url of a file in a folder, such as pytest's `tmp_path`; the file is not there yet."""
    return f"sqlite:///{folder}/canvas.db"


def postgresql_url() -> str:
    """The url of a new, empty database. Skips the test if there is no PostgreSQL."""
    _check_permitted()
    shared = os.environ.get("TEST_DATABASE_URL")
    return _created_in(shared) if shared else _session_server().new_database()


@contextmanager
def private_postgresql(**settings: str) -> Iterator[PrivatePostgresql]:
    """A server for one test, to be stopped and started at will.

    Args:
        settings: as in `postgresql.conf`.
    """
    server = PrivatePostgresql(settings)
    try:
        yield server
    finally:
        server.remove()


def execute(url: str, statement: str) -> list[Any]:
    """What one statement gives, by a connection of its own; also where an event loop runs."""

    async def run() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return list(await connection.fetch(statement))
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(run())).result()


def cut_connections(url: str) -> int:
    """End every connection to a database; how many there were."""
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    return len(execute(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))


class FreezableProxy:
    """A way to a server by the loopback, which can be cut, and frozen: nothing comes through, and nobody is told.

    Args:
        url: of the server, such as a database.
    """

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self._open = asyncio.Event()
        self._open.set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> str:
        """Its url."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return urlunsplit(self._to._replace(netloc=f"{self._to.netloc.rpartition(':')[0]}:{port}"))

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(self._pumps)

    def freeze(self) -> None:
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    def cut(self) -> None:
        """End all connections."""
        for pump in self._pumps:
            pump.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(self._to.hostname, self._to.port)
        for ends in ((reader, to_server), (from_server, writer)):
            pump = asyncio.create_task(self._pump(*ends))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await reader.read(65536):
                    await self._open.wait()
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()


class PrivatePostgresql:
    """A PostgreSQL on a port of the loopback, with its data in a folder of its own; it runs from the start.

    Args:
        settings: as in `postgresql.conf`.
        port: a free one if not given.
        copied: the server whose standby it is.
        environment: what it finds in its environment beside that of the tests.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        port: int = 0,
        copied: PrivatePostgresql | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        _check_permitted()
        missing = why_not()
        if missing and os.environ.get("TESTS_NEED_POSTGRESQL") == "1":
            pytest.fail(missing)
        if missing:
            pytest.skip(missing)
        self.port = port or free_port()
        self._environment = environment or {}
        self._folder = Path(tempfile.mkdtemp(prefix="canvas-postgresql-"))
        self._data = self._folder / "data"
        if os.geteuid() == 0:
            shutil.chown(self._folder, ACCOUNT)
        # Nothing here has to outlive the machine; everything else is as shipped.
        if copied:
            source = f"--dbname={copied.url()}"
            self._run("pg_basebackup", source, "--no-sync", "--checkpoint=fast", "--write-recovery-conf")
        else:
            self._run("initdb", "--no-sync", "--auth=trust", f"--username={ACCOUNT}", "--encoding=UTF8", *_locale())
        lines = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "200"}
        self._write_settings({**lines, "port": str(self.port), **(settings or {})})
        self.start()

    def _write_settings(self, settings: Mapping[str, str]) -> None:
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{ACCOUNT}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The url of a new, empty database."""
        name = _new_name()
        execute(self.url(), f'CREATE DATABASE "{name}"')
        return self.url(name)

    def require_passwords(self) -> None:
        """From now on everybody but `postgres` needs one. It restarts."""
        rules = ((ACCOUNT, "trust"), ("all", "scram-sha-256"))
        lines = (f"host all {who} 127.0.0.1/32 {how}\n" for who, how in rules)
        (self._data / "pg_hba.conf").write_text("".join(lines))
        self.restart()

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._run("pg_ctl", "--wait", f"--log={self._folder}/log", "start")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it and wait for its end. `fast` ends all connections properly; `immediate` is a crash."""
        self._run("pg_ctl", "--wait", f"--mode={mode}", "stop")

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self.stop(mode)
        self.start()

    def configure(self, **settings: str) -> None:
        """Change settings, at its next start if it does not run."""
        self._write_settings(settings)
        if (self._data / "postmaster.pid").exists():
            execute(self.url(), "SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a standby the primary, and wait until it is."""
        self._run("pg_ctl", "--wait", "promote")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes, as if its machine stood still (SIGSTOP) or broke (SIGKILL)."""
        lock = self._data / "postmaster.pid"
        postmaster = int(lock.read_text().splitlines()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for process in (postmaster, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        if number == signal.SIGKILL:
            lock.unlink()  # the process stays in the table until its parent reads its end

    def remove(self) -> None:
        """Stop it if it runs, and remove its data."""
        if (self._data / "postmaster.pid").exists():
            with suppress(subprocess.CalledProcessError):
                self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        found = find_program(program)
        assert found
        # A server inherits what its starter has open: it must not be a pipe that somebody reads to its end.
        with (self._folder / "said").open("w+") as said:
            done = subprocess.run(
                [found, f"--pgdata={self._data}", *arguments],
                cwd=self._folder,
                stdout=said,
                stderr=said,
                env={**os.environ, **self._environment},
                **(_as_account() if os.geteuid() == 0 else {}),
            )
            said.seek(0)
            assert done.returncode == 0, said.read() + self._log()

    def _log(self) -> str:
        log = self._folder / "log"
        return log.read_text() if log.exists() else ""


def why_not() -> str:
    """Why there is no PostgreSQL here, and what to do about it; empty if there is."""
    if not find_program("initdb") or not find_program("pg_ctl"):
        return "needs PostgreSQL: install the Debian package postgresql, or set TEST_DATABASE_URL to a server's url"
    if os.geteuid() == 0 and not _as_account():
        return f"PostgreSQL does not run as root, and there is no user {ACCOUNT}: create it, or set TEST_DATABASE_URL"
    return ""


def _check_permitted() -> None:
    assert permitted, "mark this test with pytest.mark.postgres: it starts PostgreSQL"


@functools.cache
def _session_server() -> PrivatePostgresql:
    # What is lost with the machine is no matter here, and without it a new database takes a moment instead of seconds.
    server = PrivatePostgresql({"fsync": "off"})
    atexit.register(server.remove)
    return server


def find_program(name: str) -> str | None:
    """A program of PostgreSQL; None if it is not there. Debian keeps the server's programs off the PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    return str(installed[-1]) if installed else shutil.which(name)


def _as_account() -> dict[str, Any]:
    try:
        group = pwd.getpwnam(ACCOUNT).pw_gid
    except KeyError:
        return {}
    return {"user": ACCOUNT, "group": group, "extra_groups": []}


def _locale() -> list[str]:
    """Words in the order of a dictionary where the version can, as in most databases; not that of their bytes."""
    helped = subprocess.run([str(find_program("initdb")), "--help"], capture_output=True, text=True, check=True).stdout
    icu = ["--locale-provider=icu", "--icu-locale=en-US"] if "--icu-locale" in helped else []
    return ["--locale=C.UTF-8", *icu]


def _new_name() -> str:
    return f"canvas_{uuid4().hex[:12]}"


def _created_in(url: str) -> str:
    name = _new_name()
    execute(url, f'CREATE DATABASE "{name}"')
    atexit.register(execute, url, f'DROP DATABASE "{name}" WITH (FORCE)')
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
