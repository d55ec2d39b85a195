"""What the rehearsal model makes of a selection. English key words only; the same edit gives the same text, everywhere.

Rule 1: the first row of `_REPLACING` that applies decides what takes the selection's place, `_INSERTING` what is put
        beside it. What is quoted is no key word.
Rule 2: what is not understood changes the text visibly all the same: it is marked with the instruction.
Rule 3: line breaks at the selection's end stay as they are; what is inserted gets the line breaks or blanks it needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from a2a_canvas.server.agent.model import EditPrompt
from a2a_canvas.server.agent.models.rehearsal.commands import (
    AddCommand,
    DraftCommand,
    ReplaceCommand,
    read_command,
    unquoted,
)
from a2a_canvas.server.agent.models.rehearsal.outlines import capital, section, substituted
from a2a_canvas.server.agent.text.language import is_markdown

QUOTED: Final = re.compile(r'"([^"]*)"|“([^”]*)”|(?<!\w)\'([^\']*)\'(?!\w)|‘([^’]*)’|`([^`]*)`|«([^»]*)»')
_IT: Final = re.compile(
    r"(?:all(?: of)? )?(?:it|this|that|these|everything"
    r"|(?:(?:the|this|that|these|those) )?(?:whole )?"
    r"(?:selection|selected \w+|text|passage|word|words|line|lines|sentence|paragraph|section|code|here))(?: here)?",
    re.IGNORECASE,
)
_TURN: Final = re.compile(
    r"\b(?:change|rename|turn|rewrite|make)\s+(?P<old>.+?)\s+(?:to|into|as|say)\s+(?P<new>.+)", re.I
)
_DELETE: Final = re.compile(r"\b(?:delete|remove|drop|erase)\b\s*(?P<what>.*)", re.IGNORECASE)
_NOISE: Final = re.compile(r"^(?:the )?(?:words?|text|phrase|line)\s+(?=\S)", re.IGNORECASE)
_END: Final = re.compile(r"[.!?](?=\s|$)|\n|,?\s+please\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=\S)")
_DEF: Final = re.compile(r"^([ \t]*(?:export +)?)(?=(?:def|function|fn)\b)", re.MULTILINE)

_LANGUAGES: Final = {
    "#": "python ruby shell perl r elixir yaml toml makefile dockerfile graphql",
    "--": "sql lua haskell",
    "//": "javascript typescript java kotlin scala go rust c cpp csharp swift php",
}
_COMMENT: Final = {language: mark for mark, languages in _LANGUAGES.items() for language in languages.split()}


def edited(passage: EditPrompt) -> str:
    """What a model would reply to the passage; empty if the selection is to be deleted."""
    if passage.strategy == "replace" and passage.selected:
        return _replaced(passage)
    return _inserted(passage)


_Edit = Callable[[EditPrompt], str | None]
"""The new text of a selection without the line breaks at its end, or None if the row does not apply after all."""


def _replaced(passage: EditPrompt) -> str:
    text = passage.selected.rstrip("\r\n")
    ends = passage.selected[len(text) :]
    unquoted = QUOTED.sub("", passage.instruction)
    for words, edit in _REPLACING:
        if words.search(unquoted) and (new := edit(replace(passage, selected=text))) is not None:
            return new and new + ends
    return _marked(passage, text) + ends


def _substitute(passage: EditPrompt) -> str | None:
    """Replace A by B, rename A to B."""
    command = read_command(passage.instruction)
    if isinstance(command, ReplaceCommand):
        new = command.new if _IT.fullmatch(command.place.strip()) else command.new_without_place
        return _put(passage, command.old, new)
    turn = _TURN.search(passage.instruction)
    if turn is None or _IT.fullmatch(turn["old"]):
        return None
    return _put(passage, _bare(turn["old"]), _bare(turn["new"]))


def _put(passage: EditPrompt, old: str, new: str) -> str | None:
    if _IT.fullmatch(old) and old.casefold() not in passage.selected.casefold():
        return new
    text, count = substituted(passage.selected, old, new)
    return text if count else None


def _turn(passage: EditPrompt) -> str | None:
    """Change it to B."""
    turn = _TURN.search(passage.instruction)
    return _bare(turn["new"]) if turn and _IT.fullmatch(turn["old"]) else None


def _delete(passage: EditPrompt) -> str | None:
    """Delete it, remove the word A."""
    found = _DELETE.search(passage.instruction)
    what = _bare(found["what"]) if found else ""
    if not what or _IT.fullmatch(what):
        return ""
    words = re.escape(_NOISE.sub("", what))
    text, count = re.subn(rf"(?<!\S){words} | ?{words}", "", passage.selected, flags=re.IGNORECASE)
    return text if count else None


def _comment(passage: EditPrompt) -> str | None:
    """Comment out, or put a quoted comment above."""
    mark = _COMMENT.get(passage.language)
    quoted = _quoted(passage.instruction)
    if mark is None or (quoted is None and not re.search(r"\bout\b", passage.instruction, re.IGNORECASE)):
        return None
    if quoted is not None:
        return f"{_indent(passage.selected)}{mark} {quoted}\n{passage.selected}"
    return re.sub(r"^([ \t]*)(?=\S)", rf"\g<1>{mark} ", passage.selected, flags=re.MULTILINE)


def _async(passage: EditPrompt) -> str | None:
    text, count = _DEF.subn(r"\1async ", passage.selected)
    return text if count else None


def _sorted(passage: EditPrompt) -> str:
    backwards = re.search(r"\b(?:backwards?|descending|revers\w+)\b", passage.instruction, re.IGNORECASE)
    line_end = _line_end(passage.selected)
    return line_end.join(sorted(passage.selected.split(line_end), reverse=bool(backwards)))


def _shorter(passage: EditPrompt) -> str | None:
    """The first sentence; of one sentence or none, the first half of its lines or words."""
    indent = _indent(passage.selected)
    text = passage.selected[len(indent) :]
    first, *others = _SENTENCE.split(text)
    if others:
        return indent + first
    joint = _line_end(text) if "\n" in text else " "
    pieces = text.split(joint)
    half = joint.join(pieces[: (len(pieces) + 1) // 2])
    return indent + half.rstrip(" ,;:") if half != text else None


def _longer(passage: EditPrompt) -> str:
    text, mark = passage.selected, _COMMENT.get(passage.language)
    if mark:
        return f"{text}\n{_indent(text)}{mark} More could be done here."
    if text.rstrip()[-1:] in (".", "!", "?"):
        return f"{text} It is worth saying who is affected, and why, with an example."
    return f"{text}: what it means, who is affected, and an example"


def _added(passage: EditPrompt) -> str | None:
    quoted = _quoted(passage.instruction)
    if quoted is None:
        return None
    by_lines = "\n" in passage.selected or passage.language in _COMMENT
    return f"{passage.selected}\n{_indent(passage.selected)}{quoted}" if by_lines else f"{passage.selected} {quoted}"


def _marked(passage: EditPrompt, text: str) -> str:
    remark = ": ".join(filter(None, ("edited", " ".join(passage.instruction.split())[:80])))
    mark = _COMMENT.get(passage.language)
    note = f"{mark} {remark}" if mark else f"({remark})"
    return f"{text}{'  ' if mark else ' '}{note}" if text else note


def _row(words: str, edit: _Edit) -> tuple[re.Pattern[str], _Edit]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE), edit


_REPLACING: Final[Sequence[tuple[re.Pattern[str], _Edit]]] = (
    _row(r"replace|change|rename|turn|rewrite", _substitute),
    _row(r"upper[ -]?case|capitals", lambda passage: passage.selected.upper()),
    _row(r"lower[ -]?case", lambda passage: passage.selected.lower()),
    _row(
        r"title[ -]?case", lambda passage: re.sub(r"[^\W\d_][\w'’]*", lambda word: capital(word[0]), passage.selected)
    ),
    _row(r"async|asynchronous", _async),
    _row(r"sort|sorted|alphabetical|alphabetically", _sorted),
    _row(r"comments?", _comment),
    _row(r"short|shorter|shorten|condense|summari[sz]e|brief|briefer|concise", _shorter),
    _row(r"longer|lengthen|more detail|detailed|expand|elaborate|extend", _longer),
    _row(r"change|turn|rewrite|make", _turn),
    _row(r"delete|remove|drop|erase", _delete),
    _row(r"add|append|insert", _added),
    (re.compile(""), lambda passage: _quoted(passage.instruction)),
)


def _inserted(passage: EditPrompt) -> str:
    """The new text, separated from its neighbours: lines by line breaks, words by blanks."""
    new, left, right = _new(passage), passage.before, passage.selected + passage.after
    if passage.strategy == "insert_after":
        left, right = passage.before + passage.selected, passage.after
    line = left.rpartition("\n")[2]
    ends_line = right.startswith(("\n", "\r\n"))
    if not line:
        return _indent(passage.selected or right) + new + ("" if ends_line else "\n")
    if ends_line or not right:
        return f"\n{_indent(line)}{new}"
    return ("" if left[-1].isspace() else " ") + new + ("" if right[0].isspace() else " ")


def _new(passage: EditPrompt) -> str:
    quoted = _quoted(passage.instruction)
    if quoted is not None:
        return quoted
    command = read_command(passage.instruction)
    if isinstance(command, AddCommand | DraftCommand) and is_markdown(passage.language):
        return section(command.topic).strip("\n")
    return _marked(passage, "")


def _quoted(text: str) -> str | None:
    """The text in the last quotation marks."""
    found = list(QUOTED.finditer(text))
    return unquoted(found[-1]) if found else None


def _bare(words: str) -> str:
    """What is quoted, else the words without the end of their sentence."""
    quoted = QUOTED.match(words)
    return unquoted(quoted) if quoted else _END.split(words, maxsplit=1)[0].strip()


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]
