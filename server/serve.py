"""`a2a-canvas serve`: the settings, the model, the application, and uvicorn."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from ipaddress import ip_address
from math import ceil
from typing import Any

import uvicorn

from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.models.rehearsal import NOTICE, Rehearsal
from a2a_canvas.server.app import choose_llm, create_app
from a2a_canvas.server.protocols.a2a_v1.card import CardError
from a2a_canvas.server.protocols.edge.connections import ConnectionLimits, limited_connection
from a2a_canvas.server.protocols.edge.shutdown import GracefulServer
from a2a_canvas.server.settings import (
    ALL_ADDRESSES,
    Settings,
    SettingsError,
    authority,
    load,
    without_password,
)

CUT_OFF_SECONDS = 1
"""After so long beyond its grace period, a stopping server closes connections that do not even read the end of an
answer."""

REFUSALS = (SettingsError, CardError)
"""What `serve` raises if it cannot start as it was asked to; `str()` is one line that says what to do."""


def serve(given: Mapping[str, Any]) -> int:
    """Serve until a signal stops it.

    Args:
        given: the options of the command line, as `load` takes them.

    Returns:
        The exit code.

    Raises:
        OSError: a port is not free.
        One of `REFUSALS`.
    """
    settings = load(given)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    # The SDK logs every refused request with its traceback; what matters of it is in the answer.
    logging.getLogger("a2a").setLevel(logging.ERROR)
    # It logs each step of an upgrade, and that there is none.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    llm = choose_llm(settings, os.environ)
    app = create_app(settings, llm)
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
        timeout_graceful_shutdown=ceil(settings.shutdown_grace) + CUT_OFF_SECONDS,
        access_log=settings.log_level == "debug",
    )
    with suppress(KeyboardInterrupt):
        # uvicorn raises the signal that stopped it again; SIGTERM shall end the process as Ctrl+C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        GracefulServer(config, app.state.shutdown).run()
    return 0


async def _check_database(settings: Settings) -> None:
    """Raises `SettingsError` if the server could not use its database. A SQLite file is created and upgraded."""
    from a2a_canvas.server.open_database import DatabaseError, make_database, prepare_database

    database = make_database(settings.database)
    try:
        await prepare_database(database)
        await database.close()
    except DatabaseError as error:
        raise SettingsError(str(error)) from error


def banner(settings: Settings, llm: LLM) -> Iterator[str]:
    """What an operator reads at the start: the addresses, who can reach them, and where data is stored."""
    grpc = f" (gRPC: {authority(settings.host, settings.grpc_port)})" if settings.grpc_port else ""
    address = f"http://{authority(settings.host, settings.port)}"
    yield f"a2a-canvas {version('a2a-canvas')} listens on {address}{grpc} with {llm.name}"
    if isinstance(llm, Rehearsal):
        yield NOTICE
    open_to_all = (
        "" if _is_loopback(settings.host) else " There is no authentication: anyone who reaches it can use it."
    )
    if settings.public_url:
        yield f"Its card says {settings.url}.{open_to_all}"
    elif settings.host in ALL_ADDRESSES:
        yield f"Its card says {settings.url}: clients on other machines need --public-url.{open_to_all}"
    elif open_to_all:
        yield open_to_all.strip()
    memory = settings.database == "memory"
    where = "in memory, and lost when it stops" if memory else f"in {without_password(settings.database)}"
    yield f"Tasks and artifacts are stored {where}."


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_free(host: str, port: int) -> None:
    """Raises `OSError`, with one line for the user, if the server could not listen there."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        why = os.strerror(number) if number > 0 else "no such host"  # the resolver's numbers are not the system's
        raise OSError(f"Cannot listen on {host}:{port}: {why}. Choose another host or port.") from None
