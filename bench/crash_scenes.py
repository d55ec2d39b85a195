"""Plays a scene of the crash test, and judges what is left when all is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from bench.client import COMPLETED, exchange, get, request, texts
from bench.crash_errands import Errand, House
from bench.crash_plays import Scene, reached, repeated
from bench.crash_told import ENDS, Fault
from bench.sse import Refused

RESUMPTIONS = 2
"""How often a turn is taken up again after a crash."""
FAILED = "TASK_STATE_FAILED"


class Actor:
    """One scene, in a context of its own.

    Attributes:
        errands: those that have begun, in order.
    """

    def __init__(self, scene: Scene, house: House) -> None:
        self.scene = scene
        self.errands: list[Errand] = []
        self._house = house
        self._context = str(uuid4())

    async def act(self, after: float) -> None:
        """Play the scene, or as much of it as is left when a task fails."""
        await asyncio.sleep(after)
        for play in self.scene.plays:
            errand = Errand(play, self._context, self._house)
            self.errands.append(errand)
            await errand.run()
            if errand.told.state != COMPLETED:
                return

    def died(self) -> int:
        """The server was killed; how many tasks were at work."""
        for errand in self.errands:
            errand.died()
        return sum(errand.at_work for errand in self.errands)

    def faults(self) -> list[Fault]:
        """Everything that has been found to be wrong."""
        return [fault for errand in self.errands for fault in errand.told.faults]

    async def judge(self) -> None:
        """Look for everything that is wrong, now that the scene should be over.

        Raises:
            StreamError, OSError: the server does not answer.
        """
        begun = [errand for errand in self.errands if errand.told.task_id and await _is_there(errand)]
        for errand in begun:
            self._judge_end(errand)
        if begun:
            await self._judge_tasks(begun)
            for artifact in begun[-1].told.shown:
                await self._judge_versions(artifact, begun)
        for errand in begun:
            await errand.repeat()

    def _judge_end(self, errand: Errand) -> None:
        told, play = errand.told, errand.play
        if told.state not in ENDS:
            told.fault("working", f"is {told.state}")
        elif told.state == FAILED and errand.deaths > RESUMPTIONS:
            if not told.reply:
                told.fault("broken", "failed without a word")
        elif told.state != COMPLETED or told.reply not in play.replies:
            told.fault("broken", f"ended {told.state}: {told.reply}")
        elif told.shown != {artifact: states[-1] for artifact, states in play.states.items()}:
            told.fault("text", f"it left {told.shown}")

    async def _judge_tasks(self, begun: Sequence[Errand]) -> None:
        """A message that was sent again has begun one task, and no more."""
        asked = request("ListTasks", {"contextId": self._context, "pageSize": 100})
        listed = {task["id"] for task in (await exchange(self._house.port, asked))["result"]["tasks"]}
        expected = {errand.told.task_id for errand in begun}
        for task in listed - expected:
            begun[-1].told.fault("twice", f"there is one more task in its context: {task}")
        for task in expected - listed:
            begun[-1].told.fault("missing", f"not in the list of tasks: {task}")

    async def _judge_versions(self, artifact: str, begun: Sequence[Errand]) -> None:
        versions = await self._versions(artifact)
        last = begun[-1].told
        for errand in begun:
            for (of, number), text in errand.told.versions.items():
                if of == artifact and versions[number - 1 : number] != [text]:
                    errand.told.fault("missing", f"version {number} of {artifact}, which was {text!r}")
        if len(versions) > len(self.scene.versions[artifact]):
            last.fault("twice", f"{artifact} has {len(versions)} versions")
        for wrong in self._wrong(artifact, versions, begun):
            last.fault("twice" if repeated(wrong) else "text", f"a version of {artifact} is {wrong!r}")
        if last.state == COMPLETED and len(versions) < len(self.scene.versions[artifact]):
            last.fault("missing", f"{artifact} has only {len(versions)} versions")

    def _wrong(self, artifact: str, versions: Sequence[str], begun: Sequence[Errand]) -> Iterator[str]:
        """Versions that the script does not make; a task that failed leaves one of what it had."""
        expected = self.scene.versions[artifact]
        for number, text in enumerate(versions[: len(expected)]):
            cut_off = number == len(versions) - 1 and begun[-1].told.state == FAILED
            if text != expected[number] and not (
                cut_off and reached(begun[-1].play.states[artifact], text) is not None
            ):
                yield text

    async def _versions(self, artifact: str) -> list[str]:
        path = f"/artifacts/{self._context}/{artifact}/versions"
        listed: list[dict[str, Any]] = (await get(self._house.port, path))["versions"]
        wanted = [await get(self._house.port, f"{path}/{version['number']}") for version in listed]
        return ["".join(texts(version)) for version in wanted]


async def _is_there(errand: Errand) -> bool:
    try:
        await errand.ask()
    except Refused as error:
        if not errand.lost:
            errand.told.fault("broken", str(error))
        return False
    return True
