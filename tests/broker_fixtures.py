"""A private NATS from the Debian package, for one test.

Where there is no `nats-server` a test that needs it is skipped, or fails if `TESTS_NEED_NATS=1`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.free_port import free_port

START_SECONDS = 20.0


def why_not() -> str:
    """Why there is no NATS here, and what to do about it; empty if there is."""
    return "" if shutil.which("nats-server") else "needs NATS: install the Debian package nats-server"


@contextmanager
def private_nats(settings: str = "", options: str = "") -> Iterator[PrivateNats]:
    """A server for one test, to be killed, paused and started at will.

    Args:
        settings: lines of its configuration.
        options: user and password in its address, with an @.
    """
    missing = why_not()
    if missing and os.environ.get("TESTS_NEED_NATS") == "1":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(prefix="canvas-nats-") as folder:
        server = PrivateNats(Path(folder), settings, options)
        server.start()
        try:
            yield server
        finally:
            server.kill()


class PrivateNats:
    """A server on a free port of the loopback."""

    def __init__(self, folder: Path, settings: str, options: str) -> None:
        self.port = free_port()
        self.url = f"nats://{options}127.0.0.1:{self.port}"
        self._config = folder / "nats.conf"
        self._config.write_text(f"host: 127.0.0.1\nport: {self.port}\n{settings}\n")
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(["nats-server", "-c", str(self._config)], stdout=log, stderr=log)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            assert self._process.poll() is None, self._log.read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError(self._log.read_text())

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stand still: connections stay open, and nothing comes."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)
