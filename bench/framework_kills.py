"""`python -m bench.framework_kills [--turns N] [--only NAME] [--seed N]`: kill -9 in turns of agents of frameworks.

Ten turns run at a time on a server with SQLite, which is killed once or twice at random moments and started again. No
step that was followed by another one may run again, a step that a kill hit runs at most once more for each kill, and
artifact and reply must be those of an uninterrupted run. The agents are in `bench/framework_agents/`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import httpx

from bench.framework_agents.ledger import LEDGER, LIFE, REPORT, SAID
from bench.report import Check, Report
from bench.servers import HERE, Checkout, Command, end, end_in_order, start
from tests.free_port import free_port

AGENTS = ("function", "pydantic_ai", "langgraph", "openai_agents", "google_adk")
AT_ONCE = 10
FIRST_KILL = (0.1, 3.0)
NEXT_KILL = (0.3, 2.0)
"""Seconds after the turns began, and after the server was started again."""
END = 60.0
"""Seconds within which the turns end after the last start."""
QUICK, FULL = 10, 200
ENDED = ("COMPLETED", "FAILED", "REJECTED", "CANCELED")


@dataclass(slots=True)
class Tally:
    """What was seen of one agent."""

    turns: int = 0
    kills: int = 0
    repeated: int = 0
    faults: list[str] = field(default_factory=list)


def judge(steps: Sequence[tuple[int, int]]) -> tuple[int, str]:
    """How many steps of a task ran more than once, and what is wrong with them.

    Args:
        steps: of one task, as (life of the server, number of the step), in the order in which they began.
    """
    last, repeated = -1, 0
    for _, group in groupby(steps, key=lambda each: each[0]):
        numbers = [number for _, number in group]
        if numbers[0] == last:
            repeated += 1
            numbers = numbers[1:]
        if numbers != list(range(last + 1, last + 1 + len(numbers))):
            return repeated, f"its steps are {[number for _, number in steps]}"
        last = numbers[-1] if numbers else last
    return repeated, ""


def fault(name: str) -> str:
    """The name of an agent's check."""
    return f"faults, {name}"


async def run(turns: int, names: Sequence[str] = AGENTS, seed: int = 1) -> Report:
    """So many turns of each agent."""
    columns = ("agent", "turns", "kills", "steps cut off, run again", "faults")
    report = Report("framework-kills", f"kill -9 in turns of frameworks' agents, seed {seed}", columns)
    for name in names:
        tally = await crash(name, turns, random.Random(f"{name} {seed}"))
        report.rows.append((name, tally.turns, tally.kills, tally.repeated, len(tally.faults)))
        report.checks.append(Check(fault(name), len(tally.faults), "at most", 0))
        report.notes += tally.faults[:5]
    return report


async def crash(name: str, turns: int, chance: random.Random) -> Tally:
    """Turns of one agent, ten at a time."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        server = _Server(name, Path(folder))
        try:
            for first in range(0, turns, AT_ONCE):
                await _batch(server, range(first, min(first + AT_ONCE, turns)), chance, tally)
        finally:
            await server.close()
        ledger = server.read_ledger()
    for task in map(_text, range(turns)):
        repeated, fault = judge(ledger[task])
        tally.repeated += repeated
        tally.faults += [f"{name}, {task}: {fault}"] if fault else []
    return tally


class _Server:
    """A server that is killed and started again on the same database."""

    def __init__(self, agent: str, folder: Path) -> None:
        self._agent = agent
        self._folder = folder
        self._port = free_port()
        self._life = 0
        self._output: IO[bytes] = (folder / "server.log").open("w+b")
        self._process: Any = None

    async def start(self) -> None:
        self._life += 1
        found = {"PYTHONPATH": os.pathsep.join((str(HERE.folder), os.environ.get("PYTHONPATH", "")))}
        environ = {**found, LEDGER: str(self._folder / "ledger"), LIFE: str(self._life)}
        self._process = await start(self._command, self._port, self._output, Checkout(HERE.folder, environ))

    @property
    def _command(self) -> Command:
        database = f"sqlite:///{self._folder}/canvas.db"
        loop = f"bench.framework_agents.{self._agent}:agent"
        given = ["--loop", loop, "--database", database, "--log-level", "warning", "--max-turns", str(AT_ONCE)]
        return lambda port: ["-m", "a2a_canvas", "serve", "--port", str(port), *given]

    async def stop(self, how: signal.Signals) -> None:
        if self._process:
            await end(self._process, how)
            self._process = None

    async def close(self) -> None:
        await self.stop(signal.SIGTERM)
        self._output.close()

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with httpx.AsyncClient(headers={"A2A-Version": "1.0"}, timeout=30) as client:
            answer = (await client.post(f"http://127.0.0.1:{self._port}/", json=body)).json()
        return answer["result"]

    def read_ledger(self) -> Mapping[str, list[tuple[int, int]]]:
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for entry in (self._folder / "ledger").read_text().splitlines():
            task, life, step = json.loads(entry)
            found[task].append((life, step))
        return found


async def _batch(server: _Server, numbers: range, chance: random.Random, tally: Tally) -> None:
    if not tally.turns:
        await server.start()
    tally.turns += len(numbers)
    tasks = {number: await _send(server, _text(number)) for number in numbers}
    for kill in range(chance.choice((1, 2))):
        await asyncio.sleep(chance.uniform(*(NEXT_KILL if kill else FIRST_KILL)))
        await server.stop(signal.SIGKILL)
        tally.kills += 1
        await server.start()
    async with asyncio.timeout(END):
        for number, task_id in tasks.items():
            tally.faults += [f"{_text(number)}: {fault}" for fault in _faults(await _ended(server, task_id))]


def _text(number: int) -> str:
    return f"task {number}"


async def _send(server: _Server, text: str) -> str:
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    sent = await server.call("SendMessage", {"message": message, "configuration": {"returnImmediately": True}})
    task_id: str = sent["task"]["id"]
    return task_id


async def _ended(server: _Server, task_id: str) -> Any:
    while not (task := await server.call("GetTask", {"id": task_id}))["status"]["state"].endswith(ENDED):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return task


def _faults(task: Any) -> Sequence[str]:
    texts = ["".join(part.get("text", "") for part in each["parts"]) for each in task.get("artifacts", ())]
    status = task["status"]
    messages = {
        each["messageId"]: each for each in (*task.get("history", ()), status.get("message", {})) if _speaks(each)
    }
    said = [_words(each) for each in messages.values()]
    found = [] if texts == [REPORT] else [f"its artifacts are {texts}"]
    if not status["state"].endswith("COMPLETED") or [text for text in said if text in SAID] != SAID:
        found.append(f"it is {status['state']} and said {said}")
    return found


def _speaks(message: Any) -> bool:
    return bool(message) and message.get("role") == "ROLE_AGENT"


def _words(message: Any) -> str:
    return "".join(part.get("text", "") for part in message["parts"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.framework_kills", description="Kill turns of frameworks' agents.")
    parser.add_argument("--turns", type=int, default=FULL, help="of each agent; default: %(default)s")
    parser.add_argument("--only", choices=AGENTS, help="one agent")
    parser.add_argument("--seed", type=int, default=1, help="of the moments; default: %(default)s")
    options = parser.parse_args()
    end_in_order()
    report = asyncio.run(run(options.turns, [options.only] if options.only else AGENTS, options.seed))
    print(report)
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
