"""Sessions of browsers, and those that have ended before their time. Pure, but for the randomness of a new one.

Rule 1: a session lasts for SESSION_SECONDS after its last renewal, and for SESSION_LIMIT in all. A request in the last
        half of these SESSION_SECONDS renews it, so that who uses the page need not sign in every day.
Rule 2: who signs out ends a session, an operator all of a user's: whoever has its cookie, or a copy of it, is nobody.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Final, Protocol

SESSION_SECONDS: Final = 12 * 3600
SESSION_LIMIT: Final = 7 * 24 * 3600
RENEWAL_SECONDS: Final = 60
"""How long before the end of a session its streams end, so that the browser comes back, and renews it."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """That a user has signed in with a browser. Times are seconds since 1970.

    Attributes:
        session_id: random; the same after a renewal.
    """

    session_id: str
    user: str
    began_at: int
    ends_at: int

    def at(self, now: float) -> BrowserSession:
        """The session after a request (rule 1)."""
        if self.ends_at - now > SESSION_SECONDS / 2:
            return self
        return replace(self, ends_at=min(int(now) + SESSION_SECONDS, self.began_at + SESSION_LIMIT))

    @property
    def streams_end_at(self) -> int:
        """When its streams end: before it does, as long as it can be renewed."""
        renewable = self.ends_at < self.began_at + SESSION_LIMIT
        return self.ends_at - RENEWAL_SECONDS if renewable else self.ends_at


class EndedSessions(Protocol):
    """Sessions that have ended before their time. Every method may raise `Unavailable`.

    What was added is known to every server within 2 seconds.
    """

    async def has(self, session: BrowserSession) -> bool:
        """Whether this one has."""
        ...

    async def add(self, session: BrowserSession) -> None:
        """End one."""
        ...


def new_session(user: str, now: float) -> BrowserSession:
    """A session that begins now."""
    return BrowserSession(secrets.token_urlsafe(16), user, int(now), int(now) + SESSION_SECONDS)


class InMemoryEndedSessions:
    """`EndedSessions` of one process."""

    def __init__(self) -> None:
        self._ended: dict[str, BrowserSession] = {}

    async def has(self, session: BrowserSession) -> bool:
        return session.session_id in self._ended

    async def add(self, session: BrowserSession) -> None:
        over = [each.session_id for each in self._ended.values() if each.began_at + SESSION_LIMIT < session.began_at]
        for session_id in over:
            del self._ended[session_id]
        self._ended[session.session_id] = session
