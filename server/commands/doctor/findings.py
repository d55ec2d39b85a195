"""Findings of checks, as lines for people and as JSON. Pure.

Rule 1: a finding other than ok says what to do.
Rule 2: no finding contains a secret: settings and addresses appear as `serve` prints them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        check: the subject, in one word.
        message: one sentence.
        advice: what to do (rule 1).
    """

    check: str
    status: Verdict
    message: str
    advice: str = ""


def ok(check: str, message: str) -> Finding:
    return Finding(check, Verdict.OK, message)


def warning(check: str, message: str, advice: str) -> Finding:
    return Finding(check, Verdict.WARNING, message, advice)


def failure(check: str, message: str, advice: str = "") -> Finding:
    """A failure; without `advice` the message itself says what to do."""
    return Finding(check, Verdict.FAILED, message, advice)


def as_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line per finding, another for its advice, and a summary."""
    width = max(len(each.check) for each in findings)
    for each in findings:
        yield f"{each.status:<7}  {each.check:<{width}}  {each.message}"
        if each.advice:
            yield f"{'':<{9 + width}}  {each.advice}"
    counts = {status: sum(each.status is status for each in findings) for status in Verdict}
    yield f"{counts[Verdict.OK]} ok, {counts[Verdict.WARNING]} to look at, {counts[Verdict.FAILED]} failed."


def as_json(findings: Sequence[Finding]) -> str:
    """One object: `ok`, and the list `checks`."""
    checks: list[dict[str, Any]] = [asdict(each) for each in findings]
    return json.dumps({"ok": exit_code(findings) == 0, "checks": checks}, indent=2)


def exit_code(findings: Sequence[Finding]) -> int:
    """1 if anything failed; a warning is not a failure."""
    return int(any(each.status is Verdict.FAILED for each in findings))
