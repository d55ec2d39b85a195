"""How many bytes are kept, of some owners and in all, from the counts of their contexts (`store/sql/kept.py`).

Rule 1: a sum is read when it is asked for, and is good for a time in proportion to that of its reading. So reading
        takes a small share of the time, however many contexts there are, and a sum of few is exact.
Rule 2: a request for a sum that is already being read waits for that read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from a2a_canvas.server.accounts.sql.recent_reads import RecentReads
from a2a_canvas.server.tasks.sql.projections.owned_rows import owned_contexts
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import kept_bytes

GOOD_FOR = 20
"""Times as long as it took to read."""
MIN_SECONDS = 0.005
"""A sum that was read faster is read again every time."""

_OWN = kept_bytes.join(owned_contexts, owned_contexts.c.context_id == kept_bytes.c.context_id)
_SUM = select(func.coalesce(func.sum(kept_bytes.c.bytes), 0))


def good_for(took: float) -> float:
    """The seconds for which a sum counts whose reading took so long."""
    return took * GOOD_FOR if took >= MIN_SECONDS else 0


class SqlKeptBytes:
    """`KeptBytes` in a database.

    Args:
        clock: seconds, of any beginning.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._sums = RecentReads(self._sum, clock, good_for, single_flight=True)

    async def sum_of(self, owners: Collection[str]) -> int:
        return await self._sums.get(tuple(owners))

    async def sum_of_all(self) -> int:
        return await self._sums.get(None)

    async def _sum(self, owners: tuple[str, ...] | None) -> int:
        query = _SUM if owners is None else _SUM.select_from(_OWN).where(owned_contexts.c.owner.in_(owners))
        async with self._database.read() as connection:
            return int(await connection.scalar(query) or 0)


@dataclass(frozen=True, slots=True)
class UserBytes:
    """What is kept of a user now, and in how many contexts."""

    user: str
    kept_bytes: int
    contexts: int


async def read_kept(database: Database, user: str | None = None) -> Sequence[UserBytes]:
    """By user, the largest first.

    Args:
        user: this one only; all if None.
    """
    total = func.sum(kept_bytes.c.bytes)
    query = select(owned_contexts.c.owner, total, func.count()).select_from(_OWN)
    if user is not None:
        query = query.where(owned_contexts.c.owner == user)
    query = query.group_by(owned_contexts.c.owner).order_by(total.desc(), owned_contexts.c.owner)
    async with database.read() as connection:
        return [UserBytes(row[0], int(row[1]), row[2]) for row in await connection.execute(query)]
