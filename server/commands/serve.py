"""`a2a-canvas serve`: the settings, the model, the application, and uvicorn."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from math import ceil
from shutil import get_terminal_size
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from a2a_canvas.server import log_output
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.models.claude_params import is_configured
from a2a_canvas.server.app import create_app
from a2a_canvas.server.commands.banner import banner, hints, ollama_hint, ollama_warning, wrap_line
from a2a_canvas.server.commands.database_check import DataCount, check_database
from a2a_canvas.server.commands.open_files import raise_file_limit, throttle_accept_errors
from a2a_canvas.server.commands.workers.parent_link import ParentLink
from a2a_canvas.server.commands.workers.worker_place import WorkerPlace
from a2a_canvas.server.listening import is_reloaded, lent_socket, listen, use_lent
from a2a_canvas.server.protocols.a2a_v1.card.card_file import CardError
from a2a_canvas.server.protocols.edge.connections import ConnectionLimits, limited_connection
from a2a_canvas.server.protocols.edge.request_metrics import refused_connections
from a2a_canvas.server.protocols.edge.shutdown import GracefulServer
from a2a_canvas.server.protocols.identity.configuration import check_open
from a2a_canvas.server.settings.model_choice import OLLAMA, choose_llm, ollama_address
from a2a_canvas.server.settings.settings import Settings, SettingsError, line_in_folder, load, option_name
from a2a_canvas.server.tool_sources.agent_loop import describe_agent, describe_loop, probe_agent
from a2a_canvas.server.tool_sources.agent_tools import check_programs

logger = logging.getLogger(__name__)

CUT_OFF_SECONDS = 1
"""Seconds beyond its grace period after which a stopping server closes connections that do not read the end of an
answer."""

SWITCH_INTERVAL = 0.0005
"""Seconds after which a computing thread yields to another one, such as that of the event loop. Python's 5 ms add up:
a turn waits for threads dozens of times."""
HANG_SECONDS = 10
"""Seconds beyond its grace period after which a worker without a parent ends, even if it hangs."""
INTERRUPTED = 130
"""The exit code after Ctrl+C, as in shells."""

NOT_STARTED = 3
"""The exit code of a server that could not start after all its settings were checked; uvicorn's own."""

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
    settings, place = load(values), WorkerPlace.take()
    log_output.configure(settings.log_level, settings.log_format, place.number if place else 0)
    sys.setswitchinterval(SWITCH_INTERVAL)
    if settings.workers > 1 and is_reloaded():
        raise SettingsError("--reload restarts one process: set workers to 1, or start the server without --reload.")
    llm = _llm(settings, values)
    app = create_app(settings, llm, connections=place.connections if place else None)
    if (is_reloaded() or place) and settings.mcp_config:
        check_programs(settings.mcp_config)
    if place:
        use_lent(place.sockets)
        listener: socket.socket | None = listen(settings.host, settings.port)
        count = DataCount.from_json(place.counts) if place.counts else None
    else:
        listener = lent_socket(settings.host, settings.port)
        count = _check_machine(settings, lent=bool(listener))
    # Outside of the server, whose own handler stops it gracefully: at the start, and when it has stopped.
    signal.signal(signal.SIGINT, _ignore if place else _end_at_once)
    server = ForegroundServer(
        _uvicorn_config(app, settings),
        app.state.shutdown,
        settings,
        _lines(app, settings, llm, count, program) if place is None or place.speaks else None,
        program,
        app.state.agent,
        ParentLink(place.channel, app.state.metrics, settings.shutdown_grace + HANG_SECONDS) if place else None,
    )
    server.run([listener] if listener else None)
    return 0 if server.started else NOT_STARTED


def _check_machine(settings: Settings, *, lent: bool) -> DataCount | None:
    """Check the ports, except for a lent one, and the database; returns what is in it, unless it is in memory.

    Raises:
        OSError: a port is not free.
        SettingsError: the database cannot be used, or anybody could use the server.
    """
    for field in ("grpc_port", "metrics_port") if lent else ("port", "grpc_port", "metrics_port"):
        if port := getattr(settings, field):
            listen(settings.host, port, option_name(field)).close()
    count = None if settings.database == "memory" else asyncio.run(check_database(settings)).count
    check_open(settings, keys=bool(count and count.keys.made))
    return count


def _uvicorn_config(app: Starlette, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
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


def _lines(app: Starlette, settings: Settings, llm: LLM, count: DataCount | None, program: str) -> Iterator[str]:
    """The banner and the hints. Read when the server serves: by then the tools of MCP servers are known."""
    loop = describe_loop(settings, app.state.agent)
    yield from banner(settings, llm.name, count, program, app.state.tool_sources, loop)
    yield from hints(settings, os.environ, program)


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


def _ignore(*_: object) -> None:
    """The parent of this worker decides. Programs that the agent starts do not inherit it, as they would SIG_IGN."""


def _end_at_once(*_: object) -> None:
    # Durable data is committed. Python's own shutdown could be interrupted again.
    os._exit(INTERRUPTED)


class ForegroundServer(GracefulServer):
    """A server that reports its start on the terminal, and ends immediately on a second Ctrl+C.

    Args:
        lines: printed as soon as it serves; None if another worker prints them, and the hints that follow.
        program: how the user calls this program.
        parent: of a worker, which it tells when it serves, and which alone gets Ctrl+C.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        stop: Callable[[], Awaitable[None]],
        settings: Settings,
        lines: Iterable[str] | None,
        program: str,
        agent: AgentFunction | None = None,
        parent: ParentLink | None = None,
    ) -> None:
        super().__init__(config, stop)
        self._settings = settings
        self._lines = lines
        self._program = program
        self._agent = agent
        self._parent = parent
        self._hints: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(throttle_accept_errors(time.monotonic))
        await super().startup(sockets)
        if self._parent and self.started:
            await self._parent.start()
        if self._lines is None or not self.started:
            return
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
        if self._parent:
            await self._parent.report_last()
        await _cancel_remaining_tasks()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if not self._parent:
            text = "The server is stopping; its streams end within %g seconds. Ctrl+C ends it immediately."
            logger.info(text, self._settings.shutdown_grace)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGINT and self._parent:
            return
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
