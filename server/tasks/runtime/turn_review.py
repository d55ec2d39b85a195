"""What one run of a turn has to do with comments and suggestions.

Rule 1: its user comments as the one for whom the turn works at that moment (`turns.py`, rule 6).
Rule 2: a turn that was asked in a thread has the thread before it begins, and ends with its answer in it
        (`agent/edit/thread_question.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from a2a_canvas.server.accounts.access import Access, Caller, shown_name
from a2a_canvas.server.agent.annotation_operations import Annotate, Reply
from a2a_canvas.server.agent.edit.run import OperationRequest, add_question
from a2a_canvas.server.agent.edit.thread_question import (
    AnswerListener,
    add_answer,
    quoted_thread,
    recorded_answer,
    with_annotation,
)
from a2a_canvas.server.agent.endings import Ending
from a2a_canvas.server.agent.events import Emit, State, StatusChanged
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.annotations.annotation import AGENT, Writer
from a2a_canvas.store.annotations.annotation_store import RetryingAnnotations
from a2a_canvas.store.annotations.review import Report, Review
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Author
from a2a_canvas.store.retrying import retry_while_unavailable

AgentsSuggest = Callable[[ContextKey, str], Awaitable[bool]]
"""Whether what agents change in a context of an owner becomes suggestions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReview:
    """The comments and suggestions of one run of a turn.

    Attributes:
        store: for this run.
        sender: for whom the turn works now.
        pause: between two attempts to reach the database.
    """

    record: TaskRecord
    store: ArtifactStore
    sender: Callable[[], str]
    journal: Journal
    access: Access
    agents_suggest: AgentsSuggest
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    pause: Callable[[], Awaitable[None]]

    def make(self, author: Author, store: EventedArtifactStore, report: Report) -> Review:
        """The review of the user, or the agent's."""
        ids = self.record.context_id, self.record.task_id
        check = partial(self.journal.check_runs_here, self.record.task_id)
        annotations = RetryingAnnotations(self.journal.annotations, self.pause, check)
        writer = AGENT if author == "agent" else _writer_of(self.sender())
        return Review(store, annotations, report, *ids, writer, self.now, self.new_id)

    async def suggests(self) -> bool:
        """Whether what the agent changes becomes suggestions."""
        step = partial(self.agents_suggest, self.record.context_id, self.record.owner)
        return await retry_while_unavailable(step, self.pause)

    async def ask(self, request: Callable[[], OperationRequest], emit: Emit) -> TaskRecord | None:
        """The record, with the thread in which it asks the agent, if it does; None if the task has ended instead."""
        record = self.record
        if not record.asks_agent or quoted_thread(record.transcript):
            return record
        quoted = await add_question(
            request(),
            store=self.store,
            emit=emit,
            new_id=self.new_id,
            make_review=self.make,
            level_of=self._level_of,
        )
        return replace(record, transcript=(*record.transcript, quoted)) if quoted else None

    async def _level_of(self, account: str) -> str:
        caller = Caller.from_author(account)
        step = partial(self.access.level, caller, self.record.context_id, self.record.owner)
        return (await retry_while_unavailable(step, self.pause)).word

    async def answer(self, emit: Emit, converse: Callable[[Emit], Awaitable[None]]) -> None:
        """Run a conversation to the end of its task; its answer is added to the thread that has asked, if one has."""
        if not self.record.asks_agent:
            await converse(emit)
            return
        listening = AnswerListener(emit)
        answer = recorded_answer(self.record.transcript)
        if answer is None:
            await converse(listening.take)
        else:
            listening.completed = Ending(State.COMPLETED, answer).status(self.new_id)
        if listening.completed:
            await self._add_answer(emit, listening.completed)

    async def _add_answer(self, emit: Emit, completed: StatusChanged) -> None:
        """Add the answer to the thread, and end the task, in one event-loop step."""
        assert isinstance(self.record.operation, Annotate | Reply)
        review = self.make("agent", EventedArtifactStore(self.store, listener(emit)), emit)
        text = completed.message.text if completed.message else ""
        asked = await add_answer(self.record.operation, self.record.task_id, review, text)
        await emit(with_annotation(completed, asked))


def _writer_of(sender: str) -> Writer:
    return Writer("user", shown_name(sender), sender)
