"""The failover test: a database fails over to its synchronous standby while turns run on two servers.

A round kills every process of the primary, promotes the standby by hand after a random time, and starts the old primary
again, which accepts writes. The promoted server is the primary of the next round; the old one is made its standby. The
clock of every other primary is half a minute fast, so that each failover is a jump of the clock, forward or back. The
scenes and the judge are those of `tests/server/faults/failover_harness.py`.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from bench.report import Check, Report
from tests.database_fixtures import why_not
from tests.postgresql_pair import FAKETIME, postgresql_pair
from tests.server.faults.failover_harness import FAULTS, Failovers, play

CLOCKS = (30, 0)
"""Seconds by which the clocks of the promoted servers are fast, in turn. A slow one would not do: in a signal handler
libfaketime gives the real time, so timers of PostgreSQL would run out early."""
MAX_SECONDS = 10.0
"""From the promotion until every turn has gone on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many rounds, with how many turns at once in each."""

    rounds: int
    turns: int


FULL = Plan(20, 20)
QUICK = Plan(2, 8)


async def run(plan: Plan, seed: int) -> Report:
    """All rounds, one after the other, on one database.

    Raises:
        RuntimeError: PostgreSQL or libfaketime is not installed; the message says what to do.
    """
    if missing := why_not() or ("" if FAKETIME else "needs libfaketime: install the Debian package libfaketime"):
        raise RuntimeError(missing)
    clocks = [*islice(cycle(CLOCKS), plan.rounds)]
    with postgresql_pair() as pair, tempfile.TemporaryDirectory() as folder:
        return report(await play(pair, Path(folder), plan.turns, clocks, seed), clocks)


def report(found: Failovers, clocks: Sequence[int]) -> Report:
    """One row for each round, and one check for each kind of fault."""
    table = Report(
        "failover",
        f"the primary is killed {found.rounds} times; {found.at_work} turns were at work",
        ("round", "clock s", "all turns went on after s"),
    )
    table.rows.extend((number, *row) for number, row in enumerate(zip(clocks, found.seconds, strict=False), 1))
    table.checks.append(Check("rounds", len(found.seconds), "at least", len(clocks)))
    table.checks.append(Check("at work", found.at_work, "at least", len(clocks)))
    table.checks.append(Check("goes on", max(found.seconds, default=0.0), "at most", MAX_SECONDS, "s"))
    table.checks.extend(Check(fault, found.faults[fault], "at most", 0) for fault in FAULTS)
    middle = statistics.median(found.seconds or [0.0])
    table.notes.append(f"{found.tasks} tasks; half of the rounds went on within {middle:.2f} s of the promotion")
    table.notes.append(
        f"clients were told of {found.told} things that must last, watchers elsewhere of {found.watched}"
    )
    return table
