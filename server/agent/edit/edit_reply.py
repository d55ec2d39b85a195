"""What of a model's reply to an edit is document text, while it streams in. Pure.

A reply passes the stages of this table in order; each removes what is no document text:

| stage | removes | unless |
|---|---|---|
| `_without_thinking` | `<think>…</think>` at the beginning, blanks after it (rule 1) | the selection begins so |
| `_EchoedTags` | echoed tags of the prompt and the context in them (rules 2 to 4) | - |
| `_with_line_ends` | line breaks other than those of the artifact (rule 5) | - |
| `_without_fence` | a code fence around the reply, and a preamble before it (rules 6 to 12) | it may be text |
| `_without_mark` | the mark that stands for a deletion (rule 13) | more text follows |
| `_with_ends` | line breaks at the end, or adds them (rules 14 to 17) | - |

Thinking:

Rule 1: a reply that begins with a tag of `THINKING`, in any case, after blanks or not, begins with thinking, up to the
        closing tag. If that never comes, all of the reply is thinking. The tag begins within `HEAD` characters.

Echoed tags. Their number occurs nowhere in what the model was shown, so they are never text:

Rule 2: what is between `<selection-1>` and `</selection-1>` is the reply; what follows is a remark. Only blanks may
        precede it: after anything else nobody can tell which is the passage.
Rule 3: the echo of anything else that was shown (before, after, request, outline) is removed whole.
Rule 4: a tag is removed with the line break after it, and if `<selection-1>` had one, `</selection-1>` with the one
        before it. But if the selection itself begins with a line break, the one after `<selection-1>` is text.

Rule 5: if all lines of the artifact end in "\\r\\n", so do those of the reply.

The fence:

Rule 6: a reply that begins with a fence (3 or more ` or ~, with or without an info string, after blanks) is wrapped in
        it. The fence is removed, with the line break before the closing one.
Rule 7: it is text where it may well be: in Markdown, outside of a fenced block, if its info string names something
        other than Markdown or plain text; and if the selection itself begins with a fence. Then a wrapper is what
        precedes another fence directly, if it is of Markdown or plain text or, bare, longer than the selection's.
Rule 8: within the wrapper a fence with an info string opens another one, and a bare one closes the newest that it
        can. A line indented by more than 3 columns beyond the wrapper is no fence.
Rule 9: in Markdown, outside of a fenced block, a reply that begins with a bare fence is held back to its end. It is
        wrapped if nothing but blanks follows the closing fence; otherwise all of it is text.
Rule 10: any other wrapper that is never closed is removed all the same. What follows the closing fence is a remark.
Rule 11: in code, one or two lines that each begin with a capital letter and end like a sentence are a preamble ("Here
        you go:") if a wrapper follows, and are removed with it, unless the selection has them or they are in a string.
Rule 12: of any other preamble nobody can tell whether it is text. If a reply begins with sentences and a wrapper
        follows (in prose one of Markdown that ends with the reply), and the selection has no fence, the model has not
        returned the passage alone.

The ends:

Rule 13: if all that is left is `EditPrompt.deletion_mark`, the selection is deleted whole, its line break included. A
        reply without text is no answer. Blanks are text.
Rule 14: a reply that replaces a selection which ended in a line break ends in the same one; otherwise its line breaks
        at the very end are removed, unless there is nothing else in it.
Rule 15: an insertion beside lines (`on_own_lines`) has lines of its own. Before them, or after a line break, it ends in
        a line break; after them it begins with one, and one at its very end is removed. A missing one is added.
Rule 16: any other insertion stays as it is. But a fence hides whether its text ends in a line break: if one was
        removed, and the insertion begins a line on which more text follows, a line break is added.
Rule 17: to nothing nothing is added.

Law: the joined results of `feed` and `flush` do not depend on how the reply is cut. No more than `HEAD` characters are
held back at the beginning, and after it no more than a line that may be a fence, but for rules 1 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, Literal

from a2a_canvas.server.agent.edit.edit_prompt import TAGS, on_own_lines
from a2a_canvas.server.agent.model import EditPrompt
from a2a_canvas.server.agent.text.language import is_markdown, is_prose
from a2a_canvas.server.agent.text.markdown import FENCE_LINE, Fence, first_fence, has_fence
from a2a_canvas.server.agent.text.visible import THINKING

HEAD: Final = FENCE_LINE
"""Characters at the beginning of a reply within which thinking, a preamble and a wrapper begin, or never."""

Stage = Generator[str, str | None, str]
"""Is sent the pieces of a reply, and None at its end; yields what is certain, and returns the rest."""

_LINE_BREAK: Final = re.compile(r"\r?\n")
_LAST_LINE_BREAK: Final = re.compile(r"\r?\n\Z")


@dataclass(slots=True)
class _Findings:
    """What the stages have found; complete when the reply has ended."""

    alone: bool = True
    remarks: str = ""
    remarks_after_tags: str = ""
    wrapped: bool = False
    closed: bool = False
    deletes: bool = False


class EditReply:
    """Takes a reply in pieces, and returns the document text in it.

    Args:
        prompt: the edit that the model was asked for.
        inside_fence: whether the selection is in a fenced block, by the whole text before it.
    """

    def __init__(self, prompt: EditPrompt, *, inside_fence: bool) -> None:
        self._found = _Findings()
        self._stages = (
            _without_thinking(prompt, self._found),
            _EchoedTags(prompt, self._found).stage(),
            _with_line_ends(prompt),
            _without_fence(_FenceRules.of(prompt, inside_fence), self._found),
            _without_mark(prompt, self._found),
            _with_ends(prompt, self._found),
        )
        self._written = False
        for stage in self._stages:
            next(stage)

    @property
    def remarks(self) -> str:
        """What the model said after its text, without the blanks around it; known after `flush`."""
        return "\n\n".join(filter(None, (self._found.remarks.strip(), self._found.remarks_after_tags.strip())))

    @property
    def alone(self) -> bool:
        """Whether the model returned the passage alone, as far as can be told; known after `flush`."""
        return self._found.alone and not has_fence(self.remarks)

    @property
    def empty(self) -> bool:
        """Whether there is neither text nor the mark of a deletion; known after `flush`."""
        return not self._written and not self._found.deletes

    def feed(self, delta: str) -> str:
        """The text that is certain once `delta` has come."""
        for stage in self._stages:
            delta = stage.send(delta)
        self._written = self._written or bool(delta)
        return delta

    def flush(self) -> str:
        """The rest of the text. Nothing may come after it."""
        text = ""
        for stage in self._stages:
            text = _last(stage, stage.send(text))
        self._written = self._written or bool(text)
        return text


def _last(stage: Stage, text: str) -> str:
    """`text` and the rest of what the stage has."""
    try:
        stage.send(None)
    except StopIteration as end:
        rest: str = end.value
        return text + rest
    raise AssertionError("a stage returns at the end")


def _passed(text: str) -> Stage:
    """Everything as it comes, after `text`."""
    while (piece := (yield text)) is not None:
        text = piece
    return ""


# ----------------------------------------------------------------------- thinking

_THINKING_BEGINS: Final = re.compile(rf"[ \t\r\n]*<(?P<tag>{'|'.join(THINKING)})>", re.IGNORECASE | re.ASCII)
_THINKING_TAGS: Final = tuple(f"<{name}>" for name in THINKING)
_BLANKS: Final = " \t\r\n"
_BLANK_LINES: Final = r"(?:[ \t]*\r?\n)*"
_REST_OF_LINE: Final = re.compile(rf"[ \t]*(?:\r?\n{_BLANK_LINES})?")


def _without_thinking(prompt: EditPrompt, found: _Findings) -> Stage:
    held, opening = "", None
    while opening is None:
        begun = held.lstrip(_BLANKS).lower()
        may_begin = len(held) <= HEAD and any(tag.startswith(begun) for tag in _THINKING_TAGS)
        if not may_begin or _THINKING_BEGINS.match(prompt.selected):
            return (yield from _passed(held))
        if (piece := (yield "")) is None:
            return held
        held += piece
        opening = _THINKING_BEGINS.match(held, 0, HEAD)
    held, closing = held[opening.end() :], re.compile(f"</{opening['tag']}>", re.IGNORECASE | re.ASCII)
    while (end := closing.search(held)) is None:
        held = held[-HEAD:]
        if (piece := (yield "")) is None:
            found.alone = False
            return ""
        held += piece
    held = held[end.end() :]
    while not held.strip(_BLANKS):
        if (piece := (yield "")) is None:
            return _REST_OF_LINE.sub("", held, count=1)
        held += piece
    return (yield from _passed(_REST_OF_LINE.sub("", held, count=1)))


# -------------------------------------------------------------------- echoed tags

_ECHOES: Final = frozenset(TAGS) - {"selection"}
_MAY_BE_LINE_BREAK: Final = re.compile(r"\r?\n?\Z")


class _EchoedTags:
    """Rules 2 to 4. `_on_lines`: whether the passage had tags on lines of their own."""

    def __init__(self, prompt: EditPrompt, found: _Findings) -> None:
        self._found = found
        number = prompt.tag_number
        self._tag = re.compile(rf"<(?P<slash>/?)(?P<name>{'|'.join(TAGS)})-{number}>")
        self._tags = [f"<{slash}{name}-{number}>" for name in TAGS for slash in ("", "/")]
        self._begins_with_break = bool(_LINE_BREAK.match(prompt.selected))
        self._place = self._before_echo = "beginning"  # then "text", "selection", "remarks", or the name of an echo
        self._blanks: list[str] = []  # those that the reply begins with
        self._after_tag = False  # a line break that comes now goes
        self._on_lines = False

    def stage(self) -> Stage:
        held = shown = ""
        while (piece := (yield shown)) is not None:
            held, shown = held + piece, ""
            while tag := self._tag.search(held):
                before = self._pass(held[: tag.start()])
                ends = self._on_lines and self._place == "selection" and tag[0].startswith("</selection")
                shown += _LAST_LINE_BREAK.sub("", before) if ends else before
                held = held[tag.end() :]
                self._meet(tag["name"], closing=bool(tag["slash"]))
            certain = self._certain(held)
            shown, held = shown + self._pass(held[:certain]), held[certain:]
        shown = self._pass(held)
        self._found.alone &= self._place not in _ECHOES
        self._found.wrapped |= self._on_lines
        return shown + "".join(self._blanks)

    def _certain(self, held: str) -> int:
        """How much can be no part of a tag, and no line break that goes with one."""
        at = held.rfind("<")
        if at < 0 or not any(tag.startswith(held[at:]) for tag in self._tags):
            at = len(held)
        if self._on_lines or self._after_tag:
            found = _MAY_BE_LINE_BREAK.search(held, 0, at)
            at = found.start() if found else at
        return at

    def _pass(self, text: str) -> str:
        if self._after_tag and text:
            found = _LINE_BREAK.match(text)
            self._on_lines = self._on_lines or bool(found and self._place == "selection")
            text, self._after_tag = text[found.end() if found else 0 :], False
        match self._place:
            case "beginning":
                self._blanks.append(text)
                if not text.strip():
                    return ""
                text, self._blanks, self._place = "".join(self._blanks), [], "text"
                return text
            case "text" | "selection":
                return text
            case "remarks":
                self._found.remarks_after_tags += text
        return ""

    def _meet(self, name: str, *, closing: bool) -> None:
        self._after_tag = True
        if self._place in _ECHOES:
            if closing and name == self._place:
                self._place = self._before_echo
        elif name != "selection":
            if not closing and self._place != "remarks":
                self._before_echo, self._place = self._place, name
        elif closing:
            self._place, self._blanks = "remarks", []
        elif self._place == "beginning":
            self._place, self._blanks = "selection", []
            self._after_tag = not self._begins_with_break
        else:
            self._found.alone = False


# -------------------------------------------------------------------- line breaks

_BARE: Final = re.compile(r"(?<!\r)\n")


def _with_line_ends(prompt: EditPrompt) -> Stage:
    """Rule 5. No piece that it yields ends in "\\r": "\\n" may follow."""
    text = held = ""
    while (piece := (yield text)) is not None:
        text = held + piece
        held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r")
        text = _BARE.sub("\r\n", text) if prompt.line_end == "\r\n" else text
    return held


# ---------------------------------------------------------------------- the fence

_OPENING: Final = re.compile(rf"{_BLANK_LINES}(?P<line>[ \t]*(?:`{{3,}}[^`\n]*|~{{3,}}[^\n]*))\n")
_BLOCK: Final = re.compile(rf"{_BLANK_LINES}[ \t]*(?:```|~~~)")
_MAY_BE_BLOCK: Final = re.compile(r"[ \t\r\n]*(?:`{0,2}|~{0,2})")
_SENTENCE: Final = rf"[^\s`~][^\n]*[.:!][ \t]*\r?\n{_BLANK_LINES}"
_CAPITAL: Final = r"(?![a-z\W\d_])"  # or a letter of a script that has none
_SENTENCES: Final = re.compile(rf"{_BLANK_LINES}(?P<said>(?:{_SENTENCE})+)")
_PREAMBLE: Final = re.compile(rf"{_BLANK_LINES}(?P<said>(?:{_CAPITAL}{_SENTENCE}){{1,2}})")
_MAY_BE_PREAMBLE: Final = re.compile(rf"{_BLANK_LINES}(?:{_CAPITAL}{_SENTENCE}){{0,2}}(?:{_CAPITAL}[^\n]+)?")
_QUOTES: Final = ('"""', "'''")
_STRINGS: Final = re.compile(r"\"\"\"|'''|/\*|<!--")
_MAY_BE_FENCE: Final = re.compile(r"[ \t\r\n]*(?:`{0,2}|`{3,}[^`\n]*|~{0,2}|~{3,}[^\n]*)")
_LINES: Final = re.compile(r"(?P<text>[^\n]*?)(?P<end>\r?\n)|(?P<rest>[^\n]+)")
_OF_TEXT: Final = ("markdown", "md", "text")


