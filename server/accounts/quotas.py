"""How much callers may use, and how much they have used: requests, streams, turns, tokens and bytes.

Rule 1: a quota is for one user, or for all together. Anonymous callers are one user, and so are all who have a link of
        one owner's: otherwise an owner with many links has as many quotas.
Rule 2: whether a request may pass is a look at two accounts, the user's and that of all, however many users there are.
Rule 3: what is refused does not count.
Rule 4: the requests of the last 60 seconds are estimated: those of this minute of the clock, and of the one before it
        the share that is not yet 60 seconds ago.
Rule 5: a day is that of UTC. What the other replicas have counted is added as it was when they last said so.
        Of several workers at one address each lets pass its part of what was left when they last heard of each other:
        otherwise the first second after a pause would allow each of them all of it.
Rule 6: the memory is bounded: beyond `MAX_ACCOUNTS` users in a day, those who come share one account.
Rule 7: bytes are what is kept of the contexts that a user owns, whoever has written it. The database counts them; a
        user is told its own number, and nobody another one's.
Rule 8: without a limit of streams per user, a user may have at most as many streams on a server as are still free
        there: two users who open all they can get a third each, and a third stays free. Anonymous callers may use all
        streams, because they are one account.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import ceil
from typing import Protocol

from a2a_canvas.server.accounts.access import LINK
from a2a_canvas.server.accounts.errors import QuotaReached, StorageFull

EVERYBODY = "\x1f"
"""The account of all together: no user is called so."""
OTHERS = "\x1f\x1f"
"""The account of rule 6."""
GUEST = EVERYBODY
"""Anybody but the owner of a context."""
MAX_ACCOUNTS = 100_000
MAX_TOKENS = 10**15
"""Tokens that are counted in a day. A function, or an agent elsewhere, may report any number, and one that does not fit
into a row would keep the counts of all users from being written."""
EXCHANGE_SECONDS = 1.0
"""The interval of exchanges with the other replicas."""
UNHEARD_INTERVALS = 4
"""Others have heard of what was counted so many intervals ago, and have counted with it themselves, in whatever order
the replicas exchange. With fewer, all together let pass up to a quarter more than the limit."""
UNHEARD_SECONDS = UNHEARD_INTERVALS * EXCHANGE_SECONDS
"""A worker that has used its share of a limit gets more after this time."""
STREAM_RETRY_SECONDS = 10
"""After so long a stream may have ended."""

MINUTE = 60
DAY = 24 * 60 * MINUTE


@dataclass(frozen=True, slots=True)
class Quota:
    """How much one user, or all together, may use; None for any amount.

    Attributes:
        requests: in a minute.
        streams: open at once; all together, on each server: streams are what its CPU is for.
        turns: running at once.
        tokens: in a day, of requests to the model and of its answers.
        bytes: kept at once.
    """

    requests: int | None = None
    streams: int | None = None
    turns: int | None = None
    tokens: int | None = None
    bytes: int | None = None


class KeptBytes(Protocol):
    """How many bytes are kept. Both may raise `Unavailable`, and answer with a number that is a moment old."""

    async def sum_of(self, owners: Collection[str]) -> int:
        """Those of the contexts of some owners."""
        ...

    async def sum_of_all(self) -> int: ...


@dataclass(slots=True)
class Tally:
    """What a replica has counted of a user on a day.

    Attributes:
        day: days since 1970.
        tokens_in: those of the requests to the model; `tokens_out` those of its answers.
        minute: minutes since 1970, when it last counted a request.
        in_minute, before: the requests of that minute, and of the one before it.
        streams, running: the open streams and the running turns.
    """

    day: int
    requests: int = 0
    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    minute: int = 0
    in_minute: int = 0
    before: int = 0
    streams: int = 0
    running: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def idle(self) -> bool:
        return not (self.streams or self.running)

    def requests_of(self, minute: int) -> tuple[int, int]:
        """The requests of a minute, and of the one before it."""
        if minute == self.minute:
            return self.in_minute, self.before
        return 0, self.in_minute if minute == self.minute + 1 else 0

    def begin(self, day: int, minute: int) -> None:
        """Go on to this day and minute."""
        if day != self.day:
            self.day, self.requests, self.turns, self.tokens_in, self.tokens_out = day, 0, 0, 0, 0
        if minute != self.minute:
            self.in_minute, self.before = self.requests_of(minute)
            self.minute = minute


def wait_for_request(most: int, in_minute: int, before: int, second: float) -> float:
    """Seconds until another request makes no more than `most` in the last 60 (rule 4); 0 for now.

    Args:
        in_minute, before: the requests of this minute of the clock, and of the one before it.
        second: of this minute.
    """
    if in_minute + 1 + before * (1 - second / MINUTE) <= most:
        return 0
    if in_minute + 1 <= most:
        return MINUTE * (1 - (most - in_minute - 1) / before) - second
    return MINUTE - second + (MINUTE * (1 - (most - 1) / in_minute) if in_minute else 0)


def fits_part(most: int, used: float, unheard: int, workers: int) -> bool:
    """Whether one more fits into this worker's part of what was left when it last heard of the others (rule 5).

    Args:
        used: of `most`, as far as it is known.
        unheard: the part of `used` that others may not know of.
    """
    return workers == 1 or unheard + 1 <= ceil((most - used + unheard) / workers)


@dataclass(slots=True)
class _Unheard:
    """What was counted here in the last intervals between exchanges: others may not know of it (rule 5)."""

    counts: tuple[int, ...] = (0,) * UNHEARD_INTERVALS
    exchange: int = 0

    def count(self, exchange: int, more: int = 0) -> int:
        """Count `more`, in the time after an exchange of this number; returns the sum."""
        past = min(exchange - self.exchange, UNHEARD_INTERVALS)
        self.counts = (*self.counts[past:], *(0,) * past)
        self.exchange = exchange
        self.counts = (*self.counts[:-1], self.counts[-1] + more)
        return sum(self.counts)

    def take_back(self, exchange: int, counted_at: int) -> None:
        """One that was counted after an earlier exchange has ended."""
        self.count(exchange)
        at = UNHEARD_INTERVALS - 1 - (exchange - counted_at)
        self.counts = tuple(count - (place == at) for place, count in enumerate(self.counts))


@dataclass(slots=True)
class _Account:
    """What is counted of one user: here, and on other replicas by their ids."""

    here: Tally
    elsewhere: dict[str, Tally] = field(default_factory=dict)
    requests: _Unheard = field(default_factory=_Unheard)
    streams: _Unheard = field(default_factory=_Unheard)

    def tokens_today(self) -> int:
        return sum(each.tokens for each in self._all if each.day == self.here.day)

    def streams_now(self) -> int:
        return sum(each.streams for each in self._all)

    def running_now(self) -> int:
        return sum(each.running for each in self._all)

    def requests_lately(self) -> tuple[int, int]:
        found = [each.requests_of(self.here.minute) for each in self._all]
        return sum(now for now, _ in found), sum(before for _, before in found)

    def rests(self, minute: int) -> bool:
        """Whether nothing is open, and nothing was asked in a minute that still counts."""
        return all(each.idle and each.minute < minute - 1 for each in self._all)

    @property
    def _all(self) -> Iterator[Tally]:
        yield self.here
        yield from self.elsewhere.values()


class Meter:
    """Counts what users use, and refuses what is more than they may.

    Args:
        of_user: how much each user may use.
        of_all: how much all together may. Its turns are `Admission`'s matter.
        adopter: the user who has the contexts of anonymous callers, too; empty for none.
        workers: how many processes have this address (rule 5).

    Attributes:
        kept: how many bytes are kept; None if nobody counts them.
    """

    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        of_user: Quota | None = None,
        of_all: Quota | None = None,
        adopter: str = "",
        workers: int = 1,
    ) -> None:
        self.kept: KeptBytes | None = None
        self._adopter = adopter
        self._now = now
        self._of_user = of_user or Quota()
        self._of_all = of_all or Quota()
        self._accounts: dict[str, _Account] = {}
        self._ended: dict[tuple[str, int], Tally] = {}
        self._changed: set[str] = set()
        self._day = 0
        self._workers = workers
        self._exchange = 0

    # ----------------------------------------------------------------------- requests

    def count_request(self, user: str) -> None:
        """A request of a user has come.

        Raises:
            QuotaReached: it may not pass.
        """
        second = self._now().timestamp() % MINUTE
        for scope, account, quota in self._limits_of(user):
            if quota.requests is not None:
                lately = account.requests_lately()
                wait = wait_for_request(quota.requests, *lately, second)
                used = lately[0] + lately[1] * (1 - second / MINUTE)
                unheard = account.requests.count(self._exchange)
                if wait <= 0 and not fits_part(quota.requests, used, unheard, self._workers):
                    wait = UNHEARD_SECONDS
                if wait > 0:
                    raise QuotaReached(f"Request limit{scope} reached ({quota.requests} per minute).", wait)
        for tally in self._tallies_to_change(user):
            tally.requests += 1
            tally.in_minute += 1
        for name in (user, EVERYBODY):
            self._account(name).requests.count(self._exchange, 1)

    @contextmanager
    def stream(self, user: str) -> Iterator[None]:
        """A stream of a user, while it is open.

        Raises:
            QuotaReached: it may not be opened.
        """
        here, all_here = self._account(user).streams_now(), self._account(EVERYBODY).here.streams
        for scope, streams, quota in (("", here, self._of_user), (" of this server", all_here, self._of_all)):
            if quota.streams is not None and streams >= quota.streams:
                text = f"Stream limit{scope} reached ({quota.streams} open). Close one."
                raise QuotaReached(text, STREAM_RETRY_SECONDS)
        unheard, most = self._account(user).streams, self._of_user.streams
        if most is not None and not fits_part(most, here, unheard.count(self._exchange), self._workers):
            raise QuotaReached("You open many streams at once. Try again in a moment.", UNHEARD_SECONDS)
        self._check_share(user)
        tallies = self._tallies_to_change(user)
        for tally in tallies:
            tally.streams += 1
        opened_at = self._exchange
        unheard.count(opened_at, 1)
        try:
            yield
        finally:
            unheard.take_back(self._exchange, opened_at)
            self._tallies_to_change(user)
            for tally in tallies:
                tally.streams -= 1

    def _check_share(self, user: str) -> None:
        """Rule 8."""
        most = self._of_all.streams
        if not user or most is None or self._of_user.streams is not None:
            return
        own, free = self._account(user).here.streams, most - self._account(EVERYBODY).here.streams
        if own >= free:
            reserved = f"the remaining {free} on this server are reserved for other users"
            text = f"Stream limit reached ({own} open): {reserved}. Close one."
            raise QuotaReached(text, STREAM_RETRY_SECONDS)

    # -------------------------------------------------------------------------- turns

    def may_run(self, user: str) -> bool:
        """Whether another turn of a user may run."""
        most = self._of_user.turns
        return most is None or self._account(user).running_now() < most

    @contextmanager
    def turn(self, user: str) -> Iterator[None]:
        """A turn of a user, while it runs."""
        tallies = self._tallies_to_change(user)
        for tally in tallies:
            tally.turns += 1
            tally.running += 1
        try:
            yield
        finally:
            self._tallies_to_change(user)
            for tally in tallies:
                tally.running -= 1

    def spend(self, user: str, tokens_in: int, tokens_out: int) -> None:
        """A model call for a user has ended."""
        for tally in self._tallies_to_change(user):
            tally.tokens_in = min(tally.tokens_in + max(tokens_in, 0), MAX_TOKENS)
            tally.tokens_out = min(tally.tokens_out + max(tokens_out, 0), MAX_TOKENS)

    def check_tokens(self, user: str) -> None:
        """Raises `QuotaReached` if a user, or all together, have used the tokens of today."""
        for scope, account, quota in self._limits_of(user):
            if quota.tokens is not None and account.tokens_today() >= quota.tokens:
                text = f"Token limit{scope} reached ({quota.tokens} per day). It resets at midnight UTC."
                raise QuotaReached(text, DAY - self._now().timestamp() % DAY)

    def tokens_left(self, user: str) -> int | None:
        """The tokens that a user may still use today; None without a limit."""
        left = [
            max(quota.tokens - account.tokens_today(), 0)
            for _, account, quota in self._limits_of(user)
            if quota.tokens is not None
        ]
        return min(left, default=None)

    # -------------------------------------------------------------------------- bytes

    async def check_bytes(self, owner: str, reader: str, new: int = 0) -> None:
        """Look whether there is room in the contexts of an owner.

        Args:
            reader: who is told if there is none.
            new: bytes that are about to come, if that is known.

        Raises:
            StorageFull: the owner, or all together, keep as much as they may, or would with what is new.
            Unavailable: the database cannot tell.
        """
        if self.kept is None:
            return
        user, most, most_of_all = owner or self._adopter, self._of_user.bytes, self._of_all.bytes
        if most is not None:
            kept = await self.kept.sum_of((user, "") if user and user == self._adopter else (user,))
            if kept + max(new, 1) > most:
                yours = f"Storage limit reached: you store {kept} of {most} bytes, and this adds {new}."
                raise StorageFull(yours if reader == user else "The storage of this context's owner is full.")
        if most_of_all is not None and await self.kept.sum_of_all() + max(new, 1) > most_of_all:
            raise StorageFull("This server's storage is full.")

    # ------------------------------------------------------------------------ sharing

    def take_changed(self) -> Mapping[tuple[str, int], Tally]:
        """What has been counted since the last call, by user and day: all of that day, not what was added."""
        accounts = {user: self._account(user).here for user in tuple(self._changed)}
        changed = self._ended | {(user, tally.day): replace(tally) for user, tally in accounts.items()}
        self._ended, self._changed = {}, set()
        return changed

    def touch_open(self) -> None:
        """Those who have something open have changed."""
        self._changed |= {user for user, each in self._accounts.items() if not each.here.idle}

    def put_back(self, tallies: Mapping[tuple[str, int], Tally]) -> None:
        """These could not be written: the next call returns them again, as they are then."""
        for (user, day), tally in tallies.items():
            if day == self._day:
                self._changed.add(user)
            else:
                self._ended[user, day] = tally

    def mark_exchanged(self) -> None:
        """Others know what was counted here, and this replica what they have counted (rule 5)."""
        self._exchange += 1

    def set_elsewhere(self, user: str, replica: str, tally: Tally) -> None:
        """What another replica has counted."""
        self._account(user).elsewhere[replica] = tally

    # ---------------------------------------------------------------------- accounts

    def _limits_of(self, user: str) -> tuple[tuple[str, _Account, Quota], ...]:
        """The limits that count: what a sentence adds to their name, who has used what, how much that may be."""
        everybody = self._account(EVERYBODY)
        return ("", self._account(user), self._of_user), (" of this server", everybody, self._of_all)

    def _tallies_to_change(self, user: str) -> tuple[Tally, Tally]:
        """What is about to change."""
        found = self._account(user).here, self._account(EVERYBODY).here
        self._changed |= {self._name(user), EVERYBODY}
        return found

    def _account(self, user: str) -> _Account:
        seconds = int(self._now().timestamp())
        day = seconds // DAY
        if day != self._day:
            self._begin_day(day, seconds // MINUTE)
        name = self._name(user)
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = _Account(Tally(day))
        account.here.begin(day, seconds // MINUTE)
        return account

    def _name(self, user: str) -> str:
        return user if user in self._accounts or len(self._accounts) < MAX_ACCOUNTS else OTHERS

    def _begin_day(self, day: int, minute: int) -> None:
        """Accounts are kept of those who have something open, here or elsewhere, and of those who have just made
        requests; what is not written yet is."""
        for user in self._changed:
            tally = self._accounts[user].here
            self._ended[user, tally.day] = replace(tally)
        self._accounts = {user: each for user, each in self._accounts.items() if not each.rests(minute)}
        self._changed = set(self._accounts)
        self._day = day


def payer(owner: str, sender: str) -> str:
    """Whose quota a turn is for: of the user who sent the message; of the context's owner if that came by a link."""
    return owner if not sender or sender.startswith(LINK) else sender
