"""One worker as its parent sees it: a process, what it says, and its metrics."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import IO, Final, Self

from a2a_canvas.server.commands.workers.restarts import Death
from a2a_canvas.server.commands.workers.worker_place import MAX_LINE, WorkerPlace
from a2a_canvas.server.metrics import Families

CHUNK: Final = 64 * 1024
"""Bytes of the log that are passed on at once. A longer line may be cut by a line of another worker."""
LAST_WORDS_SECONDS: Final = 1.0
"""Seconds after its end in which the rest of its log is passed on: programs that it has started may keep the pipe."""
ANSWER_SECONDS: Final = 2.0
"""The timeout of a worker's metrics; then its last ones count."""


class WorkerProcess:
    """A worker that runs.

    Args:
        channel: this end of the socket to it.
        log: the end of the pipe of its stderr.
        sum_metrics: gives the sums of all workers, for this one to show.
        on_ready: called when it serves.

    Attributes:
        families: its metrics, as it last told them.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        channel: socket.socket,
        log: IO[bytes],
        sum_metrics: Callable[[], Awaitable[Families]],
        on_ready: Callable[[], None],
    ) -> None:
        self.process = process
        self.families: Families = []
        self._channel = channel
        self._log = log
        self._sum_metrics = sum_metrics
        self._on_ready = on_ready
        self._ready_at: float | None = None
        self._last_line = ""
        self._told = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        place: WorkerPlace,
        sum_metrics: Callable[[], Awaitable[Families]],
        on_ready: Callable[[], None],
    ) -> Self:
        ours, theirs = socket.socketpair()
        # A pipe of our own: with asyncio's, a worker would not have ended before all programs that it has started.
        reading, writing = os.pipe()
        log = os.fdopen(reading, "rb")
        with ExitStack() as failed, theirs, os.fdopen(writing, "wb") as stderr:
            failed.enter_context(ours)
            failed.enter_context(log)
            place = replace(place, channel=theirs.fileno())
            process = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, **place.environment()},
                pass_fds=(place.channel, *place.sockets.values()),
                stdin=subprocess.DEVNULL,
                stderr=stderr,
            )
            failed.pop_all()
        return cls(process, ours, log, sum_metrics, on_ready)

    async def run(self) -> Death:
        """Pass on what it says, and answer it, until it has ended."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel, limit=MAX_LINE)
        listening, passing = asyncio.create_task(self._listen(reader)), asyncio.create_task(self._pass_on())
        code = await self.process.wait()
        await asyncio.wait([passing], timeout=LAST_WORDS_SECONDS)
        for task in (listening, passing):
            task.cancel()
        self._writer.close()
        served = None if self._ready_at is None else time.monotonic() - self._ready_at
        return Death(code, served, self._last_line)

    def send_signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def read_metrics(self) -> Families:
        """Its metrics now; if it does not answer in time, or does not serve yet, its last ones."""
        if self._ready_at is not None and self._writer and not self._writer.is_closing():
            self._told.clear()
            self._send("ask")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), ANSWER_SECONDS)
        return self.families

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                message = json.loads(line)
                match message["kind"]:
                    case "ready":
                        self._ready_at = time.monotonic()
                        self._on_ready()
                    case "own":
                        self.families = message["families"]
                        self._told.set()
                    case "ask":
                        self._summing = asyncio.create_task(self._answer())

    async def _answer(self) -> None:
        self._send("sum", await self._sum_metrics())

    def _send(self, kind: str, families: Families | None = None) -> None:
        if self._writer:
            self._writer.write(json.dumps({"kind": kind, "families": families}).encode() + b"\n")

    async def _pass_on(self) -> None:
        """Write its lines to the log of the server, each whole."""
        stderr = asyncio.StreamReader()
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stderr), self._log
        )
        with closing(pipe):
            await self._pass_lines(stderr)

    async def _pass_lines(self, stderr: asyncio.StreamReader) -> None:
        rest = b""
        while data := await stderr.read(CHUNK):
            lines, newline, rest = (rest + data).rpartition(b"\n")
            if len(rest) > CHUNK:
                lines, newline, rest = lines + newline + rest, b"", b""
            self._write(lines + newline)
        self._write(rest)

    def _write(self, lines: bytes) -> None:
        if lines.strip():
            self._last_line = lines.decode(errors="replace").rstrip().rpartition("\n")[2]
        with suppress(OSError):
            sys.stderr.buffer.write(lines)
            sys.stderr.flush()
