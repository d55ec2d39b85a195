"""`make hands`: 20 people and 3 agents on one document for ten minutes, while servers are killed twice."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from typing import get_args

from bench.databases import Kind
from bench.hands.run import Plan, Result, run
from bench.servers import end_in_order


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.hands", description=__doc__)
    parser.add_argument("--database", choices=get_args(Kind), default="sqlite", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=600.0, help="default: %(default)g")
    parser.add_argument("--people", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--agents", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--think", type=float, default=2.0, help="seconds between operations; default: %(default)g")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args()
    end_in_order()
    print(f"seed {given.seed}, {given.database}", flush=True)
    plan = Plan(given.database, given.seconds, given.people, given.agents, given.think, given.seed)
    result = asyncio.run(run(plan))
    print(report(result))
    return 1 if result.faults else 0


def report(result: Result) -> str:
    """What happened, and the first faults."""
    counts = [f"{number:7} {name}" for name, number in sorted(result.operations.items())]
    summary = (
        f"{result.operations.total()} operations, {result.versions} versions, {result.annotations} annotations, "
        f"{result.kills} kills with {result.at_work} operations under way, {result.compared} clients compared"
    )
    found = [f"FAULT {fault[:4000]}" for fault in result.faults[:20]]
    return "\n".join([*counts, summary, f"{len(result.faults)} faults", *found])


if __name__ == "__main__":
    sys.exit(main())
