"""The scenarios on databases in miniature, on real servers, so that they cannot rot."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from bench import crowd_durable, durable, many_tasks, replicas, subscribers, takeover
from bench.crowd import Crowd
from bench.databases import Kind, commits, databases, upgrade
from bench.durable import Plan, Times
from bench.joiners import Plan as Joiners
from bench.joiners import Result
from bench.pace import Order
from bench.replicas import StreamTimes
from bench.servers import running, theirs_on
from tests.database_fixtures import postgresql_url
from tests.free_port import PORTS, free_port


async def test_ours_and_theirs_write_the_exact_text_to_sqlite() -> None:
    with databases("sqlite") as new:
        times = await durable.measure("sqlite", new, Plan((20, 60), 20, 2))
    assert (list(times.mine), times.other > 0) == ([20, 60], True)


async def test_theirs_writes_the_exact_text_to_postgresql() -> None:
    async with running(theirs_on(postgresql_url())) as server:
        assert await durable.seconds(server, 20) > 0


async def test_a_crowd_on_sqlite_is_measured_with_its_commits() -> None:
    report = await crowd_durable.run(Crowd(3, Order(30, 50)))
    assert report.rows[0][0] == 90
    assert [check.name for check in report.checks] == ["p50", "p99", "commits"]
    assert report.checks[2].value > 0


async def test_subscribers_of_one_turn_have_the_exact_text_while_others_are_answered() -> None:
    plan = subscribers.Plan(20, Order(40, 50))
    with databases("sqlite") as new:
        result = await subscribers.measure(plan, new())
    assert (result.exact, result.faults) == (20, [])
    assert result.waits
    assert [check.name for check in subscribers.report(plan, result).checks] == ["/healthz p99", "exact"]


async def test_requests_of_a_context_are_measured_beside_few_and_many_tasks() -> None:
    report = await many_tasks.run(many_tasks.Plan(10, 100, 1, ("sqlite",)))
    assert [row[1] for row in report.rows] == [*many_tasks.REQUESTS]
    assert all(check.value > 0 for check in report.checks)


async def test_watchers_on_another_replica_have_the_exact_text() -> None:
    report = await replicas.measure(Joiners(6, Order(60, 50)), await upgrade(postgresql_url()))
    assert report.checks[0].holds, report


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
