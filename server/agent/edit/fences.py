"""The code fence that a model puts around its reply, taken off while the reply streams in. Pure.

Rule 1: a reply that begins with a fence (3 or more ` or ~, with or without an info string; blanks and blank lines
        before it do not count) is wrapped in it. The fence is taken off, with the line break before the closing one.
Rule 2: but it is text where it may well be: in Markdown, outside of a fenced block, if its info string names something
        other than Markdown or plain text; and if the selection itself begins with a fence. Then a wrapper is what
        stands right before another fence, if it is of Markdown or plain text or, bare, longer than the selection's.
Rule 3: within the wrapper a fence with an info string opens another one, and a bare one of the same character, at least
        as long, closes the newest that is open. A line indented by more than 3 columns beyond the wrapper is no fence.
Rule 4: in Markdown, outside of a fenced block, a reply that begins with a bare fence is held back to its end. If
        nothing but blanks follows what closes the fence, it is a wrapper; else the reply stands as it is, all of it.
Rule 5: any other wrapper that is never closed is taken off all the same, and all that follows is text.
Rule 6: what follows the closing fence is no document text. If it is not blank it is kept apart, as `remarks`.
Rule 7: in code, up to two lines that each begin with a capital letter and end like a sentence are a preamble ("Here you
        go:") if a wrapper follows, and go with it, unless they are of the selection or it stands in a string.
Rule 8: of any other preamble, and in a text of any, nobody can tell whether it is text. If a reply that begins with
        sentences has a wrapper next (in prose one of Markdown that ends with the reply), and the selection has no
        fence, the model has not returned the passage alone.
Rule 9: a fence stands within the first `FENCE_LINE` characters of its line or, for the first, of the reply. So no more
        than that is ever held back, but for rule 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from a2a_canvas.server.agent.language import is_markdown, is_prose
from a2a_canvas.server.agent.model import EditPrompt

FENCE_LINE: Final = 256
"""Characters within which a fence must stand."""

_FENCE: Final = re.compile(r"(?P<indent>[ \t]*)(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)")
_OPENING: Final = re.compile(r"(?:[ \t]*\r?\n)*(?P<line>[ \t]*(?:`{3,}[^`\n]*|~{3,}[^\n]*))\n")
_BLOCK: Final = re.compile(r"(?:[ \t]*\r?\n)*[ \t]*(?:```|~~~)")
_MAY_BE_BLOCK: Final = re.compile(r"[ \t\r\n]*(?:`{0,2}|~{0,2})")
_BLANK_LINES: Final = r"(?:[ \t]*\r?\n)*"
_SENTENCE: Final = rf"[^\s`~][^\n]*[.:!][ \t]*\r?\n{_BLANK_LINES}"
_CAPITAL: Final = r"(?![a-z\W\d_])"  # or a letter of a script that has none
_SENTENCES: Final = re.compile(rf"{_BLANK_LINES}(?P<said>(?:{_SENTENCE})+)")
_PREAMBLE: Final = re.compile(rf"{_BLANK_LINES}(?P<said>(?:{_CAPITAL}{_SENTENCE}){{1,2}})")
_MAY_BE_PREAMBLE: Final = re.compile(rf"{_BLANK_LINES}(?:{_CAPITAL}{_SENTENCE}){{0,2}}(?:{_CAPITAL}[^\n]+)?")
_QUOTES: Final = ('"""', "'''")
_STRINGS: Final = re.compile(r"\"\"\"|'''|/\*|<!--")
_MAY_BE_FENCE: Final = re.compile(r"[ \t\r\n]*(?:`{0,2}|`{3,}[^`\n]*|~{0,2}|~{3,}[^\n]*)")
_LINES: Final = re.compile(r"(?P<text>[^\n]*?)(?P<end>\r?\n)|(?P<rest>[^\n]+)")
_FENCE_LINES: Final = re.compile(r"^[ \t]*(?:```|~~~).*", re.MULTILINE)
_OF_MARKDOWN: Final = ("markdown", "md", "text")


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str
    size: int
    info: str
    indent: int

    @classmethod
    def read(cls, line: str) -> _Fence | None:
        """The fence that a line is."""
        found = _FENCE.fullmatch(line)
        if found is None or len(line) > FENCE_LINE:
            return None
        mark, info = found["run"][0], found["info"].strip()
        if mark == "`" and mark in info:
            return None
        return cls(mark, len(found["run"]), info, len(found["indent"].expandtabs(4)))

    def closes(self, other: _Fence) -> bool:
        return not self.info and self.mark == other.mark and self.size >= other.size


