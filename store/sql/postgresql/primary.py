"""Which of several PostgreSQL servers is the primary, and connections to it.

Rule 1: all servers are asked at once, and the primary on the newest timeline is taken. A standby accepts no writes.
Rule 2: each promotion begins a timeline with a higher number, and what an older primary accepts after that is lost.
        Once this process has seen a timeline, it refuses older ones, and cuts its connections to them.
Rule 3: a server that is switched off does not answer at all: once there is a primary, the others have
        `OTHERS_SECONDS` to answer.
Rule 4: two primaries on one timeline are refused, because nobody knows which of them has the data.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

logger = logging.getLogger(__name__)

OTHERS_SECONDS = 0.5
"""Seconds that the other servers have to answer after a primary has."""

_HOST = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<name>[^:]+))(?::(?P<port>\d+))?")
_PARTS = re.compile(r"(?P<before>\w+://(?:[^/?#]*@)?)(?P<hosts>[^/?#@]*)(?P<after>.*)", re.DOTALL)
_DEFAULT_PORT = 5432

# A plain user may call these functions. That of the control file would name the timeline of the last checkpoint.
_SELECT_TIMELINE = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_walfile_name(pg_current_wal_lsn()) END"
_TIMELINE_DIGITS = 8


class NoPrimary(ConnectionError):
    """No server accepts writes that would last; `str()` says of each why."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a server says of itself.

    Attributes:
        timeline: of a primary, 0 if it cannot tell; None of a standby.
        driver: a connection to it.
    """

    name: str
    timeline: int | None
    driver: Any = None

    def refusal(self, newest: int) -> str:
        """Why it gets no writes; empty if it may. `newest` is the newest timeline that is known."""
        if self.timeline is None:
            return f"{self.name} is a standby, which accepts no writes"
        if self.timeline < newest:
            return f"{self.name} is an old primary (timeline {self.timeline}; timeline {newest} is in use)"
        return ""


def choose(answers: Collection[ServerAnswer], newest: int) -> ServerAnswer | None:
    """The primary on the newest timeline; None if no server accepts writes that would last.

    Args:
        newest: the newest timeline that is known; 0 for none.

    Raises:
        NoPrimary: two are on the same timeline.
    """
    primaries = [each for each in answers if not each.refusal(newest)]
    first = max(primaries, key=lambda each: each.timeline or 0, default=None)
    same = sorted(each.name for each in primaries if first and each.timeline == first.timeline)
    if len(same) > 1:
        raise NoPrimary(f"{' and '.join(same)} are both primaries; stop the one without the current data")
    return first


def split_hosts(url: str) -> tuple[str, Sequence[str]]:
    """A URL with only the first of its hosts, and all of them, such as `db1:5432`."""
    parts = _PARTS.fullmatch(url)
    hosts = parts["hosts"].split(",") if parts else []
    return (f"{parts['before']}{hosts[0]}{parts['after']}" if parts else url), hosts


def join_hosts(url: str, hosts: Sequence[str]) -> str:
    """A URL with these hosts in place of its own."""
    return _PARTS.sub(lambda parts: f"{parts['before']}{','.join(hosts)}{parts['after']}", url, count=1)


class Primary:
    """Connects to the primary among some servers.

    Args:
        hosts: `HOST` or `HOST:PORT`; with one, the driver's options name it.

    Attributes:
        timeline: the newest that was seen; 0 for none.
        drivers: all open connections, with their timelines.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self.timeline = 0
        self.drivers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._hosts = hosts

    async def connect(self, **options: Any) -> Any:
        """A connection (`asyncpg.Connection`).

        Args:
            options: those of `asyncpg.connect`.

        Raises:
            NoPrimary: no server accepts writes that would last.
            OSError, asyncpg.PostgresError: the only server cannot be reached, or refuses the connection.
        """
        opened: list[Any] = []
        asked = [asyncio.create_task(_ask(each, opened)) for each in self._places(options)]
        chosen: ServerAnswer | None = None
        try:
            await self._wait_for_answers(asked)
            answers = [task.result() for task in asked if _has_result(task)]
            chosen = choose(answers, self.timeline)
            if chosen is None:
                raise self._failure(asked)
            self._remember(chosen)
            return chosen.driver
        finally:
            for task in asked:
                task.cancel()
                task.add_done_callback(_has_result)  # asyncio would log an exception that nobody reads
            for driver in opened:
                if chosen is None or driver is not chosen.driver:
                    driver.terminate()

    def _places(self, options: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The name of each server, and the options for it."""
        if len(self._hosts) == 1:
            name = self._hosts[0] or str(options.get("host", "the server"))
            return [(name, options)]
        return [(host, {**options, **_address(host)}) for host in self._hosts]

    async def _wait_for_answers(self, asked: Collection[asyncio.Task[ServerAnswer]]) -> None:
        """Wait for all servers, or for those that answer soon after a primary (rule 3)."""
        pending, timeout = set(asked), None
        while pending:
            done, pending = await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return
            if any(_has_result(task) and not task.result().refusal(self.timeline) for task in done):
                timeout = OTHERS_SECONDS

    def _failure(self, asked: Sequence[asyncio.Task[ServerAnswer]]) -> BaseException:
        refusals = [task.result().refusal(self.timeline) for task in asked if _has_result(task)]
        errors = [(host, task.exception()) for host, task in zip(self._hosts, asked, strict=True) if task.done()]
        failures = [(host, error) for host, error in errors if error]
        if len(self._hosts) == 1 and failures:
            return failures[0][1]
        return NoPrimary("; ".join([*refusals, *(f"{host}: {error or 'no answer'}" for host, error in failures)]))

    def _remember(self, chosen: ServerAnswer) -> None:
        """Remember its timeline, and cut the connections to older ones (rule 2)."""
        found = chosen.timeline or 0
        if found > self.timeline:
            if self.timeline:
                logger.warning("%s was promoted: timeline %d is in use now.", chosen.name, found)
            self.timeline = found
            for driver, timeline in tuple(self.drivers.items()):
                if timeline < found:
                    driver.terminate()
        self.drivers[chosen.driver] = found


def _address(host: str) -> Mapping[str, Any]:
    parts = _HOST.fullmatch(host)
    if parts is None:
        raise ValueError(f"not a host: {host!r}")
    return {"host": parts["ipv6"] or parts["name"], "port": int(parts["port"] or _DEFAULT_PORT)}


def _has_result(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def _ask(place: tuple[str, Mapping[str, Any]], opened: list[Any]) -> ServerAnswer:
    """Connect to one server, and ask for its timeline.

    Args:
        opened: gets the connection at once.
    """
    import asyncpg  # not needed for SQLite, and slow to import

    name, options = place
    driver = await asyncpg.connect(**options)
    opened.append(driver)
    try:
        file = await driver.fetchval(_SELECT_TIMELINE)
    except (asyncpg.UndefinedFunctionError, asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError):
        return ServerAnswer(name, 0, driver)  # some services do not have these functions
    return ServerAnswer(name, int(file[:_TIMELINE_DIGITS], 16) if file else None, driver)
