"""Times on the wire: milliseconds, in UTC (A2A 1.0, section 5.6.1). Inside they have microseconds, which order tasks.

Rule 1: a time is cut, not rounded, so that a later one never looks earlier. What a client compares with what it was
        shown has to be compared with times that are cut (`list_tasks.py`).
"""

from __future__ import annotations

from datetime import UTC, datetime


def cut_to_milliseconds(at: datetime) -> datetime:
    """A time as clients are shown it."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def timestamp(at: datetime) -> str:
    """A time with its zone, as JSON has it: `2026-11-21T09:54:48.895Z`."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
