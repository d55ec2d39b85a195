"""The wording of the question whether a call may run. Pure.

Rule 1: it shows the name of every argument, in the order of the call, and the beginning of each value, so that no
        argument hides another.
Rule 2: characters that are invisible, or change how others are displayed, are escaped. A name that is not an
        identifier is quoted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_NAME = 100
MAX_VALUE = 200
"""The most characters shown of a name, and of a value."""

_BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
"""Invisible characters that count as printable."""


def approval_question(tool: str, given: Mapping[str, Any], guest: str = "") -> str:
    """Asks whether a call may run.

    Args:
        guest: the caller, if not the owner of the context.
    """
    shown = ", ".join(f"{_name(name)}={_value(value)}" for name, value in given.items())
    if not guest:
        return f"May I run {tool}({shown})? Answer yes or no."
    waits = "This waits for the owner, or a user with the level approve, to answer yes or no."
    return f"May I run {tool}({shown}) for {escape_invisible(guest)}? {waits}"


def escape_invisible(text: str) -> str:
    """A text with invisible characters escaped (rule 2)."""
    if text.isprintable() and not _BLANK & {*text}:
        return text
    return "".join(each if each.isprintable() and each not in _BLANK else json.dumps(each)[1:-1] for each in text)


def _name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() and len(name) <= MAX_NAME else _quote(name, MAX_NAME)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _quote(value, MAX_VALUE)
    text = json.dumps(value, ensure_ascii=False)
    return escape_invisible(text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… ({len(text):,} characters)")


def _quote(text: str, most: int) -> str:
    cut = len(text) > most
    quoted = json.dumps(f"{text[:most]}…" if cut else text, ensure_ascii=False)
    return escape_invisible(quoted) + (f" ({len(text):,} characters)" if cut else "")
