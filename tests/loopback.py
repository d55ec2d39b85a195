"""Servers in this process, on a free port of the loopback address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def listening(port: int = 0) -> Iterator[tuple[socket.socket, int]]:
    """A socket that accepts from the first moment, and its port."""
    # asyncio turns Nagle's algorithm off only where a socket says that it is TCP.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        yield listener, listener.getsockname()[1]


@asynccontextmanager
async def serving_app(make: Callable[[str], ASGIApp], port: int = 0, **options: Any) -> AsyncIterator[str]:
    """The url of a server for the app that `make` builds for it.

    Args:
        options: of `uvicorn.Config`; by default the app has no lifespan.
    """
    with listening(port) as (listener, port):
        url = f"http://127.0.0.1:{port}"
        defaults = {"log_config": None, "lifespan": "off", "timeout_graceful_shutdown": 1}
        server = uvicorn.Server(uvicorn.Config(make(url), **{**defaults, **options}))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield url
        finally:
            server.should_exit = True
            await running


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a server, without HTTP."""
    return await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
