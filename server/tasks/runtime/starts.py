"""How a turn begins: what its sender has changed is saved, all of it becomes durable, and then the turn runs.

Rule 1: a message and the changes that come with it are accepted in one step, or not at all.
Rule 2: what has been begun of that goes on even if the sender hangs up meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from a2a_canvas.server.agent.edit.run import apply_user_changes
from a2a_canvas.server.agent.endings import INTERNAL_ERROR, Ending
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.errors import TaskNotFound, Unwritable
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import Journal, TaskSubscription
from a2a_canvas.server.tasks.ownership import Detached, DuplicateMessage
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.turns import Turns
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import Ref

logger = logging.getLogger(__name__)

T = TypeVar("T")

POLL_INTERVAL = 0.05
"""Seconds between two looks at what another replica is about to finish."""

Accept = Callable[[], Awaitable[None]]
"""Says that the message was accepted; it does not wait."""


class Starts:
    """Begins turns.

    Args:
        new_id: the source of ids.
    """

    def __init__(self, journal: Journal, store: ArtifactStore, turns: Turns, new_id: Callable[[], str]) -> None:
        self._journal = journal
        self._store = store
        self._turns = turns
        self._new_id = new_id
        self._underway: set[asyncio.Task[Any]] = set()

    async def prepare(self, incoming: Incoming, record: TaskRecord) -> None:
        """Get hold of what the message changes, so that it is accepted with all its changes or not at all."""
        for artifact_id, _ in incoming.changes:
            await self._store.prepare(Ref(record.context_id, artifact_id, record.task_id, "user"))

    async def go_on(self, record: TaskRecord, incoming: Incoming, accept: Accept) -> TaskSubscription:
        """Accept a message, save what came with it, and start the turn once all of that is durable.

        Raises:
            DuplicateMessage: another replica has accepted the message.
            Unavailable: nobody can tell yet whether it was accepted.
        """
        if incoming.changes:
            return await asyncio.shield(self._kept(self._save_and_start(record, incoming, accept)))
        await accept()
        return await self._started(record.task_id)

    def _kept(self, step: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A step that goes on whoever leaves (rule 2)."""
        task = asyncio.create_task(step)
        self._underway.add(task)
        task.add_done_callback(self._underway.discard)
        return task

    async def _save_and_start(self, record: TaskRecord, incoming: Incoming, accept: Accept) -> TaskSubscription:
        refused = await self._save(record, incoming, accept)
        if refused:
            await self._journal.append(record.task_id, refused.status(self._new_id))
            await self._journal.flushed(record.task_id)
            return await self._journal.follow(record.task_id)
        return await self._started(record.task_id)

    async def _started(self, task_id: str) -> TaskSubscription:
        try:
            return await self._start(task_id)
        except Detached:  # a cancel, but not of this request
            raise Unavailable("another server has taken over") from None
        except (Unavailable, asyncio.CancelledError):
            # It is on its way to the database, and nobody else will carry it out.
            self._kept(self._start_later(task_id))
            raise

    async def _save(self, record: TaskRecord, incoming: Incoming, accept: Accept) -> Ending | None:
        """How the task ends if what the sender has changed cannot be saved. Accepting and saving are one step."""
        emit = partial(self._journal.append, record.task_id)
        store = self._turns.store_of(record.task_id)
        try:
            await accept()
            return await apply_user_changes(incoming.changes, record.context_id, record.task_id, store, emit)
        except Detached:
            raise Unavailable("another server has taken over") from None
        except Unavailable:
            raise  # it was not even accepted
        except Exception:
            logger.exception("What came with task %s was lost", record.task_id)
            return Ending(State.FAILED, INTERNAL_ERROR)

    async def _start(self, task_id: str) -> TaskSubscription:
        self._journal.check_owned(task_id)
        await self._journal.flushed(task_id)
        self._journal.check_owned(task_id)
        following = await self._journal.follow(task_id)
        if self._turns.get(task_id) is None:  # else it was lost, and taken up again, meanwhile
            self._turns.start(following.snapshot)
        return following

    async def _start_later(self, task_id: str) -> None:
        while True:
            with suppress(DuplicateMessage, Detached, TaskNotFound, Unwritable):
                try:
                    await self._start(task_id)
                except Unavailable:
                    await asyncio.sleep(POLL_INTERVAL)
                    continue
            return
