"""What the rehearsal model writes: outlines in Markdown. The same topic gives the same text, everywhere."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from a2a_canvas.server.agent.model import ModelText, ToolUse
from a2a_canvas.server.agent.models.playback import AssistantBlock
from a2a_canvas.server.agent.models.rehearsal.conversation_state import name_of

_SECTIONS = (
    ("What it is", ("{topic} in one plain sentence", "What belongs to it, and what does not", "A first example")),
    ("Why it matters", ("Who meets {topic}, and when", "What it changes for them")),
    ("How it began", ("The first traces of {topic}", "Turning points", "What was believed then")),
    ("How it works", ("The parts and what each does", "How the parts work together", "Where the limits are")),
    ("In practice", ("A small case from start to end", "Common mistakes", "A check list")),
    ("Opinions", ("What speaks for {topic}", "What speaks against it", "What is still open")),
    ("Numbers", ("Three figures worth knowing", "How they were found")),
    ("What comes next", ("A question that {topic} leaves open", "Where to read on")),
)


def outline(topic: str) -> str:
    """A titled Markdown outline: an introduction and four or five sections with bullet points."""
    seed = _seed(topic)
    count = 4 + seed % 2
    skipped = seed // 2 % (len(_SECTIONS) - 2)
    middle = [section for number, section in enumerate(_SECTIONS[1:-1]) if number != skipped]
    chosen = (_SECTIONS[0], *middle[: count - 2], _SECTIONS[-1])
    body = "\n".join(_section(title, points, topic) for title, points in chosen)
    return f"# {capital(topic)}\n\nThis outline leads through {topic}.\n\n{body}"


def section(topic: str) -> str:
    """A section to be added to a text, with the blank line before it."""
    _, points = _SECTIONS[1 + _seed(topic) % (len(_SECTIONS) - 2)]
    return "\n" + _section(capital(topic), points, topic)


def slug(topic: str) -> str:
    """An artifact id made from the topic: lower-case letters, digits and hyphens, at most 48 of them."""
    plain = unicodedata.normalize("NFKD", topic).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.lower())[:48].strip("-")
    return words or f"document-{_seed(topic) % 16**6:06x}"


def capital(text: str) -> str:
    """`text` with its first letter upper-case."""
    return text[:1].upper() + text[1:]


def substituted(text: str, old: str, new: str) -> tuple[str, int]:
    """`text` with `new` for `old` in upper and lower case; a capital first letter stays one. And how often."""

    def put(found: re.Match[str]) -> str:
        return capital(new) if found[0][:1].isupper() else new

    return re.subn(re.escape(old), put, text, flags=re.IGNORECASE)


_SEEN_BY_THE_OTHER = {
    "i": "you",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "am": "are",
    "i was": "you were",
    "was i": "were you",
}
_FIRST_PERSON = re.compile(rf"\b(?:{'|'.join(sorted(_SEEN_BY_THE_OTHER, key=len, reverse=True))})\b", re.IGNORECASE)


def addressed(text: str) -> str:
    """What somebody says of themselves, said to them: "my name" becomes "your name"."""
    return _FIRST_PERSON.sub(lambda found: _SEEN_BY_THE_OTHER[found[0].casefold()], text)


def _section(title: str, points: tuple[str, ...], topic: str) -> str:
    bullets = "".join(f"- {capital(point.replace('{topic}', topic))}\n" for point in points)
    return f"## {title}\n\n{bullets}"


def _seed(topic: str) -> int:
    return int.from_bytes(hashlib.sha256(topic.encode("utf-8", "replace")).digest()[:8], "big")


def say(text: str) -> tuple[AssistantBlock, ...]:
    """The last words of a turn."""
    return (ModelText(text),)


def call(name: str, **given: Any) -> ToolUse:
    """A call of a tool, its input in this order."""
    return ToolUse("", name, given)


def listing() -> tuple[AssistantBlock, ...]:
    """A look at the documents, which comes first where one is needed."""
    return ModelText("Let me see which documents there are."), call("artifact_list")


def reading(entry: Mapping[str, Any]) -> tuple[AssistantBlock, ...]:
    """A look at a document, by its entry in the list."""
    return ModelText(f"I am reading “{name_of(entry)}”."), call("artifact_read", artifact_id=entry["artifact_id"])
