"""What the agents do, and the ledger of it: a file that a killed process leaves complete."""

from __future__ import annotations

import asyncio
import json
import os

ROUNDS = 6
PAUSE = 0.02
"""Seconds between two pieces of an answer, and that the tool takes."""
LEDGER = "CANVAS_LEDGER"
LIFE = "CANVAS_LIFE"
CLOSING = "All lines are written."


def line(round_number: int) -> str:
    """The line of a round."""
    return f"line {round_number} of {ROUNDS}\n"


def update(round_number: int) -> str:
    """The input of `artifact_update` in a round, as JSON."""
    artifact = {"artifact_id": "report", "parts": [{"kind": "text", "text": line(round_number)}]}
    return json.dumps({"append": True, "artifact": artifact})


def words(round_number: int) -> list[str]:
    """What the model says in a round, in pieces."""
    return ["Round ", f"{round_number} ", "is ", "next."]


REPORT = "".join(map(line, range(ROUNDS)))
SAID = [*("".join(words(number)) for number in range(ROUNDS)), CLOSING]


def enter(task: str, step: int) -> None:
    """A step of a task begins: an even one is a request to the model, an odd one a call of `note`."""
    entry = json.dumps([task, int(os.environ.get(LIFE, "0")), step])
    descriptor = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{entry}\n".encode())
    finally:
        os.close(descriptor)


async def pause() -> None:
    """A moment of a model or a tool."""
    await asyncio.sleep(PAUSE)


async def note(task: str, round_number: int) -> str:
    """The tool."""
    enter(task, 2 * round_number + 1)
    await pause()
    return f"noted {round_number}"


def pieces(text: str, size: int = 12) -> list[str]:
    """A text in pieces, as models stream it."""
    return [text[at : at + size] for at in range(0, len(text), size)]
