"""A block of code that another task may cancel.

Rule: what is awaited there may swallow a cancellation, as Python 3.11's `wait_for` does with one that comes together
      with a result. So the block is cancelled again every `AGAIN_SECONDS`, until it has ended.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

AGAIN_SECONDS: Final = 1.0


class Cancellable:
    """Used with `with`: `cancel` ends the block, and what follows it runs on. Each stream that waits has two of them,
    and anyio's take 2 KB each.
    """

    __slots__ = ("_again", "_task", "_times")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._times = 0

    @property
    def cancelled(self) -> bool:
        """Whether the block was, or is being, cancelled."""
        return self._times > 0

    def cancel(self) -> None:
        """Cancel the block, unless it has ended."""
        if self._task and not self.cancelled:
            self._cancel(self._task)

    def _cancel(self, task: asyncio.Task[object]) -> None:
        self._times += 1
        task.cancel()
        self._again = asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._cancel, task)

    def __enter__(self) -> Cancellable:
        self._task = asyncio.current_task()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if self._again is None or task is None:
            return False
        self._again.cancel()
        left = min(task.uncancel() for _ in range(self._times))
        # What has also cancelled the task, from outside of the block, must not be lost.
        return not left and kind is not None and issubclass(kind, asyncio.CancelledError)
