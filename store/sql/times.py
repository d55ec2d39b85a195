"""Times as stored: microseconds since 1970. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_EARLIEST, _LATEST = ((limit.replace(tzinfo=UTC) - _EPOCH) // _TICK for limit in (datetime.min, datetime.max))


def to_microseconds(at: datetime) -> int:
    """A time as stored."""
    return (at - _EPOCH) // _TICK


def from_microseconds(stored: int) -> datetime:
    """A stored time, clamped to the range of `datetime`."""
    return _EPOCH + min(max(stored, _EARLIEST), _LATEST) * _TICK
