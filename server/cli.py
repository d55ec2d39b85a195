"""The command line: `a2a-canvas serve` and `a2a-canvas send`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

import uvicorn

from server.agent.rehearsal import NOTICE, Rehearsal
from server.agent.script import ScriptError
from server.app import build_app, choose_llm
from server.client.send import DEFAULT_URL, SendOptions, send
from server.protocols.a2a_card import CardError
from server.settings import PREFIX, Settings, SettingsError, load, option

GRACE = 5
"""Seconds that open streams have to end when the server stops."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; what comes back is the exit code: 0, 1 (it failed), 2 (it cannot be done so)."""
    options = parser().parse_args(arguments)
    try:
        return _send(options) if options.command == "send" else _serve(options)
    except (SettingsError, CardError, ScriptError) as error:
        print(f"a2a-canvas: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"a2a-canvas: {error}", file=sys.stderr)
        return 1


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage in front of it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")


def parser() -> argparse.ArgumentParser:
    whole = _Parser(prog="a2a-canvas", description="An agent server that speaks A2A.")
    whole.add_argument("--version", action="version", version=f"a2a-canvas {version('a2a-canvas')}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="start the server"))
    _add_send(commands.add_parser("send", help="send a task to an A2A server and watch it"))
    return whole


def _add_serve(command: argparse.ArgumentParser) -> None:
    command.epilog = f"Every option is also an environment variable: --grpc-port is {PREFIX}GRPC_PORT."
    for field, info in Settings.model_fields.items():
        names = [option(field)]
        default = "" if info.default is None else f" (default: {info.default})"
        shown = f"{info.description}{default}".replace("%", "%%")
        if info.annotation is bool:
            command.add_argument(
                *names, dest=field, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=shown
            )
        else:
            command.add_argument(*names, dest=field, metavar=_metavar(field), default=argparse.SUPPRESS, help=shown)


def _metavar(field: str) -> str:
    return field.rsplit("_", 1)[-1].upper()


def _add_send(command: argparse.ArgumentParser) -> None:
    command.add_argument("text", metavar="TEXT", help="what to ask for")
    command.add_argument("--url", default=DEFAULT_URL, help="the server (default: %(default)s)")
    command.add_argument("--context", default="", metavar="ID", help="go on with a conversation")
    command.add_argument("--task", default="", metavar="ID", help="answer a task that asked, or add to one that works")
    command.add_argument("--json", action="store_true", help="print each event as one line of JSON")


def _send(options: argparse.Namespace) -> int:
    chosen = SendOptions(
        text=options.text, url=options.url, context=options.context, task=options.task, json=options.json
    )
    return asyncio.run(send(chosen, sys.stdout, sys.stderr))


def _serve(options: argparse.Namespace) -> int:
    given = {field: value for field, value in vars(options).items() if field in Settings.model_fields}
    settings = load(given, os.environ)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    # The SDK logs every refused request with its trace; what matters of it is in the answer.
    logging.getLogger("a2a").setLevel(logging.ERROR)
    llm = choose_llm(settings, os.environ)
    app = build_app(settings, llm)
    for port in filter(None, (settings.port, settings.grpc_port)):
        _check_free(settings.host, port)
    print(f"a2a-canvas {version('a2a-canvas')} on {settings.url} with {llm.name}", flush=True)
    if isinstance(llm, Rehearsal):
        print(NOTICE, flush=True)
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        timeout_graceful_shutdown=GRACE,
        access_log=settings.log_level == "debug",
    )
    return 0


def _check_free(host: str, port: int) -> None:
    """Raises `OSError`, in words, if the server could not listen there."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        why = os.strerror(number) if number > 0 else "no such host"  # the resolver's numbers are not the system's
        raise OSError(f"Cannot listen on {host}:{port}: {why}. Choose another host or port.") from None
