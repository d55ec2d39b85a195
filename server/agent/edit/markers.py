"""The tags of the message that asks for an edit, where a model echoes them in its reply (`passage.py`). Pure.

Their number stands nowhere in what the model was shown, so they are never text.

Rule 1: what stands between `<selection-1>` and `</selection-1>` is the reply; what follows is no document text and is
        kept apart, as `remarks`. Blanks before it do not count. If anything else stands before it, nobody can tell
        which is the passage.
Rule 2: the echo of anything else that was shown (before, after, request, outline) goes whole.
Rule 3: a tag goes with the line break after it, and if `<selection-1>` had one, `</selection-1>` with the one before
        it. But where the selection itself begins with a line break, that after `<selection-1>` is text.

Law: the joined results of `feed` and `flush` do not depend on how the reply is cut.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from a2a_canvas.server.agent.edit.edit_prompt import TAGS, EditPrompt, tag_number

_LINE_BREAK: Final = re.compile(r"\r?\n")
_LAST_LINE_BREAK: Final = re.compile(r"\r?\n\Z")
_MAY_BE_LINE_BREAK: Final = re.compile(r"\r?\n?\Z")


_Place = Literal["beginning", "text", "selection", "echo", "remarks"]


class Markers:
    """Takes a reply in pieces, and gives it back without the tags.

    Attributes:
        alone: whether it can be told which is the passage; known after `flush`.
        remarks: what came after the passage; known after `flush`.
        on_lines: whether the passage stood between tags on lines of their own.
    """

    def __init__(self, passage: EditPrompt) -> None:
        self.alone = True
        self.remarks = ""
        self.on_lines = False
        self._tag = re.compile(rf"<(?P<slash>/?)(?P<name>{'|'.join(TAGS)})-{tag_number(passage)}>")
        self._tags = [f"<{slash}{name}-{tag_number(passage)}>" for name in TAGS for slash in ("", "/")]
        self._begins_with_break = bool(_LINE_BREAK.match(passage.selected))
        self._place: _Place = "beginning"
        self._before_echo: _Place = "beginning"
        self._echo = ""  # the name of what is echoed
        self._blanks: list[str] = []  # those that the reply begins with
        self._after_tag = False  # a line break that comes now goes
        self._held = ""

    def feed(self, text: str) -> str:
        self._held += text
        shown = self._without_tags()
        certain = self._certain()
        shown += self._pass(self._held[:certain])
        self._held = self._held[certain:]
        return shown

    def flush(self) -> str:
        shown = self._pass(self._held)
        self.alone = self.alone and self._place != "echo"
        return shown + "".join(self._blanks)

    def _without_tags(self) -> str:
        shown = ""
        while tag := self._tag.search(self._held):
            before, self._held = self._pass(self._held[: tag.start()]), self._held[tag.end() :]
            ends = self.on_lines and self._place == "selection" and tag[0].startswith("</selection")
            shown += _LAST_LINE_BREAK.sub("", before) if ends else before
            self._meet(tag["name"], closing=bool(tag["slash"]))
        return shown

    def _certain(self) -> int:
        """How much of what is held can be no part of a tag, and no line break that goes with one."""
        at = self._held.rfind("<")
        if at < 0 or not any(tag.startswith(self._held[at:]) for tag in self._tags):
            at = len(self._held)
        if self.on_lines or self._after_tag:
            found = _MAY_BE_LINE_BREAK.search(self._held, 0, at)
            at = found.start() if found else at
        return at

    def _pass(self, text: str) -> str:
        if self._after_tag and text:
            found = _LINE_BREAK.match(text)
            self.on_lines = self.on_lines or bool(found and self._place == "selection")
            text, self._after_tag = text[found.end() if found else 0 :], False
        match self._place:
            case "beginning":
                self._blanks.append(text)
                if not text.strip():
                    return ""
                blanks, self._blanks = self._blanks, []
                self._place = "text"
                return "".join(blanks)
            case "text" | "selection":
                return text
            case "echo":
                return ""
            case "remarks":
                self.remarks += text
                return ""

    def _meet(self, name: str, *, closing: bool) -> None:
        self._after_tag = True
        if self._place == "echo":
            if closing and name == self._echo:
                self._place = self._before_echo
        elif name != "selection":
            if not closing and self._place != "remarks":
                self._before_echo, self._place, self._echo = self._place, "echo", name
        elif closing:
            self._place, self._blanks = "remarks", []
        elif self._place == "beginning":
            self._place, self._blanks = "selection", []
            self._after_tag = not self._begins_with_break
        else:
            self.alone = False
