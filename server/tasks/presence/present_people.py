"""Who is present in the contexts that are watched here: each stream of a context gets it joined, once a second.

Rule 1: a stream shows who is there when it begins, and again when somebody has come, left or moved, at most once in
        `INTERVAL` seconds: however many move, and however often, a stream gets one event for it, the newest.
Rule 2: only the newest place of a window counts. One that moves more often than once a second costs its own requests,
        and delays nobody.
Rule 3: a cursor is kept while its person has a stream of the context, and of each person `MAX_WINDOWS` at most: the
        one that has rested longest goes first. A context shows `MAX_PEOPLE`, those with cursors first.
Rule 4: nothing is kept for a context that nobody watches here, except where the tasks that run here work.
Rule 5: a replica speaks for the people whose streams it has, and for the tasks that it runs. `exchange` tells the
        others what changes here (`presence_changes.py`), and brings what they say.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Protocol, assert_never

from a2a_canvas.server.tasks.journal.cursors import Log
from a2a_canvas.server.tasks.presence.presence_changes import (
    AgentMoved,
    CursorMoved,
    PersonCame,
    PersonLeft,
    PresenceChange,
    RosterAsked,
)
from a2a_canvas.server.tasks.presence.roster import CursorPlace, PresentPerson, Roster
from a2a_canvas.store.ids import ContextKey

INTERVAL = 1.0
"""Seconds between two events of a stream."""
MAX_WINDOWS = 50
"""Cursors of one person in a context. All users of a link are one person, and so are all anonymous users."""
MAX_PEOPLE = 100
"""People that an event names."""

Timer = Callable[[float, Callable[[], None]], object]
"""Calls a function after some seconds."""
Tell = Callable[[PresenceChange], None]


def _call_later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)


class PresenceWire(Protocol):
    """The way to the other replicas."""

    def tell(self, change: PresenceChange) -> None:
        """Tell them. It never waits, and may be lost."""
        ...


class _NoWire:
    def tell(self, change: PresenceChange) -> None:
        pass


class _WatchedPresence(Log[None]):
    """A context that is watched here.

    Attributes:
        here: the open streams of each account on this replica.
        elsewhere: the accounts that each other replica has streams of.
        cursors: of each account, by window, the last moved last.
        roster: what streams show; None until the first was made.
        waits: something has changed since it was made.
        rests: it was made less than `INTERVAL` seconds ago.
    """

    def __init__(self) -> None:
        super().__init__()
        self.here: Counter[str] = Counter()
        self.elsewhere: defaultdict[str, set[str]] = defaultdict(set)
        self.cursors: dict[str, dict[str, CursorPlace]] = {}
        self.roster: Roster | None = None
        self.waits = False
        self.rests = False

    def is_present(self, account: str) -> bool:
        return account in self.here or any(account in accounts for accounts in self.elsewhere.values())

    def move(self, account: str, window: str, place: CursorPlace | None) -> None:
        cursors = self.cursors.setdefault(account, {})
        cursors.pop(window, None)
        if place is not None:
            cursors[window] = place
            if len(cursors) > MAX_WINDOWS:
                del cursors[next(iter(cursors))]

    def drop_absent(self, account: str) -> None:
        if not self.is_present(account):
            self.cursors.pop(account, None)

    def people(self) -> Iterator[PresentPerson]:
        for account in {*self.here}.union(*self.elsewhere.values()):
            yield PresentPerson(account, tuple(sorted(self.cursors.get(account, {}).items())))


class PresentPeople:
    """The contexts that are watched in this process, and the tasks that work in it.

    Args:
        call_later: calls a function after some seconds.
    """

    def __init__(self, call_later: Timer = _call_later) -> None:
        self.exchange: PresenceWire = _NoWire()
        self._call_later = call_later
        self._watched: dict[ContextKey, _WatchedPresence] = {}
        self._agents: dict[ContextKey, dict[str, CursorPlace]] = {}
        self._agents_elsewhere: dict[ContextKey, dict[str, tuple[str, CursorPlace]]] = {}

    # ----------------------------------------------------------------------- streams

    async def watch(self, context: ContextKey, account: str) -> AsyncGenerator[Roster, None]:
        """Who is present, at once and when it has changed (rule 1); the reader is present meanwhile. It never ends."""
        watched = self._watched.get(context)
        if watched is None:
            watched = self._watched[context] = _WatchedPresence()
            self.exchange.tell(RosterAsked(context))
        shown = None if watched.is_present(account) else watched.roster  # the next one is the first with this person
        watched.here[account] += 1
        if watched.here[account] == 1:
            self.exchange.tell(PersonCame(context, account))
        self._mark(context)
        try:
            while True:
                if watched.roster is None or watched.roster is shown:
                    await watched.wait()
                else:
                    shown = watched.roster
                    yield shown
        finally:
            self._leave(context, watched, account)

    def _leave(self, context: ContextKey, watched: _WatchedPresence, account: str) -> None:
        watched.here[account] -= 1
        if watched.here[account] == 0:
            del watched.here[account]
            watched.drop_absent(account)
            self.exchange.tell(PersonLeft(context, account))
        if watched.here:
            self._mark(context)
        else:
            del self._watched[context]
            self._agents_elsewhere.pop(context, None)

    # ------------------------------------------------------------------------- moves

    def move(self, context: ContextKey, account: str, window: str, place: CursorPlace | None) -> None:
        """A window has moved its cursor, or has withdrawn it (None)."""
        change = CursorMoved(context, account, window, place)
        self._take_move(change)
        self.exchange.tell(change)

    def _take_move(self, moved: CursorMoved) -> None:
        watched = self._watched.get(moved.context)
        if watched and watched.is_present(moved.account):
            watched.move(moved.account, moved.window, moved.place)
            self._mark(moved.context)

    def show_agent(self, context: ContextKey, task_id: str, place: CursorPlace | None) -> None:
        """The passage that a task works on here; None if it no longer works on one."""
        if self._agents.get(context, {}).get(task_id) == place:
            return
        agents = self._agents.setdefault(context, {})
        agents.pop(task_id, None)
        if place is not None:
            agents[task_id] = place
        elif not agents:
            del self._agents[context]
        self._mark(context)
        self.exchange.tell(AgentMoved(context, task_id, place))

    # ---------------------------------------------------------------- other replicas

    def receive(self, replica: str, change: PresenceChange) -> None:
        """Another replica has told of a change there."""
        watched = self._watched.get(change.context)
        if isinstance(change, RosterAsked):
            self._tell_all(change.context, self.exchange.tell)
            return
        if watched is None:
            return
        match change:
            case PersonCame():
                watched.elsewhere[replica].add(change.account)
            case PersonLeft():
                watched.elsewhere[replica].discard(change.account)
                watched.drop_absent(change.account)
            case CursorMoved():
                self._take_move(change)
                return
            case AgentMoved():
                agents = self._agents_elsewhere.setdefault(change.context, {})
                agents.pop(change.task_id, None)
                if change.place is not None:
                    agents[change.task_id] = replica, change.place
            case _:
                assert_never(change)
        self._mark(change.context)

    def forget(self, replica: str | None = None) -> None:
        """What another replica has said holds no longer; of all if it is None."""
        for context, watched in self._watched.items():
            for gone in [*watched.elsewhere] if replica is None else [replica]:
                for account in watched.elsewhere.pop(gone, ()):
                    watched.drop_absent(account)
            agents = self._agents_elsewhere.get(context, {})
            kept = {task: found for task, found in agents.items() if replica is not None and found[0] != replica}
            self._agents_elsewhere[context] = kept
            self._mark(context)

    def ask_all(self) -> None:
        """Ask the others about every context that is watched here."""
        for context in self._watched:
            self.exchange.tell(RosterAsked(context))

    def _tell_all(self, context: ContextKey, tell: Tell) -> None:
        """What this replica speaks for (rule 5)."""
        for task_id, place in self._agents.get(context, {}).items():
            tell(AgentMoved(context, task_id, place))
        if watched := self._watched.get(context):
            for account in watched.here:
                tell(PersonCame(context, account))
                for window, place in watched.cursors.get(account, {}).items():
                    tell(CursorMoved(context, account, window, place))

    # ------------------------------------------------------------------------ rosters

    def _mark(self, context: ContextKey) -> None:
        """Something has changed: a roster is made soon, or when the last one is `INTERVAL` seconds old."""
        watched = self._watched.get(context)
        if watched and not watched.waits:
            watched.waits = True
            if not watched.rests:
                watched.rests = True
                self._call_later(0, lambda: self._publish(context, watched))

    def _publish(self, context: ContextKey, watched: _WatchedPresence) -> None:
        watched.rests = watched.waits
        if not watched.waits:
            return
        watched.waits = False
        self._call_later(INTERVAL, lambda: self._publish(context, watched))
        roster = self._roster(context, watched)
        if roster != watched.roster:
            watched.roster = roster
        watched.wake()

    def _roster(self, context: ContextKey, watched: _WatchedPresence) -> Roster:
        agents = {task: place for task, (_, place) in self._agents_elsewhere.get(context, {}).items()}
        agents |= self._agents.get(context, {})
        people = sorted(watched.people(), key=lambda each: (not each.cursors, each.account))
        seen = sorted(people[:MAX_PEOPLE], key=lambda each: each.account)
        return Roster(tuple(seen), len(people) - len(seen), tuple(sorted(agents.items())))
