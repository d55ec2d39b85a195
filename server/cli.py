"""The command line: `a2a-canvas serve`, the commands of the client, and `a2a-canvas db`.

Rule 1: a command imports what it needs when it is chosen: `--version`, `--help` and a misspelt command answer at once,
        and the client does not pay for the server.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn, TextIO

from a2a_canvas.server.client.arguments import add_commands, run_command
from a2a_canvas.server.client.operations import CannotBeDone


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0, 1 if it failed, 2 if it cannot be done as it was typed.
    """
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except CannotBeDone as error:
        return _refused(error)
    except BrokenPipeError:
        # The reader of the output is gone; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"a2a-canvas: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "serve":
            return _serve(options)
        case "db":
            return _db(options)
        case _:
            return run_command(options, program(sys.argv[0]), *_streams())


def _serve(options: argparse.Namespace) -> int:
    from a2a_canvas.server.serve import REFUSALS, serve

    try:
        return serve(options, program(sys.argv[0]))
    except REFUSALS as error:
        return _refused(error)


def _db(options: argparse.Namespace) -> int:
    import asyncio

    from a2a_canvas.server.database_cli import database_command
    from a2a_canvas.server.open_database import DatabaseError
    from a2a_canvas.server.settings import SettingsError

    try:
        return asyncio.run(database_command(options, _streams()[0]))
    except (SettingsError, DatabaseError) as error:
        return _refused(error)


def _refused(error: Exception) -> int:
    print(f"a2a-canvas: {error}", file=sys.stderr)
    return 2


# ----------------------------------------------------------------------------- arguments


AddArguments = Callable[[argparse.ArgumentParser], None]


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage before it; accepts options between arguments, too.

    Args:
        add_arguments: adds the arguments when they are needed; it imports modules that take long.
    """

    _within = False

    def __init__(self, *, add_arguments: AddArguments | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._add_arguments = add_arguments

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")

    def complete(self) -> None:
        """Add the arguments, if they are not there yet."""
        if self._add_arguments:
            add_arguments, self._add_arguments = self._add_arguments, None
            add_arguments(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.complete()
        # parse_known_intermixed_args calls this again, does not work where there are subcommands, and loses a `--`.
        if self._within or self._subparsers or "--" in (args or ()):
            return super().parse_known_args(args, namespace)
        self._within = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._within = False


def parser() -> Parser:
    whole = Parser(prog="a2a-canvas", description="An agent server that speaks A2A.")
    whole.add_argument("--version", action="version", version=f"a2a-canvas {version('a2a-canvas')}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("serve", help="start the server", add_arguments=_add_serve_arguments)
    add_commands(commands)
    commands.add_parser(
        "db", help="prepare, check or prune the database", description="The database.", add_arguments=_add_db_arguments
    )
    return whole


def _add_serve_arguments(command: argparse.ArgumentParser) -> None:
    from a2a_canvas.server.settings import add_options

    add_options(command)


def _add_db_arguments(command: argparse.ArgumentParser) -> None:
    from a2a_canvas.server.database_cli import add_db_arguments

    add_db_arguments(command)


# --------------------------------------------------------------------------- environment


def _streams() -> tuple[TextIO, TextIO]:
    """The streams for output and failures. Python has none if the shell has closed it (`>&-`): then nobody reads it."""
    return sys.stdout or io.StringIO(), sys.stderr or io.StringIO()


def program(called: str) -> str:
    """How a user calls this program: what was typed, as far as the system tells."""
    path = Path(called)
    if path.name == "__main__.py":
        return "python -m a2a_canvas"
    # The system passes the whole path of a program that it found on the PATH.
    return path.name if shutil.which(path.name) == called else shlex.quote(called)
