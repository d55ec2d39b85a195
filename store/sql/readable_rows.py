"""Decodes rows, skipping and logging those that cannot be decoded.

Rule 1: one row never fails a read of several, no matter who wrote it.
Rule 2: each kind of row is logged at most once in INTERVAL seconds, with the number of failures since the last line.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import Row

logger = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T")

INTERVAL = 60.0
"""Seconds between two lines about one kind of row."""


class ReadableRows:
    """Decodes rows of one kind.

    Args:
        kind: in a log line, such as "share".
        clock: seconds.
    """

    def __init__(self, kind: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._kind = kind
        self._clock = clock
        self._logged_at: float | None = None
        self._failures = 0

    def decode(self, rows: Iterable[Row[Any]], decode: Callable[[Any], T]) -> list[T]:
        """The values of the rows, in their order, without those of rows for which `decode` fails."""
        return [*self.decode_all(((row[0], row) for row in rows), decode)]

    def decode_all(self, rows: Iterable[tuple[object, R]], decode: Callable[[R], T]) -> Iterator[T]:
        """The same for rows, or groups of rows, with their names in the log."""
        for name, row in rows:
            try:
                value = decode(row)
            except Exception as error:  # decoders raise many kinds
                self._log(name, error)
            else:
                yield value

    def _log(self, name: object, error: Exception) -> None:
        self._failures += 1
        now = self._clock()
        if self._logged_at is not None and now - self._logged_at < INTERVAL:
            return
        text = "A stored %s cannot be read and is skipped (%d since the last such line): %r"
        logger.error(text, self._kind, self._failures, error, extra={"fields": {"row": name}})
        self._logged_at, self._failures = now, 0
