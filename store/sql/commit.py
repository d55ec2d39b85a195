"""Group commit: whatever has been staged is written in one transaction, and whoever needs to waits for it.

Rule 1: staging never waits. What is staged between two waits of the event loop is written together or not at all,
        because everybody's work is collected in one step.
Rule 2: what is staged `soon` is written within `interval`; what is staged `now` at once, with everything before it.
        While one transaction is on its way, the next one gathers.
Rule 3: a transaction that fails for reasons that may pass is tried again until it goes through, and then in the same
        order; nothing that was staged is left out. It is given up when the replica has lost its lease, when the server
        stops and the database does not answer, and by rule 4.
Rule 4: what cannot be written at all fails alone. Everything that belongs together is of one context, so a transaction
        that fails for another reason is tried once more with a savepoint for each context: those that can be written
        are committed, `failed` is called for the others. If none of several can be, no one of them is to blame, and
        everything is given up as if the lease were lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database, translated

logger = logging.getLogger(__name__)

COMMIT_SPACING = 0.018
"""Seconds from one transaction to the next."""
RETRY_SECONDS = 0.2
"""Seconds between two tries."""
STOP = 2.0
"""Seconds that the transaction which is on its way has when the server stops."""


class LeaseLost(Exception):
    """What was staged never will be written: somebody else has taken over what this replica was writing, it was given
    up (rules 3 and 4), or this server is stopping."""


class AlreadyCommitted(Exception):
    """The transaction had gone through, although its connection broke before it could say so."""


class Step(Protocol):
    """Something to be written."""

    async def write(self, connection: AsyncConnection) -> None:
        """Write it. It may be called again, if the transaction failed.

        Raises:
            LeaseLost: somebody else has taken over.
            AlreadyCommitted: it was written before.
        """
        ...

    def done(self) -> None:
        """It has been committed."""
        ...


class ContextWork(Step, Protocol):
    """What one participant has to write of one context."""

    async def release(self, connection: AsyncConnection) -> None:
        """It cannot be written: give free, in the rows, what it was to be written to."""
        ...

    def failed(self) -> None:
        """It was not written, and never will be."""
        ...


class Work(Step, Protocol):
    """What one participant has to write."""

    def by_context(self) -> Mapping[str, ContextWork]:
        """The same, by context; empty for what every transaction needs."""
        ...


class Participant(Protocol):
    """Who stages work."""

    def collect(self) -> Work | None:
        """Everything staged since the last time; None if nothing was. It must not wait."""
        ...


class GroupCommit:
    """Writes for all participants, in the order in which they joined.

    Args:
        lost: called when another replica has taken over, or nothing can be written (rule 4); everything staged is given
            up.
        failed: called with a context, and the reason, when what was staged of it cannot be written (rule 4).
        interval: seconds that what is staged `soon` may wait.
        spacing: seconds from one transaction to the next, however much there is to write: the more of it they share.

    Attributes:
        commits: how many transactions have been committed.
        able: set while the last try went through.
    """

    def __init__(
        self,
        database: Database,
        lost: Callable[[], None],
        failed: Callable[[str, Exception], None],
        interval: float = 0.1,
        spacing: float = COMMIT_SPACING,
    ) -> None:
        self.commits = 0
        self._spacing = spacing
        self._stopping = False
        self._given_up = 0
        self._database = database
        self._interval = interval
        self._lost = lost
        self._failed = failed
        self._participants: list[Participant] = []
        self._due: asyncio.TimerHandle | None = None
        self._wanted = asyncio.Event()
        self._staged = 0
        self._committed = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._failing: Unavailable | None = None
        self.healthy = asyncio.Event()
        self.healthy.set()
        self._task: asyncio.Task[None] | None = None

    def join(self, participant: Participant) -> None:
        self._participants.append(participant)

    @property
    def failing(self) -> Unavailable | None:
        """Why the last try failed; None if it went through."""
        return self._failing

    # ----------------------------------------------------------------------- staging

    def flush_soon(self) -> None:
        """Something was staged that may wait a moment."""
        self._staged += 1
        if self._due is None and not self._wanted.is_set():
            self._due = asyncio.get_running_loop().call_later(self._interval, self._wanted.set)

    def flush_now(self) -> None:
        """Something was staged that somebody waits for."""
        self._staged += 1
        self._wanted.set()

    async def flushed(self) -> None:
        """Wait until everything staged so far is committed.

        Raises:
            LeaseLost: it never will be.
        """
        if self._committed >= self._staged:
            return
        if self._stopping:
            raise LeaseLost("this server is stopping")
        self._wanted.set()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._staged, future))
        await future

    # ----------------------------------------------------------------------- writing

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="group commit")

    async def stop(self, *, at_once: bool = False) -> None:
        """Stop writing. What is staged and not `settled` is given up.

        Args:
            at_once: also what is on its way.
        """
        self._stopping = True
        self._wanted.set()
        if self._due:
            self._due.cancel()
        if self._task:
            # Not in the middle of a transaction, if it can be helped: its connection would be lost.
            await asyncio.wait([self._task], timeout=0 if at_once else STOP)
            self._task.cancel()
            await asyncio.wait([self._task])
        self._end_waiting(LeaseLost("this server is stopping"))

    def give_up(self, reason: str = "another replica has taken over") -> None:
        """Nothing that is staged will be written."""
        self._given_up += 1
        for participant in self._participants:
            participant.collect()
        self._committed = self._staged
        self._end_waiting(LeaseLost(reason))

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            if self._stopping:
                return
            self._wanted.clear()
            if self._due:
                self._due.cancel()
                self._due = None
            begun = asyncio.get_running_loop().time()
            await self._commit()
            await asyncio.sleep(begun + self._spacing - asyncio.get_running_loop().time())

    async def _commit(self) -> None:
        staged, given_up = self._staged, self._given_up
        try:
            works = [work for participant in self._participants if (work := participant.collect())]
            written = await self._write(works) if works else _Together(works)
            if self._given_up != given_up:
                return
            written.done()
            for context_id, error in written.unwritten.items():
                self._failed(context_id, error)
        except LeaseLost:
            if not self._stopping and self._given_up == given_up:
                self._lost()
            return
        except Exception:
            # Memory and database may differ now, and only the database counts.
            logger.exception("What was staged cannot be written; it is given up")
            if self._given_up == given_up:
                self._lost()
            return
        self._committed = max(self._committed, staged)
        self._wake()

    async def _write(self, works: Sequence[Work]) -> _Together | _Apart:
        writing: _Together | _Apart = _Together(works)
        while True:
            try:
                with suppress(AlreadyCommitted):
                    async with self._database.write() as connection:
                        await writing.write(connection)
            except Unavailable as error:
                self._note(error)
                if self._stopping:
                    raise LeaseLost("this server is stopping") from error
                await asyncio.sleep(RETRY_SECONDS)
            except LeaseLost:
                raise
            except Exception:
                if isinstance(writing, _Apart):
                    raise
                writing = _Apart(works)
            else:
                self._note(None)
                self.commits += 1
                return writing

    def _note(self, failing: Unavailable | None) -> None:
        if failing and self._failing is None:
            logger.error("%s What is to be written waits.", failing)
            self.healthy.clear()
        elif self._failing and failing is None:
            logger.warning("The database can be used again.")
            self.healthy.set()
        self._failing = failing

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ticket, future in waiting:
            if future.done():
                continue
            if ticket <= self._committed:
                future.set_result(None)
            else:
                self._waiting.append((ticket, future))

    def _end_waiting(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)


class _Together:
    """Everything, or nothing.

    Attributes:
        unwritten: by context, why what was staged of it is not written.
    """

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = works
        self.unwritten: Mapping[str, Exception] = {}

    async def write(self, connection: AsyncConnection) -> None:
        for work in self._works:
            await work.write(connection)

    def done(self) -> None:
        for work in self._works:
            work.done()


class _Apart:
    """What every transaction needs, and of the contexts those that can be written (rule 4)."""

    def __init__(self, works: Sequence[Work]) -> None:
        by_context = [work.by_context() for work in works]
        self._shared = [work for work, parts in zip(works, by_context, strict=True) if not parts]
        # In order, so that no two replicas wait for one another.
        contexts = sorted({context_id for parts in by_context for context_id in parts})
        self._contexts = {each: [parts[each] for parts in by_context if each in parts] for each in contexts}
        self.unwritten: dict[str, Exception] = {}

    async def write(self, connection: AsyncConnection) -> None:
        for work in self._shared:
            await work.write(connection)  # `AlreadyCommitted`: what could not be written then stands in `unwritten`
        self.unwritten.clear()
        for context_id, parts in self._contexts.items():
            try:
                with translated():
                    async with connection.begin_nested():
                        for part in parts:
                            await part.write(connection)
            except (LeaseLost, Unavailable):
                raise
            except Exception as error:
                self.unwritten[context_id] = error
        if len(self.unwritten) == len(self._contexts) > 1:
            raise next(iter(self.unwritten.values()))
        for context_id in self.unwritten:
            for part in self._contexts[context_id]:
                await part.release(connection)

    def done(self) -> None:
        for work in self._shared:
            work.done()
        for context_id, parts in self._contexts.items():
            for part in parts:
                if context_id in self.unwritten:
                    part.failed()
                else:
                    part.done()
