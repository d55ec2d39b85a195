"""A PostgreSQL and its synchronous standby, and what goes wrong with them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.database_fixtures import PrivatePostgresql, execute
from tests.free_port import free_port

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""Debian's library that gives a program another clock; None if it is not installed."""
NEEDS_FAKETIME = "TESTS_NEED_LIBFAKETIME"
_WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
SYNCHRONOUS = {"synchronous_standby_names": "*"}


class PostgresqlPair:
    """Two servers; both keep their ports, whichever of them is the primary.

    Attributes:
        old: the primary from before the last failover, which does not run, or runs as a primary again.
    """

    def __init__(self) -> None:
        self.primary = PrivatePostgresql()
        self.standby: PrivatePostgresql | None = None
        self.old: PrivatePostgresql | None = None
        self._ports = (self.primary.port, free_port())

    def url(self, database: str) -> str:
        """The address of a database on both servers, as `a2a-canvas` and `psql` take it."""
        name = urlsplit(database).path
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://postgres@{hosts}{name}?target_session_attrs=read-write"

    def add_standby(self, clock: int = 0) -> PrivatePostgresql:
        """Start a standby that confirms every commit, in the place of the old primary if there is one.

        Args:
            clock: the seconds by which its clock is fast.
        """
        port = next(port for port in self._ports if port != self.primary.port)
        if self.old:
            self.old.remove()
            self.old = None
        settings = {"synchronous_standby_names": "", "hot_standby": "on"}
        environment = _clock(clock) if clock else {}
        self.standby = PrivatePostgresql(settings, port=port, copied=self.primary, environment=environment)
        self.primary.configure(**SYNCHRONOUS)
        return self.standby

    def fail_over(self) -> None:
        """Kill every process of the primary, and promote the standby."""
        self.kill_primary()
        self.promote()

    def kill_primary(self) -> None:
        """`kill -9` of all its processes."""
        self.primary.signal(signal.SIGKILL)

    def restart_standby(self) -> None:
        """Kill it and start it again: what was on its way to it is lost."""
        assert self.standby
        self.standby.signal(signal.SIGKILL)
        self.standby.start()

    def promote(self) -> None:
        """Make the standby the primary, whatever the other server does."""
        assert self.standby
        self.standby.promote()
        self.primary, self.old, self.standby = self.standby, self.primary, None

    def remove(self) -> None:
        for server in (self.primary, self.standby, self.old):
            if server:
                server.remove()


@contextmanager
def postgresql_pair() -> Iterator[PostgresqlPair]:
    """A primary, which has no standby yet."""
    pair = PostgresqlPair()
    try:
        yield pair
    finally:
        pair.remove()


def waits_for_standby(url: str) -> int:
    """How many commits wait for the standby."""
    return len(execute(url, f"SELECT 1 {_WAITING}"))


def cancel_waits(url: str) -> int:
    """Let the commits that wait for the standby go on without it; how many there were."""
    return len(execute(url, f"SELECT pg_cancel_backend(pid) {_WAITING}"))


def need_faketime() -> None:
    """Skips the test, or fails it, if libfaketime is not installed."""
    if FAKETIME is None:
        if os.environ.get(NEEDS_FAKETIME):
            pytest.fail(f"libfaketime is not installed, and {NEEDS_FAKETIME} is set")
        pytest.skip("libfaketime is not installed (Debian: apt-get install libfaketime)")


def _clock(seconds: int) -> Mapping[str, str]:
    return {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
