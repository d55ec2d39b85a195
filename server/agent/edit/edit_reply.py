"""Extracts the document text from a model's reply to an edit, while it streams in. Pure.

A reply passes the stages of this table in order; each removes something that is not document text:

| stage | removes | unless |
|---|---|---|
| `without_thinking` | `<think>…</think>` at the beginning, blanks after it (rule 1) | the selection begins so |
| `_EchoedTags` | echoed tags of the prompt and the context in them (rules 2 to 4) | - |
| `_with_line_ends` | line breaks other than those of the artifact (rule 5) | - |
| `without_talk` | "Here is the revised version:" (`reply_talk.py`) | it may be text |
| `without_fence` | a code fence around the reply, and a preamble before it (`reply_fence.py`) | it may be text |
| `_without_mark` | the mark of a deletion (rule 6) | more text follows |
| `_with_ends` | line breaks at the end, or adds them (rules 7 to 10) | - |

Thinking:

Rule 1: a reply that begins with a tag of `THINKING`, in any case, after blanks or not, begins with thinking, up to the
        closing tag. If that never comes, all of the reply is thinking. The tag begins within `HEAD` characters.

Echoed tags. Their number occurs nowhere in what the model was shown, so they are never text:

Rule 2: what is between `<selection-1>` and `</selection-1>` is the reply; what follows is a remark. Only blanks may
        precede it: after anything else the passage is ambiguous.
Rule 3: the echo of anything else that was shown (before, after, request, outline) is removed whole.
Rule 4: a tag is removed with the line break after it, and if `<selection-1>` had one, `</selection-1>` with the one
        before it. But if the selection itself begins with a line break, the one after `<selection-1>` is text.

Rule 5: if all lines of the artifact end in "\\r\\n", so do those of the reply.

The ends:

Rule 6: if all that is left is `EditPrompt.deletion_mark`, the selection is deleted whole, its line break included. A
        reply without text is not an answer. Blanks are text.
Rule 7: a reply that replaces a selection which ended in a line break ends in the same one; otherwise its line breaks
        at the very end are removed, unless there is nothing else in it.
Rule 8: an insertion next to lines (`on_own_lines`) is on separate lines. Before them, or after a line break, it ends in
        a line break; after them it begins with one, and one at its very end is removed. A missing one is added.
Rule 9: any other insertion stays as it is. But a fence hides whether its text ends in a line break: if one was
        removed, and the insertion begins a line on which more text follows, a line break is added.
Rule 10: nothing is added to an empty text.

Invariant: the joined results of `feed` and `finish` do not depend on how the reply is cut. No more than `HEAD`
characters are held back at the beginning, and after it no more than a line that may be a fence, except by rule 1 and
by rule 4 of the fence.
"""

from __future__ import annotations

import re
from typing import Final

from a2a_canvas.server.agent.edit.edit_prompt import TAGS, on_own_lines
from a2a_canvas.server.agent.edit.reply_fence import (
    BLANK_LINES,
    HEAD,
    FenceRules,
    ReplyFindings,
    Stage,
    finish,
    without_fence,
)
from a2a_canvas.server.agent.edit.reply_talk import TalkRules, without_talk
from a2a_canvas.server.agent.model import EditPrompt
from a2a_canvas.server.agent.text.markdown_code import has_fence
from a2a_canvas.server.agent.text.visible import THINKING

_LINE_BREAK: Final = re.compile(r"\r?\n")
_LAST_LINE_BREAK: Final = re.compile(r"\r?\n\Z")


