"""The crash test: scenes are played while the server is killed, and what is left when all is over is judged."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, get_args
from uuid import uuid4

from tests.server.faults.crash_scripts import SCENES, Scene, reached, repeated
from tests.server.faults.fault_scripts import COMPLETED, FAILED
from tests.server.faults.judged_task import Fault
from tests.server.faults.observed_task import FaultKind, said
from tests.server.faults.sse_client import Refused
from tests.server.faults.task_driver import CRASHED, RestartedServer, TaskDriver

SCENES_AT_ONCE = 5
SPREAD = 0.3
"""Seconds within which they begin."""
LIFE = 1.0
"""Seconds within which the server is killed for the first time in a round."""
ROUND_TIMEOUT = 40.0
"""Seconds within which everything must have ended."""
PROGRESS = 10
"""Rounds after which it says how far it is."""
RESUMPTIONS = 2
"""How often a turn is taken up again after a crash."""


class SceneRun:
    """One scene, in a context of its own.

    Attributes:
        drivers: those that have begun, in order.
    """

    def __init__(self, scene: Scene, server: RestartedServer) -> None:
        self.scene = scene
        self.drivers: list[TaskDriver] = []
        self._server = server
        self._context = str(uuid4())

    async def act(self, after: float) -> None:
        """Play the scene, or as much of it as is left when a task fails."""
        await asyncio.sleep(after)
        for script in self.scene.tasks:
            driver = TaskDriver(script, self._context, self._server)
            self.drivers.append(driver)
            await driver.run()
            if driver.task.state != COMPLETED:
                return

    def died(self) -> int:
        """The server was killed; how many tasks were at work."""
        for driver in self.drivers:
            driver.died()
        return sum(driver.at_work for driver in self.drivers)

    def faults(self) -> list[Fault]:
        """Everything that has been found to be wrong."""
        return [fault for driver in self.drivers for fault in driver.task.faults]

    async def judge(self) -> None:
        """Look for everything that is wrong, now that the scene should be over.

        Raises:
            Refused, httpx.HTTPError: the server does not answer.
        """
        begun = [driver for driver in self.drivers if driver.task.task_id and await _is_there(driver)]
        for driver in begun:
            self._judge_end(driver)
        if begun:
            await self._judge_tasks(begun)
            for artifact in begun[-1].task.texts:
                await self._judge_versions(artifact, begun)
        for driver in begun:
            await driver.repeat()

    def _judge_end(self, driver: TaskDriver) -> None:
        task, script = driver.task, driver.script
        if not task.ended:
            task.fault("working", f"is {task.state}")
        elif task.state == FAILED and driver.deaths > RESUMPTIONS:
            if not task.reply:
                task.fault("broken", "failed without a word")
        elif task.state != COMPLETED or task.reply not in script.replies:
            task.fault("broken", f"ended {task.state}: {task.reply}")
        elif task.texts != {artifact: states[-1] for artifact, states in script.states.items()}:
            task.fault("text", f"it left {task.texts}")

    async def _judge_tasks(self, begun: Sequence[TaskDriver]) -> None:
        """A message that was sent again has begun one task, and no more."""
        asked = {"contextId": self._context, "pageSize": 100}
        listed = {task["id"] for task in (await self._server.process.call("ListTasks", asked))["tasks"]}
        expected = {driver.task.task_id for driver in begun}
        for task in listed - expected:
            begun[-1].task.fault("twice", f"there is one more task in its context: {task}")
        for task in expected - listed:
            begun[-1].task.fault("missing", f"not in the list of tasks: {task}")

    async def _judge_versions(self, artifact: str, begun: Sequence[TaskDriver]) -> None:
        versions = await self._versions(artifact)
        last = begun[-1].task
        for driver in begun:
            for (of, number), text in driver.task.versions.items():
                if of == artifact and versions[number - 1 : number] != [text]:
                    driver.task.fault("missing", f"version {number} of {artifact}, which was {text!r}")
        if len(versions) > len(self.scene.versions[artifact]):
            last.fault("twice", f"{artifact} has {len(versions)} versions")
        for wrong in self._wrong(artifact, versions, begun):
            last.fault("twice" if repeated(wrong) else "text", f"a version of {artifact} is {wrong!r}")
        if last.state == COMPLETED and len(versions) < len(self.scene.versions[artifact]):
            last.fault("missing", f"{artifact} has only {len(versions)} versions")

    def _wrong(self, artifact: str, versions: Sequence[str], begun: Sequence[TaskDriver]) -> Iterator[str]:
        """Versions that the script does not make; a task that failed leaves one of what it had."""
        expected = self.scene.versions[artifact]
        for number, text in enumerate(versions[: len(expected)]):
            cut_off = number == len(versions) - 1 and begun[-1].task.state == FAILED
            if text != expected[number] and not (
                cut_off and reached(begun[-1].script.states[artifact], text) is not None
            ):
                yield text

    async def _versions(self, artifact: str) -> list[str]:
        path = f"/artifacts/{self._context}/{artifact}/versions"
        listed: list[dict[str, Any]] = (await self._server.process.get(path))["versions"]
        return [said(await self._server.process.get(f"{path}/{version['number']}")) for version in listed]


async def _is_there(driver: TaskDriver) -> bool:
    try:
        await driver.ask()
    except Refused as error:
        if not driver.lost:
            driver.task.fault("broken", str(error))
        return False
    return True


# --------------------------------------------------------------------------- rounds


@dataclass(slots=True)
class Tally:
    """What happened in all rounds; of the faults of one scene one counts."""

    rounds: int = 0
    kills: int = 0
    tasks: int = 0
    at_work: int = 0
    taken_up: int = 0
    failed: int = 0
    told: int = 0
    faults: Counter[FaultKind] = field(default_factory=Counter)

    def add(self, runs: Sequence[SceneRun]) -> None:
        for driver in (driver for run in runs for driver in run.drivers):
            self.tasks += 1
            self.taken_up += len(driver.task.epochs) > 1
            self.failed += driver.task.state == FAILED
            self.told += driver.task.count

    def fault(self, kind: FaultKind, what: str) -> None:
        self.faults[kind] += 1
        print(f"  {kind}: {what}", flush=True)  # noqa: T201


async def play(server: RestartedServer, rounds: int, seed: int, again: float) -> Tally:
    """Rounds on one server, which is killed once, twice or three times in each.

    Args:
        again: seconds within which it is killed for the next times.
    """
    tally = Tally()
    await server.start()
    try:
        for number in range(rounds):
            moments = random.Random(f"{seed}/{number}")
            kills = moments.choices((1, 2, 3), (7, 2, 1))[0]
            await one_round(server, moments, kills, again, tally)
            if tally.rounds % PROGRESS == 0:
                print(f"  {tally.rounds} of {rounds} rounds, {tally.kills} kills", file=sys.stderr, flush=True)  # noqa: T201
    finally:
        await server.stop()
    for line in (line for log in server.logs for line in complaints(log)):
        tally.fault("broken", f"the server said: {line}")
    return tally


async def one_round(server: RestartedServer, moments: random.Random, kills: int, again: float, tally: Tally) -> None:
    """Scenes during which the server is killed so many times; what comes of them is added to the tally."""
    tally.rounds += 1
    runs = [SceneRun(scene, server) for scene in moments.choices(SCENES, k=SCENES_AT_ONCE)]
    acting = [asyncio.create_task(run.act(moments.uniform(0, SPREAD))) for run in runs]
    try:
        for number in range(kills):
            await asyncio.sleep(moments.uniform(0, again if number else LIFE))
            await server.kill()
            tally.kills += 1
            tally.at_work += sum(run.died() for run in runs)
            await server.start()
        done, _ = await asyncio.wait(acting, timeout=ROUND_TIMEOUT)
        for task in done:
            task.result()
    finally:
        for task in acting:
            task.cancel()
        await asyncio.wait(acting)
    await _judge(runs, tally)


async def _judge(runs: Sequence[SceneRun], tally: Tally) -> None:
    for run in runs:
        where = f"round {tally.rounds}, {run.scene.name}"
        try:
            await run.judge()
        except (Refused, *CRASHED) as error:
            tally.fault("broken", f"{where}: {error}")
        if faults := run.faults():
            # One leads to others; what leads to most of them is first in the order of the kinds.
            first = min(faults, key=lambda fault: get_args(FaultKind).index(fault.kind))
            tally.fault(first.kind, f"{where}: {first.what} ({len(faults)} faults)")
    tally.add(runs)


def complaints(log: Sequence[str]) -> list[str]:
    """Errors that a server told its operator, and what it did not catch."""
    errors = ("ERROR", "CRITICAL")
    return [
        line
        for before, line in pairwise(["", *log])
        if line.startswith(errors) or (line.startswith("Traceback") and not before.startswith(errors))
    ]
