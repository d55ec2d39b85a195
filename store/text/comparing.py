"""Compares texts: short ones directly, long ones in a thread, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")

THREAD_THRESHOLD = 100_000
"""The length from which texts are compared in a thread, in characters."""


async def run_comparison(compare: Callable[..., R], *texts: str, times: int = 1) -> R:
    """The result of `compare`. Any thread may read `str`s, unlike ropes, which change internally.

    Args:
        times: how often it goes through the texts.
    """
    if max(map(len, texts)) * times > THREAD_THRESHOLD:
        return await asyncio.to_thread(compare, *texts)
    return compare(*texts)
