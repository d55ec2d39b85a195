"""Who is in a context, as each of its streams shows it. Pure.

Rule 1: a person is an account with an open stream of the context. All users of one link are one person, `guest`.
Rule 2: a person may have several cursors, one for each window; a cursor is a selection of no length.
Rule 3: a colour follows from the name alone, so that it is the same in every window and after every restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from a2a_canvas.server.accounts.access import LINK, shown_name

AGENT_NAME = "agent"

COLOURS = (
    "#b3261e",
    "#a8400a",
    "#7d5700",
    "#556300",
    "#2e6b1f",
    "#006b5b",
    "#00677d",
    "#1f5fa8",
    "#4b55b8",
    "#7648b5",
    "#94388f",
    "#a8325f",
)
"""White text on each of them has a contrast of at least 4.5:1."""


def colour_of(name: str) -> str:
    """The colour of a name (rule 3)."""
    return COLOURS[crc32(name.encode()) % len(COLOURS)]


@dataclass(frozen=True, slots=True)
class CursorPlace:
    """A cursor or a selection: UTF-16 offsets in the text of a version, or of the draft of that number."""

    artifact_id: str
    version: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PresentPerson:
    """A person, with the places of its cursors by window.

    Attributes:
        account: who it is; it is never shown.
    """

    account: str
    cursors: tuple[tuple[str, CursorPlace], ...] = ()

    @property
    def guest(self) -> bool:
        return self.account.startswith(LINK)

    @property
    def name(self) -> str:
        """As others see it; empty for anonymous users."""
        return shown_name(self.account)


@dataclass(frozen=True, slots=True)
class Roster:
    """Who is in a context.

    Attributes:
        people: in the order of their accounts.
        more: people who are left out.
        agents: the passages that agents work on, by task.
    """

    people: tuple[PresentPerson, ...] = ()
    more: int = 0
    agents: tuple[tuple[str, CursorPlace], ...] = ()