@dataclass(frozen=True, slots=True)
class _FenceRules:
    """Which fences at the beginning of a reply are wrappers (rules 7 and 9), and what sentences before one are.

    Attributes:
        of_text: only those of Markdown and plain text are wrappers.
        block: the fence that the selection begins with.
        preamble: that of code or of prose (rules 11 and 12), or text.
        lines: those of the selection.
    """

    of_text: bool = False
    block: Fence | None = None
    preamble: Literal["code", "prose", "text"] = "text"
    lines: frozenset[str] = frozenset()

    @classmethod
    def of(cls, prompt: EditPrompt, inside_fence: bool) -> _FenceRules:
        in_string = any(prompt.before.count(quotes) % 2 for quotes in _QUOTES)
        preamble: Literal["code", "prose"] = "prose" if is_prose(prompt.language) and not inside_fence else "code"
        return cls(
            is_markdown(prompt.language) and not inside_fence,
            first_fence(prompt.selected),
            "text" if in_string or has_fence(prompt.selected) else preamble,
            frozenset(line.strip() for line in prompt.selected.split("\n")) - {""},
        )

    def opening(self, head: str) -> re.Match[str] | Literal["undecided"] | None:
        """The opening of the wrapper in the beginning of a reply."""
        said = self._preamble(head)
        opening = _OPENING.match(head, said)
        if opening and opening.end() <= HEAD:
            wraps = self._wraps(_fence(opening), head[opening.end() :])
            if wraps:
                return opening
            undecided = wraps is None
        else:
            undecided = bool(_MAY_BE_FENCE.fullmatch(head, said)) or (
                self.preamble == "code" and bool(_MAY_BE_PREAMBLE.fullmatch(head))
            )
        return "undecided" if undecided and len(head) <= HEAD else None

    def holds(self, fence: Fence) -> bool:
        """Whether the whole reply decides (rule 9)."""
        return self.of_text and not self.block and not fence.info

    def begins_with_talk(self, reply: str) -> bool:
        """Rule 12."""
        found = _SENTENCES.match(reply[:HEAD])
        opening = _OPENING.match(reply, found.end()) if found else None
        fence = _fence(opening) if opening else None
        if self.preamble == "text" or not (found and opening and fence and self._is_talk(found["said"])):
            return False
        if self.preamble == "code":
            return True
        return fence.info.casefold().startswith(_OF_TEXT) and _unwrapped(reply[opening.start() :]) is not None

    def _wraps(self, fence: Fence | None, rest: str) -> bool | None:
        """Whether the fence that a reply begins with is a wrapper; None if that cannot be told yet."""
        if fence is None:
            return False
        names_text = fence.language in _OF_TEXT
        block = self.block
        if block is None:
            return not self.of_text or names_text or not fence.language
        longer = not fence.language and (fence.mark != block.mark or fence.size > block.size)
        if not (names_text or longer):
            return False
        return None if _MAY_BE_BLOCK.fullmatch(rest) else bool(_BLOCK.match(rest))

    def _preamble(self, head: str) -> int:
        """The length of the preamble that is removed (rule 11)."""
        found = _PREAMBLE.match(head[:HEAD]) if self.preamble == "code" else None
        return found.end() if found and self._is_talk(found["said"]) else 0

    def _is_talk(self, said: str) -> bool:
        return not _STRINGS.search(said) and self.lines.isdisjoint(line.strip() for line in said.split("\n"))


