"""Where texts are compared: short ones at once, long ones in a thread, so that the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")

THREAD_THRESHOLD = 100_000
"""Characters of a text that is compared in a thread."""


async def comparing(compare: Callable[..., R], *texts: str) -> R:
    """What `compare` returns for the texts. Texts never change, as ropes do: any thread can read them."""
    if max(map(len, texts)) > THREAD_THRESHOLD:
        return await asyncio.to_thread(compare, *texts)
    return compare(*texts)
