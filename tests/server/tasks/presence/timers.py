"""A clock whose timers a test moves on."""

from __future__ import annotations

from collections.abc import Callable


class FakeTimers:
    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self._count += 1
        self._due.append((self.now + seconds, self._count, call))

    def move(self, seconds: float = 0.0) -> None:
        """Call what is due until then, in its order."""
        until = self.now + seconds
        while due := [each for each in self._due if each[0] <= until]:
            first = min(due, key=lambda each: each[:2])
            self._due.remove(first)
            self.now = max(self.now, first[0])
            first[2]()
        self.now = until

    @property
    def waiting(self) -> int:
        return len(self._due)
