"""`python -m bench.capacity`: what an installation of a size needs, and what breaks first. On paper: a model.

Rule 1: its inputs are figures of other scenarios (`Measured`), or assumptions about one database machine (`Machine`).
Rule 2: a need that grows with the number of workers is that of workers as full as they are planned to be.
Rule 3: one PostgreSQL is enough while no need exceeds what it has. Then that need breaks first, and the rounded-up
        ratio is the number of PostgreSQL servers that share the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
"""Running turns."""
STREAMS = 1_000_000
"""Open streams that wait."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, with 50 deltas a second in each turn (docs/scaling.md, docs/deploy.md).

    Attributes:
        cores_per_turn, database_cores_per_turn: of the servers, and of PostgreSQL.
        turns_per_worker: what a worker is planned for, with a core of its own.
        commits_per_worker: transactions a second, while streams elsewhere follow its tasks.
        wal_per_turn: bytes a second.
        sent_per_turn: bytes a second to one subscriber without extensions, over JSON-RPC.
        connections_per_worker: the fewest.
        worker_bytes, stream_bytes: resident memory of a worker with all its turns, and of a stream that waits.
        cores_per_stream: of a stream that waits.
        streams_per_worker: that a worker is measured with.
        commits_with_notify, commits_by_broker: of one PostgreSQL, from 64 clients.
    """

    cores_per_turn: float = 0.016
    database_cores_per_turn: float = 0.0011
    turns_per_worker: int = 30
    commits_per_worker: float = 25
    wal_per_turn: float = 25e3
    sent_per_turn: float = 8.4e3
    connections_per_worker: int = 6
    worker_bytes: float = 200e6
    stream_bytes: float = 30e3
    cores_per_stream: float = 3.5e-5
    streams_per_worker: int = 10_000
    commits_with_notify: float = 400
    commits_by_broker: float = 4_500


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine of one PostgreSQL is assumed to have. `wal` is what its disk and its standby take, a second."""

    cores: float = 32
    connections: float = 2_000
    wal: float = 200e6


@dataclass(frozen=True, slots=True)
class Need:
    """What so many running turns need. `database` has its needs by name, each with what one PostgreSQL has."""

    turns: int
    workers: int
    cores: float
    bytes: float
    sent: float
    database: Mapping[str, tuple[float, float]]

    @property
    def breaks_first(self) -> str:
        """The need that one PostgreSQL meets least; empty while it meets all."""
        worst = max(self.database, key=self._ratio)
        return worst if self._ratio(worst) > 1 else ""

    @property
    def databases(self) -> int:
        """How many PostgreSQL servers share the turns."""
        return max(1, *(ceil(self._ratio(each)) for each in self.database))

    def _ratio(self, name: str) -> float:
        needed, there = self.database[name]
        return needed / there


def need(turns: int, *, broker: bool, measured: Measured = Measured(), machine: Machine = Machine()) -> Need:
    """What so many running turns need, with or without a broker."""
    workers = ceil(turns / measured.turns_per_worker)
    database = {
        "commits a second": (
            workers * measured.commits_per_worker,
            measured.commits_by_broker if broker else measured.commits_with_notify,
        ),
        "connections": (workers * measured.connections_per_worker, machine.connections),
        "WAL a second": (turns * measured.wal_per_turn, machine.wal),
        "cores of PostgreSQL": (turns * measured.database_cores_per_turn, machine.cores),
    }
    memory = workers * measured.worker_bytes
    return Need(turns, workers, turns * measured.cores_per_turn, memory, turns * measured.sent_per_turn, database)


def lines(measured: Measured = Measured(), machine: Machine = Machine()) -> Iterator[str]:
    """The tables of docs/scaling.md."""
    names = ("running turns", "workers", "cores busy", "memory", "commits a second", "connections", "WAL a second")
    yield _row(*names, "cores of PostgreSQL", "sent a second, with a subscriber each")
    yield "|---|---|---|---|---|---|---|---|---|"
    needs = [need(turns, broker=True, measured=measured, machine=machine) for turns in SIZES]
    for each in needs:
        values = {name: needed for name, (needed, _) in each.database.items()}
        cells = (
            *(f"{each.turns:,}", f"{each.workers:,}", f"{each.cores:,.0f}", f"{each.bytes / 1e9:,.0f} GB"),
            *(f"{values['commits a second']:,.0f}", f"{values['connections']:,.0f}"),
            *(f"{values['WAL a second'] / 1e6:,.0f} MB", f"{values['cores of PostgreSQL']:.1f}"),
            f"{each.sent / 1e6:,.0f} MB",
        )
        yield _row(*cells)
    yield ""
    yield _row("running turns", "with NOTIFY breaks first", "with a broker breaks first", "PostgreSQL servers then")
    yield "|---|---|---|---|"
    for each in needs:
        notified = need(each.turns, broker=False, measured=measured, machine=machine)
        yield _row(f"{each.turns:,}", notified.breaks_first or "–", each.breaks_first or "–", str(each.databases))
    yield ""
    servers = ceil(STREAMS / measured.streams_per_worker)
    memory, cores = STREAMS * measured.stream_bytes / 1e9, STREAMS * measured.cores_per_stream
    yield (
        f"{STREAMS:,} streams that wait take {memory:,.0f} GB and {cores:,.1f} cores, on {servers} workers or servers "
        f"beside those of the turns. They cost PostgreSQL {servers * measured.connections_per_worker} connections and "
        f"{servers} queries a second, so the memory and cores of these servers break first."
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print("\n".join(lines()))
