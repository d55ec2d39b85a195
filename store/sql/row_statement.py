"""Statements that are executed for many rows at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, lru_cache, partial
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy import Dialect as Driver

from a2a_canvas.store.sql.database import Dialect, count_written, insert_on, stored_size

Row = Mapping[str, Any]
Values = tuple[Any, ...]
_PARAMETER = re.compile(r"\$(\d+)")
TOGETHER = 16
"""So many rows are written by one statement; its text has to be one that the driver keeps prepared."""


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
        text, given, kept = self.encode(connection, rows)
        if given:
            connection.exec_driver_sql(text, given)
            count_written(connection, given)
        return kept

    def encode(self, connection: Connection, rows: Iterable[Row]) -> tuple[str, list[Values], Counter[str]]:
        """The statement, its values for each row, and what `execute` returns."""
        text, values, counted = self._compiled(connection.dialect)
        kept: Counter[str] = Counter()
        given = []
        for row in rows:
            given.append(encoded := values(row))
            if counted:
                kept[row.get("context_id") or row["of_context"]] += sum(stored_size(encoded[each]) for each in counted)
        return text, given, kept

    def _compile(self, driver: Driver) -> tuple[str, Callable[[Row], Values], list[int]]:
        dialect: Dialect = "sqlite" if driver.name == "sqlite" else "postgresql"
        compiled = self._make(dialect).compile(dialect=driver, column_keys=self._names)
        names = compiled.positiontup
        processors = [compiled.binds[name].type.dialect_impl(driver).bind_processor(driver) for name in names]
        steps = [(name, processor or _identity) for name, processor in zip(names, processors, strict=True)]
        counted = [place for place, name in enumerate(names) if name in self._counted]
        return str(compiled), lambda row: tuple([processor(row[name]) for name, processor in steps]), counted


class StatementGroup:
    """Statements that are executed together. PostgreSQL gets them as one, because it answers each statement before it
    is sent the next.

    They must not write the same row, nor need what another of them writes.
    """

    def __init__(self) -> None:
        self._added: list[tuple[str, list[Values]]] = []

    def add(self, connection: Connection, statement: RowStatement, rows: Iterable[Row]) -> Counter[str]:
        """As `RowStatement.execute`, but it is executed with the others."""
        text, given, kept = statement.encode(connection, rows)
        if given:
            self._added.append((text, given))
        return kept

    def execute(self, connection: Connection) -> None:
        """Execute what was added."""
        added, self._added = self._added, []
        each_row = [(text, values) for text, given in added for values in given]
        if connection.dialect.name == "postgresql" and len(added) > 1 and len(each_row) <= TOGETHER:
            text = _join(tuple((text, len(values)) for text, values in each_row))
            connection.exec_driver_sql(text, tuple(value for _, values in each_row for value in values))
        else:
            for text, given in added:
                connection.exec_driver_sql(text, given)
        for _, given in added:
            count_written(connection, given)


def _shift(by: int, parameter: re.Match[str]) -> str:
    return f"${by + int(parameter[1])}"


@lru_cache(TOGETHER**2)
def _join(statements: tuple[tuple[str, int], ...]) -> str:
    """One statement that executes several in their order, each with its number of parameters.

    PostgreSQL executes the last part of a statement first, and then those before it from back to front.
    """
    before, texts = 0, []
    for text, parameters in statements:
        texts.append(_PARAMETER.sub(partial(_shift, before), text))
        before += parameters
    first, *others = texts
    steps = ", ".join(f"s{place} AS ({text})" for place, text in enumerate(reversed(others)))
    return f"WITH {steps} {first}"


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
