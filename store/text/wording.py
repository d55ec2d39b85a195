"""Formats values for messages: a given value, the allowed names, the nearest names. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

FEW = 6
"""Up to this number, all names are listed, however different from the given one."""
MAX_SHOWN = 60
"""The most characters shown of a given value."""


def format_value(given: object) -> str:
    """A JSON value for a sentence: short, and without the contents of lists and objects."""
    match given:
        case None:
            return "null"
        case bool():
            return str(given).lower()
        case dict():
            return "an object"
        case list():
            return "a list"
        case str() if len(given) > MAX_SHOWN:
            return f"{given[:MAX_SHOWN]!r}…"
        case _:
            text = repr(given)
            return text if isinstance(given, str) or len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def choice(names: Iterable[str], word: str = "or") -> str:
    """`a, b or c`."""
    *others, last = tuple(names) or ("",)
    return f"{', '.join(others)} {word} {last}" if others else last


def amount(count: int, what: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def nearest(given: str, known: Collection[str]) -> tuple[str, ...]:
    """The names that `given` may be a misspelling of: all if there are few, none if none is near."""
    if len(known) <= FEW:
        return tuple(known)
    by_lower_case = {name.lower(): name for name in known}
    return tuple(by_lower_case[name] for name in get_close_matches(given.lower(), by_lower_case, n=3, cutoff=0.6))


def numbers(last: int, first: int = 1) -> str:
    """`1 to 3`."""
    return f"{first} to {last}" if last > first else str(last)
