"""The failover test: scenes are played on two servers while their database fails over, and what is left is judged.

Rule 1: the servers live on, so no turn fails, none is resumed, and no server expires another, whatever time the other
        database says that it is.
Rule 2: what clients and watchers on the other server were told is there after the promotion, and every turn ends with
        its exact text.
Rule 3: the old primary comes back and accepts writes, and gets none.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Literal, get_args

from tests.database_fixtures import cut_connections, execute
from tests.new_database import with_tables
from tests.postgresql_pair import PostgresqlPair
from tests.server.faults.crash_harness import ROUND_TIMEOUT, SPREAD, SceneRun, complaints
from tests.server.faults.crash_scripts import SCENES
from tests.server.faults.judged_task import Fault, JudgedTask
from tests.server.faults.observed_task import FaultKind
from tests.server.faults.server_processes import POLL, eventually
from tests.server.faults.sse_client import Refused
from tests.server.faults.task_driver import CRASHED, RestartedServer, TaskDriver

LIFE = (0.3, 1.0)
"""Seconds after which the primary is killed."""
OUTAGE = (0.0, 6.0)
"""Seconds until the standby is promoted; a lease expires after four."""
EXPECTED = "Staged work waits."
"""In the one error that a server logs while there is no primary."""

WORKING = "SELECT task_id, generation FROM tasks WHERE state IN ('submitted', 'working')"
RESUMED = "SELECT task_id FROM tasks WHERE resumptions > 0"
WRITTEN = (
    "SELECT (SELECT sum(commits) FROM replicas), (SELECT sum(generation) FROM tasks), (SELECT count(*) FROM pages)"
)


FailoverFault = FaultKind | Literal["resumed", "expired", "old primary"]
"""As in the crash test; or a turn was resumed, a living server expired, something written to the old primary."""
FAULTS: Sequence[FailoverFault] = (*get_args(FaultKind), "resumed", "expired", "old primary")


class SurvivingServer(RestartedServer):
    """A server that lives on without its database; its clients wait meanwhile."""

    def lose_database(self) -> None:
        self.up.clear()

    async def regain_database(self) -> None:
        await eventually(self._ready)
        self.life += 1
        self.up.set()

    async def _ready(self) -> bool:
        return (await self.process.http.get("/readyz")).is_success


@dataclass(slots=True)
class Failovers:
    """What happened in all rounds.

    Attributes:
        at_work: turns that ran when the primary was killed.
        told: what clients were told that must last.
        watched: the same, of watchers on the other server.
        seconds: of each round, from the end of the promotion until every turn had gone on.
    """

    rounds: int = 0
    tasks: int = 0
    at_work: int = 0
    told: int = 0
    watched: int = 0
    seconds: list[float] = field(default_factory=list)
    faults: Counter[FailoverFault] = field(default_factory=Counter)

    def fault(self, kind: FailoverFault, what: str) -> None:
        self.faults[kind] += 1
        print(f"  {kind}: {what}", flush=True)  # noqa: T201


class Watcher:
    """Follows a task on another server than its client's, to its end."""

    def __init__(self, driver: TaskDriver, server: SurvivingServer) -> None:
        self.driver = driver
        self.task = JudgedTask(driver.script)
        self.task.task_id = driver.task.task_id
        self._server = server

    async def follow(self) -> None:
        while not self.task.ended:
            await self._server.up.wait()
            try:
                async with self._server.process.joins(self.task) as stream:
                    await stream.rest()
            except (Refused, *CRASHED):
                await asyncio.sleep(POLL)
                await self._look()

    async def _look(self) -> None:
        """An ended task has no stream."""
        try:
            self.task.begin(await self._server.process.task(self.task.task_id))
        except (Refused, *CRASHED):
            await asyncio.sleep(POLL)

    def faults(self) -> Sequence[Fault]:
        seen, own = self.task, self.driver.task
        if (seen.state, seen.reply, seen.texts) != (own.state, own.reply, own.texts):
            self.task.fault("text", f"its watcher saw {seen.state}: {seen.reply}, {seen.texts}")
        return self.task.faults


async def watch(run: SceneRun, acting: asyncio.Task[None], other: SurvivingServer) -> list[Watcher]:
    """Follow all tasks of a scene to their ends."""
    watchers: list[Watcher] = []
    async with asyncio.TaskGroup() as group:
        while True:
            over = acting.done()
            for driver in run.drivers[len(watchers) :]:
                if not driver.task.task_id:
                    break
                watchers.append(Watcher(driver, other))
                group.create_task(watchers[-1].follow())
            if over:
                return watchers
            await asyncio.sleep(POLL)


