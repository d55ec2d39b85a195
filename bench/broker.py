"""`--only broker`: what servers of one database gain from a broker, and what its end costs them.

Commits: pgbench with the statements of a page's transaction, with a NOTIFY in it, without, and without while a process
publishes as many pages. Watchers: on a server that only serves streams (`--max-turns 0`), of a task on another one.
Checks: on such a server, streams of as many users as watchers, each with a key and a share. Killed: turns with watchers
on the other server while the broker is killed and started again.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from a2a_canvas.server.accounts.access import Level, Share
from a2a_canvas.server.accounts.api_key import ApiKey, hash_of, new_key
from a2a_canvas.server.accounts.sql.sql_api_keys import add_key
from a2a_canvas.server.accounts.sql.sql_shares import SqlShares
from a2a_canvas.server.tasks.sql.projections.context_rows import lock_to_share
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.store.sql.database import Database
from bench import joiners, page_commits
from bench.client import Watcher, send, subscribe, watch
from bench.databases import upgrade
from bench.joiners import Plan
from bench.pace import Order
from bench.page_commits import Rate
from bench.replicas import StreamTimes
from bench.report import Check, Report, ratio, spread
from bench.servers import SHIPPED_FRAME_MS, Checkout, Server, paced, running
from tests.broker_fixtures import PrivateNats, private_nats
from tests.database_fixtures import PrivatePostgresql, execute, private_postgresql

WATCHER_ROLE = "watcher"
"""Of the server that only serves streams: PostgreSQL counts its statements apart."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much to measure.

    Attributes:
        seconds: of each run of pgbench.
        watched: watchers of one task elsewhere.
        turns: while the broker is killed, each of `order`, with `followers`.
        idle: seconds in which the queries of idle streams are counted.
    """

    seconds: int
    watched: Plan
    turns: int
    followers: int
    idle: float
    order: Order


FULL = Extent(15, Plan(60, Order(1000, 50)), 20, 3, 10.0, Order(200, 20))
QUICK = Extent(5, Plan(60, Order(400, 50)), 20, 3, 5.0, Order(200, 20))


async def run(extent: Extent) -> Report:
    """All of it, on one PostgreSQL and one broker."""
    loaded = os.getloadavg()[0]
    with private_postgresql(shared_preload_libraries="pg_stat_statements") as postgresql, private_nats() as nats:
        execute(postgresql.url(), f"CREATE ROLE {WATCHER_ROLE} SUPERUSER LOGIN")
        table = Report("broker", "servers of one database with a broker", ("", "", "p50 ms", "p99 ms", "max ms"))
        await _commits(table, extent, postgresql, nats)
        url = await upgrade(postgresql.new_database())
        async with _two(url, nats) as (owner, other):
            await _watchers(table, extent, owner, other)
            await _killed(table, extent, owner, other, nats)
            await _checks(table, extent, owner, other, url)
    table.notes.append(f"load of the machine before and after: {loaded:.1f}, {os.getloadavg()[0]:.1f}")
    return table


async def _commits(table: Report, extent: Extent, postgresql: PrivatePostgresql, nats: PrivateNats) -> None:
    url = await upgrade(postgresql.new_database())
    statements = await page_commits.prepare(url)
    quiet = [each for each in statements if "pg_notify" not in each]
    seconds, most = extent.seconds, 10**7
    notified = await page_commits.measure(url, statements, seconds, most)
    without = await page_commits.measure(url, quiet, seconds, 2 * most)
    rate = round(without.commits)
    published = await page_commits.measure_publishing(url, quiet, seconds, 3 * most, nats.url, rate)
    for name, found in (("with NOTIFY", notified), ("without", without), ("published", published)):
        table.rows.append((f"commits a second, {name}", _shown(found), "", "", ""))
    table.checks += [
        Check("commits, published", ratio(published.commits, notified.commits), "at least", 4, "times with NOTIFY"),
        Check("pages published", ratio(published.published, published.commits), "at least", 1, "a commit"),
    ]


def _shown(found: Rate) -> str:
    return f"{found.commits:.0f}" + (f" and {found.published:.0f} pages" if found.published else "")


@asynccontextmanager
async def _two(url: str, nats: PrivateNats) -> AsyncIterator[tuple[Server, Server]]:
    """A server that runs turns, and one that only serves streams."""
    brokered = Checkout(environ={"A2A_CANVAS_BROKER": nats.url})
    watching = url.replace("//postgres@", f"//{WATCHER_ROLE}@")
    async with (
        running(paced(SHIPPED_FRAME_MS, url), checkout=brokered) as owner,
        running(paced(SHIPPED_FRAME_MS, watching, 0), checkout=brokered) as other,
    ):
        yield owner, other


async def _watchers(table: Report, extent: Extent, owner: Server, other: Server) -> None:
    times, plan = StreamTimes(), extent.watched
    heard = {"wrote": times.on_owner, "read": times.on_watcher}
    result = await joiners.join(owner, plan, turn=True, elsewhere=other, **heard)
    pages = {source: await _pages(other, source) for source in ("broker", "database")}
    p50, _, p99, most = spread(times.added())
    what = f"{plan.subscribers} watchers elsewhere, {pages['broker']:.0f} pages"
    table.rows.append((what, f"{result.exact} exact", p50, p99, most))
    table.notes += [f"not exact: {fault[:200]}" for fault in result.faults[:5]]
    table.checks += [
        Check("exact", result.exact, "at least", plan.subscribers),
        Check("added p50", p50, "at most", 30, "ms"),
        Check("added p99", p99, "at most", 100, "ms"),
        # Between the snapshot of the first watcher and its subscription there may be one.
        Check("pages read", pages["database"], "at most", 1),
    ]


async def _pages(server: Server, source: str) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    found = re.search(rf'followed_pages_total{{source="{source}"}} (\S+)', (await reader.read()).decode())
    writer.close()
    return float(found[1]) if found else 0.0


async def _new_keys(database: Database, count: int) -> list[str]:
    """A key for each of some users: `user0`, `user1`, …"""
    secrets = {f"user{number}": new_key(f"user{number}") for number in range(count)}
    for user, secret in secrets.items():
        await add_key(database, ApiKey(user, user, hash_of(secret), datetime.now(UTC)))
    return [*secrets.values()]


async def _checks(table: Report, extent: Extent, owner: Server, other: Server, url: str) -> None:
    execute(url, "CREATE EXTENSION pg_stat_statements")
    count, database, writer = extent.watched.subscribers, Database(url), Watcher()
    secrets = await _new_keys(database, count + 1)
    await asyncio.sleep(2)  # until the servers know the keys
    asked = send(Order(100_000, 50), key=secrets[0])
    streams = [asyncio.create_task(watch(owner.port, asked, writer))]
    await writer.begun.wait()
    await _share(database, writer.task_id, count)
    watchers = [Watcher() for _ in range(count)]
    for secret, watcher in zip(secrets[1:], watchers, strict=True):
        asked = subscribe(writer.task_id, key=secret)
        streams.append(asyncio.create_task(watch(other.port, asked, watcher)))
    await asyncio.gather(*(watcher.begun.wait() for watcher in watchers))
    await asyncio.sleep(2)  # what is asked for again is read together from the second time on
    before = _access_queries(url)
    await asyncio.sleep(extent.idle)
    queries = (_access_queries(url) - before) / extent.idle
    for stream in streams:
        stream.cancel()
    await asyncio.wait(streams)
    await database.close()
    what = f"queries of credentials and shares a second, {count} streams of as many users"
    table.rows.append((what, queries, "", "", ""))
    table.checks.append(Check("queries of checks", queries, "at most", 1.1, "a second"))


async def _share(database: Database, task_id: str, count: int) -> None:
    """Share the context of a task with users."""
    async with database.read() as connection:
        query = tasks.select().with_only_columns(tasks.c.context_id).where(tasks.c.task_id == task_id)
        [key] = await connection.scalars(query)
    shares = SqlShares(database, lock_to_share, lambda: datetime.now(UTC))
    for number in range(1, count + 1):
        await shares.add(Share(f"s{number}", key, "user0", Level.READ, datetime.now(UTC), f"user{number}"))


def _access_queries(url: str) -> int:
    """The queries of keys and of shares that the server made which only serves streams."""
    role = f"userid = '{WATCHER_ROLE}'::regrole"
    of_access = "(query LIKE '%FROM api_keys%' OR query LIKE '%FROM shares%' OR query LIKE '%FROM ended_sessions%')"
    [[found]] = execute(
        url, f"SELECT coalesce(sum(calls), 0)::int FROM pg_stat_statements WHERE {role} AND {of_access}"
    )
    return int(found)


async def _killed(table: Report, extent: Extent, owner: Server, other: Server, nats: PrivateNats) -> None:
    seconds = extent.order.count / extent.order.rate

    async def disturb() -> None:
        await asyncio.sleep(seconds / 3)
        nats.kill()
        await asyncio.sleep(seconds / 4)
        nats.start()

    disturbing = asyncio.create_task(disturb())
    plan = Plan(extent.followers, extent.order)
    joining = (joiners.join(owner, plan, turn=True, elsewhere=other) for _ in range(extent.turns))
    results = await asyncio.gather(*joining)
    await disturbing
    exact, everybody = sum(result.exact for result in results), extent.turns * extent.followers
    what = f"the broker killed in {extent.turns} turns, {everybody} watchers"
    table.rows.append((what, f"{exact} exact", "", "", ""))
    table.checks.append(Check("exact, killed", exact, "at least", everybody))
    faults = [fault for result in results for fault in result.faults]
    table.notes += [f"not exact: {fault[:200]}" for fault in faults[:5]]