def _without_fence(rules: _FenceRules, found: _Findings) -> Stage:
    reply: list[str] = []
    head, opening = "", rules.opening("")
    while opening == "undecided" and (piece := (yield "")) is not None:
        head += piece
        opening = rules.opening(head)
    if opening == "undecided":  # the reply has ended
        found.alone &= not rules.begins_with_talk(head)
        return head
    fence = _fence(opening) if opening else None
    if opening and fence and not rules.holds(fence):
        return (yield from _in_wrapper(fence, head[opening.end() :], found))
    text = "" if opening else head
    reply.append(head)
    while (piece := (yield text)) is not None:
        reply.append(piece)
        text = "" if opening else piece
    whole = "".join(reply)
    if not opening:
        found.alone &= not rules.begins_with_talk(whole)
        return ""
    unwrapped = _unwrapped(whole)
    found.wrapped |= unwrapped is not None
    return whole if unwrapped is None else unwrapped


def _in_wrapper(wrapper: Fence, text: str | None, found: _Findings) -> Stage:
    """What comes after the opening fence (rules 8 and 10)."""
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
            said = part["text"] or part["rest"] or ""
            if line is not None:
                said, line = line + said, line + said
                if len(line) <= FENCE_LINE and _MAY_BE_FENCE.fullmatch(line):
                    said = ""
                else:
                    line = None
            if said:
                shown, line_break = shown + line_break + said, ""
            if part["end"]:
                if line is None or not _closes(line, opened):
                    shown += line_break + (line or "")
                line, line_break = "", part["end"]
        text = yield shown
    found.closed = not opened or _closes(line or "", opened)
    return "" if found.closed else line_break + (line or "")


