"""A worker's link to its parent: a pair of connected sockets, over which each sends lines of JSON.

Rule 1: a worker that serves says `ready`. Either side asks for metrics with `ask`: the parent gets those of the worker
        (`own`), the worker the sums of all workers (`sum`). The workers find each other in this way alone.
Rule 2: the parent's end closes when the parent ends, however it ends. Then the worker stops as with SIGTERM, and ends
        even if it hangs.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import Final

from a2a_canvas.server.commands.workers.worker_place import MAX_LINE
from a2a_canvas.server.metrics import Families, Metrics, families_of
from a2a_canvas.server.protocols.edge.metrics_routes import refresh

ANSWER_SECONDS: Final = 3.0
"""The timeout of the parent's answer, which waits for the other workers."""
REFRESH_SECONDS: Final = 1.5
"""The timeout of what is read for an answer: less than the parent waits (`worker_process.py`)."""


class ParentLink:
    """A worker's end.

    Args:
        grace: seconds after which a worker without a parent ends, even if it hangs.
    """

    def __init__(self, channel: int, metrics: Metrics, grace: float) -> None:
        self._socket = socket.socket(fileno=channel)
        self._metrics = metrics
        self._asking = asyncio.Lock()
        self._sum: asyncio.Future[Families] | None = None
        self._listening: asyncio.Task[None] | None = None
        threading.Thread(target=_end_without_parent, args=(channel, grace), name="parent", daemon=True).start()

    async def start(self) -> None:
        """Say that this worker serves, and answer the parent's questions."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._socket, limit=MAX_LINE)
        self._listening = asyncio.create_task(self._listen(reader), name="parent")
        self._send("ready")
        self._metrics.of_all_workers = self._ask

    async def report_last(self) -> None:
        """Tell what this worker has counted, before it ends."""
        if self._listening:
            with suppress(ConnectionError):
                self._send("own", families_of(self._metrics.registry))
                await self._writer.drain()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                message = json.loads(line)
                if message["kind"] == "ask":  # answered beside, so that sums are read while the database hangs
                    self._answering = asyncio.create_task(self._answer())
                elif self._sum and not self._sum.done():
                    self._sum.set_result(message["families"])

    async def _answer(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(refresh(self._metrics), REFRESH_SECONDS)
        self._send("own", families_of(self._metrics.registry))

    async def _ask(self) -> Families | None:
        async with self._asking:
            self._sum = asyncio.get_running_loop().create_future()
            self._send("ask")
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._sum, ANSWER_SECONDS)
        return None

    def _send(self, kind: str, families: Families | None = None) -> None:
        self._writer.write(json.dumps({"kind": kind, "families": families}).encode() + b"\n")


def _end_without_parent(channel: int, grace: float) -> None:
    closed = select.poll()
    closed.register(channel, 0)  # only that the other end has closed
    closed.poll()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os._exit(1)
