"""The command `a2a-canvas usage`: what users have used, by day."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from a2a_canvas.server.migrations import check
from a2a_canvas.server.open_database import DatabaseError, open_database
from a2a_canvas.server.settings import SettingsError, load
from a2a_canvas.server.tasks.quotas import DAY
from a2a_canvas.server.tasks.sql.usage.sql_usage import KEPT_DAYS, DayUsage, read_usage

ANONYMOUS = "(anonymous)"
COLUMNS = ("requests", "turns", "tokens_in", "tokens_out")


async def show_usage(
    given: Mapping[str, Any], out: TextIO, now: datetime, *, days: int, user: str | None, as_json: bool
) -> int:
    """Write what users have used in the last `days` days, today included.

    Args:
        given: the options of the command line, as `load` takes them.
        user: this one only; everybody if None.

    Returns:
        The exit code.

    Raises:
        SettingsError: an option or a variable is wrong.
        DatabaseError: the database cannot be opened, reached or used.
    """
    if not 1 <= days <= KEPT_DAYS:
        raise SettingsError(f"--days={days}: must be 1 to {KEPT_DAYS}")
    url = load(given).database
    if url == "memory":
        raise DatabaseError("--database memory stores nothing: name the server's database.")
    today = int(now.timestamp()) // DAY
    async with open_database(url, shared=True) as database:
        await check(database)
        found = await read_usage(database, today - days + 1, user)
    out.writelines(f"{line}\n" for line in (_objects(found) if as_json else _table(found)))
    return 0


def _objects(found: Sequence[DayUsage]) -> Iterator[str]:
    for each in found:
        yield json.dumps(asdict(each) | {"day": _date(each.day)}, ensure_ascii=False)


def _table(found: Sequence[DayUsage]) -> Iterator[str]:
    if not found:
        yield "Nobody has used anything in these days."
        return
    rows = [("DAY", "USER", *(name.replace("_", " ").upper() for name in COLUMNS)), *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for day, user, *numbers in rows:
        figures = (number.rjust(width) for number, width in zip(numbers, widths[2:], strict=True))
        yield "  ".join((day.ljust(widths[0]), user.ljust(widths[1]), *figures))


def _row(each: DayUsage) -> tuple[str, ...]:
    return _date(each.day), each.user or ANONYMOUS, *(str(getattr(each, name)) for name in COLUMNS)


def _date(day: int) -> str:
    return f"{datetime.fromtimestamp(0, UTC) + timedelta(days=day):%Y-%m-%d}"
