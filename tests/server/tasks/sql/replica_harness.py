"""A replica of the server for tests: a backend and a runtime with a scripted model, several on one PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import delete

from a2a_canvas.server.accounts.access import ANONYMOUS, Access
from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.loops.agent_function import AgentRun, agent_function
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.tasks.contexts import Contexts
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.tasks.sql.projections.replicas import replicas as lease_rows
from a2a_canvas.server.tasks.sql.replica.lease import LeaseTiming
from a2a_canvas.store.ids import new_id
from a2a_canvas.store.models import Limits, Ref
from a2a_canvas.store.sql.database import Database
from a2a_canvas.tools.registry import SCRIPT_TOOLS
from tests.database_fixtures import postgresql_url
from tests.fakes import FakeLLM, Step, no_time, said
from tests.new_database import create_tables
from tests.server.tasks.kept_count import assert_tasks_counted
from tests.server.tasks.runtime.runtime_harness import rest

SOON = 60.0
"""Seconds after which a test says that what it waits for never comes."""
LONG_LEASE = LeaseTiming(heartbeat=0.2, expiry=20.0)
"""No lease runs out, however busy the machine is."""
SHORT_LEASE = LeaseTiming(heartbeat=0.05, expiry=0.8)
"""For tests of the expiry itself."""


BOTH_WAYS = pytest.mark.parametrize("several", ["postgresql", "broker"], indirect=True)
"""A test of what holds for replicas that notify by PostgreSQL, and for those that notify by a broker."""


class Replica:
    """One replica.

    Args:
        calls: what its model says, call by call.
        admission: how many turns it runs at once.
        llm: in place of the one that says `calls`.
        agent: in place of a model.
        broker: address of one.
        takes_over: whether it takes tasks over.
        hands_over: what waits here is given to replicas that have room.
    """

    def __init__(
        self,
        url: str,
        calls: Iterable[Iterable[Step]],
        admission: Admission | None = None,
        llm: LLM | None = None,
        timing: LeaseTiming = LONG_LEASE,
        agent: AgentRun | None = None,
        broker: str = "",
        takes_over: bool = True,
        *,
        hands_over: bool = False,
    ) -> None:
        self.llm = FakeLLM(calls)
        self.dead = False
        self.metrics = Metrics()
        self.backend = SqlBackend(
            Database(url),
            lambda: datetime.now(UTC),
            Limits(),
            spacing=0,
            timing=timing,
            metrics=self.metrics,
            broker=[broker] if broker else (),
            takes_over=takes_over,
        )
        self.runtime = Runtime(
            contexts=Contexts(
                Access(self.backend.journal, self.backend.shares),
                self.backend.journal,
                self.backend.store,
                self.backend.contexts,
                self.backend.presence,
            ),
            ownership=self.backend.ownership,
            llm=llm or self.llm,
            tools=lambda: SCRIPT_TOOLS,
            now=lambda: datetime.now(UTC),
            new_id=new_id,
            sleep=no_time,
            admission=admission,
            agent=agent and agent_function(agent),
        )
        if not hands_over:
            self.runtime.wait_until_full = asyncio.Event().wait  # type: ignore[method-assign,assignment]

    async def send(self, message: UserMessage | str, task: str = "", context: str = "c") -> TaskSubscription:
        if isinstance(message, str):
            message = said(f"m-{message}", message)
        return await self.runtime.send(Incoming(message, "", context, task), ANONYMOUS)

    async def record(self, task_id: str) -> TaskRecord:
        return await self.runtime.get(task_id, ANONYMOUS)

    @property
    def broker(self) -> Broker:
        found = self.backend.broker.broker
        assert found
        return found

    async def text(self, artifact_id: str = "doc", context: str = "c") -> str:
        return (await self.backend.store.get(Ref(context, artifact_id, ""))).text

    def freeze(self) -> None:
        """Stand still, as a process does that is stopped by a signal."""
        for loop in (self.backend._heartbeat, self.backend._takeover_task, self.backend._hand_over_task):
            if loop:
                loop.cancel()
        self.backend.commits.pause()
        self.backend._listener.cancel()

    def thaw(self) -> None:
        """Go on as if nothing had happened."""
        self.backend.commits.start()
        self.backend._start_heartbeat()
        self.backend._start_takeovers()

    async def crash(self, *, expire: bool = True) -> None:
        """End without a word: what was not written is gone.

        Args:
            expire: others find out at once; else when the lease has run out.
        """
        self.freeze()
        if expire:
            await self._expire()
        self.backend.journal.give_up()
        self.runtime.detach()
        await self.runtime.idle()
        await self.backend.journal.stop()
        await self.backend._exchange.stop()
        await self.backend.broker.stop()
        await self.backend._database.close()
        self.dead = True

    async def _expire(self) -> None:
        """What another replica does when the lease has run out."""
        lease = self.backend._lease.id
        async with self.backend._database.write() as connection:
            await connection.execute(delete(lease_rows).where(lease_rows.c.replica_id == lease))

    async def stop(self) -> None:
        if not self.dead:
            await self.runtime.close()
            await self.backend.stop()


class Replicas:
    """The replicas of one database."""

    def __init__(self, url: str, broker: str = "") -> None:
        self.url = url
        self.broker = broker
        self._all: list[Replica] = []

    async def start(self, *calls: Iterable[Step], **options: Any) -> Replica:
        replica = Replica(self.url, calls, **{"broker": self.broker, **options})
        await replica.backend.start(replica.runtime)
        if self.broker:
            async with asyncio.timeout(SOON):
                await replica.broker.connected.wait()
        self._all.append(replica)
        return replica

    async def stop(self) -> None:
        for replica in self._all:
            await replica.stop()


@asynccontextmanager
async def replicas(url: str = "", broker: str = "") -> AsyncIterator[Replicas]:
    """On a new database of PostgreSQL, unless `url` names another one. In the end the tasks are counted right."""
    url = url or postgresql_url()
    database = Database(url)
    await create_tables(database)
    several = Replicas(url, broker)
    try:
        yield several
        await assert_tasks_counted(database)
    finally:
        await several.stop()
        await database.close()


async def ended(replica: Replica, task_id: str) -> TaskRecord:
    """The task once nothing more follows."""
    async with asyncio.timeout(SOON):
        await rest(await replica.runtime.follow(task_id, ANONYMOUS))
    return await replica.record(task_id)
