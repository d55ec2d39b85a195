"""Times on the wire: milliseconds, in UTC (A2A 1.0, section 5.6.1).

Internally, times have microseconds, which order tasks.

Rule 1: times are truncated, not rounded, so that no time on the wire is later than the real one. A time that a client
        sends back, such as a filter, is compared with truncated times (`list_tasks.py`).
"""

from __future__ import annotations

from datetime import UTC, datetime


def cut_to_milliseconds(at: datetime) -> datetime:
    """A time as clients see it."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def timestamp(at: datetime) -> str:
    """A time in JSON, with its zone: `2026-11-21T09:54:48.895Z`."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
