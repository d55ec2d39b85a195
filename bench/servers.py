"""Servers as processes of their own: started, waited for, measured through `/proc`, ended by their id."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from a2a_canvas.server.settings.settings import Settings
from tests.free_port import free_port

ROOT = Path(__file__).parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SHIPPED_FRAME_MS = float(Settings.model_fields["frame_ms"].default)
SHIPPED_MAX_TURNS = int(Settings.model_fields["max_turns"].default)
START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
MEMORY = "memory"
ALL_AT_ONCE = 1000
"""Turns at once of a server that is to let none of a scenario's turns wait."""

SCRIPT = """\
rules:
  - match: {text: "write (?P<n>[0-9]+)"}
    rounds:
      - chunk: 20
        tools:
          - name: artifact_update
            input:
              append: false
              artifact: {artifact_id: text, parts: [{kind: text, text: {repeat: "01234567890123456789", times: "{n}"}}]}
      - text: ""
"""
"""`write N` for the scripted model. Its deltas are 20 characters of JSON, which for digits is 20 of text."""

Command = Callable[[int], Sequence[str]]
"""From a port to the arguments of the Python interpreter."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """The sources that a server runs from, and what its environment has beside ours."""

    folder: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> str:
        """The interpreter of its virtual environment; for our own checkout the one that runs this."""
        return sys.executable if self.folder == ROOT else str(self.folder / ".venv" / "bin" / "python")


HERE = Checkout()


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs.

    Attributes:
        pid: the process that is measured.
    """

    port: int
    pid: int

    def cpu(self) -> float:
        """Seconds of CPU, user and system, all threads, since it was started; whole ticks (10 ms)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss(self) -> int:
        """Bytes of resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE

    def unsent(self) -> int:
        """Bytes that the kernel has taken from the server and no client has taken from the kernel."""
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return sum(int(field[4].partition(":")[0], 16) for field in lines if field[1].endswith(f":{self.port:04X}"))


def shipped(model: str, database: str, *options: str) -> Command:
    """Our server as shipped."""
    given = ["--model", model, "--database", database, "--log-level", "warning", *options]
    return lambda port: ["-m", "a2a_canvas", "serve", "--port", str(port), *given]


def ours(frame_ms: float, script: Path, database: str = MEMORY, *options: str) -> Command:
    """Our server with the scripted model."""
    return shipped(f"script:{script}", database, "--frame-ms", str(frame_ms), *options)


def paced(frame_ms: float, database: str = MEMORY, max_turns: int = ALL_AT_ONCE) -> Command:
    """Our server with a model that keeps a pace."""
    return lambda port: ["-m", "bench.paced_server", str(port), str(frame_ms), database, str(max_turns)]


def theirs_on(database: str) -> Command:
    """The SDK's handler over the task store that fits the database."""
    return lambda port: ["-m", "bench.baseline", str(port), database]


theirs = theirs_on(MEMORY)


@contextmanager
def script(text: str = SCRIPT) -> Iterator[Path]:
    """A script for the scripted model, in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.yaml")
        path.write_text(text)
        yield path


@asynccontextmanager
async def running(
    command: Command, stop: signal.Signals = signal.SIGTERM, checkout: Checkout = HERE
) -> AsyncIterator[Server]:
    """A server, from when it accepts connections until it has ended, `stop` being what it is ended with.

    Raises:
        RuntimeError: it did not start; the message has what it said.
    """
    port = free_port()
    with tempfile.TemporaryFile() as said:
        process = await start(command, port, said, checkout)
        try:
            yield Server(port, process.pid)
        finally:
            await end(process, stop)


async def start(command: Command, port: int, said: IO[bytes], checkout: Checkout = HERE) -> subprocess.Popen[bytes]:
    """A server that accepts connections; what it says goes to `said`.

    Raises:
        RuntimeError: it did not start; the message has what it said.
    """
    arguments = command(port)
    begun = said.tell()
    process = _start(arguments, said, checkout)
    try:
        if await accepts(process, port):
            return process
    except BaseException:
        await end(process, signal.SIGKILL)
        raise
    await end(process, signal.SIGKILL)
    said.seek(begun)
    raise RuntimeError(f"{' '.join(arguments)} did not start:\n{said.read().decode()}")


def _start(arguments: Sequence[str], said: IO[bytes], checkout: Checkout) -> subprocess.Popen[bytes]:
    environ = {**os.environ, **checkout.environ}
    return subprocess.Popen([checkout.python, *arguments], cwd=checkout.folder, env=environ, stdout=said, stderr=said)


async def end(process: subprocess.Popen[bytes], stop: signal.Signals) -> None:
    """End a server with a signal, and with SIGKILL if that does not help."""
    process.send_signal(stop)
    try:
        await asyncio.to_thread(process.wait, STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_in_order() -> None:
    """Make SIGTERM end this process as Ctrl+C does: not before everything that it has started is ended."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


async def accepts(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether a process listens at a port; False if it ends before, or takes too long."""
    loop = asyncio.get_running_loop()
    until = loop.time() + START_TIMEOUT
    while process.poll() is None and loop.time() < until:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return True
    return False
