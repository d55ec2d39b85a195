"""The Dockerfile, read line by line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD, FINAL = 0, 1
"""Its stages."""


@dataclass(frozen=True)
class Step:
    stage: int
    name: str
    words: str


def read_steps() -> list[Step]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    steps: list[Step] = []
    stage = -1
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if not line.startswith("#"):
            name, _, words = line.partition(" ")
            stage += name == "FROM"
            steps.append(Step(stage, name, words.strip()))
    return steps


STEPS = read_steps()


def words_of(name: str, stage: int = FINAL) -> list[str]:
    return [step.words for step in STEPS if step.name == name and step.stage == stage]


def copied(stage: int) -> list[str]:
    """What a stage copies from the build context."""
    lines = [words.split() for words in words_of("COPY", stage) if not words.startswith("--from")]
    return [source for line in lines for source in line[:-1]]


def command(words: str) -> list[str]:
    """The words of a CMD in its exec form."""
    listed: list[str] = json.loads(words[words.index("[") :])
    return listed


def variables() -> dict[str, str]:
    """What the image sets in its environment."""
    return dict(word.split("=", 1) for words in words_of("ENV") for word in words.split())
