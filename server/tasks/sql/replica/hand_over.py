"""Tasks that wait at a full replica are handed over to one that has room.

Rule 1: a replica writes with each heartbeat how many more turns it could run (`replicas.room`). One whose turns wait
        for a place reads it of the others, and gives them that many tasks, those first that are served first.
Rule 2: a task always has an owner. The giver stops the turn, waits until what it has emitted is committed, and forgets
        the task; then one statement makes it the taker's, if it is still the giver's under the same epoch, and the
        taker has its lease. The taker claims it under the next epoch (`takeover.py`), as what it owns and does not run.
        If the statement fails, or the taker dies, the giver, or any replica, claims it in the same way.
Rule 3: rooms are as old as a heartbeat: what was given since is deducted. A replica that gets more than it can run
        hands it on.
Rule 4: a turn that had begun stays. The giver may hold a draft of it, which the taker could not use before the giver
        ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import exists, func, select, tuple_, update

from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.projections.records import UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.replica.lease import Lease
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, Notify
from a2a_canvas.store.sql.database import Database

FRESH_SECONDS = 2.5
"""The age of a room that counts: two heartbeats and a half. The row of a replica that has died stays for a lease."""

_NOW = func.extract("epoch", func.clock_timestamp())


def divide(waiting: Sequence[str], room: Mapping[str, int]) -> dict[str, list[str]]:
    """Which replica gets which of the waiting tasks: the next one goes to the replica with the most room."""
    left, given = Counter(room), dict[str, list[str]]()
    for task_id in waiting[: sum(room.values())]:
        replica = max(left, key=lambda each: (left[each], each))
        left[replica] -= 1
        given.setdefault(replica, []).append(task_id)
    return given


class HandOver:
    """Hands tasks over to other replicas. Its methods raise `Unavailable` while the database cannot be used."""

    def __init__(self, database: Database, lease: Lease, notify: Notify) -> None:
        self._database = database
        self._lease = lease
        self._notify = notify
        self._given: dict[str, tuple[float, int]] = {}  # by replica: since when it had that room, and how many

    async def room(self) -> dict[str, int]:
        """How many more turns each of the other replicas can run, if it can run any."""
        others = select(replicas.c.replica_id, replicas.c.room_at, replicas.c.room)
        fresh = replicas.c.room_at > _NOW - FRESH_SECONDS
        others = others.where(replicas.c.room > 0, replicas.c.replica_id != self._lease.id, fresh)
        async with self._database.read() as connection:
            found = (await connection.execute(others)).all()
        self._given = {row.replica_id: self._since(row.replica_id, row.room_at) for row in found}
        room = {row.replica_id: row.room - self._given[row.replica_id][1] for row in found}
        return {replica: free for replica, free in room.items() if free > 0}

    def _since(self, replica: str, at: float) -> tuple[float, int]:
        since, count = self._given.get(replica, (at, 0))
        return at, count if since == at else 0

    async def give(self, records: Iterable[TaskRecord], replica: str) -> None:
        """Make tasks that this replica has, and runs no more, those of another one (rule 2)."""
        known = [(each.context_id, each.task_id, each.epoch) for each in records]
        alive = exists(select(replicas.c.replica_id).where(replicas.c.replica_id == replica))
        ours = tasks.c.replica == self._lease.id, tasks.c.state.in_(UNSETTLED)
        same = tuple_(tasks.c.context_id, tasks.c.task_id, tasks.c.epoch).in_(known)
        given = update(tasks).where(same, *ours, alive).values(replica=replica)
        async with self._database.write() as connection:
            await connection.execute(given)
            handed = tuple(task_id for _, task_id, _ in known)
            await connection.run_sync(self._notify, Notification(handed=handed))
        at, count = self._given[replica]
        self._given[replica] = at, count + len(known)
