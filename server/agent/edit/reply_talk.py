"""The sentence with which a model announces its reply to an edit, removed while the reply streams in. Pure.

Rule 1: a first line that ends in a colon and announces the revised version (text, passage…) is not
        document text: "Sure! Here's the revised version:". It is removed with the blank lines after it.
Rule 2: it stays where it may be text: if the selection begins with such a word, if it is in a string of code, or,
        without an interjection before it, if nothing is replaced.
Rule 3: if nothing follows it, the model has not returned the passage.
"""

from __future__ import annotations

import re
from typing import Final

from a2a_canvas.server.agent.edit.reply_fence import BLANK_LINES, HEAD, ReplyFindings, Stage
from a2a_canvas.server.agent.model import EditPrompt

_INTERJECTION: Final = r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|no problem|got it)[!,.]*[ \t]+"
_ANNOUNCED: Final = (
    r"here(?:['’]s| is| are) (?:the|your|an?) (?:[\w-]+[ \t]+){0,3}?"
    r"(?:version|text|passage|paragraph|sentence|selection|rewrite|translation|edit)\b[^\n]{0,80}:[ \t]*\r?\n"
)
_CHANGED: Final = (
    r"(?=[^\n]*\b(?:revised|re-?written|reworded|edited|updated|shorte\w+|longer|expanded|simpl\w+|improved|corrected"
    r"|fixed|polished|translat\w+)\b)"
)
_OPENERS: Final = (
    *("sure", "certainly", "of course", "absolutely", "okay", "ok", "no problem", "got it"),
    *("here's", "here’s", "here is", "here are"),
)


class TalkRules:
    """Recognises an announcement in a reply to an edit."""

    def __init__(self, prompt: EditPrompt) -> None:
        replaces = prompt.strategy == "replace" and bool(prompt.selected)
        opener = rf"{_INTERJECTION}|{_CHANGED}" if replaces else _INTERJECTION
        self._talk = re.compile(rf"{BLANK_LINES}[ \t]*(?:{opener}){_ANNOUNCED}", re.IGNORECASE)
        begins = prompt.selected.lstrip().casefold().startswith(_OPENERS)
        self.none = begins or any(prompt.before.count(quotes) % 2 for quotes in ('"""', "'''"))

    def end(self, head: str) -> int | None:
        """The end of the announcement at the start of a reply: 0 if there is none, None while one may still follow."""
        if found := self._talk.match(head):
            return found.end()
        line = head.lstrip().casefold()
        may_begin = any(each.startswith(line) or line.startswith(each) for each in _OPENERS)
        return None if may_begin and "\n" not in line and len(head) <= HEAD else 0


def without_talk(rules: TalkRules, found: ReplyFindings) -> Stage:
    head, end = "", 0 if rules.none else None
    while end is None:
        if (piece := (yield "")) is None:
            return head
        head += piece
        end = rules.end(head)
    text = head[end:]
    while end and not text.strip():  # the blank lines after it
        if (piece := (yield "")) is None:
            found.alone = False
            return ""
        text += piece
    text = re.sub(rf"\A{BLANK_LINES}", "", text) if end else text
    while (piece := (yield text)) is not None:
        text = piece
    return ""
