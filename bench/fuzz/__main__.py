"""The parts of `make fuzz`, one after the other; each runs against servers of its own."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys

from bench.fuzz import bystander
from bench.fuzz.others import against_frames, against_servers
from bench.fuzz.run import Result, fuzz
from bench.fuzz.worst_bodies import worst_bodies
from bench.quiet import Calibration, busy
from bench.servers import MEMORY, end_in_order

PARTS = ("requests", "servers", "frames", "bodies", "bystander")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--database", choices=["sqlite", "postgresql", MEMORY], default="sqlite")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=PARTS)
    given = parser.parse_args()
    end_in_order()
    faults: list[str] = []
    for part in (given.only,) if given.only else PARTS:
        faults += PART[part](given)
    print(f"{len(faults)} faults")
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    return 1 if faults else 0


def _requests(given: argparse.Namespace) -> list[str]:
    result: Result = asyncio.run(fuzz(given.requests, given.database, given.seed))
    for name, number in sorted(result.answers.items()):
        print(f"{number:7} {name}")
    print(f"seed {result.seed}, {given.database}: {sum(result.answers.values())} requests in {result.seconds:.0f} s,")
    print(f"slowest {result.slowest:.1f} s, the victim's {result.followed:.1f} s, +{result.grown / 2**20:.0f} MB")
    return result.faults


def _servers(given: argparse.Namespace) -> list[str]:
    faults, answered = asyncio.run(against_servers(max(5, given.requests // 100), given.seed))
    print(f"hostile servers: {sum(answered.values())} answers, {answered.get('good', 0)} of them good ones")
    return faults


def _frames(given: argparse.Namespace) -> list[str]:
    faults, sent = asyncio.run(against_frames(given.seed, min(1.0, given.requests / 10_000)))
    print(f"frames: {sent / 2**20:.0f} MB")
    return faults


def _bodies(given: argparse.Namespace) -> list[str]:
    held = asyncio.run(bystander.hold_of_each(worst_bodies(bystander.PLACE)))
    for name, seconds in sorted(held.items(), key=lambda each: -each[1])[: bystander.SHOWN]:
        print(f"{seconds:8.3f} s that another user waits for {name}")
    return []


def _bystander(given: argparse.Namespace) -> list[str]:
    calibration = Calibration()
    before = calibration.slowdown()
    found = asyncio.run(bystander.measure(min(bystander.REQUESTS, given.requests), given.seed))
    why = busy(before, calibration.slowdown())
    bystander.report(found)
    if why:
        print(f"The goals of a bystander do not count: {why}")
    return bystander.faults(found, why)


PART = {"requests": _requests, "servers": _servers, "frames": _frames, "bodies": _bodies, "bystander": _bystander}

if __name__ == "__main__":
    sys.exit(main())