def _closes(line: str, opened: list[Fence]) -> bool:
    """Whether the line closes the wrapper, the first of `opened`; what it opens or closes within is noted."""
    fence = Fence.read(line)
    if fence is None or fence.indent > opened[0].indent + 3:
        return False
    if fence.info:
        opened.append(fence)
    elif fence.closes(opened[-1]):
        opened.pop()
    return not opened


def _unwrapped(reply: str) -> str | None:
    """A whole reply without its wrapper; None if it does not end with one."""
    opening = _FenceRules().opening(reply)
    fence = _fence(opening) if isinstance(opening, re.Match) else None
    if not (isinstance(opening, re.Match) and fence):
        return None
    found = _Findings()
    stage = _in_wrapper(fence, reply[opening.end() :], found)
    text = _last(stage, next(stage))
    return text if found.closed and not found.remarks.strip() else None


def _fence(opening: re.Match[str]) -> Fence | None:
    return Fence.read(opening["line"])


# ----------------------------------------------------------------------- the ends


def _without_mark(prompt: EditPrompt, found: _Findings) -> Stage:
    """Rule 13."""
    mark, held = prompt.deletion_mark if _replaces(prompt) else "", ""
    while mark and len(held) <= HEAD and mark.startswith(_bare(held)):
        if (piece := (yield "")) is None:
            found.deletes = _bare(held) == mark
            return "" if found.deletes else held
        held += piece
    return (yield from _passed(held))


