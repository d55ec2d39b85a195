"""What the rehearsal model reads in a conversation: the message it works on, and the results of its calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from a2a_canvas.server.agent.model import ModelContent, ModelMessage, ModelText, ToolResult, ToolUse

_NOTE: Final = re.compile(r'\[The user is looking at artifact (?P<id>"(?:[^"\\\n]|\\.)*")[^\n]*\](?:\n|\Z)')


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """A call made in this turn, and its result."""

    name: str
    input: Mapping[str, Any]
    content: str
    is_error: bool


def conversation_state(messages: Iterable[ModelMessage]) -> tuple[str, tuple[CompletedCall, ...]]:
    """The newest message's text, and the calls made since it came. An answer to `ask_user` is no such message."""
    text, steps = "", list[CompletedCall]()
    calls: dict[str, ToolUse] = {}
    for message in messages:
        if message.role == "assistant":
            calls = {item.id: item for item in message.content if isinstance(item, ToolUse)}
            continue
        new_text = "\n".join(item.text for item in message.content if isinstance(item, ModelText) and not item.note)
        results = [
            CompletedCall(
                calls[result.tool_use_id].name, calls[result.tool_use_id].input, result.content, result.is_error
            )
            for result in message.content
            if isinstance(result, ToolResult) and result.tool_use_id in calls
        ]
        if any(step.name == "ask_user" and not step.is_error for step in results):
            steps += [replace(step, content=new_text or looked_at(step.content)[1]) for step in results]
        elif new_text:
            text, steps = new_text, []
        else:
            steps += results
    return text, tuple(steps)


def looked_at(text: str) -> tuple[str, str]:
    """The id of the artifact that the user is looking at, by the note before a message, and the rest."""
    note = _NOTE.match(text)
    return (str(json.loads(note["id"])), text[note.end() :]) if note else ("", text)


def was_said(words: str, messages: Iterable[ModelMessage]) -> bool:
    """Whether a reply, a question or a refusal contains these words."""
    items = (item for message in messages if message.role == "assistant" for item in message.content)
    return any(words in _words_for_the_user(item) for item in items)


def _words_for_the_user(item: ModelContent) -> str:
    match item:
        case ModelText(text=text):
            return text
        case ToolUse(name="ask_user" | "decline_task"):
            return " ".join(map(str, item.input.values()))
        case _:
            return ""


def mapping(content: str) -> Mapping[str, Any]:
    """The JSON object that a tool answered; empty if it answered anything else."""
    value = _json(content)
    return value if isinstance(value, dict) else {}


def entries_in(content: str) -> list[dict[str, Any]]:
    """The entries of an `artifact_list`, oldest change first."""
    value = _json(content)
    found = value if isinstance(value, list) else []
    return [entry for entry in found if isinstance(entry, dict) and isinstance(entry.get("artifact_id"), str)]


def _json(content: str) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def name_of(artifact: Mapping[str, Any]) -> str:
    """What the user calls the artifact."""
    return str(artifact.get("name") or artifact.get("artifact_id") or "the document")


def entry_of(entries: Iterable[Mapping[str, Any]], artifact_id: str) -> Mapping[str, Any] | None:
    """The entry of an artifact."""
    return next((entry for entry in entries if entry["artifact_id"] == artifact_id), None)


def named(entries: Sequence[Mapping[str, Any]], phrase: str) -> dict[str, Any] | None:
    """The artifact whose id or name is in the phrase; of several, the one with the longest."""
    words = _words(phrase)
    found = [
        (len(label), number)
        for number, entry in enumerate(entries)
        for label in map(_words, (entry["artifact_id"], name_of(entry), name_of(entry).rpartition(".")[0]))
        if label.strip() and label in words
    ]
    return dict(entries[max(found)[1]]) if found else None


def _words(text: str) -> str:
    words = re.findall(r"[^\W_]+", text.casefold())
    return f" {' '.join(words)} "
