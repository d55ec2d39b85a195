"""What a check has found, as lines for people and as JSON. Pure.

Rule 1: a finding that is not ok says what to do.
Rule 2: no finding has a secret in it: what is said of settings and addresses is what `serve` says of them.
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
    """What was found.

    Attributes:
        check: what was looked at, in one word.
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


def failed(check: str, message: str, advice: str = "") -> Finding:
    """A failure; its message may say itself what to do."""
    return Finding(check, Verdict.FAILED, message, advice)


def as_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each finding, another one for what to do, and a sum."""
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
    """1 if anything failed; what is to be looked at is no failure."""
    return int(any(each.status is Verdict.FAILED for each in findings))
