"""A program with a line protocol over stdin and stdout, whose stderr goes to the log.

Rule 1: of a line longer than the limit only the beginning and the end are kept (`OverlongLine`); reading continues.
Rule 2: stderr is logged, with limits on the length and the rate of lines.
Rule 3: `stop` ends the program and its children: it closes stdin, then sends SIGTERM, then SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

logger = logging.getLogger(__name__)

CHUNK = 64 * 1024
ENDS = 400
"""Bytes kept of the beginning and of the end of an overlong line."""
GRACE = 2.0
"""Seconds for a program to end by itself, and again after SIGTERM."""
LAST_OUTPUT = 0.5
"""Seconds for the last output of an ended program, whose stdout others may hold open."""
LOGGED_LINE = 500
LOGGED_PER_SECOND = 20


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """The ends of a line of `size` bytes that was too long to keep."""

    beginning: bytes
    end: bytes
    size: int


class LineSplitter:
    """Splits a stream of bytes into lines without `\\n`. Pure."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._beginning = b""
        self._end = b""

    def feed(self, chunk: bytes) -> list[bytes | OverlongLine]:
        """The lines completed by `chunk`."""
        *complete, rest = chunk.split(b"\n")
        lines: list[bytes | OverlongLine] = []
        for piece in complete:
            self._add(piece)
            lines.append(self._take())
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            if self._pieces or not self._beginning:
                self._beginning = b"".join((*self._pieces, piece))[:ENDS]
            self._pieces.clear()
            self._end = (self._end + piece)[-ENDS:]
        else:
            self._pieces.append(piece)

    def _take(self) -> bytes | OverlongLine:
        line: bytes | OverlongLine = b"".join(self._pieces)
        if self._size > self._limit:
            line = OverlongLine(self._beginning, self._end, self._size)
        self._pieces, self._size, self._beginning, self._end = [], 0, b"", b""
        return line


class ServerProcess:
    """A running program.

    Args:
        name: of the program in the log.
        limit: the maximum bytes of a line.
    """

    def __init__(self, process: Process, name: str, limit: int) -> None:
        self._process = process
        self._name = name
        self._splitter = LineSplitter(limit)
        self._tasks = [asyncio.create_task(self._log_stderr()), asyncio.create_task(self._close_after_exit())]

    @classmethod
    async def start(
        cls, name: str, command: Sequence[str], env: Mapping[str, str], cwd: str, limit: int
    ) -> ServerProcess:
        """Run a command, as the head of a process group.

        Raises:
            OSError: it cannot be run.
        """
        process = await asyncio.create_subprocess_exec(
            *command, env=env, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        return cls(process, name, limit)

    async def lines(self) -> AsyncIterator[bytes | OverlongLine]:
        """The lines of its stdout, until it ends."""
        stdout = self._process.stdout
        assert stdout
        while chunk := await stdout.read(CHUNK):
            for line in self._splitter.feed(chunk):
                yield line

    async def write(self, line: bytes) -> None:
        """Write a line to stdin.

        Raises:
            OSError: it has stopped reading.
        """
        stdin = self._process.stdin
        assert stdin
        stdin.write(line + b"\n")
        await stdin.drain()

    async def stop(self) -> str:
        """End it (rule 3); returns how it ended."""
        by_itself = self._process.returncode is not None
        try:
            if self._process.stdin:
                self._process.stdin.close()
            for kill in (signal.SIGTERM, signal.SIGKILL):
                if await self._ends_in_time(GRACE):
                    break
                self._signal(kill)
            await self._ends_in_time(GRACE)
            self._signal(signal.SIGKILL)  # the children that it left behind
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._process._transport.close()  # type: ignore[attr-defined]  # others may hold its pipes open
        return f"ended with code {self._process.returncode}" if by_itself else "was stopped"

    async def _ends_in_time(self, within: float) -> bool:
        """Whether it ends within some seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._wait_for_exit()
        return self._process.returncode is not None

    async def _wait_for_exit(self) -> None:
        while self._process.returncode is None:  # noqa: ASYNC110  `Process.wait` waits for its pipes, too
            await asyncio.sleep(0.01)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _close_after_exit(self) -> None:
        """End `lines` soon after the program, even if another process holds its stdout."""
        await self._wait_for_exit()
        await asyncio.sleep(LAST_OUTPUT)
        if self._process.stdout:
            self._process.stdout.feed_eof()

    async def _log_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr
        splitter, throttle = LineSplitter(LOGGED_LINE), Throttle(LOGGED_PER_SECOND)
        clock = asyncio.get_running_loop().time
        while chunk := await stderr.read(CHUNK):
            for line in splitter.feed(chunk):
                raw = line.beginning + b"\xe2\x80\xa6" if isinstance(line, OverlongLine) else line
                self._log(raw.decode(errors="replace").rstrip(), throttle, clock())

    def _log(self, text: str, throttle: Throttle, now: float) -> None:
        if not text or not throttle.passes(now):
            return
        if throttle.left_out:
            logger.info("%s: %d more lines are left out", self._name, throttle.left_out)
            throttle.left_out = 0
        logger.info("%s: %s", self._name, text)


class Throttle:
    """A rate limit per second. Pure.

    Attributes:
        left_out: the number refused since the caller last set it to 0.
    """

    def __init__(self, per_second: int) -> None:
        self.left_out = 0
        self._per_second = per_second
        self._second = -1
        self._passed = 0

    def passes(self, now: float) -> bool:
        if int(now) != self._second:
            self._second, self._passed = int(now), 0
        self._passed += 1
        if self._passed > self._per_second:
            self.left_out += 1
        return self._passed <= self._per_second
