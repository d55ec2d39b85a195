"""Runs the code of a tool: for a limited time, in a thread if it is a plain function. Blocking the loop is logged."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

HANDED_OVER = "the task continues elsewhere"
"""The message of the `CancelledError` in a turn whose task another process continues."""
GRACE = 5.0
"""Seconds that a cancelled call may take to end. Then it is left running."""
BLOCKED = 1.0
"""Seconds without a step of the event loop that are logged."""


class CallTimeout(Exception):
    """A call exceeded its time limit."""


async def run_within(
    name: str,
    run: Awaitable[T],
    seconds: float | None,
    *,
    before_cancel: Callable[[tuple[object, ...]], None] = lambda reason: None,
) -> T:
    """The result of a call, which is cancelled with the turn, or when its time is up.

    Args:
        name: for the log: “The tool search”.
        seconds: that it may take; None without a limit.
        before_cancel: is called with the arguments of the `CancelledError` before the call is cancelled with the turn.

    Raises:
        TooSlow: it took longer than `seconds`.
    """
    task = asyncio.ensure_future(_without_exit(name, run))
    try:
        with _WATCH.running(name):
            done, _ = await asyncio.wait((task,), timeout=seconds)
    except asyncio.CancelledError as error:
        before_cancel(error.args)
        await _end(name, task, *error.args)
        _close_unstarted(run)
        raise
    if not done:
        await _end(name, task)
        raise CallTimeout
    return task.result()


def _close_unstarted(run: Awaitable[object]) -> None:
    if inspect.iscoroutine(run) and inspect.getcoroutinestate(run) == inspect.CORO_CREATED:
        run.close()


async def _without_exit(name: str, run: Awaitable[T]) -> T:
    try:
        return await run
    except SystemExit as error:  # would end the event loop, and with it the server
        raise RuntimeError(f"{name} has called sys.exit({error.code!r})") from error


async def _end(name: str, task: asyncio.Future[Any], *reason: str) -> None:
    task.cancel(*reason)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # so that it is not reported
    _, running = await asyncio.wait((task,), timeout=GRACE)
    if running:
        logger.warning("%s was cancelled and has not ended after %g seconds; it is left running", name, GRACE)


async def in_thread(run: Callable[[], T]) -> T:
    """The result of a function, run in a thread of its own: if it never ends, it neither occupies a shared thread nor
    keeps the process from ending."""
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    context = contextvars.copy_context()

    def deliver(set_outcome: Callable[[Any], None], outcome: object) -> None:
        if not future.done():
            set_outcome(outcome)

    def work() -> None:
        try:
            outcome: tuple[Callable[[Any], None], object] = future.set_result, context.run(run)
        except BaseException as error:
            outcome = future.set_exception, error if isinstance(error, Exception) else RuntimeError(repr(error))
        with suppress(RuntimeError):  # the loop is closed: no one waits
            loop.call_soon_threadsafe(deliver, *outcome)

    threading.Thread(target=work, name="tool", daemon=True).start()
    result: T = await future
    return result


class _LoopWatch:
    """Detects that a tool blocks the event loop, and logs the tool and the line."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._beat = 0.0
        self._thread: int | None = None

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        self._names.append(name)
        if len(self._names) == 1:
            self._thread = threading.get_ident()
            self._beat = time.monotonic()
            beating = asyncio.create_task(self._beats())
            threading.Thread(target=self._watch, args=(beating,), name="event loop watch", daemon=True).start()
        try:
            yield
        finally:
            self._names.remove(name)

    async def _beats(self) -> None:
        while self._names:
            self._beat = time.monotonic()
            await asyncio.sleep(BLOCKED / 4)

    def _watch(self, beating: asyncio.Task[None]) -> None:
        logged = 0.0
        while not beating.done():
            time.sleep(BLOCKED / 4)
            beat = self._beat
            if self._names and time.monotonic() - beat > BLOCKED and beat != logged:
                logged = beat
                frame = sys._current_frames().get(self._thread or 0)
                at = "".join(traceback.format_stack(frame)[-1:]).strip() if frame else "unknown"
                logger.warning(
                    "%s blocks the event loop, and with it the server. Await what takes long, or run it in a thread "
                    "(a tool that is a plain `def` does). %s",
                    " or ".join(dict.fromkeys(self._names)),
                    at,
                )


_WATCH = _LoopWatch()