async def play(pair: PostgresqlPair, folder: Path, turns: int, clocks: Sequence[int], seed: int) -> Failovers:
    """One failover for each clock, on one database and two servers that live through all of them.

    Args:
        turns: scenes at once.
        clocks: the seconds by which the clock of each promoted standby is fast; none may follow an equal one.
    """
    found = Failovers()
    database = await with_tables(pair.primary.new_database())
    async with AsyncExitStack() as stack:
        servers = [SurvivingServer(pair.url(database), folder) for _ in range(2)]
        for server in servers:
            stack.push_async_callback(server.stop)
        await asyncio.gather(*(server.start() for server in servers))
        for number, clock in enumerate(clocks):
            await asyncio.to_thread(pair.add_standby, clock)
            await _Round(pair, servers, database, random.Random(f"{seed}/{number}"), found).play(turns)
        for task in execute(pair.primary.url(database.rpartition("/")[2]), RESUMED):
            found.fault("resumed", f"task {task['task_id']}")
    for line in (line for server in servers for log in server.logs for line in log):
        if "lease" in line:
            found.fault("expired", line)
    for line in (line for server in servers for log in server.logs for line in complaints(log)):
        if EXPECTED not in line:
            found.fault("broken", line)
    return found


class _Round:
    def __init__(
        self,
        pair: PostgresqlPair,
        servers: Sequence[SurvivingServer],
        database: str,
        moments: random.Random,
        found: Failovers,
    ) -> None:
        self._pair = pair
        self._servers = servers
        self._name = database.rpartition("/")[2]
        self._moments = moments
        self._found = found

    async def play(self, turns: int) -> None:
        self._found.rounds += 1
        scenes = self._moments.choices(SCENES, k=turns)
        runs = [SceneRun(scene, self._servers[number % 2]) for number, scene in enumerate(scenes)]
        acting = [asyncio.create_task(run.act(self._moments.uniform(0, SPREAD))) for run in runs]
        others = [self._servers[(number + 1) % 2] for number in range(turns)]
        watching = [asyncio.create_task(watch(*each)) for each in zip(runs, acting, others, strict=True)]
        try:
            await self._fail_over(runs)
            old = await self._return_old_primary()
            await asyncio.gather(*(server.regain_database() for server in self._servers))
            await asyncio.wait([*acting, *watching], timeout=ROUND_TIMEOUT)
            if self._written() != old:
                self._found.fault("old primary", f"it had {old} and has {self._written()}")
        finally:
            for task in (*acting, *watching):
                task.cancel()
            await asyncio.wait([*acting, *watching])
        for run, watched in zip(runs, watching, strict=True):
            await self._judge(run, [] if watched.cancelled() else watched.result())

    async def _fail_over(self, runs: Sequence[SceneRun]) -> None:
        await asyncio.sleep(self._moments.uniform(*LIFE))
        for server in self._servers:
            server.lose_database()
        self._pair.kill_primary()
        self._found.at_work += sum(driver.at_work for run in runs for driver in run.drivers)
        await asyncio.sleep(self._moments.uniform(*OUTAGE))
        await asyncio.to_thread(self._pair.promote)
        promoted = monotonic()
        await self._every_turn_goes_on()
        self._found.seconds.append(monotonic() - promoted)

    async def _every_turn_goes_on(self) -> None:
        """Wait until every task that worked at the promotion has a new entry in the promoted database."""
        before = self._working()

        async def all_have() -> bool:
            return not before.items() & self._working().items()

        await eventually(all_have)

    def _working(self) -> dict[str, int]:
        """The generation of each task that works."""
        return {row["task_id"]: row["generation"] for row in execute(self._pair.primary.url(self._name), WORKING)}

    async def _return_old_primary(self) -> Sequence[int]:
        """Start it as it was, and let all servers reconnect; what it has."""
        assert self._pair.old
        self._pair.old.configure(synchronous_standby_names="")  # so that its commits would wait for nobody
        await asyncio.to_thread(self._pair.old.start)
        old = self._written()
        cut_connections(self._pair.primary.url(self._name))
        return old

    def _written(self) -> Sequence[int]:
        assert self._pair.old
        return tuple(execute(self._pair.old.url(self._name), WRITTEN)[0])

    async def _judge(self, run: SceneRun, watchers: Sequence[Watcher]) -> None:
        try:
            await run.judge()
        except (Refused, *CRASHED) as error:
            self._found.fault("broken", f"{run.scene.name}: {error}")
        for fault in (*run.faults(), *(fault for watcher in watchers for fault in watcher.faults())):
            self._found.fault(fault.kind, f"{run.scene.name}: {fault.what}")
        for driver in run.drivers:
            self._found.tasks += 1
            self._found.told += driver.task.count
        self._found.watched += sum(watcher.task.count for watcher in watchers)
