"""The command line of the client: what `send` and the commands for artifacts take, and which function does them.

Rule 1: nothing here imports the A2A SDK, httpx or asyncio, so that `--help` and a misspelt option answer at once.
        A command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TextIO

from a2a_canvas.server.client.operations import (
    DEFAULT_URL,
    REDO,
    REDO_STEP,
    UNDO,
    UNDO_STEP,
    ArtifactOperation,
    ArtifactTarget,
    CannotBeDone,
    EditRequest,
    LineRange,
    RequestHeader,
    RequestHeaders,
    SendRequest,
    TextMatch,
    put,
    restore,
)
from a2a_canvas.server.wire import TOKEN_VARIABLE

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([!-~](?:[ -~]*[!-~])?)[ \t]*")
_TOKEN = re.compile("[!-~]+")


def add_commands(commands: Any) -> None:
    """Add the commands of the client to `argparse`'s subparsers."""
    _add_send(commands)
    _add_operations(commands)
    _add_readings(commands)


def run_command(options: argparse.Namespace, program: str, out: TextIO, err: TextIO) -> int:
    """Run one of the commands above; `program` is how the user calls this program.

    Returns:
        The exit code.

    Raises:
        CannotBeDone: a file cannot be read, or the headers contradict one another.
    """
    import asyncio

    return asyncio.run(_command(options, program, out, err))


def _command(options: argparse.Namespace, program: str, out: TextIO, err: TextIO) -> Coroutine[Any, Any, int]:
    from a2a_canvas.server.client import artifacts, send

    common: dict[str, Any] = {
        "context": options.context,
        "url": options.url,
        "headers": _headers(options),
        "json": options.json,
        "thinking": getattr(options, "thinking", False),
        "program": program,
    }
    if options.command == "send":
        return send.send(SendRequest(options.text, task=options.task, **common), out, err)
    target = ArtifactTarget(artifact=getattr(options, "artifact", ""), **common)
    match options.command:
        case "artifacts":
            return artifacts.artifacts(target, out, err)
        case "show":
            return artifacts.show(target, options.version, out, err)
        case "versions":
            return artifacts.versions(target, out, err)
        case "diff":
            return artifacts.diff(target, options.version, options.since, out, err)
        case _:
            from a2a_canvas.server.client.edit import operate

            return operate(target, _operation(options), out, err)


def _operation(options: argparse.Namespace) -> ArtifactOperation | EditRequest:
    match options.command:
        case "edit":
            return EditRequest(options.instruction, options.place, options.strategy, options.base)
        case "restore":
            return restore(options.version)
        case "put":
            return put(_text_of(options.file), options.base)
        case _:
            operation: ArtifactOperation = options.operation
            return operation


def _add_send(commands: Any) -> None:
    send = commands.add_parser("send", help="send a task to an A2A server and watch it")
    send.add_argument("text", metavar="TEXT", help="what to ask for")
    send.add_argument("--context", default="", metavar="ID", help="continue a conversation")
    send.add_argument("--task", default="", metavar="ID", help="answer a task that asked, or add to one that works")
    _add_server(send)
    send.add_argument("--json", action="store_true", help="print each event as one line of JSON")
    _add_thinking(send)


def _add_operations(commands: Any) -> None:
    edit = _add(commands, "edit", "have a passage of an artifact rewritten")
    edit.add_argument("instruction", metavar="INSTRUCTION", help="how to change the passage")
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
    _add_thinking(edit)
    _add_step(_add(commands, "undo", "undo everything that the newest task made of an artifact"), UNDO, UNDO_STEP)
    _add_step(_add(commands, "redo", "redo what was undone"), REDO, REDO_STEP)
    old = _add(commands, "restore", "make a new version with the content of an old one")
    old.add_argument("version", metavar="VERSION", type=_count)
    own = _add(commands, "put", "save your own text as a new version")
    own.add_argument("file", metavar="FILE", nargs="?", default="-", help="the text; - is the standard input (default)")
    _add_base(own, "save only if this is still the current version")


