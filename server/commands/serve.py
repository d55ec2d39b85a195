"""`a2a-canvas serve`: the settings, the model, the application, and uvicorn."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from math import ceil
from shutil import get_terminal_size
from types import FrameType
from typing import Any

import uvicorn

from a2a_canvas.server import log_output
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.models.claude_params import is_configured
from a2a_canvas.server.app import create_app
from a2a_canvas.server.commands.banner import DataCount, banner, hints, ollama_hint, ollama_warning, wrap_line
from a2a_canvas.server.commands.open_files import raise_file_limit, throttle_accept_errors
from a2a_canvas.server.listening import is_reloaded, lent_socket, listen
from a2a_canvas.server.protocols.a2a_v1.card.card_file import CardError
from a2a_canvas.server.protocols.edge.connections import ConnectionLimits, limited_connection
from a2a_canvas.server.protocols.edge.request_metrics import refused_connections
from a2a_canvas.server.protocols.edge.shutdown import GracefulServer
from a2a_canvas.server.protocols.identity.configuration import check_open
from a2a_canvas.server.settings.model_choice import OLLAMA, choose_llm, ollama_address
from a2a_canvas.server.settings.settings import Settings, SettingsError, line_in_folder, load, option_name
from a2a_canvas.server.tool_sources.agent_loop import describe_agent, describe_loop, probe_agent
from a2a_canvas.server.tool_sources.agent_tools import check_programs
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

CUT_OFF_SECONDS = 1
"""Seconds beyond its grace period after which a stopping server closes connections that do not read the end of an
answer."""

SWITCH_INTERVAL = 0.0005
"""Seconds after which a computing thread yields to another one, such as that of the event loop. Python's 5 ms add up:
a turn waits for threads dozens of times."""
INTERRUPTED = 130
"""The exit code after Ctrl+C, as in shells."""

REFUSALS = (SettingsError, CardError)
"""The errors with which `serve` refuses to start; `str()` is one line that says what to do."""


def serve(values: Mapping[str, Any], program: str = "a2a-canvas") -> int:
    """Serve until a signal stops it.

    Args:
        values: the options of the command line, as `load` takes them.
        program: how the user calls this program.

    Raises:
        OSError: a port is not free.
        One of `REFUSALS`.
    """
    settings = load(values)
    log_output.configure(settings.log_level, settings.log_format)
    sys.setswitchinterval(SWITCH_INTERVAL)
    llm = _llm(settings, values)
    app = create_app(settings, llm)
    if is_reloaded() and settings.mcp_config:
        check_programs(settings.mcp_config)
    lent = lent_socket(settings.host, settings.port)
    for field in ("grpc_port", "metrics_port") if lent else ("port", "grpc_port", "metrics_port"):
        if port := getattr(settings, field):
            listen(settings.host, port, option_name(field)).close()
    count = None if settings.database == "memory" else asyncio.run(_check_database(settings))
    check_open(settings, keys=bool(count and count.keys.made))
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=limited_connection(ConnectionLimits(raise_file_limit(settings)), refused_connections(app.state.metrics)),
        ws="none",
        log_config=None,
        timeout_graceful_shutdown=ceil(settings.shutdown_grace) + CUT_OFF_SECONDS,
        access_log=settings.log_level == "debug",
        # Otherwise a request could inherit the task that an earlier one on its connection has named for the log.
        reset_contextvars=True,
    )
    # Outside of the server, whose own handler stops it gracefully: at the start, and when it has stopped.
    signal.signal(signal.SIGINT, _end_at_once)
    # Read when the server serves: by then the tools of MCP servers are known.
    state = app.state
    loop = describe_loop(settings, state.agent)
    said = banner(settings, llm.name, count, program, state.tool_sources, loop)
    lines = chain(said, hints(settings, os.environ, program))
    ForegroundServer(config, app.state.shutdown, settings, lines, program, state.agent).run([lent] if lent else None)
    return 0


def check_agent(values: Mapping[str, Any]) -> str:
    """Check that a server could start, apart from its ports, with all the agent's tools; returns a line for the user.

    Only the number of keys is read from the database, if it decides whether the server may start.

    Raises:
        One of `REFUSALS`.
    """
    settings = load(values)
    app = create_app(settings, _llm(settings, values))
    if settings.mcp_config:
        check_programs(settings.mcp_config)
    try:
        check_open(settings, keys=False)
    except SettingsError:
        if not asyncio.run(_has_had_keys(settings.database)):
            raise
    if reason := asyncio.run(probe_agent(app.state.agent)):
        raise SettingsError(reason)
    return describe_agent(settings, app.state.agent)


async def _has_had_keys(url: str) -> bool:
    """Whether the database exists, and keys were ever made in it."""
    from a2a_canvas.server.accounts.sql.sql_api_keys import count_keys
    from a2a_canvas.server.backend.open_database import DatabaseError, open_database

    if url == "memory":
        return False
    with suppress(DatabaseError):
        async with open_database(url, shared=True) as database, database.read() as connection:
            return (await count_keys(connection)).made > 0
    return False


def _llm(settings: Settings, values: Mapping[str, Any]) -> LLM:
    try:
        return choose_llm(settings, os.environ)
    except SettingsError as error:
        if place := line_in_folder(values, "model"):
            raise SettingsError(f"{place}: {error}") from None
        raise


def _end_at_once(*_: object) -> None:
    # Durable data is committed. Python's own shutdown could be interrupted again.
    os._exit(INTERRUPTED)


class ForegroundServer(GracefulServer):
    """A server that reports its start on the terminal, and ends immediately on a second Ctrl+C.

    Args:
        lines: printed as soon as it serves.
        program: how the user calls this program.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        stop: Callable[[], Awaitable[None]],
        settings: Settings,
        lines: Iterable[str],
        program: str,
        agent: AgentFunction | None = None,
    ) -> None:
        super().__init__(config, stop)
        self._settings = settings
        self._lines = lines
        self._program = program
        self._agent = agent
        self._hints: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(throttle_accept_errors(time.monotonic))
        await super().startup(sockets)
        for line in self._lines:
            self._say(line)
        model = self._settings.model
        if (model or "").startswith(OLLAMA) or (model is None and not is_configured(os.environ)):
            self._hints.append(asyncio.create_task(self._look_for_ollama(model)))
        self._hints.append(asyncio.create_task(self._probe_agent()))

    async def _probe_agent(self) -> None:
        if reason := await probe_agent(self._agent):
            logger.warning("%s Its users' messages fail until it can.", reason)

    async def _look_for_ollama(self, model: str | None) -> None:
        with suppress(SettingsError):
            address = ollama_address(os.environ)
            found = (
                ollama_warning(model.removeprefix(OLLAMA), address) if model else ollama_hint(self._program, address)
            )
            if line := await found:
                self._say(line)

    def _say(self, line: str) -> None:
        if self._settings.log_format == "json":
            logger.info(line.replace("\n", " "))
            return
        try:
            print(wrap_line(line, get_terminal_size().columns) if sys.stdout.isatty() else line, flush=True)
        except BrokenPipeError:  # the reader is gone; Python would complain again when it flushes
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets)
        await _cancel_remaining_tasks()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        grace = self._settings.shutdown_grace
        logger.info("The server is stopping; its streams end within %g seconds. Ctrl+C ends it immediately.", grace)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            _end_at_once()
        self.should_exit = True  # uvicorn's own handler would raise the signal again at the end


async def _cancel_remaining_tasks() -> None:
    """Cancel running tasks, and hide those that do not end from asyncio, which would wait for them forever."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    _, running = await asyncio.wait(rest, timeout=CUT_OFF_SECONDS) if rest else (rest, rest)
    for task in running:
        asyncio._unregister_task(task)
    if running:
        logger.warning("%d cancelled tool calls have not ended; the server stops without them", len(running))


async def _check_database(settings: Settings) -> DataCount | None:
    """The contents of the database, if counted in time; a SQLite file is created and upgraded.

    Raises:
        SettingsError: the server could not use it.
    """
    from a2a_canvas.server.accounts.sql.sql_api_keys import count_keys
    from a2a_canvas.server.backend.open_database import DatabaseError, make_database, prepare_database
    from a2a_canvas.server.tasks.sql.journal.journal_reading import count_tasks

    database = make_database(settings.database)
    try:
        await prepare_database(database)
    except DatabaseError as error:
        raise SettingsError(str(error)) from error
    try:
        async with database.read() as connection:
            return DataCount(*await count_tasks(connection), await count_keys(connection))
    except Unavailable:
        return None
    finally:
        await database.close()
