"""A commit on PostgreSQL that counts only if the synchronous standby has it, too.

Rule 1: the wait for the standby is never cancelled: the transaction would then be committed, and visible to others, on
        a primary that may be lost with it. What ends the wait is the end of the connection. The server then waits on,
        and whether the transaction was committed is unknown.
Rule 2: if somebody else cancels the wait, the server reports a commit, with a warning. That is unknown, too.
Rule 3: while a commit that was given up waits, no other one is sent. Each would occupy a connection of the server until
        a standby is back, and soon nobody could connect, not even to read.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncTransaction

from a2a_canvas.store.errors import Unavailable

_WAITING = text("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid = ANY(:given_up)")


class ConfirmedCommits:
    """The commits of one process."""

    def __init__(self) -> None:
        self._given_up: set[int] = set()  # PIDs of backends that may still wait for the standby

    async def check(self, connection: AsyncConnection) -> None:
        """Raises `Unavailable` while a commit that was given up waits for the standby (rule 3)."""
        if asked := frozenset(self._given_up):
            waiting = {*await connection.scalars(_WAITING, {"given_up": [*asked]})}
            self._given_up -= asked - waiting
            if waiting:
                raise Unavailable("no standby confirms its commits")

    async def commit(self, connection: AsyncConnection, transaction: AsyncTransaction, within: float) -> None:
        """Commit, without ever cancelling the wait for a standby (rule 1).

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
        committing.add_done_callback(partial(self._note_end, driver.get_server_pid()))
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

    def _note_end(self, process: int, committing: asyncio.Future[None]) -> None:
        """Remember a failed commit, and retrieve its error: asyncio would log it if the caller was cancelled."""
        if committing.cancelled() or committing.exception():
            self._given_up.add(process)