class EditReply:
    """Reads a reply in pieces and returns the document text in it.

    Args:
        prompt: the edit that the model was asked for.
        inside_fence: whether the selection is in a fenced block, by the whole text before it.
    """

    def __init__(self, prompt: EditPrompt, *, inside_fence: bool) -> None:
        self._found = ReplyFindings()
        self._stages = (
            without_thinking(prompt, self._found),
            _EchoedTags(prompt, self._found).stage(),
            _with_line_ends(prompt),
            without_talk(TalkRules(prompt), self._found),
            without_fence(FenceRules.for_prompt(prompt, inside_fence), self._found),
            _without_mark(prompt, self._found),
            _with_ends(prompt, self._found),
        )
        self._written = False
        for stage in self._stages:
            next(stage)

    @property
    def remarks(self) -> str:
        """What the model wrote after its text, stripped; available after `finish`."""
        return "\n\n".join(filter(None, (self._found.remarks.strip(), self._found.remarks_after_tags.strip())))

    @property
    def alone(self) -> bool:
        """Whether the model returned only the passage, as far as can be determined; available after `finish`."""
        return self._found.alone and not has_fence(self.remarks)

    @property
    def empty(self) -> bool:
        """Whether there is neither text nor the mark of a deletion; available after `finish`."""
        return not self._written and not self._found.deletes

    def feed(self, delta: str) -> str:
        """The text that is final after `delta`."""
        for stage in self._stages:
            delta = stage.send(delta)
        self._written = self._written or bool(delta)
        return delta

    def finish(self) -> str:
        """The rest of the text. Nothing may be fed after it."""
        text = ""
        for stage in self._stages:
            text = finish(stage, stage.send(text))
        self._written = self._written or bool(text)
        return text


def _pass_through(text: str) -> Stage:
    """Pass `text` and everything after it through unchanged."""
    while (piece := (yield text)) is not None:
        text = piece
    return ""


_THINKING_BEGINS: Final = re.compile(rf"[ \t\r\n]*<(?P<tag>{'|'.join(THINKING)})>", re.IGNORECASE | re.ASCII)
_THINKING_TAGS: Final = tuple(f"<{name}>" for name in THINKING)
_BLANKS: Final = " \t\r\n"
_REST_OF_LINE: Final = re.compile(rf"[ \t]*(?:\r?\n{BLANK_LINES})?")


def without_thinking(prompt: EditPrompt, found: ReplyFindings) -> Stage:
    """Rule 1."""
    held, opening = "", None
    while opening is None:
        begun = held.lstrip(_BLANKS).lower()
        may_begin = len(held) <= HEAD and any(tag.startswith(begun) for tag in _THINKING_TAGS)
        if not may_begin or _THINKING_BEGINS.match(prompt.selected):
            return (yield from _pass_through(held))
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
    return (yield from _pass_through(_REST_OF_LINE.sub("", held, count=1)))


_ECHOES: Final = frozenset(TAGS) - {"selection"}
_MAY_BE_LINE_BREAK: Final = re.compile(r"\r?\n?\Z")


class _EchoedTags:
    """Rules 2 to 4. `_on_lines`: whether the tags of the passage were on separate lines."""

    def __init__(self, prompt: EditPrompt, found: ReplyFindings) -> None:
        self._found = found
        number = prompt.tag_number
        self._tag = re.compile(rf"<(?P<slash>/?)(?P<name>{'|'.join(TAGS)})-{number}>")
        self._tags = [f"<{slash}{name}-{number}>" for name in TAGS for slash in ("", "/")]
        self._begins_with_break = bool(_LINE_BREAK.match(prompt.selected))
        self._place = self._before_echo = "beginning"  # then "text", "selection", "remarks", or the name of an echo
        self._blanks: list[str] = []  # those at the start of the reply
        self._after_tag = False  # a line break that comes now is removed
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
            certain = self._certain_length(held)
            shown, held = shown + self._pass(held[:certain]), held[certain:]
        shown = self._pass(held)
        self._found.alone &= self._place not in _ECHOES
        self._found.wrapped |= self._on_lines
        return shown + "".join(self._blanks)

    def _certain_length(self, held: str) -> int:
        """The length that is certainly not part of a tag, nor of a line break removed with one."""
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


def _without_mark(prompt: EditPrompt, found: ReplyFindings) -> Stage:
    """Rule 6."""
    mark, held = prompt.deletion_mark if _replaces(prompt) else "", ""
    while mark and len(held) <= HEAD and mark.startswith(_fold_mark(held)):
        if (piece := (yield "")) is None:
            found.deletes = _fold_mark(held) == mark
            return "" if found.deletes else held
        held += piece
    return (yield from _pass_through(held))


def _fold_mark(text: str) -> str:
    return "".join(text.split()).casefold()


def _with_ends(prompt: EditPrompt, found: ReplyFindings) -> Stage:
    """Rules 7 to 10. Holds back the line breaks at the end."""
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


def _end(prompt: EditPrompt, held: str, begun: bool, found: ReplyFindings) -> str:
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
