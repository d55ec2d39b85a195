"""The code fence that a model puts around its reply to an edit, removed while the reply streams in. Pure.

Rule 1: a reply that begins with a fence (3 or more ` or ~, with or without an info string, after blanks) is wrapped in
        it. The fence is removed, with the line break before the closing one.
Rule 2: it is text where that is plausible: in Markdown, outside a fenced block, if its info string names something
        other than Markdown or plain text; and if the selection itself begins with a fence. Then a wrapper is what
        precedes another fence directly, if it is of Markdown or plain text or, bare, longer than the selection's.
Rule 3: within the wrapper a fence with an info string opens another one, and a bare one closes the newest that it
        can. A line indented by more than 3 columns beyond the wrapper is not a fence.
Rule 4: in Markdown, outside of a fenced block, a reply that begins with a bare fence is held back to its end. It is
        wrapped if nothing but blanks follows the closing fence; otherwise all of it is text.
Rule 5: any other wrapper is removed even if it is never closed. What follows the closing fence is a remark.
Rule 6: in code, one or two lines that each begin with a capital letter and end like a sentence are a preamble ("Here
        you go:") if a wrapper follows, and are removed with it, unless the selection has them or they are in a string.
Rule 7: any other preamble may be text. If a reply begins with sentences and a wrapper
        follows (in prose one of Markdown that ends with the reply), and the selection has no fence, the model has not
        returned the passage alone.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from a2a_canvas.server.agent.model import EditPrompt
from a2a_canvas.server.agent.text.file_language import is_markdown, is_prose
from a2a_canvas.server.agent.text.markdown_code import FENCE_LINE, Fence, first_fence, has_fence

HEAD: Final = FENCE_LINE
"""Characters at the beginning of a reply within which thinking, a preamble and a wrapper begin, or never."""

Stage = Generator[str, str | None, str]
"""Is sent the pieces of a reply, and None at its end; yields what is certain, and returns the rest."""

BLANK_LINES: Final = r"(?:[ \t]*\r?\n)*"


@dataclass(slots=True)
class ReplyFindings:
    """What the stages have found; complete when the reply has ended."""

    alone: bool = True
    remarks: str = ""
    remarks_after_tags: str = ""
    wrapped: bool = False
    closed: bool = False
    deletes: bool = False


def finish(stage: Stage, text: str) -> str:
    """`text` and the rest of what the stage has."""
    try:
        stage.send(None)
    except StopIteration as end:
        rest: str = end.value
        return text + rest
    raise AssertionError("a stage returns at the end")


_OPENING: Final = re.compile(rf"{BLANK_LINES}(?P<line>[ \t]*(?:`{{3,}}[^`\n]*|~{{3,}}[^\n]*))\n")
_BLOCK: Final = re.compile(rf"{BLANK_LINES}[ \t]*(?:```|~~~)")
_MAY_BE_BLOCK: Final = re.compile(r"[ \t\r\n]*(?:`{0,2}|~{0,2})")
_SENTENCE: Final = rf"[^\s`~][^\n]*[.:!][ \t]*\r?\n{BLANK_LINES}"
_CAPITAL: Final = r"(?![a-z\W\d_])"  # or a letter of a script that has none
_SENTENCES: Final = re.compile(rf"{BLANK_LINES}(?P<talk>(?:{_SENTENCE})+)")
_PREAMBLE: Final = re.compile(rf"{BLANK_LINES}(?P<talk>(?:{_CAPITAL}{_SENTENCE}){{1,2}})")
_MAY_BE_PREAMBLE: Final = re.compile(rf"{BLANK_LINES}(?:{_CAPITAL}{_SENTENCE}){{0,2}}(?:{_CAPITAL}[^\n]+)?")
_QUOTES: Final = ('"""', "'''")
_STRINGS: Final = re.compile(r"\"\"\"|'''|/\*|<!--")
_MAY_BE_FENCE: Final = re.compile(r"[ \t\r\n]*(?:`{0,2}|`{3,}[^`\n]*|~{0,2}|~{3,}[^\n]*)")
_LINES: Final = re.compile(r"(?P<text>[^\n]*?)(?P<end>\r?\n)|(?P<rest>[^\n]+)")
_OF_TEXT: Final = ("markdown", "md", "text")


class Opening(NamedTuple):
    """The opening fence of a wrapper, and the offset of the text in it."""

    fence: Fence
    end: int


def _opening(text: str, at: int) -> Opening | None:
    found = _OPENING.match(text, at)
    fence = Fence.read(found["line"]) if found else None
    return Opening(fence, found.end()) if found and fence else None


