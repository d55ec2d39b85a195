"""How a command of the terminal client ends: its exit code, and the line for whoever typed it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from a2a_canvas.server.client.connection import SendError
from a2a_canvas.server.client.shown import Failure
from a2a_canvas.server.client.terminal import Terminal

INTERRUPTED = 130
"""The exit code of a program that was stopped by Ctrl+C, as shells have it."""


async def ended(
    command: Awaitable[int],
    terminal: Terminal,
    interrupted: Callable[[], Failure],
    failed: Callable[[Exception], Failure],
) -> int:
    """Await a command and say what went wrong, if anything did. Nothing is raised.

    Returns:
        The exit code: the command's own, 1 or 2 if it failed, 130 if it was interrupted.
    """
    try:
        return await command
    except BrokenPipeError:
        return 1
    except (asyncio.CancelledError, KeyboardInterrupt):
        terminal.show(interrupted())
        return INTERRUPTED
    except Exception as error:
        terminal.show(failed(error))
        return error.exit_code if isinstance(error, SendError) else 1
