"""The scenarios on databases in miniature, on real servers, so that they cannot rot."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from bench import durable, replicas, takeover
from bench.databases import Kind, commits, upgrade
from bench.durable import Times
from bench.joiners import Plan as Joiners
from bench.joiners import Result
from bench.pace import Order
from bench.replicas import StreamTimes
from bench.servers import running, theirs_on
from tests.database_fixtures import postgresql_url
from tests.free_port import PORTS, free_port


async def test_theirs_writes_the_exact_text_to_postgresql() -> None:
    async with running(theirs_on(postgresql_url())) as server:
        assert await durable.seconds(server, 20) > 0


def test_the_largest_gap_is_that_between_two_heartbeats_of_one_server() -> None:
    beats = takeover.HeartbeatGaps()
    for rows in ({"one": 1.0, "two": 1.5}, {"one": 2.0, "two": 1.5}, {"one": 2.0, "two": 4.0}):
        beats.take(rows)
    assert beats.gaps == {"one": 1.0, "two": 2.5}


@pytest.mark.parametrize(
    ("result", "missed"),
    [
        (takeover.Result(5.9, 1.1, 0, 100, 14000.0, 1.0), []),
        (takeover.Result(6.1, 1.1, 0, 100, 14000.0, 1.0), ["taken over, 1"]),
        (takeover.Result(5.9, 2.1, 0, 100, 14000.0, 1.0), ["heartbeats, 1"]),
        (takeover.Result(5.9, 1.1, 1, 99, 14000.0, 1.0), ["leases lost, 1", "resumed once, 1"]),
    ],
)
def test_a_takeover_has_its_targets(result: takeover.Result, missed: list[str]) -> None:
    report = takeover.report(takeover.FULL, {1: result})
    assert [check.name for check in report.checks if not check.holds] == missed


async def test_tables_that_cannot_be_made_are_an_error_that_says_what_was_said() -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        await upgrade("sqlite:////nowhere/canvas.db")


def test_commits_are_counted_from_outside_by_what_has_changed_something(tmp_path: Path) -> None:
    file = tmp_path / "canvas.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        before = commits(f"sqlite:///{file}")
        for number in range(7):
            connection.execute("BEGIN")
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            connection.execute("COMMIT")
            connection.execute("SELECT * FROM t").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO t VALUES (8)")
        assert commits(f"sqlite:///{file}") - before == 8


@pytest.mark.parametrize(
    ("kind", "times", "missed"),
    [
        ("sqlite", {4000: 0.5, 64000: 8.0}, []),
        ("sqlite", {4000: 0.6, 64000: 9.0}, ["theirs / ours, sqlite, 4000"]),
        ("postgresql", {4000: 0.5, 64000: 8.0}, []),
        ("postgresql", {4000: 0.6, 64000: 9.0}, ["theirs / ours, postgresql, 4000"]),
        ("postgresql", {4000: 0.5, 64000: 13.0}, ["64000 / 4000, postgresql"]),
    ],
)
def test_each_kind_of_database_has_its_targets(kind: Kind, times: Mapping[int, float], missed: list[str]) -> None:
    report = durable.report(durable.FULL, {kind: Times(times, 33.0)})
    assert [check.name for check in report.checks if not check.holds] == missed


def test_latency_counts_from_when_the_owner_showed_a_delta() -> None:
    times = StreamTimes()
    times.on_owner(2, 10_000_000)
    times.on_watcher(2, 25_000_000)
    assert times.added() == [15.0]


def test_a_watcher_that_is_not_exact_misses_the_target() -> None:
    report = replicas.report(Joiners(2, Order(10, 50)), Result(1, ["has 0 characters of 200"], [1, 2]), [12.0])
    assert [check.holds for check in report.checks] == [False, True, True]
    assert report.notes == ["not exact: has 0 characters of 200"]


def test_a_free_port_is_none_that_a_client_could_be_given() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert free_port() in PORTS
    assert not set(PORTS) & set(range(first, last + 1))
