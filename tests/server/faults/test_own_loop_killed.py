"""A server whose agent is a function is killed five times in a task: it comes to the end of an uninterrupted one."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.database_fixtures import sqlite_url
from tests.server.faults.fault_scripts import COMPLETED
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.server_processes import server_group

KILLS = 5
SECTIONS = 12
AGENT = f"""
import asyncio
from pathlib import Path

from a2a_canvas import Turn

RAN = Path(__file__).with_name("ran.txt")


async def agent(turn: Turn) -> None:
    report = turn.artifact("report", name="report.md")
    await report.append("# Tides\\n")
    for number in range({SECTIONS}):
        both = (turn.once("write", lambda: write(turn, number)), turn.once("note", lambda: note(turn, number)))
        await asyncio.gather(*both)
        await report.append(".")
        async with turn.tool("search", {{"number": number}}) as call:
            found = await call.run(lambda: search(number))
        await turn.stream(f"Found {{found}}. ")
    await report.edit("# Tides", "# The tides")
    await turn.say("Done.")


async def write(turn: Turn, number: int) -> None:
    note_step(f"write {{number}}")
    for word in ("low", "high"):
        await turn.artifact("report").append(f" {{word}}")
        await asyncio.sleep(0.005)


async def note(turn: Turn, number: int) -> None:
    note_step(f"note {{number}}")
    await asyncio.sleep(0.005)
    await turn.artifact("notes").append(f"{{number}} ")


async def search(number: int) -> int:
    note_step(f"search {{number}}")
    await asyncio.sleep(0.005)
    return number


def note_step(name: str) -> None:
    with RAN.open("a") as file:
        file.write(name + "\\n")
"""


@pytest.mark.process
@pytest.mark.parametrize("seed", range(3))
async def test_killed_five_times_it_comes_to_the_same_end(tmp_path: Path, seed: int) -> None:
    chance, told, steps = random.Random(seed), ObservedTask(), tmp_path / "reef" / "ran.txt"
    folder = steps.parent
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    killed = 0
    async with server_group(sqlite_url(tmp_path), tmp_path) as servers:
        server, whole = await servers.start(str(folder)), ObservedTask()
        async with server.sends("Go", whole) as stream:
            await stream.rest()
        await server.kill()
        assert whole.state == COMPLETED
        names = Counter(steps.read_text().splitlines())
        steps.write_text("")
        for number in range(KILLS + 1):
            server = await servers.start(str(folder))
            begins = server.joins(told) if told.task_id else server.sends("Go", told)
            async with begins as stream:
                if number == KILLS:
                    await stream.rest()
                    continue
                reached = len(steps.read_text().splitlines()) + chance.randint(1, 6)
                await stream.until(lambda told, at=reached: len(steps.read_text().splitlines()) >= at)
                killed += not told.settled
                await server.kill()
                with pytest.raises(httpx.TransportError):
                    await stream.rest()
    assert (told.state, told.texts, told.reply) == (COMPLETED, whole.texts, whole.reply)
    ran = Counter(steps.read_text().splitlines())
    assert set(names.values()) == {1}
    assert ran.keys() == names.keys()
    assert sum(ran.values()) - len(ran) <= 2 * killed  # two steps at most run when it is killed
    assert killed == KILLS