def inside_fence(before: str) -> bool:
    """Whether what follows `before` in a Markdown text stands in a fenced block. Fences in lists count, too."""
    opened: _Fence | None = None
    for line in _FENCE_LINES.findall(before):
        opened = _opened(opened, line)
    return opened is not None


def outside_fences(text: str, line: str) -> Iterator[re.Match[str]]:
    """The lines of a Markdown text that match the pattern `line` and stand outside of fenced blocks."""
    opened: _Fence | None = None
    for found in re.finditer(rf"{_FENCE_LINES.pattern}|{line}", text, re.MULTILINE):
        before, opened = opened, _opened(opened, found[0])
        if not before and not opened:
            yield found


def _opened(opened: _Fence | None, line: str) -> _Fence | None:
    """The fence that is open after `line`."""
    fence = _Fence.read(line)
    if opened is None or fence is None:
        return opened or fence
    return None if fence.closes(opened) else opened


Wrappers = Literal["any", "of text", "of a block"]
"""Which fences at the beginning of a reply are wrappers (rules 2 and 4)."""

Talk = Literal["code", "prose", "text"]
"""What sentences before a fence are: a preamble of code or of prose (rules 7 and 8), or text."""


def wrappers(passage: EditPrompt, *, inside_fence: bool) -> Wrappers:
    """Which fences are wrappers in the reply to a passage."""
    if _first_fence(passage.selected):
        return "of a block"
    return "of text" if is_markdown(passage.language) and not inside_fence else "any"


def talk(passage: EditPrompt, *, inside_fence: bool) -> Talk:
    """What sentences before a fence are in the reply to a passage."""
    in_string = any(passage.before.count(quotes) % 2 for quotes in _QUOTES)
    if has_fence(passage.selected) or in_string:
        return "text"
    return "prose" if is_prose(passage.language) and not inside_fence else "code"


def has_fence(text: str) -> bool:
    """Whether a line of a text is a fence."""
    return any(_Fence.read(line) for line in text.split("\n"))


def _first_fence(text: str) -> _Fence | None:
    """The fence that a text begins with."""
    return _Fence.read(text.lstrip(" \t\r\n").partition("\n")[0])


