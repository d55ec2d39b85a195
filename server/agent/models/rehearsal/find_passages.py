"""Passages that a message names in words: "the second paragraph", "the last line". English key words only. Pure.

Rule 1: a message asks for an edit of a passage if it begins a clause with what to do ("make", "shorten", "delete"…; to
        "add" something, if that is quoted) and names the first, second, third or last paragraph or line in the same
        sentence, unless another command comes before. What is quoted is no key word.
Rule 2: a line is a line, blank or not. A paragraph is a run of lines that are not blank; headings of Markdown are no
        part of any. The line breaks that follow belong to either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from a2a_canvas.server.agent.models.rehearsal.commands import CLAUSE, COMMAND
from a2a_canvas.server.agent.models.rehearsal.editing import QUOTED
from a2a_canvas.store.text.spans import Span

_WHICH: Final = {"first": 0, "second": 1, "third": 2, "last": -1}
_VERBS: Final = (
    r"make|turn|change|rewrite|rephrase|edit|improve|fix|translate|shorten|condense|summari[sz]e|lengthen|expand"
    r"|elaborate|extend|delete|remove|drop|erase|sort|put|set|capitali[sz]e|rename|replace|comment"
    r"|(?:add|append|insert)(?=\s+[\"“'‘`«])"
)
_EDIT: Final = re.compile(
    rf"{CLAUSE}(?P<verb>{_VERBS})\b(?:[^.!?\n]|[.!?](?=\S)){{0,200}}?"
    rf"(?P<passage>\b(?:the\s+)?(?P<which>{'|'.join(_WHICH)})\s+(?P<unit>paragraph|line)\b)",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)|\n")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s|$)")


@dataclass(frozen=True, slots=True)
class PassageEdit:
    """Do `instruction`, in which it is called "it", to a passage; `which` counts from 0, and from -1 backwards.

    Attributes:
        passage: what the message calls it, without an article: "second paragraph".
        message: the whole message.
    """

    which: int
    passage: str
    instruction: str
    message: str


def read_edit(text: str) -> PassageEdit | None:
    """The edit of a passage that `text` asks for."""
    masked = QUOTED.sub(_masked, text)
    found, other = _EDIT.search(masked), COMMAND.search(masked)
    if found is None or (other and other.start("verb") < found.start("verb")):
        return None
    end = _SENTENCE_END.search(masked, found.end())
    instruction = f"{text[found.start('verb') : found.start('passage')]}it{text[found.end() : end and end.start()]}"
    passage = f"{found['which']} {found['unit']}".lower()
    return PassageEdit(_WHICH[found["which"].lower()], passage, instruction, text)


def find(edit: PassageEdit, text: str, *, markdown: bool) -> Span | None:
    """The position of the passage in a document; None if there is none."""
    lines = [Span(line.start(), line.end()) for line in _LINE.finditer(text)]
    spans = lines if edit.passage.endswith("line") else list(_paragraphs(text, lines, markdown))
    return spans[edit.which] if edit.which < len(spans) and spans else None


def _masked(quoted: re.Match[str]) -> str:
    return f"{quoted[0][0]}{'_' * (len(quoted[0]) - 2)}{quoted[0][-1]}"


def _paragraphs(text: str, lines: list[Span], markdown: bool) -> Iterator[Span]:
    begun: Span | None = None
    for line in lines:
        line_text = line.of(text)
        if line_text.strip() and not (markdown and _HEADING.match(line_text)):
            begun = Span(begun.start if begun else line.start, line.end)
        elif begun:
            yield Span(begun.start, len(text) - len(text[begun.end :].lstrip("\r\n")))
            begun = None
    if begun:
        yield begun
