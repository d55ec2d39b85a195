"""The command line: `a2a-canvas serve`, `a2a-canvas send`, and the commands for artifacts and for the database."""

from __future__ import annotations

import argparse
import asyncio
import io
import logging
import os
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from typing import TextIO

import uvicorn

from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.models.demo import NOTICE, Rehearsal
from a2a_canvas.server.agent.models.script import ScriptError
from a2a_canvas.server.app import build_app, choose_llm
from a2a_canvas.server.client.arguments import Parser, add_commands, command
from a2a_canvas.server.client.connection import CannotBeDone
from a2a_canvas.server.client.send import DEFAULT_URL, SendOptions, send
from a2a_canvas.server.database import DatabaseError, open_database
from a2a_canvas.server.database_cli import add_db, database_command
from a2a_canvas.server.option_flags import add_options, given_options
from a2a_canvas.server.protocols.a2a_v1.card import CardError
from a2a_canvas.server.protocols.edge.connections import ConnectionLimits, limited_connection
from a2a_canvas.server.protocols.edge.shutdown import GracefulServer
from a2a_canvas.server.settings import EVERYWHERE, Settings, SettingsError, authority, load, without_password

CUT = 1
"""Seconds beyond its grace after which a server that stops cuts off whoever does not even take the end of an answer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; what comes back is the exit code: 0, 1 (it failed), 2 (it cannot be done so)."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except (SettingsError, CardError, ScriptError, CannotBeDone, DatabaseError) as error:
        print(f"a2a-canvas: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"a2a-canvas: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "serve":
            return _serve(options)
        case "send":
            return _send(options)
        case "db":
            return asyncio.run(database_command(options, _streams()[0]))
        case _:
            return asyncio.run(command(options, program(sys.argv[0]), *_streams()))


def parser() -> argparse.ArgumentParser:
    whole = Parser(prog="a2a-canvas", description="An agent server that speaks A2A.")
    whole.add_argument("--version", action="version", version=f"a2a-canvas {version('a2a-canvas')}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_options(commands.add_parser("serve", help="start the server"))
    _add_send(commands.add_parser("send", help="send a task to an A2A server and watch it"))
    add_commands(commands)
    add_db(commands)
    return whole


def _add_send(command: argparse.ArgumentParser) -> None:
    command.add_argument("text", metavar="TEXT", help="what to ask for")
    command.add_argument("--url", default=DEFAULT_URL, help="the server (default: %(default)s)")
    command.add_argument("--context", default="", metavar="ID", help="go on with a conversation")
    command.add_argument("--task", default="", metavar="ID", help="answer a task that asked, or add to one that works")
    command.add_argument("--json", action="store_true", help="print each event as one line of JSON")


def _send(options: argparse.Namespace) -> int:
    chosen = SendOptions(
        text=options.text,
        url=options.url,
        context=options.context,
        task=options.task,
        json=options.json,
        program=program(sys.argv[0]),
    )
    return asyncio.run(send(chosen, *_streams()))


def _streams() -> tuple[TextIO, TextIO]:
    """Where output and failures go. Python has none where the shell has closed it (`>&-`): then nobody reads it."""
    return sys.stdout or io.StringIO(), sys.stderr or io.StringIO()


def _serve(options: argparse.Namespace) -> int:
    settings = load(given_options(options))
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    # The SDK logs every refused request with its trace; what matters of it is in the answer.
    logging.getLogger("a2a").setLevel(logging.ERROR)
    # It tells every step of what an upgrade finds to do or not to do.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    llm = choose_llm(settings, os.environ)
    app = build_app(settings, llm)
    for port in filter(None, (settings.port, settings.grpc_port)):
        _check_free(settings.host, port)
    if settings.database != "memory":
        asyncio.run(_check_database(settings))
    print(*banner(settings, llm), sep="\n", flush=True)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=limited_connection(ConnectionLimits(settings.max_connections)),
        ws="none",
        log_level=settings.log_level,
        timeout_graceful_shutdown=ceil(settings.shutdown_grace) + CUT,
        access_log=settings.log_level == "debug",
    )
    with suppress(KeyboardInterrupt):
        # uvicorn raises the signal that stopped it again; SIGTERM shall end the process as Ctrl+C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        GracefulServer(config, app.state.stop).run()
    return 0


async def _check_database(settings: Settings) -> None:
    """Raises `DatabaseError` if the server could not use it. A SQLite file is made ready for it."""
    await (await open_database(settings)).close()


def banner(settings: Settings, llm: LLM) -> Iterator[str]:
    """What an operator is told: where it listens, what its card says, who can use it, where it keeps things."""
    grpc = f" (gRPC: {authority(settings.host, settings.grpc_port)})" if settings.grpc_port else ""
    address = f"http://{authority(settings.host, settings.port)}"
    yield f"a2a-canvas {version('a2a-canvas')} listens on {address}{grpc} with {llm.name}"
    if isinstance(llm, Rehearsal):
        yield NOTICE
    open_to_all = "" if _is_loopback(settings.host) else " There is no authentication: whoever reaches it can use it."
    if settings.public_url:
        yield f"Its card says {settings.url}.{open_to_all}"
    elif settings.host in EVERYWHERE:
        yield f"Its card says {settings.url}: clients on other machines need --public-url.{open_to_all}"
    elif open_to_all:
        yield open_to_all.strip()
    memory = settings.database == "memory"
    kept = "in memory, and lost when it stops" if memory else f"in {without_password(settings.database)}"
    yield f"Tasks and artifacts are kept {kept}."


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def program(called: str) -> str:
    """How a user calls this program: what was typed, as far as the system tells."""
    path = Path(called)
    if path.name == "__main__.py":
        return "python -m a2a_canvas"
    # The system hands on the whole path of what it found on the PATH.
    return path.name if shutil.which(path.name) == called else shlex.quote(called)


def _check_free(host: str, port: int) -> None:
    """Raises `OSError`, in words, if the server could not listen there."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        why = os.strerror(number) if number > 0 else "no such host"  # the resolver's numbers are not the system's
        raise OSError(f"Cannot listen on {host}:{port}: {why}. Choose another host or port.") from None
