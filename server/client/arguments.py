"""The commands for artifacts on the command line: what they take, and what they do with it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn, TextIO

from a2a_canvas.server.client import versions
from a2a_canvas.server.client.connection import CannotBeDone
from a2a_canvas.server.client.edit import operate
from a2a_canvas.server.client.operations import (
    REDO,
    REDO_STEP,
    UNDO,
    UNDO_STEP,
    Edit,
    Lines,
    Match,
    Operation,
    put,
    restore,
)
from a2a_canvas.server.client.send_options import DEFAULT_URL, Where

Command = Coroutine[Any, Any, int]
Run = Callable[[argparse.Namespace, Where, TextIO, TextIO], Command]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage in front of it; takes options between arguments, too."""

    _within = False

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # What intermixes calls this again, cannot do it where there are commands, and loses a `--`.
        if self._within or self._subparsers or "--" in (args or ()):
            return super().parse_known_args(args, namespace)
        self._within = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._within = False


def add_commands(commands: Any) -> None:
    """Add the commands for artifacts to `argparse`'s subparsers."""
    _add_operations(commands)
    _add_readings(commands)


def command(options: argparse.Namespace, program: str, out: TextIO, err: TextIO) -> Command:
    """What is to be awaited for the exit code of one of the commands above.

    Raises:
        CannotBeDone: a file cannot be read.
    """
    where = Where(options.context, getattr(options, "artifact", ""), options.url, options.json, program)
    run: Run = options.run
    return run(options, where, out, err)


def _add_operations(commands: Any) -> None:
    edit = _add(commands, "edit", "have a passage of an artifact rewritten", _edit)
    edit.add_argument("instruction", metavar="INSTRUCTION", help="what is to be done with the passage")
    place = edit.add_mutually_exclusive_group(required=True)
    place.add_argument("--lines", dest="place", type=_lines, metavar="N[-M]", help="the passage: these lines")
    place.add_argument(
        "--match", dest="place", type=_match, metavar="TEXT", help="the passage: this text, which occurs once"
    )
    strategy = edit.add_mutually_exclusive_group()
    for side in ("before", "after"):
        strategy.add_argument(
            f"--{side}",
            dest="strategy",
            action="store_const",
            const=f"insert_{side}",
            help=f"write something new {side} the passage and leave it as it is",
        )
    edit.set_defaults(strategy="replace")
    _add_base(edit, "the version you have seen, if others may have changed it since")
    _add_step(
        _add(commands, "undo", "take back all that the newest task has made of an artifact", _go), UNDO, UNDO_STEP
    )
    _add_step(_add(commands, "redo", "take an undo back", _go), REDO, REDO_STEP)
    old = _add(commands, "restore", "make a new version with the content of an old one", _restore)
    old.add_argument("version", metavar="VERSION", type=_count)
    own = _add(commands, "put", "save your own text as a new version", _put)
    own.add_argument("file", metavar="FILE", nargs="?", default="-", help="the text; - is the standard input (default)")
    _add_base(own, "save only if this is still the current version")


def _add_readings(commands: Any) -> None:
    _add(commands, "artifacts", "list the artifacts of a conversation", _artifacts, one=False)
    show = _add(commands, "show", "print an artifact", _show)
    show.add_argument("--version", metavar="N", type=_count, help="not as it stands, but this version of it")
    _add(commands, "versions", "list the versions of an artifact", _versions)
    diff = _add(commands, "diff", "print what a version of an artifact changed", _diff)
    diff.add_argument("version", metavar="VERSION", nargs="?", type=_count, help="the current one if left out")
    since = "compare with this version, 0 is the empty text (default: the version that it was made of)"
    diff.add_argument("--from", dest="since", metavar="M", type=_number, help=since)


def _add(commands: Any, name: str, does: str, run: Run, *, one: bool = True) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(name, help=does, description=f"{does.capitalize()}.")
    if one:
        added.add_argument("artifact", metavar="ARTIFACT", type=_given, help="the artifact's id")
    added.add_argument("--context", required=True, type=_given, metavar="ID", help="the conversation it belongs to")
    added.add_argument("--url", default=DEFAULT_URL, help="the server (default: %(default)s)")
    added.add_argument("--json", action="store_true", help="print what the server says as JSON")
    added.set_defaults(run=run)
    return added


def _add_base(command: argparse.ArgumentParser, meaning: str) -> None:
    command.add_argument("--base", metavar="N", type=_count, help=meaning)


def _add_step(command: argparse.ArgumentParser, group: Operation, step: Operation) -> None:
    help = "by one version, not by all that one task made"
    command.add_argument("--step", dest="operation", action="store_const", const=step, default=group, help=help)


# --------------------------------------------------------------------- commands


def _edit(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return operate(where, Edit(given.instruction, given.place, given.strategy, given.base), out, err)


def _go(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return operate(where, given.operation, out, err)


def _restore(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return operate(where, restore(given.version), out, err)


def _put(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return operate(where, put(_text_of(given.file), given.base), out, err)


def _artifacts(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return versions.artifacts(where, out, err)


def _show(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return versions.show(where, given.version, out, err)


def _versions(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return versions.versions(where, out, err)


def _diff(given: argparse.Namespace, where: Where, out: TextIO, err: TextIO) -> Command:
    return versions.diff(where, given.version, given.since, out, err)


def _text_of(file: str) -> str:
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except OSError as error:
        raise CannotBeDone(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CannotBeDone(f"{file} is not text in UTF-8: byte {error.start + 1} is wrong") from None


# ----------------------------------------------------------------------- values


def _given(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _match(text: str) -> Match:
    return Match(_given(text))


def _lines(text: str) -> Lines:
    numbers = re.fullmatch(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?", text, re.ASCII)
    if not numbers:
        raise argparse.ArgumentTypeError(f"must be a line, as 3, or a range, as 3-5, counted from 1: {text!r}")
    lines = Lines(int(numbers[1]), int(numbers[2] or numbers[1]))
    if lines.last < lines.first:
        raise argparse.ArgumentTypeError(f"ends before it begins: {text!r}")
    return lines


def _count(text: str) -> int:
    number = _number(text)
    if not number:
        raise argparse.ArgumentTypeError("versions are counted from 1")
    return number


def _number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"must be the number of a version: {text!r}")
    return int(text)