def _bare(text: str) -> str:
    return "".join(text.split()).casefold()


def _with_ends(prompt: EditPrompt, found: _Findings) -> Stage:
    """Rules 14 to 17. Holds back the line breaks at the end."""
    begin = prompt.line_end if _begins_on_new_line(prompt) else ""
    text, held, written, begun = "", "", False, False
    while (piece := (yield text)) is not None:
        text = ""
        if begin and piece:
            line_break = _LINE_BREAK.match(piece)
            text, piece = (line_break[0], piece[line_break.end() :]) if line_break else (begin, piece)
            begin, written = "", True
        body = piece.rstrip("\r\n")
        if body:
            text, held, begun = text + held + body, "", True
        held += piece[len(body) :]
    if not (written or begun or held):
        return ""
    return _end(prompt, held, begun, found)


def _end(prompt: EditPrompt, held: str, begun: bool, found: _Findings) -> str:
    """The end of a text, whose last line breaks are `held`; `begun`: whether anything precedes them."""
    if _replaces(prompt):
        if last := _LAST_LINE_BREAK.search(prompt.selected):
            return _LAST_LINE_BREAK.sub("", held) + last[0]
        return _without_line_breaks(held) if begun else held
    if _begins_on_new_line(prompt):
        return _LAST_LINE_BREAK.sub("", held)
    if on_own_lines(prompt):
        return held if held.endswith("\n") else held + prompt.line_end
    return held + (prompt.line_end if found.wrapped and _begins_line(prompt) else "")


def _replaces(prompt: EditPrompt) -> bool:
    return prompt.strategy == "replace" and bool(prompt.selected)


def _begins_on_new_line(prompt: EditPrompt) -> bool:
    return on_own_lines(prompt) and prompt.strategy == "insert_after" and not prompt.selected.endswith("\n")


def _begins_line(prompt: EditPrompt) -> bool:
    """Whether an insertion comes between a line's beginning and the text of that line."""
    left, right = prompt.before, prompt.selected + prompt.after
    if prompt.strategy == "insert_after":
        left, right = prompt.before + prompt.selected, prompt.after
    return (not left or left.endswith("\n")) and bool(right) and not right.startswith(("\n", "\r\n"))


def _without_line_breaks(text: str) -> str:
    at = len(text)
    while text.endswith("\n", 0, at):
        at -= 2 if text.endswith("\r\n", 0, at) else 1
    return text[:at]
