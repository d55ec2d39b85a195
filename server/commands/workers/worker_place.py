"""What a worker learns from the process that starts it, in one variable of its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

VARIABLE: Final = "_A2A_CANVAS_WORKER"
MAX_LINE: Final = 2**24
"""Bytes of a message between a worker and its parent."""


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """One worker's place among the others.

    Attributes:
        number: from 1.
        channel: the file descriptor of the socket to the parent.
        sockets: the file descriptors of listening sockets, by port.
        connections: to PostgreSQL.
        speaks: it prints the banner and the hints, with these counts of what is in the database.
    """

    number: int
    channel: int
    sockets: Mapping[str, int]
    connections: int
    speaks: bool = False
    counts: Mapping[str, Any] | None = None

    def environment(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def take(cls) -> Self | None:
        """That of this process, once: programs that it starts are no workers. None if it is none itself."""
        if not (found := os.environ.pop(VARIABLE, "")):
            return None
        place = cls(**json.loads(found))
        for number in (place.channel, *place.sockets.values()):
            os.set_inheritable(number, False)  # uvloop closes nothing in the programs that it starts
        return place


def is_worker() -> bool:
    """Whether this process was started as a worker. Ask before `WorkerPlace.take`."""
    return VARIABLE in os.environ
