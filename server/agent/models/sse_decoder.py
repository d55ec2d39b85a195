"""Incremental decoder of server-sent events (the HTML standard, section 9.2.6), cut anywhere. Pure.

Rule 1: only `event` and `data` are read; an event without data is ignored.
Rule 2: text after the last blank line is not an event, even if the stream ends there.
Rule 3: the cost of a piece is proportional to the piece, however long its line is.
"""

from __future__ import annotations

from typing import NamedTuple


class ServerSentEvent(NamedTuple):
    """`name` is empty if the stream gave none."""

    name: str
    data: str


class EventStreamDecoder:
    """Decodes one stream."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._name = ""
        self._data: list[str] = []

    def feed(self, content: bytes) -> list[ServerSentEvent]:
        """The events that `content` completes.

        Raises:
            UnicodeDecodeError: a line is not UTF-8.
        """
        # A carriage return at the end may be the first half of a line end.
        end = max(content.rfind(b"\n"), content.rfind(b"\r", 0, -1)) + 1
        self._pieces.append(content[:end] if end else content)
        if not end:
            return []
        lines, self._pieces = b"".join(self._pieces).splitlines(), [content[end:]]
        return [event for line in lines if (event := self._take(line.decode()))]

    def _take(self, line: str) -> ServerSentEvent | None:
        if line:
            field, _, value = line.partition(":")
            if field == "data":
                self._data.append(value.removeprefix(" "))
            elif field == "event":
                self._name = value.removeprefix(" ")
            return None
        event = ServerSentEvent(self._name, "\n".join(self._data)) if self._data else None
        self._name, self._data = "", []
        return event
