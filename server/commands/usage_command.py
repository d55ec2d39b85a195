"""The command `a2a-canvas usage`: the users' consumption by day, and their stored bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from a2a_canvas.server.accounts.quotas import DAY
from a2a_canvas.server.accounts.sql.sql_usage import KEPT_DAYS, DayUsage, read_usage
from a2a_canvas.server.backend.migrations import check
from a2a_canvas.server.backend.open_database import DatabaseError, open_database
from a2a_canvas.server.settings.settings import SettingsError, load
from a2a_canvas.server.tasks.sql.journal.sql_kept import UserBytes, read_kept

ANONYMOUS = "(anonymous)"
COLUMNS = ("requests", "turns", "tokens_in", "tokens_out")
KEPT = ("kept_bytes", "contexts")
Row = tuple[str, ...]


async def show_usage(
    values: Mapping[str, Any], out: TextIO, now: datetime, *, days: int, user: str | None, as_json: bool
) -> int:
    """Print the users' consumption in the last `days` days, today included, and their stored bytes.

    Args:
        values: the options of the command line, as `load` takes them.
        user: only this one; all if None.

    Raises:
        SettingsError: an option or a variable is wrong.
        DatabaseError: the database cannot be opened, reached or used.
    """
    if not 1 <= days <= KEPT_DAYS:
        raise SettingsError(f"--days={days}: must be 1 to {KEPT_DAYS}")
    url = load(values).database
    if url == "memory":
        raise DatabaseError("--database memory stores nothing: name the server's database.")
    today = int(now.timestamp()) // DAY
    async with open_database(url, shared=True) as database:
        await check(database)
        used, kept = await read_usage(database, today - days + 1, user), await read_kept(database, user)
    out.writelines(f"{line}\n" for line in (_objects(used, kept) if as_json else _tables(used, kept)))
    return 0


def _objects(used: Sequence[DayUsage], kept: Sequence[UserBytes]) -> Iterator[str]:
    for day in used:
        yield json.dumps(asdict(day) | {"day": _date(day.day)}, ensure_ascii=False)
    for each in kept:
        yield json.dumps(asdict(each), ensure_ascii=False)


def _tables(used: Sequence[DayUsage], kept: Sequence[UserBytes]) -> Iterator[str]:
    if not used:
        yield "No usage in this period."
    else:
        yield from _table(("DAY", "USER"), COLUMNS, [(_date(each.day), *_row(each, COLUMNS)) for each in used])
    if kept:
        yield ""
        yield from _table(("USER",), KEPT, [_row(each, KEPT) for each in kept])


def _table(names: Row, figures: Row, rows: Sequence[Row]) -> Iterator[str]:
    rows = [(*names, *(name.replace("_", " ").upper() for name in figures)), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        adjust = (str.ljust,) * len(names) + (str.rjust,) * len(figures)
        yield "  ".join(place(text, width) for place, text, width in zip(adjust, row, widths, strict=True))


def _row(each: DayUsage | UserBytes, columns: Row) -> Row:
    return each.user or ANONYMOUS, *(str(getattr(each, name)) for name in columns)


def _date(day: int) -> str:
    return f"{datetime.fromtimestamp(0, UTC) + timedelta(days=day):%Y-%m-%d}"
