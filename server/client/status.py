"""The status line of a terminal: what it says, how it is drawn and how it is wiped. Does no IO.

Rule 1: a label replaces what was said before. The pieces of a thought add up, until something else is said.
Rule 2: at the start of a line it stands in that line, in mid-line in the row below, and the cursor goes back to where
the text goes on. No column is reckoned for that, so neither a new width nor a wide character can lead it astray.
Rule 3: where the text has just filled its row it is not drawn: a cursor that has been away would come back onto the
row's last character instead of behind it.
"""

from __future__ import annotations

from a2a_canvas.server.client.shown import fit, one_line, tail

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
# Down and up again makes room below, even in the last row; only then is the cursor's place a place to come back to.
_TO_BELOW, _BACK = "\x1bD\x1b[A\x1b7\x1b[B\r", "\x1b8"
_WIPE, _WIPE_BELOW = "\r\x1b[K", "\x1b[J"
_KEPT = 2000
"""Characters of a thought that are kept: more than any line has."""


class StatusLine:
    """What the agent is doing, in one line.

    Attributes:
        label: what was said last, in one line; empty if there is nothing to say.
    """

    def __init__(self) -> None:
        self.label = ""
        self._thought = self._drawn = self._wipe = ""

    def say(self, text: str) -> None:
        """Put a line of text, or nothing, in place of all that was said."""
        self.label, self._thought = text, ""

    def think(self, piece: str) -> None:
        """Add to the thought. Until it has a word, the label stands."""
        self._thought = (self._thought + piece)[-_KEPT:]

    def around(self, body: str, *, column: int, at_start: bool, columns: int) -> str:
        """What is to be written so that a text comes out and the status line stands after it.

        Args:
            body: the text; where it is empty and nothing has changed there is nothing to write.
            column: the cursor's column after it, `columns` if the row is full.
            at_start: whether it ends a line.
            columns: the width of the terminal.
        """
        line = self._line(columns - 1) if column < columns else ""
        if not body and line == self._drawn:
            return ""
        before = self._wipe if self._drawn else ""
        self._drawn, self._wipe = line, _WIPE if at_start else _WIPE_BELOW
        return before + body + (_draw(line, at_start) if line else "")

    def _line(self, columns: int) -> str:
        thought = one_line(self._thought)
        return tail(thought, columns) if thought else fit(self.label, columns)


def _draw(line: str, at_start: bool) -> str:
    shown = f"{_DIM}{line}{_PLAIN}"
    return shown if at_start else f"{_TO_BELOW}{shown}{_BACK}"
