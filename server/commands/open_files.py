"""The limit of open files, of which each connection is one.

Rule 1: the soft limit of the process is raised to what the settings need, as far as the hard limit allows. If that is
        not enough, fewer connections are allowed: a refused one gets an answer, one that cannot be accepted none.
Rule 2: asyncio reports each connection that it could not accept, a hundred times a second. The log gets one record a
        minute.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Callable
from typing import Any, Final

from a2a_canvas.server.settings.settings import Settings

logger = logging.getLogger(__name__)

OWN_FILES: Final = 100
"""Open files of a server besides its connections: the database, its log, static files."""
CALLS: Final = 256
"""Connections that gRPC and the metrics add, roughly."""
NOT_ACCEPTED: Final = "socket.accept() out of system resource"
"""asyncio's message for rule 2."""
QUIET_SECONDS: Final = 60.0

Handler = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]


def needed_files(settings: Settings) -> int:
    """The number of files that a server, or each of its workers, may have open with these settings."""
    return settings.of_worker(settings.max_connections) + _own_files(settings)


def connections_within(limit: int, settings: Settings) -> int:
    """The number of HTTP connections of a worker that a limit of open files allows; at least one."""
    return max(1, min(settings.of_worker(settings.max_connections), limit - _own_files(settings)))


def _own_files(settings: Settings) -> int:
    return OWN_FILES + (CALLS if settings.grpc_port else 0)


def raise_file_limit(settings: Settings) -> int:
    """Raise the limit as needed; returns the allowed number of HTTP connections (rule 1)."""
    need, (soft, hard) = needed_files(settings), resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.of_worker(settings.max_connections)
    limit = max(soft, need if hard == resource.RLIM_INFINITY else min(need, hard))
    if limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    connections = connections_within(limit, settings)
    if connections < settings.of_worker(settings.max_connections):
        logger.warning(
            "%d files may be open, and --max-connections %d needs %d: the server accepts %d connections. "
            "Start it after ulimit -n %d.",
            *(limit, settings.max_connections, need, connections, need),
        )
    return connections


def throttle_accept_errors(clock: Callable[[], float]) -> Handler:
    """An exception handler for an event loop, with rule 2."""
    last = -QUIET_SECONDS

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal last
        if context.get("message") != NOT_ACCEPTED:
            loop.default_exception_handler(context)
        elif clock() - last >= QUIET_SECONDS:
            last = clock()
            text = "Connections cannot be accepted: %s. Lower --max-connections, or raise the limit (ulimit -n)."
            logger.error(text, context.get("exception"))

    return handle
