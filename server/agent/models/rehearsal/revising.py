"""How the rehearsal model edits a passage in conversation: it lists, reads and edits, one call per round. Pure.

Rule 1: the document is the one named, after "in", "of" or "from" or by 's; else the one that the user is looking at;
        else the one changed last. If several are named, it asks which.
Rule 2: it quotes as much context of the passage as makes the quote occur once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from a2a_canvas.server.agent.model import EditPrompt, ModelText
from a2a_canvas.server.agent.models.playback import AssistantBlock
from a2a_canvas.server.agent.models.rehearsal.conversation_state import (
    CompletedCall,
    entries_in,
    entry_of,
    mapping,
    name_of,
    named,
)
from a2a_canvas.server.agent.models.rehearsal.editing import QUOTED, edited
from a2a_canvas.server.agent.models.rehearsal.find_passages import PassageEdit, find
from a2a_canvas.server.agent.models.rehearsal.outlines import call, reading, say
from a2a_canvas.server.agent.text.language import is_markdown, language_of
from a2a_canvas.store.text.spans import Span

_KIND: Final = r"(?:document|file|artifact|text|note|page)"
_DOCUMENT: Final = rf"\s?\b(?:in|of|from)\s+(?:it|(?:the|this|that|my)\s+(?:(?:whole|entire)\s+)?{_KIND})\b"
_Entries = Sequence[Mapping[str, Any]]


def revise(edit: PassageEdit, focus: str, steps: Sequence[CompletedCall]) -> tuple[AssistantBlock, ...]:
    """The next round.

    Args:
        focus: the id of the artifact that the user is looking at; empty for none.
        steps: the calls made so far, of which none failed; the first is `artifact_list`.
    """
    entries, last = entries_in(steps[0].content), steps[-1]
    match last.name:
        case "artifact_list":
            return _choose(edit, focus, entries)
        case "ask_user":
            entry = named(mentioned(edit.message, entries), last.content) or named(entries, last.content)
            return reading(entry) if entry else say(f"I know no document of that name: {last.content[:300]}")
        case "artifact_read":
            return _edit(edit, entries, mapping(last.content))
        case _:
            name = name_of(entry_of(entries, last.input["artifact_id"]) or {})
            return say(f"I have edited the {edit.passage} of “{name}”.")


def _choose(edit: PassageEdit, focus: str, entries: _Entries) -> tuple[AssistantBlock, ...]:
    if not entries:
        return say(f"There is no document yet, so it has no {edit.passage}. Ask me to write one.")
    meant = mentioned(edit.message, entries)
    if len(meant) > 1:
        which = " or ".join(f"“{name}”" for name in _distinct_names(meant))
        return (call("ask_user", question=f"Which document do you mean: {which}?"),)
    return reading(meant[0] if meant else entry_of(entries, focus) or entries[-1])


def _distinct_names(entries: _Entries) -> Iterable[str]:
    names = [name_of(entry) for entry in entries]
    return names if len(set(names)) == len(names) else [str(entry["artifact_id"]) for entry in entries]


def _edit(edit: PassageEdit, entries: _Entries, artifact: Mapping[str, Any]) -> tuple[AssistantBlock, ...]:
    name = name_of(artifact)
    part: Mapping[str, Any] = next((part for part in artifact.get("parts", ()) if part["kind"] == "text"), {})
    text, language = str(part.get("text", "")), language_of(name, part.get("mimeType", ""), part.get("metadata"))
    span = find(edit, text, markdown=is_markdown(language))
    if span is None or not span.of(text).strip():
        return say(f"“{name}” has no {edit.passage}." if span is None else f"The {edit.passage} of “{name}” is blank.")
    instruction = without_mentions(edit.instruction, entries)
    passage = EditPrompt(name, language, "", span.of(text), "", instruction, "replace")
    new = edited(passage)
    if new == passage.selected:
        return say(f"The {edit.passage} of “{name}” is like that already.")
    old_text, new_text = _quoted(text, span, new)
    edit_call = call("artifact_edit", artifact_id=artifact["artifact_id"], old_text=old_text, new_text=new_text)
    return ModelText(f"I am editing the {edit.passage} of “{name}”."), edit_call


def _quoted(text: str, span: Span, new: str) -> tuple[str, str]:
    """The text at `span` and its replacement, both with as much context as makes the first occur once."""
    around = 0
    while True:
        start, end = max(0, span.start - around), span.end + around
        old = text[start:end]
        if text.find(old, text.find(old) + 1) < 0:
            return old, text[start : span.start] + new + text[span.end : end]
        around = 2 * around or 16


def mentioned(text: str, entries: _Entries) -> list[Mapping[str, Any]]:
    """The documents that are named in the text, each once."""
    quotes = [Span(*quote.span()) for quote in QUOTED.finditer(text)]
    hits = [hit for hit in _mention(entries).finditer(text) if not any(q.start <= hit.start() < q.end for q in quotes)]
    labels = re.compile(rf"(?<!\w)(?:{_labels(entries)})(?!\w)", re.IGNORECASE)
    named_labels = [label[0] for hit in hits for label in labels.finditer(hit[0])]
    return [
        entry
        for entry in entries
        if any(re.fullmatch(_labels([entry]), label, re.IGNORECASE) for label in named_labels)
    ]


def without_mentions(text: str, entries: _Entries) -> str:
    """The text without naming the documents, or just "the document", outside of quotation marks."""
    any_of_them = re.compile(rf"{QUOTED.pattern}|(?P<gone>{_mention(entries).pattern}|{_DOCUMENT})", re.IGNORECASE)
    return any_of_them.sub(lambda hit: "" if hit["gone"] is not None else hit[0], text)


def _mention(entries: _Entries) -> re.Pattern[str]:
    label = rf"[\"“'‘`«]?(?:{_labels(entries)})(?!\w)[\"”'’`»]?"
    item = rf"(?:(?:the|my|our|this|that)\s+)?(?:{_KIND}\s+)?{label}(?:\s+{_KIND}\b)?"
    several = rf"{item}(?:\s+(?:and|or)\s+(?:(?:in|of|from)\s+)?{item})*"
    return re.compile(rf"\s?\b(?:in|of|from)\s+{several}|(?<!\w)(?:{_labels(entries)})['’]s\b", re.IGNORECASE)


def _labels(entries: _Entries) -> str:
    """A pattern of all that the documents are called: their ids, and their names with or without extension."""
    labels = {
        r"[\W_]+".join(re.findall(r"[^\W_]+", label))
        for entry in entries
        for label in (entry["artifact_id"], name_of(entry), name_of(entry).rpartition(".")[0])
    }
    return "|".join(sorted(filter(None, labels), key=lambda label: (-len(label), label))) or "(?!)"
