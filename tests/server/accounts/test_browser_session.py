"""How long a session of a browser lasts."""

from __future__ import annotations

import pytest

from a2a_canvas.server.accounts.browser_session import (
    RENEWAL_SECONDS,
    SESSION_LIMIT,
    SESSION_SECONDS,
    BrowserSession,
    InMemoryEndedSessions,
    new_session,
)

SESSION = BrowserSession("s", "ann", 0, SESSION_SECONDS)
HALF = SESSION_SECONDS // 2


@pytest.mark.parametrize(("now", "ends"), [(HALF - 1, SESSION_SECONDS), (HALF, HALF + SESSION_SECONDS)], ids=str)
def test_a_request_in_its_second_half_renews_it(now: int, ends: int) -> None:
    assert SESSION.at(now) == BrowserSession("s", "ann", 0, ends)


def test_it_is_renewed_again_and_again_up_to_a_limit() -> None:
    now, session = 0, SESSION
    while now < session.ends_at:
        now, session = session.ends_at - 1, session.at(session.ends_at - 1)
        if session.ends_at == SESSION_LIMIT:
            break
    assert session.at(session.ends_at - 1) == session
    assert session.ends_at == SESSION_LIMIT


def test_its_streams_end_while_it_can_still_be_renewed() -> None:
    assert SESSION.streams_end_at == SESSION_SECONDS - RENEWAL_SECONDS
    assert SESSION.at(SESSION.streams_end_at).streams_end_at > SESSION_SECONDS
    assert BrowserSession("s", "ann", 0, SESSION_LIMIT).streams_end_at == SESSION_LIMIT


def test_no_two_are_the_same() -> None:
    assert new_session("ann", 0).session_id != new_session("ann", 0).session_id


async def test_in_memory_those_that_have_ended_are_known_for_as_long_as_there_are_such() -> None:
    ended = InMemoryEndedSessions()
    await ended.add(SESSION)
    assert await ended.has(SESSION)
    await ended.add(new_session("joe", SESSION_LIMIT + 1))
    assert not await ended.has(SESSION)
