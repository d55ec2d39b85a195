"""`serve --reload`: a process that serves, and this one, which starts it anew when a file of the agent changes.

Rule 1: a change with which the agent cannot be served is told, and the server goes on as it was.
Rule 2: the server that stops hands over its turns as at any restart: with a database the new one takes them up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, watch

WATCHED = (".py", ".toml", ".md", ".json", ".yaml", ".yml")
"""The endings of the files that an agent is made of. Its database is in the folder, too, and what its tools write."""

STOP_SECONDS = 15
"""Seconds that a server may take to stop, before it is killed: who edits a file does not wait longer."""


class AgentFiles(DefaultFilter):
    """The changes that matter, without folders such as .git and .venv."""

    def __call__(self, change: Change, path: str) -> bool:
        return path.endswith(WATCHED) and super().__call__(change, path)


def serve_and_reload(folder: Path, arguments: Sequence[str]) -> int:
    """Serve until a signal comes.

    Args:
        folder: the agent's.
        arguments: of `serve`, as they were typed.

    Returns:
        The exit code.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # one of the same second would count as current
    command = [*_program(), *arguments]
    server = subprocess.Popen(command, env=environment)
    try:
        for changes in watch(folder, watch_filter=AgentFiles(), raise_interrupt=True):
            names = sorted({os.path.relpath(path, folder) for _, path in changes})
            _say(f"{', '.join(names)} changed.")
            if subprocess.run([*command, "--check"], env=environment, stdout=subprocess.DEVNULL).returncode:
                _say("The agent is served as it was before." if server.poll() is None else "Waiting for a change.")
                continue
            _stop(server)
            server = subprocess.Popen(command, env=environment)
    except KeyboardInterrupt:
        pass
    finally:
        _stop(server)
    return 0


def _program() -> list[str]:
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return [sys.executable, "-m", "a2a_canvas"]
    return [sys.executable, called]


def _stop(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()
        server.wait()


def _say(line: str) -> None:
    click.echo(line, err=True)