class Fences:
    """Takes the wrapper off. No "\\r" may come at the end of a piece but at the very end.

    Attributes:
        remarks: what the model said after its text; known after `flush`.
        alone: whether no preamble is left that may be text (rule 8); known after `flush`.
    """

    def __init__(self, wrappers: Wrappers, talk: Talk = "text", selected: str = "") -> None:
        self.remarks = ""
        self.alone = True
        self._wrappers = wrappers
        self._talk = talk
        self._block = _first_fence(selected)
        self._lines = {line.strip() for line in selected.split("\n")} - {""}
        self._place: Literal["beginning", "wrapper", "text", "remarks", "held"] = "beginning"
        self._reply: list[str] = []  # all of it
        self._open: list[_Fence] = []  # the wrapper first
        self._end = ""  # the line break before the current line, if that may be a fence
        self._line: str | None = ""  # the current line, for as long as it may be one

    @property
    def wrapped(self) -> bool:
        """Whether the reply was in a wrapper; known after `flush`."""
        return bool(self._place in ("wrapper", "remarks"))

    @property
    def closed(self) -> bool:
        """Whether the wrapper was closed, and nothing but blanks followed; known after `flush`."""
        return bool(self._place == "remarks" and not self.remarks.strip())

    def feed(self, text: str) -> str:
        self._reply.append(text)
        return self._feed(text)

    def _feed(self, text: str) -> str:
        match self._place:
            case "beginning":
                return self._begin(text)
            case "wrapper":
                return "".join(self._unwrapped(text))
            case "text":
                return text
            case "held":
                return ""
            case "remarks":
                self.remarks += text
                return ""

    def flush(self) -> str:
        reply = "".join(self._reply)
        if self._place == "held":
            return self._whole(reply)
        line, self._line = self._line or "", ""
        if self._place != "wrapper":
            self.alone = self._place == "remarks" or not self._begins_with_talk(reply)
            return line
        if not self._closes(line):
            return self._end + line
        self._place = "remarks"
        return ""

    def _whole(self, reply: str) -> str:
        text, closed = _unwrapped(reply)
        self._place = "remarks" if closed else "text"
        return text if closed else reply

    def _begin(self, text: str) -> str:
        reply = (self._line or "") + text
        said = self._preamble(reply)
        opening = _OPENING.match(reply, said)
        if opening and opening.end() <= FENCE_LINE:
            wraps = self._wraps(_Fence.read(opening["line"]), reply[opening.end() :])
            if wraps:
                return self._open_wrapper(opening, reply)
            undecided = wraps is None
        else:
            undecided = len(reply) <= FENCE_LINE and self._may_begin(reply, said)
        if undecided and len(reply) <= FENCE_LINE:
            self._line = reply
            return ""
        self._place, self._line = "text", ""
        return reply

    def _wraps(self, fence: _Fence | None, rest: str) -> bool | None:
        """Whether a fence that the reply begins with is a wrapper; None if that cannot be told yet."""
        if fence is None:
            return False
        language = fence.info.casefold().split()[:1]
        of_text = bool(language) and language[0] in _OF_MARKDOWN
        if self._wrappers != "of a block":
            return self._wrappers == "any" or not language or of_text
        block = self._block
        longer = block is not None and not language and (fence.mark != block.mark or fence.size > block.size)
        if not (of_text or longer):
            return False
        return None if _MAY_BE_BLOCK.fullmatch(rest) else bool(_BLOCK.match(rest))

    def _preamble(self, reply: str) -> int:
        """The length of the preamble that is taken off (rule 7)."""
        found = _PREAMBLE.match(reply[:FENCE_LINE]) if self._talk == "code" else None
        return found.end() if found and self._is_talk(found["said"]) else 0

    def _may_begin(self, reply: str, said: int) -> bool:
        """Whether a reply may still become a fence, with a preamble or without one."""
        return bool(_MAY_BE_FENCE.fullmatch(reply, said)) or (
            self._talk == "code" and bool(_MAY_BE_PREAMBLE.fullmatch(reply))
        )

    def _is_talk(self, said: str) -> bool:
        return not _STRINGS.search(said) and self._lines.isdisjoint(line.strip() for line in said.split("\n"))

    def _begins_with_talk(self, reply: str) -> bool:
        """Rule 8."""
        found = _SENTENCES.match(reply[:FENCE_LINE])
        opening = _OPENING.match(reply, found.end()) if found else None
        fence = _Fence.read(opening["line"]) if opening else None
        if self._talk == "text" or not (found and opening and fence and self._is_talk(found["said"])):
            return False
        if self._talk == "code":
            return True
        return fence.info.casefold().startswith(_OF_MARKDOWN) and _unwrapped(reply[opening.start() :])[1]

    def _open_wrapper(self, opening: re.Match[str], reply: str) -> str:
        fence = _Fence.read(opening["line"])
        assert fence
        self._line = ""
        if self._wrappers == "of text" and not fence.info:
            self._place = "held"
            return ""
        self._place, self._open = "wrapper", [fence]
        return self._feed(reply[opening.end() :])

    def _unwrapped(self, text: str) -> Iterator[str]:
        for piece in _LINES.finditer(text):
            if self._place == "remarks":
                self.remarks += piece[0]
            elif piece["end"]:
                yield self._go_on(piece["text"]) + self._end_line(piece["end"])
            else:
                yield self._go_on(piece["rest"])

    def _go_on(self, text: str) -> str:
        if self._line is not None:
            self._line += text
            if len(self._line) <= FENCE_LINE and _MAY_BE_FENCE.fullmatch(self._line):
                return ""
            text, self._line = self._line, None
        elif not text:
            return ""
        held, self._end = self._end, ""
        return held + text

    def _end_line(self, end: str) -> str:
        line = self._line
        if line is not None and self._closes(line):
            self._place, self._line, self._end = "remarks", "", ""
            return ""
        text = self._end + (line or "")
        self._line, self._end = "", end
        return text

    def _closes(self, line: str) -> bool:
        """Whether the line closes the wrapper; what it opens or closes within is remembered."""
        fence = _Fence.read(line)
        if fence is None or fence.indent > self._open[0].indent + 3:
            return False
        if fence.info:
            self._open.append(fence)
        elif fence.closes(self._open[-1]):
            self._open.pop()
        return not self._open


def _unwrapped(reply: str) -> tuple[str, bool]:
    """A whole reply without its wrapper, and whether that was closed, with nothing but blanks behind."""
    fences = Fences("any")
    text = fences.feed(reply) + fences.flush()
    return text, fences.closed
