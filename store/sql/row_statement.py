"""Statements that are executed for many rows at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy import Dialect as Driver

from a2a_canvas.store.sql.database import Dialect, count_written, insert_on, stored_size

Row = Mapping[str, Any]


class RowStatement:
    """A statement compiled by SQLAlchemy and executed by the driver with the values of all rows.

    SQLAlchemy's own execution costs several times as much as the driver: it looks the statement up in a cache and
    processes the parameters of each row.

    Args:
        make: the statement, for a dialect.
        names: of the columns that an INSERT sets. Other statements name their parameters.
        counted: the values that count as kept bytes (`kept.py`). The rows have a `context_id`, or `of_context`.
    """

    def __init__(
        self, make: Callable[[Dialect], Any], names: Iterable[str] | None = None, counted: Collection[str] = ()
    ) -> None:
        self._make = make
        self._counted = counted
        self._names = None if names is None else [*names]
        self._compiled = cache(self._compile)

    def execute(self, connection: Connection, rows: Iterable[Row]) -> Counter[str]:
        """Execute it for each row, a mapping from parameter names to values.

        Returns:
            The bytes of the counted values, as they are stored, by context.
        """
        text, values, counted = self._compiled(connection.dialect)
        kept: Counter[str] = Counter()
        given = []
        for row in rows:
            given.append(encoded := values(row))
            if counted:
                kept[row.get("context_id") or row["of_context"]] += sum(stored_size(encoded[each]) for each in counted)
        if given:
            connection.exec_driver_sql(text, given)
            count_written(connection, given)
        return kept

    def _compile(self, driver: Driver) -> tuple[str, Callable[[Row], tuple[Any, ...]], list[int]]:
        dialect: Dialect = "sqlite" if driver.name == "sqlite" else "postgresql"
        compiled = self._make(dialect).compile(dialect=driver, column_keys=self._names)
        names = compiled.positiontup
        processors = [compiled.binds[name].type.dialect_impl(driver).bind_processor(driver) for name in names]
        steps = [(name, processor or _identity) for name, processor in zip(names, processors, strict=True)]
        counted = [place for place, name in enumerate(names) if name in self._counted]
        return str(compiled), lambda row: tuple([processor(row[name]) for name, processor in steps]), counted


def upsert(table: Table, replaced: Iterable[str] = (), added: Iterable[str] = ()) -> Callable[[Dialect], Any]:
    """Inserts a row. One with the same key gets these new values, or has them added to its own."""

    def make(dialect: Dialect) -> Any:
        new = insert_on(dialect, table)
        values = {name: new.excluded[name] for name in replaced}
        values |= {name: table.c[name] + new.excluded[name] for name in added}
        return new.on_conflict_do_update(index_elements=[*table.primary_key], set_=values)

    return make


def _identity(value: Any) -> Any:
    return value