def _add_readings(commands: Any) -> None:
    _add(commands, "artifacts", "list the artifacts of a conversation", one=False)
    show = _add(commands, "show", "print an artifact")
    show.add_argument("--version", metavar="N", type=_count, help="this version of it, not the current one")
    _add(commands, "versions", "list the versions of an artifact")
    diff = _add(commands, "diff", "print what a version of an artifact changed")
    diff.add_argument("version", metavar="VERSION", nargs="?", type=_count, help="the current one if left out")
    since = "compare with this version, 0 is the empty text (default: the version that it was made of)"
    diff.add_argument("--from", dest="since", metavar="M", type=_number, help=since)


def _add(commands: Any, name: str, does: str, *, one: bool = True) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(name, help=does, description=f"{does.capitalize()}.")
    if one:
        added.add_argument("artifact", metavar="ARTIFACT", type=_given, help="the artifact's id")
    added.add_argument("--context", required=True, type=_given, metavar="ID", help="the conversation it belongs to")
    _add_server(added)
    added.add_argument("--json", action="store_true", help="print what the server says as JSON")
    return added


def _add_server(command: argparse.ArgumentParser) -> None:
    url = "the server's address, or that of its agent card (default: %(default)s)"
    command.add_argument("--url", default=DEFAULT_URL, help=url)
    header = "send this header with every request; may be repeated"
    command.add_argument("--header", type=_header, action="append", default=[], metavar="'NAME: VALUE'", help=header)
    token = f"send 'Authorization: Bearer TOKEN'; {TOKEN_VARIABLE} does the same and is not in the list of processes"
    command.add_argument("--token", type=_token, metavar="TOKEN", help=token)


def _add_thinking(command: argparse.ArgumentParser) -> None:
    shown = "on a terminal, show the model's thinking in the status line"
    command.add_argument("--thinking", action="store_true", help=shown)


def _add_base(command: argparse.ArgumentParser, meaning: str) -> None:
    command.add_argument("--base", metavar="N", type=_count, help=meaning)


def _add_step(command: argparse.ArgumentParser, group: ArtifactOperation, step: ArtifactOperation) -> None:
    help = "by one version, not by all that one task made"
    command.add_argument("--step", dest="operation", action="store_const", const=step, default=group, help=help)


def _headers(options: argparse.Namespace) -> RequestHeaders:
    """The headers that were typed, and the token of the environment if they have none."""
    headers = (*options.header, *([options.token] if options.token else []))
    names = [header.name.lower() for header in headers]
    for name in names:
        if names.count(name) > 1:
            raise CannotBeDone(f"The header {name} is given twice")
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token or "authorization" in names:
        return headers
    if not _TOKEN.fullmatch(token):
        raise CannotBeDone(f"{TOKEN_VARIABLE} must be one word of ASCII characters")
    return (*headers, _bearer(token, ""))


def _bearer(token: str, option: str) -> RequestHeader:
    return RequestHeader("Authorization", f"Bearer {token}", option)


def _text_of(file: str) -> str:
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except OSError as error:
        raise CannotBeDone(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CannotBeDone(f"{file} is not text in UTF-8: byte {error.start + 1} is wrong") from None


def _given(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


# The two below do not repeat what was typed: it may be a secret.


def _header(text: str) -> RequestHeader:
    parts = _HEADER.fullmatch(text)
    if not parts:
        raise argparse.ArgumentTypeError("must be a name, a colon and a value, all in ASCII")
    return RequestHeader(parts[1], parts[2], f"--header '{parts[1]}: …'")


def _token(text: str) -> RequestHeader:
    if not _TOKEN.fullmatch(text):
        raise argparse.ArgumentTypeError("must be one word of ASCII characters")
    return _bearer(text, "--token …")


def _match(text: str) -> TextMatch:
    return TextMatch(_given(text))


def _lines(text: str) -> LineRange:
    numbers = re.fullmatch(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?", text, re.ASCII)
    if not numbers:
        raise argparse.ArgumentTypeError(f"must be a line, as 3, or a range, as 3-5, counted from 1: {text!r}")
    lines = LineRange(int(numbers[1]), int(numbers[2] or numbers[1]))
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
