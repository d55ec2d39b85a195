"""Work in threads, which cannot be cancelled."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def run_to_end(running: asyncio.Future[T]) -> T:
    """The result of a step that a thread runs. A cancellation waits for the end of the step, and is raised then."""
    try:
        return await asyncio.shield(running)
    finally:
        while not running.done():
            with suppress(asyncio.CancelledError):  # a second one: the first is raised
                await asyncio.wait((running,))
