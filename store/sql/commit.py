"""Group commit: writes all staged work in one transaction, and callers that need it durable wait for that.

Rule 1: staging never waits. What is staged in one step of the event loop is written in one transaction, because the
        work of all participants is collected in one step.
Rule 2: `flush_soon` writes within `interval`, and what subscribers wait for `FOLLOWED_INTERVAL` after the previous
        transaction began, alone: one context that is followed would have those of all others written as often.
        `flush_now` writes at once, with everything staged before. While one transaction runs, the next one is staged.
Rule 3: a transaction that fails for a transient reason is retried until it is committed, in the same order and with
        everything that was staged. If an earlier attempt turns out to be committed, another commit has to confirm it: a
        synchronous standby may not have it yet. It is given up if the replica has lost its lease, if the server stops
        and the database does not answer, and by rule 4.
Rule 4: an error in one context fails that context alone. Everything that belongs together is in one context. So a
        transaction that fails for a permanent reason is repeated once with a savepoint per context: the contexts that
        can be written are committed, `failed` is called for the others. If none of several contexts can be written, no
        single one is the cause, and everything is given up as if the lease were lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from sqlalchemy import Connection

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database, translate_errors

logger = logging.getLogger(__name__)

_STOPPING = "this server is stopping"

COMMIT_SPACING = 0.018
"""Seconds from the start of one transaction to the start of the next."""
INTERVAL = 0.25
"""Seconds that a piece of a draft may wait. Shorter means more pages, and a page costs more than its text."""
FOLLOWED_INTERVAL = 0.04
"""Seconds from the start of one transaction to the start of the next, for drafts that subscribers wait for."""
COMMIT_TIMEOUT = 5.0
"""Seconds that a caller waits for a commit."""
RETRY_SECONDS = 0.2
"""Seconds between two attempts."""
STOP_SECONDS = 2.0
"""Seconds left for the running transaction when the server stops."""


class LeaseLost(Exception):
    """Another replica has taken over the data of this transaction."""


class AlreadyCommitted(Exception):
    """An earlier attempt at this transaction was committed, but its connection broke before the response.

    The code that raises it has written something, so that the commit of this attempt confirms the earlier one.
    """


class _Writable(Protocol):
    def write(self, connection: Connection) -> None:
        """Write it. Called again if the transaction failed.

        Raises:
            LeaseLost: another replica has taken over.
            AlreadyCommitted: an earlier attempt was committed.
        """
        ...

    def done(self) -> None:
        """It has been committed."""
        ...


class ContextWork(_Writable, Protocol):
    """The work of one participant in one context."""

    def release(self, connection: Connection) -> None:
        """Release, in the rows, the leases for this work: it cannot be written."""
        ...

    def failed(self) -> None:
        """It was dropped without being written."""
        ...


class StagedWork(_Writable, Protocol):
    """The work of one participant."""

    def by_context(self) -> Mapping[ContextKey, ContextWork]:
        """The same work by context; empty for work that every transaction needs."""
        ...


class Participant(Protocol):
    """Stages work."""

    def collect(self, contexts: Collection[ContextKey] | None = None) -> StagedWork | None:
        """Everything staged since the last call, or all of that in some contexts; None if nothing. Must not await."""
        ...


class GroupCommit:
    """Writes the work of all participants, in the order in which they joined.

    Args:
        lost: called when another replica has taken over, or nothing can be written (rule 4). It has to `give_up`.
        failed: called with a context and the error when the work of that context cannot be written (rule 4).
        interval: seconds that `flush_soon` may take.
        spacing: seconds from one transaction to the next. The longer, the more callers share one.
        committed: called with the seconds that a committed transaction took.

    Attributes:
        commits, failures: number of committed transactions, and of failed attempts.
        failing: why the last attempt failed; None if it succeeded.
        healthy: set while the last attempt succeeded.
    """

    def __init__(
        self,
        database: Database,
        lost: Callable[[], None],
        failed: Callable[[ContextKey, Exception], None],
        interval: float = INTERVAL,
        spacing: float = COMMIT_SPACING,
        committed: Callable[[float], None] | None = None,
    ) -> None:
        self.commits = self.failures = 0
        self._observe = committed
        self._spacing = spacing
        self._stopping = False
        self._given_up = 0
        self._database = database
        self._interval = interval
        self._lost = lost
        self._failed = failed
        self._participants: list[Participant] = []
        self._due: asyncio.Handle | None = None
        self._followed_due: asyncio.Handle | None = None
        self._followed: set[ContextKey] = set()
        self._all_due = False
        self._begun = float("-inf")
        self._flush_requested = asyncio.Event()
        self._staged = 0
        self._committed = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.failing: Unavailable | None = None
        self.healthy = asyncio.Event()
        self.healthy.set()
        self._task: asyncio.Task[None] | None = None

    def join(self, participant: Participant) -> None:
        self._participants.append(participant)

    # ----------------------------------------------------------------------- staging

    def flush_soon(self, *, followed: ContextKey | None = None) -> None:
        """Write what is staged within `interval`.

        Args:
            followed: a context in which subscribers wait for the commit: what is staged there is written sooner.
        """
        self._staged += 1
        loop = asyncio.get_running_loop()
        if followed is not None:
            self._followed.add(followed)
            if self._followed_due is None:
                self._followed_due = loop.call_at(self._begun + FOLLOWED_INTERVAL, self._flush_requested.set)
        elif self._due is None:
            self._due = loop.call_later(self._interval, self._request_all)

    def _request_all(self) -> None:
        self._all_due = True
        self._flush_requested.set()

    def _take_due(self) -> set[ContextKey] | None:
        """Begin anew: the contexts that are due; None for all."""
        due = None if self._all_due else self._followed
        self._followed = set()
        if self._followed_due:
            self._followed_due.cancel()
            self._followed_due = None
        if self._due and self._all_due:
            self._due.cancel()
            self._due = None
        self._all_due = False
        self._flush_requested.clear()
        return due

    def flush_now(self) -> None:
        """Write what is staged at once."""
        self._staged += 1
        self._request_all()

    async def flushed(self, within: float | None = None) -> None:
        """Wait until everything staged so far is committed.

        Raises:
            Unavailable: it is not committed after `within` seconds, or it was given up.
        """
        if self._committed >= self._staged:
            return
        if self._stopping:
            raise Unavailable(_STOPPING)
        self._request_all()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._staged, future))
        try:
            async with asyncio.timeout(within):
                await future
        except TimeoutError:
            raise Unavailable(self.failing.reason if self.failing else "it is too slow") from None

    # ----------------------------------------------------------------------- writing

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="group commit")

    def pause(self) -> None:
        """Stop writing at once; `start` continues."""
        if self._task:
            self._task.cancel()

    async def stop(self, *, at_once: bool = False) -> None:
        """Stop writing. Staged work is given up.

        Args:
            at_once: the running transaction is given up, too.
        """
        self._stopping = True
        self._all_due = True
        self._take_due()
        self._flush_requested.set()
        if self._task:
            # Cancelling a transaction in the middle would lose its connection.
            await asyncio.wait([self._task], timeout=0 if at_once else STOP_SECONDS)
            self._task.cancel()
            await asyncio.wait([self._task])
        self._end_waiting(_STOPPING)

    def give_up(self, reason: str = "another replica has taken over") -> None:
        """Drop everything that is staged."""
        self._given_up += 1
        for participant in self._participants:
            participant.collect()
        self._committed = self._staged
        self._end_waiting(reason)

    async def _run(self) -> None:
        while True:
            await self._flush_requested.wait()
            if self._stopping:
                return
            self._begun = asyncio.get_running_loop().time()
            await self._commit(self._take_due())
            await asyncio.sleep(self._begun + self._spacing - asyncio.get_running_loop().time())

    async def _commit(self, contexts: set[ContextKey] | None) -> None:
        staged, given_up = self._staged, self._given_up
        try:
            works = [work for participant in self._participants if (work := participant.collect(contexts))]
            written = await self._write(works, whole=contexts is None) if works else _OneTransaction(works)
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
            # Memory and database may differ now; the database is right.
            logger.exception("The staged work cannot be written; it is given up")
            if self._given_up == given_up:
                self._lost()
            return
        if contexts is None:
            self._committed = max(self._committed, staged)
            self._wake()

    def _collect_others(self) -> list[StagedWork]:
        """What a transaction of some contexts has left out."""
        works = (participant.collect() for participant in self._participants)
        return [work for work in works if work and work.by_context()]

    async def _write(self, works: Sequence[StagedWork], *, whole: bool) -> _OneTransaction | _PerContext:
        writing: _OneTransaction | _PerContext = _OneTransaction(works)
        while True:
            begun = asyncio.get_running_loop().time()
            try:
                await self._database.transact(partial(_write_once, writing))
            except Unavailable as error:
                self.failures += 1
                self._set_failing(error)
                if self._stopping:
                    raise LeaseLost(_STOPPING) from error
                await asyncio.sleep(RETRY_SECONDS)
            except LeaseLost:
                raise
            except Exception:
                self.failures += 1
                if isinstance(writing, _PerContext):
                    raise
                # If nothing else can be written either, no context is to blame (rule 4).
                writing = _PerContext(works if whole else [*works, *self._collect_others()])
            else:
                self._set_failing(None)
                self.commits += 1
                if self._observe:
                    self._observe(asyncio.get_running_loop().time() - begun)
                return writing

    def _set_failing(self, failing: Unavailable | None) -> None:
        if failing and self.failing is None:
            logger.error("%s Staged work waits.", failing)
            self.healthy.clear()
        elif self.failing and failing is None:
            logger.warning("The database can be used again.")
            self.healthy.set()
        self.failing = failing

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ticket, future in waiting:
            if future.done():
                continue
            if ticket <= self._committed:
                future.set_result(None)
            else:
                self._waiting.append((ticket, future))

    def _end_waiting(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(Unavailable(reason))


def _write_once(writing: _OneTransaction | _PerContext, connection: Connection) -> None:
    """Write it, or, if an earlier attempt was committed, only what confirms that (rule 3)."""
    with suppress(AlreadyCommitted):
        writing.write(connection)


class _OneTransaction:
    """All work, or none.

    Attributes:
        unwritten: the contexts that could not be written, with the error.
    """

    def __init__(self, works: Sequence[StagedWork]) -> None:
        self._works = works
        self.unwritten: Mapping[ContextKey, Exception] = {}

    def write(self, connection: Connection) -> None:
        for work in self._works:
            work.write(connection)

    def done(self) -> None:
        for work in self._works:
            work.done()


class _PerContext:
    """The work that every transaction needs, and the contexts that can be written (rule 4)."""

    def __init__(self, works: Sequence[StagedWork]) -> None:
        by_context = [work.by_context() for work in works]
        self._shared = [work for work, parts in zip(works, by_context, strict=True) if not parts]
        # Sorted, so that two replicas cannot deadlock.
        contexts = sorted({context_id for parts in by_context for context_id in parts})
        self._contexts = {each: [parts[each] for parts in by_context if each in parts] for each in contexts}
        self.unwritten: dict[ContextKey, Exception] = {}

    def write(self, connection: Connection) -> None:
        for work in self._shared:
            work.write(connection)  # on `AlreadyCommitted`, `unwritten` is still that of the committed attempt
        self.unwritten.clear()
        for context_id, parts in self._contexts.items():
            try:
                with translate_errors(), connection.begin_nested():
                    for part in parts:
                        part.write(connection)
            except (LeaseLost, Unavailable):
                raise
            except Exception as error:
                self.unwritten[context_id] = error
        if len(self.unwritten) == len(self._contexts) > 1:
            raise next(iter(self.unwritten.values()))
        for context_id in self.unwritten:
            for part in self._contexts[context_id]:
                part.release(connection)

    def done(self) -> None:
        for work in self._shared:
            work.done()
        for context_id, parts in self._contexts.items():
            for part in parts:
                if context_id in self.unwritten:
                    part.failed()
                else:
                    part.done()
