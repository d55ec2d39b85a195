"""Thinking that a model writes as text before its reply to an edit: some local models do. Pure.

Rule 1: a reply that begins with `<think>` or `<thinking>`, in any case, after blanks or not, begins with thinking, up
        to the closing tag. It is dropped, with what is blank on the line where it ends and the blank lines that follow.
Rule 2: but it is text if the selection itself begins with such a tag.
Rule 3: if it never ends, all of the reply is thinking.
Rule 4: it begins within the first `OPENING` characters of the reply, or never. Besides these no more is held back than
        a closing tag and the blanks after it.
"""

from __future__ import annotations

import re
from typing import Final, Literal

OPENING: Final = 256
"""Characters within which the opening tag must stand."""

_OPENING_TAG: Final = re.compile(r"[ \t\r\n]*<(?P<tag>think|thinking)>", re.IGNORECASE | re.ASCII)
_TAGS: Final = ("<think>", "<thinking>")
_BLANKS: Final = " \t\r\n"
_BLANK: Final = re.compile(r"[ \t]*(?:\r?\n(?:[ \t]*\r?\n)*)?")


class LeadingThinking:
    """Takes a reply in pieces, and gives it back without the thinking.

    Args:
        selected: the selection that is edited.
    """

    def __init__(self, selected: str) -> None:
        self._place: Literal["beginning", "thought", "after", "text"] = "beginning"
        if _OPENING_TAG.match(selected):
            self._place = "text"
        self._held = ""
        self._closing = re.compile("")

    @property
    def over(self) -> bool:
        """Whether the thinking has ended, if there was any; known after `flush`."""
        return self._place != "thought"

    def feed(self, text: str) -> str:
        if self._place == "text":
            return text
        self._held += text
        if self._place == "beginning":
            self._begin()
        if self._place == "thought":
            self._end()
        if self._place == "after" and text.strip(_BLANKS) and self._held.strip(_BLANKS):
            self._held, self._place = _BLANK.sub("", self._held, count=1), "text"
        return self._taken() if self._place == "text" else ""

    def flush(self) -> str:
        if self._place == "thought":
            return ""
        held = self._taken()
        return _BLANK.sub("", held, count=1) if self._place == "after" else held

    def _begin(self) -> None:
        opening = _OPENING_TAG.match(self._held)
        begun = self._held.lstrip(_BLANKS).lower()
        if opening and opening.end() <= OPENING:
            self._closing = re.compile(f"</{opening['tag']}>", re.IGNORECASE | re.ASCII)
            self._held, self._place = self._held[opening.end() :], "thought"
        elif len(self._held) > OPENING or not any(tag.startswith(begun) for tag in _TAGS):
            self._place = "text"

    def _end(self) -> None:
        closing = self._closing.search(self._held)
        if closing:
            self._held, self._place = self._held[closing.end() :], "after"
        else:
            self._held = self._held[-len(_TAGS[-1]) :]

    def _taken(self) -> str:
        held, self._held = self._held, ""
        return held
