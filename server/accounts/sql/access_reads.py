"""What the checks of streams ask of the database: one query for all of them.

Rule 1: the stores of shares, of ended sessions and of keys each give a SELECT of the same columns. Whatever they are
        asked for again and again is read by the union of these (`recent_reads.py`, rule 2).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    String,
    cast,
    literal,
    null,
    select,
    type_coerce,
    union_all,
)

from a2a_canvas.server.accounts.sql.recent_reads import RecentReads
from a2a_canvas.store.sql.database import Database

TEXTS, NUMBERS = 7, 2
"""Columns of an answer after its kind: the name that was asked for and other texts, then numbers."""

Rows = Sequence[Any]
Question = tuple[str, str]
"""The kind of what is asked, and a name."""
Choose = Callable[[Collection[str]], Select[Any]]
"""Selects `answer_columns` for some names."""


def answer_columns(
    kind: str, texts: Sequence[ColumnElement[Any]], numbers: Sequence[ColumnElement[Any]]
) -> Sequence[ColumnElement[Any]]:
    """The columns of an answer: the first text is the name that was asked for."""
    shown: list[ColumnElement[Any]] = [literal(kind), *(type_coerce(each, String) for each in texts)]
    no_text, no_number = cast(null(), String), cast(null(), BigInteger)
    shown += [*[no_text] * (TEXTS - len(texts)), *numbers, *[no_number] * (NUMBERS - len(numbers))]
    return [each.label(f"c{place}") for place, each in enumerate(shown)]


class AccessReads:
    """Answers the questions of several stores.

    Args:
        clock: seconds, for the age of what is in memory.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._choices: dict[str, Choose] = {}
        self._recent: RecentReads[Question, Rows] = RecentReads(self._read_one, clock, read_all=self._read)

    def add(self, kind: str, choose: Choose) -> None:
        """Answer questions of a kind."""
        self._choices[kind] = choose

    async def get(self, kind: str, name: str) -> Rows:
        """The rows about a name, as they were a moment ago; `c1` is the name.

        Raises:
            Unavailable: the database cannot be used now.
        """
        return await self._recent.get((kind, name))

    def clear(self) -> None:
        """Believe nothing that was read before."""
        self._recent.clear()

    async def _read_one(self, question: Question) -> Rows:
        return (await self._read([question]))[question]

    async def _read(self, questions: Collection[Question]) -> Mapping[Question, Rows]:
        names: defaultdict[str, list[str]] = defaultdict(list)
        for kind, name in questions:
            names[kind].append(name)
        chosen = [self._choices[kind](some) for kind, some in sorted(names.items())]
        query = union_all(*chosen) if len(chosen) > 1 else select(chosen[0].subquery())
        found: dict[Question, list[Any]] = {question: [] for question in questions}
        async with self._database.read() as connection:
            for row in await connection.execute(query):
                found[row.c0, row.c1].append(row)
        return found
