"""What users have used, in a database: each replica writes what it has counted, and reads what the others have.

Rule 1: a row is of one user, one day and one replica, and only that replica writes it: all that it has counted of the
        user on that day. So no replica waits for another one's row, and what is written twice counts once.
Rule 2: a replica writes and reads every `EXCHANGE_SECONDS`. Between, replicas do not know of each other, so a limit may
        be passed by what comes in that time.
Rule 3: streams and turns of a replica that has not written for `STALE` are not open any more: it writes a row with any
        at least every `ALIVE`.
Rule 4: while the database is unavailable, this replica counts on, and writes it later.
Rule 5: before it first reads, a replica merges the rows of one user and day that others no longer write, so that
        restarts do not add rows for ever: on SQLite those of all earlier servers, elsewhere those of days before
        yesterday.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, Table, delete, func, select, tuple_

from a2a_canvas.server.accounts.quotas import DAY, EVERYBODY, EXCHANGE_SECONDS, MINUTE, Meter, Tally
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import new_id
from a2a_canvas.store.sql.database import Database, insert, insert_on
from a2a_canvas.store.sql.tables import Text, metadata
from a2a_canvas.store.sql.times import from_microseconds, to_microseconds

logger = logging.getLogger(__name__)

ALIVE = timedelta(seconds=5)
STALE = timedelta(seconds=20)
KEPT_DAYS = 400
"""Older rows are removed."""

_KEY = ("user_name", "day", "replica_id")
_MERGED = ""
"""The `replica_id` of merged rows."""
_SUMMED = ("requests", "turns", "tokens_in", "tokens_out")
_COUNTED = tuple(field.name for field in fields(Tally) if field.name != "day")

usage = Table(
    "usage",
    metadata,
    Column("user_name", Text, primary_key=True),  # empty for anonymous callers; `EVERYBODY` for all together
    Column("day", Integer, primary_key=True),  # since 1970, in UTC
    Column("replica_id", Text, primary_key=True),
    *(Column(name, BigInteger, nullable=False) for name in _SUMMED),
    *(Column(name, Integer, nullable=False) for name in ("minute", "in_minute", "before", "streams", "running")),
    Column("changed_at", BigInteger, nullable=False),  # microseconds since 1970
    Index("usage_by_change", "changed_at"),  # what others have counted since the last time
)


class SharedUsage:
    """Exchanges what a meter has counted with the other replicas of a database.

    Args:
        exchanged: called after each exchange: what others have closed may let turns run here.
    """

    def __init__(
        self, database: Database, meter: Meter, now: Callable[[], datetime], exchanged: Callable[[], None]
    ) -> None:
        self._database = database
        self._meter = meter
        self._now = now
        self._exchanged = exchanged
        self._replica = new_id()
        self._read_at: datetime | None = None
        self._written_at = now()
        self._seen: dict[tuple[str, str], tuple[datetime, Tally]] = {}  # until it is stale

    async def run(self) -> None:
        """Exchange for ever."""
        while True:
            try:
                await self.exchange()
            except Unavailable:
                pass  # rule 4; whoever needs the database logs it
            except Exception:
                logger.exception("The usage of this server could not be exchanged with other servers")
            await asyncio.sleep(EXCHANGE_SECONDS)

    async def exchange(self) -> None:
        """Write what has been counted here, and read what others have written since the last time.

        Raises:
            Unavailable: nothing was written.
        """
        now = self._now()
        if now - self._written_at >= ALIVE:
            self._meter.touch_open()
            self._written_at = now
        changed = self._meter.take_changed()
        try:
            if changed:
                await self._write(changed, now)
            if self._read_at is None:
                await self._merge(now)
            if self._read_at is None or self._database.dialect == "postgresql":
                await self._read(now)
        except BaseException:
            self._meter.put_back(changed)
            raise
        self._meter.mark_exchanged()
        self._exchanged()

    async def _write(self, changed: Mapping[tuple[str, int], Tally], now: datetime) -> None:
        rows = _rows(changed, self._replica, now)
        statement = insert_on(self._database.dialect, usage)
        new = {name: statement.excluded[name] for name in (*_COUNTED, "changed_at")}
        statement = statement.on_conflict_do_update(index_elements=_KEY, set_=new)
        async with self._database.write() as connection:
            await connection.execute(statement, rows)

    async def _merge(self, now: datetime) -> None:
        """Remove rows that are too old, and merge those of other servers (rule 5)."""
        today, minute = to_microseconds(now) // 10**6 // DAY, int(now.timestamp()) // MINUTE
        of_day = usage.c.user_name, usage.c.day
        last = today if self._database.dialect == "sqlite" else today - 2
        several = select(*of_day).where(usage.c.day <= last).group_by(*of_day).having(func.count() > 1)
        others = tuple_(*of_day).in_(several), usage.c.replica_id != self._replica
        merged: dict[tuple[str, int], Tally] = {}
        async with self._database.write() as connection:
            await connection.execute(delete(usage).where(usage.c.day < today - KEPT_DAYS))
            for row in await connection.execute(delete(usage).where(*others).returning(usage)):
                _add(merged.setdefault((row.user_name, row.day), Tally(row.day, minute=minute)), row)
            if merged:
                statement = insert(connection, usage)
                added = {name: usage.c[name] + statement.excluded[name] for name in _SUMMED}
                statement = statement.on_conflict_do_update(index_elements=_KEY, set_=added)
                await connection.execute(statement, _rows(merged, _MERGED, now))

    async def _read(self, now: datetime) -> None:
        # Clocks of replicas differ, and a transaction takes its time.
        since = to_microseconds(self._read_at - STALE) if self._read_at else 0
        today = to_microseconds(now) // 10**6 // DAY
        others = usage.c.day >= today - 1, usage.c.replica_id != self._replica, usage.c.changed_at >= since
        async with self._database.read() as connection:
            found = (await connection.execute(select(usage).where(*others).order_by(usage.c.day))).all()
        self._read_at = now
        for row in found:
            tally = Tally(row.day, **{name: getattr(row, name) for name in _COUNTED})
            self._set(row.user_name, row.replica_id, tally, open_now=from_microseconds(row.changed_at) > now - STALE)
            self._seen[row.user_name, row.replica_id] = from_microseconds(row.changed_at), tally
        for (user, replica), (changed_at, tally) in tuple(self._seen.items()):
            if changed_at <= now - STALE:
                self._set(user, replica, tally, open_now=False)
                del self._seen[user, replica]

    def _set(self, user: str, replica: str, tally: Tally, *, open_now: bool) -> None:
        self._meter.set_elsewhere(user, replica, tally if open_now else replace(tally, streams=0, running=0))


def _add(sum_: Tally, row: Any) -> None:
    """Add the counts of a server that has stopped.

    It has nothing open; its recent requests are counted in the minute of the sum.
    """
    for name in _SUMMED:
        setattr(sum_, name, getattr(sum_, name) + getattr(row, name))
    counted = Tally(row.day, minute=row.minute, in_minute=row.in_minute, before=row.before)
    in_minute, before = counted.requests_of(sum_.minute)
    sum_.in_minute, sum_.before = sum_.in_minute + in_minute, sum_.before + before


def _rows(tallies: Mapping[tuple[str, int], Tally], replica: str, now: datetime) -> list[dict[str, Any]]:
    return [
        {**asdict(tally), "user_name": user, "replica_id": replica, "changed_at": to_microseconds(now)}
        for (user, _), tally in tallies.items()
    ]


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What a user has used on a day, on all replicas; `day` as in `Tally`."""

    user: str
    day: int
    requests: int
    turns: int
    tokens_in: int
    tokens_out: int


async def read_usage(database: Database, since_day: int, user: str | None = None) -> Sequence[DayUsage]:
    """By user and day, the newest day first.

    Args:
        user: this one only; all if None.
    """
    sums = [func.sum(usage.c[name]) for name in _SUMMED]
    query = select(usage.c.user_name, usage.c.day, *sums).where(usage.c.day >= since_day)
    query = query.where(usage.c.user_name != EVERYBODY if user is None else usage.c.user_name == user)
    query = query.group_by(usage.c.user_name, usage.c.day).order_by(usage.c.day.desc(), usage.c.user_name)
    async with database.read() as connection:
        rows = (await connection.execute(query)).all()
    return [DayUsage(row[0], row[1], *map(int, row[2:])) for row in rows]
