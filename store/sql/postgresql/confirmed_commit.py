"""A commit on PostgreSQL that counts only if the synchronous standby has it, too.

Rule 1: the wait for the standby is never cancelled: the transaction would then be committed, and visible to others, on
        a primary that may be lost with it. What ends the wait is the end of the connection. The server then waits on,
        and whether the transaction was committed is unknown.
Rule 2: if somebody else cancels the wait, the server reports a commit, with a warning. That is unknown, too.
"""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncTransaction

from a2a_canvas.store.errors import Unavailable


async def commit_confirmed(connection: AsyncConnection, transaction: AsyncTransaction, within: float) -> None:
    """Commit on PostgreSQL, without ever cancelling the wait for a standby (rule 1).

    Raises:
        Unavailable: whether it is committed on the standby, too, is unknown.
        DBAPIError: the connection broke, or was cut after `within` seconds.
    """
    driver: Any = (await connection.get_raw_connection()).driver_connection
    warnings: list[str] = []

    def note(_: object, notice: Any) -> None:
        if notice.severity_en == "WARNING":
            warnings.append(notice.message)

    driver.add_log_listener(note)
    committing = asyncio.ensure_future(transaction.commit())
    committing.add_done_callback(_mark_seen)
    limit = asyncio.get_running_loop().call_later(within, driver.terminate)
    try:
        await asyncio.shield(committing)
    except asyncio.CancelledError:
        driver.terminate()
        await asyncio.wait([committing])
        raise
    finally:
        limit.cancel()
        driver.remove_log_listener(note)
    if warnings:
        raise Unavailable(f"the standby has not confirmed a commit: {warnings[0]}")


def _mark_seen(committing: asyncio.Future[None]) -> None:
    """Its caller may have left, and nobody be told how it ended."""
    if not committing.cancelled():
        committing.exception()
