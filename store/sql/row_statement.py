"""Statements that are executed for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection
from sqlalchemy import Dialect as Driver

from a2a_canvas.store.sql.database import Dialect, count_written

Row = Mapping[str, Any]


class RowStatement:
    """A statement that SQLAlchemy compiles, and the driver is given with the values of all rows.

    SQLAlchemy's own way costs several times what the driver does: it looks the statement up in a cache and makes the
    parameters of each row anew.

    Args:
        make: the statement, for a dialect.
        names: of the columns that an INSERT sets. Other statements name their parameters.
    """

    def __init__(self, make: Callable[[Dialect], Any], names: Iterable[str] | None = None) -> None:
        self._make = make
        self._names = None if names is None else [*names]
        self._compiled = cache(self._compile)

    def execute(self, connection: Connection, rows: Iterable[Row]) -> None:
        """Execute it for each row. A row names its values as the parameters are named."""
        text, values = self._compiled(connection.dialect)
        given = [values(row) for row in rows]
        if given:
            connection.exec_driver_sql(text, given)
            count_written(connection, given)

    def _compile(self, driver: Driver) -> tuple[str, Callable[[Row], tuple[Any, ...]]]:
        dialect: Dialect = "sqlite" if driver.name == "sqlite" else "postgresql"
        compiled = self._make(dialect).compile(dialect=driver, column_keys=self._names)
        names = compiled.positiontup
        processors = [compiled.binds[name].type.dialect_impl(driver).bind_processor(driver) for name in names]
        steps = [(name, processor or _unchanged) for name, processor in zip(names, processors, strict=True)]
        return str(compiled), lambda row: tuple([processor(row[name]) for name, processor in steps])


def _unchanged(value: Any) -> Any:
    return value
