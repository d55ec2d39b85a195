"""Values at and beyond the bounds of what a caller may send, for tests and `make fuzz`. Imports nothing of the server.

Every value can be written by `json.dumps`. `RAW_NUMBERS` are JSON texts of numbers that Python cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]

TIMES = (
    "0001-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999999Z",
    "1970-01-01T00:00:00Z",
    "2038-01-19T03:14:08Z",
    "2262-04-11T23:47:16.854775808Z",
    "9999-12-31T23:59:59-12:00",
    "9999-12-31T23:59:59.999999-00:01",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T24:00:00Z",
    "10000-01-01T00:00:00Z",
    "2016-12-31T23:59:60Z",
    "2030-02-30T00:00:00Z",
    "2030-01-01",
    "2030-01-01T00:00:00",
    "P1D",
    "1h",
)
"""Points in time: the ends of calendars and counters, in zones beyond them, and what is none."""

NUMBERS: tuple[int | float, ...] = (
    *(0, -0.0, -1, 0.5, 1e-320),
    *(sign * (2**bits + step) for bits in (15, 31, 32, 53, 62, 63, 64) for step in (-1, 0, 1) for sign in (1, -1)),
    *(3_162_240_000, 3_162_240_001, 253_402_300_799, 253_402_300_800, 253_402_300_800_000_000),
    *(10**30, -(10**30), 10**300, 1e308, -1e308),
)
"""The ends of integers of each size, seconds and microseconds at the end of the year 9999, and the ends of a double."""

RAW_NUMBERS = ("1e309", "-1e309", "1" + "0" * 400, "0." + "1" * 5_000, "1e-999999", "NaN", "Infinity", "-Infinity")

STRINGS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\x1f",
    "\x7f",
    "\ud83d",
    "a\udc00b",
    "\ufffd",
    "\ufeff",
    "\u202e\u2066",
    "\u200b" * 300,
    "a\nb",
    "..",
    "%00",
    "shared",
    "link x",
    "link of ann",
    "__proto__",
    "\U0010ffff" * 300,
    "e\u0301" * 1_000,
    "a" * 255,
    "a" * 256,
    "a" * 257,
    "a" * 1_025,
    "a" * 70_000,
)

SHAPES: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"": None}, [None] * 50, {"a": {"a": {"a": {}}}})

VALUES: tuple[Any, ...] = (*TIMES, *NUMBERS, *STRINGS, *SHAPES)


def deep(levels: int, closed: bool = True) -> str:
    """JSON text of arrays in arrays."""
    return "[" * levels + "]" * (levels if closed else 0)


def places(body: Any, path: Path = ()) -> Iterator[Path]:
    """Where the members of a JSON value are, the value itself first."""
    yield path
    members: Iterable[tuple[str | int, Any]] = ()
    if isinstance(body, Mapping):
        members = body.items()
    elif isinstance(body, list):
        members = enumerate(body)
    for name, member in members:
        yield from places(member, (*path, name))


def altered(body: Any, path: Path, value: Any) -> Any:
    """A copy of a JSON value with another member at `path`."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(body, Mapping):
        return {**body, first: altered(body[str(first)], rest, value)}
    return [altered(each, rest, value) if number == first else each for number, each in enumerate(body)]


def alterations(body: Any, values: Iterable[Any] = VALUES) -> Iterator[Any]:
    """A JSON value with one of its members, however deep, replaced by each of `values`."""
    known = tuple(values)
    for path in places(body):
        for value in known:
            yield altered(body, path, value)
