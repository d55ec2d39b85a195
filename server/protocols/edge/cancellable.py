"""A block of code that another task may cancel."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Cancellable:
    """Used with `with`: `cancel` ends the block, and what follows it runs on. Each stream that waits has two of them,
    and anyio's take 2 KB each.

    Attributes:
        cancelled: the block was, or is being, cancelled.
    """

    __slots__ = ("_task", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self._task: asyncio.Task[object] | None = None

    def cancel(self) -> None:
        """Cancel the block, unless it has ended."""
        if self._task and not self.cancelled:
            self.cancelled = True
            self._task.cancel()

    def __enter__(self) -> Cancellable:
        self._task = asyncio.current_task()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if not self.cancelled or task is None:
            return False
        # What has also cancelled the task, from outside of the block, must not be lost.
        return not task.uncancel() and kind is not None and issubclass(kind, asyncio.CancelledError)
