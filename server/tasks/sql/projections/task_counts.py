"""Counts the tasks of each owner in each state, in the transactions that change them: a list says how many there are.

Rule 1: each replica has rows of its own, so that none waits for a transaction of another; the sums count. One of them
        alone may be negative. What removes contexts counts in the rows of no replica.
Rule 2: a transaction writes its counts after its other rows of the journal, and sorted, so that two cannot deadlock.
Rule 3: a sweep adds the rows of dead replicas to those of none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import BigInteger, Column, Connection, Table, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.row_statement import Row, RowStatement, upsert
from a2a_canvas.store.sql.tables import Text, metadata

task_counts = Table(
    "task_counts",  # the sums are how many tasks an owner has in a state (`task_counts.py`)
    metadata,
    Column("owner", Text, primary_key=True),
    Column("state", Text, primary_key=True),
    Column("replica_id", Text, primary_key=True),  # that has counted; empty for none
    Column("tasks", BigInteger, nullable=False),
)

OwnerState = tuple[str, str]
"""An owner of tasks, and the value of a state."""

_ADD = RowStatement(upsert(task_counts, added=["tasks"]), task_counts.c.keys())


def add_counts(connection: Connection, added: Mapping[OwnerState, int], replica: str = "") -> None:
    """Count tasks that this transaction writes, or, if a number is negative, that it removes.

    Args:
        replica: the id of this replica; empty for none.
    """
    _ADD.execute(connection, _count_rows(added, replica))


def _count_rows(added: Mapping[OwnerState, int], replica: str) -> list[Row]:
    changed = [(key, added[key]) for key in sorted(added) if added[key]]
    return [
        {"owner": owner, "state": state, "replica_id": replica, "tasks": number} for (owner, state), number in changed
    ]


def write(connection: Connection, commit: JournalCommit) -> None:
    """The state before is that of the locked row (`records.py`)."""
    changed: Counter[OwnerState] = Counter()
    for each in commit.tasks:
        owner, state = each.batch.newest.owner, each.batch.newest.state.value
        if each.batch.created:
            changed[owner, state] += 1
        elif each.batch.entries:
            changed.update(count_transition(owner, each.state, state))
    commit.last.add(connection, _ADD, _count_rows(changed, commit.replica))


def count_transition(owner: str, before: str, after: str) -> Counter[OwnerState]:
    """What a task changes that goes from one state to another, which may be the same."""
    change = Counter({(owner, after): 1})
    change.subtract([(owner, before)])
    return change


async def counts_of_context(connection: AsyncConnection, context_id: ContextKey) -> Counter[OwnerState]:
    """The tasks of one context."""
    query = select(tasks.c.owner, tasks.c.state, func.count()).where(tasks.c.context_id == context_id)
    rows = await connection.execute(query.group_by(tasks.c.owner, tasks.c.state))
    return Counter({(owner, state): number for owner, state, number in rows})


async def fold_counts(database: Database, now: datetime) -> None:
    """Add the counts of dead replicas to those of none (rule 3)."""
    dead = task_counts.c.replica_id != "", task_counts.c.replica_id.not_in(select(replicas.c.replica_id))
    async with database.read() as connection:
        if await connection.scalar(select(task_counts.c.owner).where(*dead).limit(1)) is None:
            return
    keys = select(*task_counts.primary_key).where(*dead).with_for_update(skip_locked=True)
    removed = delete(task_counts).where(tuple_(*task_counts.primary_key).in_(keys))
    async with database.write() as connection:
        found = await connection.execute(removed.returning(task_counts))
        sums: Counter[OwnerState] = Counter()
        for row in found:
            sums[row.owner, row.state] += row.tasks
        await connection.run_sync(add_counts, sums)


async def count_of_owners(connection: AsyncConnection, owners: Sequence[str], state: State | None) -> int:
    """How many tasks these owners have, in a state or in all."""
    query = select(func.sum(task_counts.c.tasks)).where(task_counts.c.owner.in_(owners))
    if state:
        query = query.where(task_counts.c.state == state.value)
    return int(await connection.scalar(query) or 0)
