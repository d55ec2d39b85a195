"""The crash test: `python -m bench.crash [--rounds N] [--database sqlite|postgresql] [--seed N]`.

A round is several conversations at once. At a random moment the server is killed (`kill -9`), and started again on the
same database; sometimes that happens twice or three times. Then every task is followed to its end. Nothing that a
client was told may be missing, no task may be left working, no call may be made twice, and what is written must be
what the scripted model says. A turn that died more than twice may fail, with a message. The scenes, the client and the
judge are those of `tests/server/faults/`.

The exit code is 1 if anything was wrong; what it was is told at the end of the round. The seed gives the same scenes
and moments again, but not the same speed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from bench.databases import Kind, databases, upgrade
from bench.report import Check, Report
from bench.servers import end_in_order
from tests.server.faults.crash_harness import LIFE, Tally, play
from tests.server.faults.observed_task import FaultKind
from tests.server.faults.task_driver import RestartedServer

QUICK: Mapping[Kind, int] = {"sqlite": 5, "postgresql": 2}
FULL: Mapping[Kind, int] = {"sqlite": 200, "postgresql": 20}
"""Rounds."""
AGAIN: Mapping[Kind, float] = {"sqlite": LIFE, "postgresql": 6.0}
"""Seconds within which the server is killed for the next times: on PostgreSQL the tasks are taken up when the lease of
the dead server has run out."""


async def run(rounds: Mapping[Kind, int], seed: int) -> Report:
    """So many rounds on each kind of database."""
    tallies = {kind: await crashes(kind, number, seed) for kind, number in rounds.items()}
    return report(tallies, seed)


async def crashes(kind: Kind, rounds: int, seed: int) -> Tally:
    """Rounds on one database."""
    with databases(kind) as new, tempfile.TemporaryDirectory() as folder:
        url = new() if kind == "sqlite" else await upgrade(new())
        return await play(RestartedServer(url, Path(folder)), rounds, seed, AGAIN[kind])


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
