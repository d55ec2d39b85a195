"""What a message asks of the rehearsal model. English key words only.

Rule 1: the first command in the message decides: write (draft, create, compose, outline), add (append),
        replace, undo, ask me, decline (refuse). A command opens a clause, or follows "please", "you", "to", "and"…
Rule 2: what is quoted is taken to the letter; what is not ends with its sentence.
Rule 3: "to NAME" or "in NAME" at the end names a document, if there is one of that name; otherwise it belongs to what
        was asked. That depends on the documents, so a command has both readings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

TOPIC_LENGTH = 80


@dataclass(frozen=True, slots=True)
class DraftCommand:
    """Write a new document."""

    topic: str


@dataclass(frozen=True, slots=True)
class AddCommand:
    """Add a section on `topic`, or the quoted `text`. `before` is what was said before the command."""

    topic: str
    text: str = ""
    place: str = ""
    topic_without_place: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ReplaceCommand:
    """Replace every `old` by `new`."""

    old: str
    new: str
    place: str = ""
    new_without_place: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class UndoCommand:
    """Take back what was done last; `message` is the whole message."""

    message: str


@dataclass(frozen=True, slots=True)
class AskCommand:
    """Ask the user for `what`, or the quoted `question`."""

    what: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class DeclineCommand:
    """Decline the task."""


@dataclass(frozen=True, slots=True)
class NoCommand:
    """Anything else."""


ChatCommand = DraftCommand | AddCommand | ReplaceCommand | UndoCommand | AskCommand | DeclineCommand | NoCommand

CLAUSE = r"(?:^|[.!?;:,\n]|\b(?:please|you|to|and|then|now|just|also|me)\s)\s{0,9}"
"""What comes before a command."""

COMMAND = re.compile(
    rf"{CLAUSE}(?P<verb>write|draft|create|compose|outline|add|append|replace|undo|ask\s+me|decline|refuse)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|\'([^\']*)\'|‘([^’]*)’|`([^`]*)`|«([^»]*)»')
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_BY = re.compile(r"(?<=\s)(?:by|with)\s", re.IGNORECASE)
_ABOUT = re.compile(r"\b(?:about|on|regarding)\s+(?P<topic>.+)", re.IGNORECASE)
_OF = re.compile(r"\b(?:outline|overview|summary|draft|description)\s+of\s+(?P<topic>.+)", re.IGNORECASE)
_LEAD = re.compile(r"(?:me\s)?\s*(?:an?\b|the\b|some\b|more\b|:)?\s*", re.IGNORECASE)
_SECTION = re.compile(r"(?:section|chapter|paragraph|part)s?\b\s*(?:called|titled|named|:)?\s*", re.IGNORECASE)
_SOME_DOCUMENT = re.compile(
    r"it|this|that|(?:(?:the|this|that|my)\s+)?(?:(?:whole|entire)\s+)?(?:end|document|artifact|outline|file|text|draft)",
    re.IGNORECASE,
)


def read_command(text: str) -> ChatCommand:
    """What `text` asks for; `NoCommand` if that is nothing that can be done."""
    command = COMMAND.search(text)
    if command is None:
        return NoCommand()
    before, rest = text[: command.start("verb")], text[command.end("verb") :].strip()
    match command["verb"].casefold().split():
        case ["add" | "append"]:
            return _add(rest, before)
        case ["replace"]:
            return _replace(rest, before)
        case ["undo"]:
            return UndoCommand(text)
        case ["ask", _]:
            quoted = _QUOTED.match(rest.lstrip(": "))
            return AskCommand("", unquoted(quoted)) if quoted else AskCommand(_sentence(rest).lstrip(":, "))
        case ["decline" | "refuse"]:
            return DeclineCommand()
        case _:
            topic = _topic(_sentence(rest))
            return DraftCommand(topic) if topic else NoCommand()


def _add(rest: str, before: str) -> ChatCommand:
    if quoted := _QUOTED.match(rest):
        place = _split_place(_sentence(rest[quoted.end() :]), ("to", "into", "in"))[1]
        return AddCommand("", text=unquoted(quoted), place=place, before=before)
    whole = _sentence(rest)
    head, place = _split_place(whole, ("to", "into", "in"))
    if _SOME_DOCUMENT.fullmatch(place):
        whole, place = head, ""
    topic, whole_topic = _topic(head), _topic(whole)
    return AddCommand(topic or whole_topic, "", place, whole_topic, before) if whole_topic else NoCommand()


def _replace(rest: str, before: str) -> ChatCommand:
    quoted = _QUOTED.match(rest)
    by = _BY.search(rest, quoted.end() if quoted else 0)
    if by is None:
        return NoCommand()
    old = unquoted(quoted) if quoted else rest[: by.start()].strip()
    new, place, whole = _replacement(rest[by.end() :].strip())
    return ReplaceCommand(old, new, place, whole, before) if old else NoCommand()


def _replacement(rest: str) -> tuple[str, str, str]:
    if quoted := _QUOTED.match(rest):
        text = unquoted(quoted)
        return text, _split_place(_sentence(rest[quoted.end() :]), ("in",))[1], text
    whole = _sentence(rest)
    head, place = _split_place(whole, ("in",))
    return (head, "", head) if _SOME_DOCUMENT.fullmatch(place) else (head, place, whole)


def unquoted(quoted: re.Match[str]) -> str:
    """The text in the quotation marks of a match."""
    return quoted[quoted.lastindex or 0]


def _sentence(text: str) -> str:
    return _SENTENCE_END.split(text, maxsplit=1)[0].strip()


def _split_place(text: str, words: Sequence[str]) -> tuple[str, str]:
    """`("milk", "tea.md")` for "milk to tea.md": split at the last of the words."""
    hits = list(re.finditer(rf"(?<!\S)(?:{'|'.join(words)})\s", text, re.IGNORECASE))
    return (text[: hits[-1].start()].strip(), text[hits[-1].end() :].strip()) if hits else (text, "")


def _topic(text: str) -> str:
    about = _ABOUT.search(text) or _OF.search(text)
    found = about["topic"] if about else _SECTION.sub("", _LEAD.sub("", text, count=1), count=1)
    found = re.sub(r",?\s*please$", "", " ".join(found.split()), flags=re.IGNORECASE)
    return found.strip(" \"'“”‘’`«».,:;!?#*")[:TOPIC_LENGTH].strip()
