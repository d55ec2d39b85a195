"""The crash test: `python -m bench.crash [--rounds N] [--database sqlite|postgresql] [--seed N]`.

A round is several conversations at once. At a random moment the server is killed (`kill -9`), and started again on the
same database; sometimes that happens twice or three times. Then every task is followed to its end. Nothing that a
client was told may be missing, no task may be left working, no call may be made twice, and what is written must be
what the scripted model says (`crash_plays.py`). A turn that died more than twice may fail, with a message.

The exit code is 1 if anything was wrong; what it was is told at the end of the round. The seed gives the same scenes
and moments again, but not the same speed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import get_args

from bench.crash_errands import House
from bench.crash_plays import SCENES, script
from bench.crash_scenes import FAILED, Actor
from bench.crash_told import FaultKind
from bench.databases import Kind, databases, upgrade
from bench.report import Check, Report
from bench.servers import SHIPPED_FRAME_MS, Command, end_in_order, ours
from bench.sse import StreamError

QUICK: Mapping[Kind, int] = {"sqlite": 5, "postgresql": 2}
FULL: Mapping[Kind, int] = {"sqlite": 200, "postgresql": 20}
"""Rounds."""

ACTORS = 5
SPREAD = 0.3
"""Seconds within which they begin."""
LIFE = 1.0
"""Seconds within which the server is killed for the first time."""
AGAIN: Mapping[Kind, float] = {"sqlite": LIFE, "postgresql": 6.0}
"""The same for the next times: on PostgreSQL the tasks are taken up when the lease of the dead server has run out."""
PATIENCE = 40.0
"""Seconds within which everything must have ended."""


@dataclass(slots=True)
class Tally:
    """What happened in all rounds; of the faults of one conversation one counts."""

    rounds: int = 0
    kills: int = 0
    tasks: int = 0
    at_work: int = 0
    taken_up: int = 0
    failed: int = 0
    told: int = 0
    faults: Counter[FaultKind] = field(default_factory=Counter)

    def add(self, actors: Sequence[Actor]) -> None:
        for errand in (errand for actor in actors for errand in actor.errands):
            self.tasks += 1
            self.taken_up += len(errand.told.epochs) > 1
            self.failed += errand.told.state == FAILED
            self.told += errand.told.count


async def run(rounds: Mapping[Kind, int], seed: int) -> Report:
    """So many rounds on each kind of database."""
    tallies = {kind: await crashes(kind, number, seed) for kind, number in rounds.items()}
    return report(tallies, seed)


async def crashes(kind: Kind, rounds: int, seed: int) -> Tally:
    """Rounds on one database."""
    with databases(kind) as new, model() as path:
        url = new() if kind == "sqlite" else await upgrade(new())
        return await play(ours(SHIPPED_FRAME_MS, path, url), rounds, seed, AGAIN[kind])


@contextmanager
def model() -> Iterator[Path]:
    """The script in a file. JSON is YAML."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "crash.yaml")
        path.write_text(json.dumps(script()))
        yield path


async def play(command: Command, rounds: int, seed: int, again: float) -> Tally:
    """Rounds on one server, which dies and lives again."""
    tally = Tally()
    with tempfile.TemporaryFile() as said:
        house = House(command, said)
        await house.start()
        try:
            for number in range(rounds):
                moments = random.Random(f"{seed}/{number}")
                kills = moments.choices((1, 2, 3), (7, 2, 1))[0]
                await one_round(house, moments, kills, again, tally)
        finally:
            await house.stop()
        said.seek(0)
        for line in complaints(said.read().decode(errors="replace")):
            _tell(tally, "broken", f"the server said: {line}")
    return tally


async def one_round(house: House, moments: random.Random, kills: int, again: float, tally: Tally) -> None:
    """Conversations during which the server is killed so many times; what comes of them is added to the tally."""
    tally.rounds += 1
    actors = [Actor(scene, house) for scene in moments.choices(SCENES, k=ACTORS)]
    acting = [asyncio.create_task(actor.act(moments.uniform(0, SPREAD))) for actor in actors]
    try:
        for number in range(kills):
            await asyncio.sleep(moments.uniform(0, again if number else LIFE))
            house.kill()
            tally.kills += 1
            tally.at_work += sum(actor.died() for actor in actors)
            await house.start()
        done, _ = await asyncio.wait(acting, timeout=PATIENCE)
        for task in done:
            task.result()
    finally:
        for task in acting:
            task.cancel()
        await asyncio.wait(acting)
    await _judge(actors, tally)


async def _judge(actors: Sequence[Actor], tally: Tally) -> None:
    for actor in actors:
        where = f"round {tally.rounds}, {actor.scene.name}"
        try:
            await actor.judge()
        except (StreamError, OSError) as error:
            _tell(tally, "broken", f"{where}: {error}")
        if faults := actor.faults():
            # One leads to others; what leads to most of them is first in the order of the kinds.
            first = min(faults, key=lambda fault: get_args(FaultKind).index(fault.kind))
            _tell(tally, first.kind, f"{where}: {first.what} ({len(faults)} faults)")
    tally.add(actors)


def _tell(tally: Tally, kind: FaultKind, what: str) -> None:
    tally.faults[kind] += 1
    print(f"  {kind}: {what}", flush=True)


def complaints(log: str) -> list[str]:
    """Errors that a server told its operator, and what it did not catch."""
    lines = ["", *log.splitlines()]
    errors = ("ERROR", "CRITICAL")
    return [
        line
        for before, line in pairwise(lines)
        if line.startswith(errors) or (line.startswith("Traceback") and not before.startswith(errors))
    ]


def report(tallies: Mapping[Kind, Tally], seed: int) -> Report:
    """The table, and one check for each kind of fault."""
    columns = ("database", "rounds", "kills", "tasks", "killed at work", "taken up", "failed", "told")
    table = Report("crash", f"kill -9 at random moments, seed {seed}", columns)
    for kind, tally in tallies.items():
        counts = (tally.rounds, tally.kills, tally.tasks, tally.at_work, tally.taken_up, tally.failed, tally.told)
        table.rows.append((kind, *counts))
        table.checks.append(Check(f"killed at work, {kind}", tally.at_work, "at least", tally.rounds))
        for fault in get_args(FaultKind):
            table.checks.append(Check(f"{fault}, {kind}", tally.faults[fault], "at most", 0))
    table.notes.append("told: messages, results of calls, versions and ends that clients were told of")
    table.notes.append("failed: turns that died more than twice, if nothing is broken")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.crash", description="Kill the server, and see what is left.")
    parser.add_argument("--rounds", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--database", choices=get_args(Kind), default="sqlite", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of scenes and moments; default: %(default)s")
    options = parser.parse_args()
    end_in_order()
    found = asyncio.run(run({options.database: options.rounds}, options.seed))
    print(found)
    return 0 if all(check.holds for check in found.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
