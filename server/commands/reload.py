"""`serve --reload`: this process restarts the serving process when a file of the agent changes.

Rule 1: a new server loads the agent first. Only if that succeeds, the old one stops and hands over its turns as at any
        restart, and the new one serves the agent as loaded. If the agent cannot be loaded, or programs of its MCP
        servers are missing, the old server keeps running.
Rule 2: this process owns the listening socket and lends it to the servers: connections wait during a restart.
Rule 3: an occupied port ends the first start, as it does without `--reload`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, watch

from a2a_canvas.server.commands.own_command import own_command
from a2a_canvas.server.listening import CHANNEL, listen

WATCHED = (".py", ".toml", ".md", ".json", ".yaml", ".yml")
"""The suffixes of an agent's files. The folder also has its database, and files that its tools write."""

PYTEST_FOLDER = "pytest-cache-files-"
"""The temporary name of pytest's cache, which contains a README.md."""

STOP_SECONDS = 15
"""Seconds until a stopping server is killed, because the user waits for the restart."""

LOOK_MILLISECONDS = 200
"""The interval of checks that the server still runs."""


class AgentFiles(DefaultFilter):
    """The changes that matter, without folders such as .git and .venv."""

    def __call__(self, change: Change, path: str) -> bool:
        if any(part.startswith(PYTEST_FOLDER) for part in Path(path).parts):
            return False
        return path.endswith(WATCHED) and super().__call__(change, path)


def serve_and_reload(folder: Path, arguments: Sequence[str]) -> int:
    """Serve until a signal arrives.

    Args:
        arguments: of `serve`, as typed.

    Raises:
        OSError: a port is not free at the first start.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    servers = _Servers(own_command(arguments))
    try:
        # It first yields nothing, because it watches from before the agent is loaded.
        for changes in watch(
            folder,
            watch_filter=AgentFiles(),
            raise_interrupt=True,
            yield_on_timeout=True,
            rust_timeout=LOOK_MILLISECONDS,
        ):
            if changes:
                paths = sorted({os.path.relpath(path, folder) for _, path in changes})
                _say(f"{', '.join(paths)} changed. Loading the agent …")
            if changes or servers.first:
                servers.renew()
            else:
                servers.look()
    except KeyboardInterrupt:
        pass
    finally:
        servers.stop()
    return 0


@dataclass(slots=True)
class _Server:
    """A process that serves, or will once it has the socket."""

    process: subprocess.Popen[bytes]
    channel: socket.socket

    def wait_until_loaded(self) -> tuple[str, int] | None:
        """Wait until it has loaded the agent; returns its host and port, or None if it failed and has ended."""
        said = self.channel.recv(4096)
        if not said:
            self.process.wait()
            return None
        host, port = json.loads(said)
        return host, port

    def serve(self, listener: socket.socket) -> None:
        socket.send_fds(self.channel, [b"."], [listener.fileno()])

    def stop(self) -> None:
        self.channel.close()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self.process.kill()
            self.process.wait()


class _Servers:
    """The running server, its replacement, and their shared socket.

    Attributes:
        first: no server has started yet.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.first = True
        self._command = command
        self._running: _Server | None = None
        self._listener: socket.socket | None = None
        self._address: tuple[str, int] | None = None

    def renew(self) -> None:
        """Serve the current agent; if it cannot be loaded, the previous one (rule 1).

        Raises:
            OSError: the port is occupied, and nothing was served yet (rule 3).
        """
        new = _start(self._command)
        try:
            if not self._replace(new):
                new.stop()
                self._report()
        except BaseException:
            new.stop()
            raise
        finally:
            self.first = False

    def look(self) -> None:
        """Close the socket if the server has ended by itself, so that no client waits."""
        if self._running and self._running.process.poll() is not None:
            self.stop()
            self._report()

    def stop(self) -> None:
        if self._listener:
            self._listener.close()
        if self._running:
            self._running.stop()
        self._listener = self._address = self._running = None

    def _replace(self, new: _Server) -> bool:
        address = new.wait_until_loaded()
        listener = self._listener_at(address) if address else None
        if not listener:
            return False
        old, self._running = self._running, new
        if old:
            old.stop()
        with suppress(BrokenPipeError):  # it has just ended, which `look` will notice
            new.serve(listener)
        return True

    def _listener_at(self, address: tuple[str, int]) -> socket.socket | None:
        if address != self._address:
            try:
                listener = listen(*address, "--port")
            except OSError as error:
                if self.first:
                    raise
                _say(str(error))
                return None
            if self._listener:
                self._listener.close()
            self._listener, self._address = listener, address
        return self._listener

    def _report(self) -> None:
        _say("The previous agent is still served." if self._running else "Waiting for a change.")


def _start(command: Sequence[str]) -> _Server:
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        # Bytecode of the same second would count as current.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", CHANNEL: str(number)}
        return _Server(subprocess.Popen(command, env=environment, pass_fds=[number]), ours)


def _say(line: str) -> None:
    click.echo(line, err=True)
