"""How a message names what it is about: a value as it was given, the names there are, those that are near. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

FEW = 6
"""So many names are all named, however far they are from the one that was given."""
MAX_SHOWN = 60
"""Characters of a value that was given."""


def shown(given: object) -> str:
    """A value of JSON in a sentence: short, and without what is in a list or an object."""
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


def nearest(given: str, known: Collection[str]) -> tuple[str, ...]:
    """The names that somebody who wrote `given` may have meant: all where there are few, none where none is near."""
    if len(known) <= FEW:
        return tuple(known)
    by_lower_case = {name.lower(): name for name in known}
    return tuple(by_lower_case[name] for name in get_close_matches(given.lower(), by_lower_case, n=3, cutoff=0.6))


def numbers(last: int, first: int = 1) -> str:
    """`1 to 3`."""
    return f"{first} to {last}" if last > first else str(last)
