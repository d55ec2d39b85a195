"""Shares as owners ask for them: when they end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.edge.share_forms import MAX_SECONDS, share_request
from tests.extreme_values import VALUES

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LAST = NOW + timedelta(seconds=MAX_SECONDS)


@pytest.mark.parametrize("expires", VALUES, ids=lambda value: ascii(value)[:40])
def test_a_share_ends_within_a_hundred_years_or_never_or_is_refused(expires: object) -> None:
    try:
        ends = share_request({"user": "bob", "expires": expires}, NOW).expires_at
    except InvalidOperation as error:
        refused = error.field
    else:
        refused = ""
    within = not refused and (ends is None or (NOW < ends <= LAST and ends.utcoffset() == timedelta()))
    assert within or refused == "expires"


@pytest.mark.parametrize("zone", ["-12:00", "+00:00", "+14:00"])
def test_the_end_of_the_year_9999_is_refused_in_every_zone(zone: str) -> None:
    with pytest.raises(InvalidOperation, match="more than 100 years away: omit it"):
        share_request({"user": "bob", "expires": f"9999-12-31T23:59:59{zone}"}, NOW)


def test_the_last_moment_is_allowed_and_the_next_is_not() -> None:
    assert share_request({"link": True, "expires": LAST.isoformat()}, NOW).expires_at == LAST
    with pytest.raises(InvalidOperation):
        share_request({"link": True, "expires": (LAST + timedelta(seconds=1)).isoformat()}, NOW)