@dataclass(frozen=True, slots=True)
class FenceRules:
    """Which fences at the beginning of a reply are wrappers (rules 2 and 4), and what sentences before one are.

    Attributes:
        of_text: only those of Markdown and plain text are wrappers.
        block: the fence that the selection begins with.
        preamble: that of code or of prose (rules 6 and 7), or text.
        lines: those of the selection.
    """

    of_text: bool = False
    block: Fence | None = None
    preamble: Literal["code", "prose", "text"] = "text"
    lines: frozenset[str] = frozenset()

    @classmethod
    def for_prompt(cls, prompt: EditPrompt, inside_fence: bool) -> FenceRules:
        in_string = any(prompt.before.count(quotes) % 2 for quotes in _QUOTES)
        preamble: Literal["code", "prose"] = "prose" if is_prose(prompt.language) and not inside_fence else "code"
        return cls(
            is_markdown(prompt.language) and not inside_fence,
            first_fence(prompt.selected),
            "text" if in_string or has_fence(prompt.selected) else preamble,
            frozenset(line.strip() for line in prompt.selected.split("\n")) - {""},
        )

    def opening(self, head: str) -> Opening | Literal["undecided"] | None:
        """The opening of the wrapper in the beginning of a reply."""
        preamble_end = self._preamble(head)
        opening = _opening(head, preamble_end)
        if opening and opening.end <= HEAD:
            wraps = self._wraps(opening.fence, head[opening.end :])
            if wraps:
                return opening
            undecided = wraps is None
        else:
            undecided = bool(_MAY_BE_FENCE.fullmatch(head, preamble_end)) or (
                self.preamble == "code" and bool(_MAY_BE_PREAMBLE.fullmatch(head))
            )
        return "undecided" if undecided and len(head) <= HEAD else None

    def holds(self, fence: Fence) -> bool:
        """Whether the whole reply must be read before deciding (rule 4)."""
        return self.of_text and not self.block and not fence.info

    def begins_with_talk(self, reply: str) -> bool:
        """Rule 7."""
        found = _SENTENCES.match(reply[:HEAD])
        opening = _opening(reply, found.end()) if found else None
        if self.preamble == "text" or not (found and opening and self._is_talk(found["talk"])):
            return False
        if self.preamble == "code":
            return True
        return opening.fence.info.casefold().startswith(_OF_TEXT) and _unwrap(reply[found.end() :]) is not None

    def _wraps(self, fence: Fence, rest: str) -> bool | None:
        """Whether the fence at the start of a reply is a wrapper; None if that is still undecided."""
        names_text = fence.language in _OF_TEXT
        block = self.block
        if block is None:
            return not self.of_text or names_text or not fence.language
        longer = not fence.language and (fence.mark != block.mark or fence.size > block.size)
        if not (names_text or longer):
            return False
        return None if _MAY_BE_BLOCK.fullmatch(rest) else bool(_BLOCK.match(rest))

    def _preamble(self, head: str) -> int:
        """The length of the preamble that is removed (rule 6)."""
        found = _PREAMBLE.match(head[:HEAD]) if self.preamble == "code" else None
        return found.end() if found and self._is_talk(found["talk"]) else 0

    def _is_talk(self, text: str) -> bool:
        return not _STRINGS.search(text) and self.lines.isdisjoint(line.strip() for line in text.split("\n"))


def without_fence(rules: FenceRules, found: ReplyFindings) -> Stage:
    head, opening = "", rules.opening("")
    while opening == "undecided" and (piece := (yield "")) is not None:
        head += piece
        opening = rules.opening(head)
    if opening == "undecided":  # the reply has ended
        found.alone &= not rules.begins_with_talk(head)
        return head
    if opening and not rules.holds(opening.fence):
        return (yield from _in_wrapper(opening.fence, head[opening.end :], found))
    text = "" if opening else head
    reply = [head]
    while (piece := (yield text)) is not None:
        reply.append(piece)
        text = "" if opening else piece
    whole = "".join(reply)
    if not opening:
        found.alone &= not rules.begins_with_talk(whole)
        return ""
    unwrapped = _unwrap(whole)
    found.wrapped |= unwrapped is not None
    return whole if unwrapped is None else unwrapped


def _in_wrapper(wrapper: Fence, text: str | None, found: ReplyFindings) -> Stage:
    """The text after the opening fence (rules 3 and 5)."""
    found.wrapped = True
    opened = [wrapper]
    line: str | None = ""  # the current line, while it may be a fence
    line_break = ""  # the one before it
    while text is not None:
        shown = ""
        for part in _LINES.finditer(text):
            if not opened:
                found.remarks += part[0]
                continue
            text = part["text"] or part["rest"] or ""
            if line is not None:
                text, line = line + text, line + text
                if len(line) <= FENCE_LINE and _MAY_BE_FENCE.fullmatch(line):
                    text = ""
                else:
                    line = None
            if text:
                shown, line_break = shown + line_break + text, ""
            if part["end"]:
                if line is None or not _closes(line, opened):
                    shown += line_break + (line or "")
                line, line_break = "", part["end"]
        text = yield shown
    found.closed = not opened or _closes(line or "", opened)
    return "" if found.closed else line_break + (line or "")


def _closes(line: str, opened: list[Fence]) -> bool:
    """Whether the line closes the wrapper, the first of `opened`; updates `opened`."""
    fence = Fence.read(line)
    if fence is None or fence.indent > opened[0].indent + 3:
        return False
    if fence.info:
        opened.append(fence)
    elif fence.closes(opened[-1]):
        opened.pop()
    return not opened


def _unwrap(reply: str) -> str | None:
    """A whole reply without its wrapper; None if it does not end with one."""
    opening = FenceRules().opening(reply)
    if not isinstance(opening, Opening):
        return None
    found = ReplyFindings()
    stage = _in_wrapper(opening.fence, reply[opening.end :], found)
    text = finish(stage, next(stage))
    return text if found.closed and not found.remarks.strip() else None
