"""The parent of the workers: binds the ports, checks the database, starts the workers, and starts them again.

Rule 1: the parent keeps each port, so that a taken one is one error, and nobody else gets it. Each worker gets sockets
        that the parent has bound, and the system spreads connections evenly over those that listen (SO_REUSEPORT): a
        worker that has ended, or still loads, gets none. gRPC binds its own in the same way.
Rule 2: the others start when the first worker serves: if the agent cannot be loaded, one worker says so.
Rule 3: a worker that ends is started again (`restarts.py`). One that gets SIGTERM itself hands over its turns first.
Rule 4: a signal goes to the parent, which stops the workers; Ctrl+C reaches all processes of a terminal, and the
        workers ignore it. A second Ctrl+C kills them.
Rule 5: what a worker that has ended had counted stays in the sums of the metrics: counters do not fall.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Final

from a2a_canvas.server import log_output
from a2a_canvas.server.commands.database_check import DatabaseState, check_database
from a2a_canvas.server.commands.own_command import own_command
from a2a_canvas.server.commands.workers.connection_shares import connections_each
from a2a_canvas.server.commands.workers.restarts import Death, deaths_in_a_row, delay_after, is_final
from a2a_canvas.server.commands.workers.worker_place import WorkerPlace
from a2a_canvas.server.commands.workers.worker_process import WorkerProcess
from a2a_canvas.server.listening import bind_shared, reserve
from a2a_canvas.server.metrics import Families, only_counted, sum_families
from a2a_canvas.server.protocols.identity.configuration import check_open
from a2a_canvas.server.settings.settings import Settings, option_name
from a2a_canvas.store.sql.database import CONNECTIONS

logger = logging.getLogger(__name__)

INTERRUPTED: Final = 130
KILL_SECONDS: Final = 15.0
"""Seconds beyond their grace period after which workers that do not stop are killed."""


def serve_by_workers(settings: Settings, arguments: Sequence[str]) -> int:
    """Serve by several processes until a signal stops them.

    Args:
        arguments: of `serve`, as typed.

    Returns:
        The exit code.

    Raises:
        OSError: a port is not free.
        SettingsError: the database cannot be used, allows too few connections, or anybody could use the server.
    """
    log_output.configure(settings.log_level, settings.log_format)
    with ExitStack() as stack:
        for field in ("port", "grpc_port", "metrics_port"):
            if port := getattr(settings, field):
                stack.enter_context(reserve(settings.host, port, option_name(field)))
        found = asyncio.run(check_database(settings))
        check_open(settings, keys=bool(found.count and found.count.keys.made))
        each = connections_each(settings.workers, found.allowed) if found.allowed else CONNECTIONS
        if each < CONNECTIONS:
            text = "Each worker uses %d connections to PostgreSQL instead of %d, because it allows no more."
            logger.info(text, each, CONNECTIONS)
        return asyncio.run(_Workers(settings, own_command(arguments), each, found).run())


class _Workers:
    """The workers that run, by number."""

    def __init__(
        self,
        settings: Settings,
        command: Sequence[str],
        connections: int,
        found: DatabaseState,
    ) -> None:
        self._settings = settings
        self._command = command
        self._connections = connections
        self._counts: dict[str, Any] | None = asdict(found.count) if found.count else None
        self._running: dict[int, WorkerProcess] = {}
        self._ended: Families = []
        self._serving = asyncio.Event()
        self._stopping = asyncio.Event()
        self._code = 0

    async def run(self) -> int:
        """Run them until they are stopped; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        first = asyncio.create_task(self._keep(1))
        serving = asyncio.create_task(self._serving.wait())
        await asyncio.wait([first, serving], return_when=asyncio.FIRST_COMPLETED)
        serving.cancel()
        others = range(2, self._settings.workers + 1) if self._serving.is_set() else ()
        await asyncio.gather(first, *(self._keep(number) for number in others))
        return self._code

    async def _keep(self, number: int) -> None:
        """Keep one worker running."""
        deaths = 0
        while not self._stopping.is_set():
            try:
                death = await self._run_once(number)
            except OSError as error:  # such as too many open files, which may pass
                death = Death(1, None, f"it could not be started: {error}")
            if self._stopping.is_set():
                return
            deaths = deaths_in_a_row(deaths, death)
            if is_final(deaths, death, served=self._serving.is_set()):
                self._give_up(death)
                return
            delay = delay_after(deaths)
            said = f"Worker {number} {death if deaths else 'has stopped'}. It is started again in {delay:g} seconds."
            logger.warning(said)
            await self._sleep(delay)

    async def _run_once(self, number: int) -> Death:
        def on_ready() -> None:
            logger.info("Worker %d serves (process %d).", number, worker.process.pid)
            self._serving.set()

        with ExitStack() as stack:
            ports = [port for port in (self._settings.port, self._settings.metrics_port) if port]
            bound = {port: stack.enter_context(bind_shared(self._settings.host, port)) for port in ports}
            place = WorkerPlace(
                number,
                channel=-1,
                sockets={str(port): each.fileno() for port, each in bound.items()},
                connections=self._connections,
                speaks=number == 1 and not self._serving.is_set(),
                counts=self._counts,
            )
            worker = await WorkerProcess.start(self._command, place, self._sum_metrics, on_ready)
        self._running[number] = worker
        if self._stopping.is_set():
            worker.send_signal(signal.SIGTERM)
        try:
            return await worker.run()
        finally:
            del self._running[number]
            self._ended = sum_families((self._ended, only_counted(worker.families)))

    def _give_up(self, death: Death) -> None:
        self._code = death.code if death.code > 0 else 1
        self._stopping.set()
        if death.code != 2:
            logger.error("The first worker %s. The server ends, because it has not served yet.", death)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.wait([waiting := asyncio.create_task(self._stopping.wait())], timeout=seconds)
        waiting.cancel()

    # ------------------------------------------------------------------------- stopping

    def _on_signal(self, number: signal.Signals) -> None:
        if not self._stopping.is_set():
            self._stop()
        elif number == signal.SIGINT:
            self._code = INTERRUPTED
            self._kill()

    def _stop(self) -> None:
        grace = self._settings.shutdown_grace
        logger.info("The server is stopping; its streams end within %g seconds. Ctrl+C ends it immediately.", grace)
        self._stopping.set()
        for worker in self._running.values():
            worker.send_signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(grace + KILL_SECONDS, self._kill)

    def _kill(self) -> None:
        for worker in self._running.values():
            worker.send_signal(signal.SIGKILL)

    # -------------------------------------------------------------------------- metrics

    async def _sum_metrics(self) -> Families:
        found = await asyncio.gather(*(each.read_metrics() for each in self._running.values()))
        return sum_families((*found, self._ended))
