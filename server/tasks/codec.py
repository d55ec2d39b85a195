"""Tasks and their entries as JSON, by the rules of `store/codec.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from cattrs.strategies import configure_tagged_union

from a2a_canvas.server.agent.events import (
    AgentMessage,
    ArtifactChanged,
    BlockPosition,
    TextAdded,
    ToolInputAdded,
    Transcript,
    TranscriptItem,
    TurnEvent,
    UserMessage,
)
from a2a_canvas.server.agent.model import ModelContent, ModelText, Thinking, ToolUse
from a2a_canvas.server.tasks.record import Entry, TaskArtifact, TaskRecord
from a2a_canvas.store.codec import decode, encode, make_converter
from a2a_canvas.store.models import TextPart

T = TypeVar("T")

_STORED_NAMES: Final = {
    "ModelText": "Text",
    "TranscriptAppended": "Remembered",
    "UserInput": "UserSaid",
    "AssistantOutput": "AssistantSaid",
}
"""Stored rows name a class as it was called in 0.1.0."""


_CONVERTER = make_converter()
# Inner unions first: a hook is made of those that its members have by then.
for _union in (ModelText | Thinking | ToolUse, ModelContent, TranscriptItem, UserMessage | AgentMessage, TurnEvent):
    configure_tagged_union(
        _union, _CONVERTER, tag_generator=lambda member: _STORED_NAMES.get(member.__name__, member.__name__)
    )

_event_to_json = _CONVERTER.get_unstructure_hook(TurnEvent)
_event_of_json = _CONVERTER.get_structure_hook(TurnEvent)


def event_to_json(event: TurnEvent) -> dict[str, Any]:
    """An event. Those that come with every token are written by hand, for speed."""
    match event:
        case ToolInputAdded(place=place):
            fields = {"tool_use_id": event.tool_use_id, "partial_json": event.partial_json}
            return {"place": _place(place), **fields, "_type": "ToolInputAdded"}
        case TextAdded(place=place):
            return {"place": _place(place), "text": event.text, "_type": "TextAdded"}
        case ArtifactChanged(append=True, parts=(TextPart(media_type="", metadata={}) as part,)) if not part.metadata:
            fields = {name: getattr(event, name) for name in _CHANGED}
            return {**fields, "parts": [{"body": part.text, "_type": "TextPart"}], "_type": "ArtifactChanged"}
        case _:
            row: dict[str, Any] = _event_to_json(event)
            return row


_CHANGED = ("artifact_id", "name", "description", "append", "last_chunk", "version", "author", "parent")


def _place(place: BlockPosition) -> dict[str, int]:
    return {"index": place.index, "round": place.round, "llm_index": place.llm_index}


def entries_to_json(entries: Iterable[Entry]) -> str:
    """Consecutive entries of one epoch."""
    rows: list[list[Any]] = [[entry.generation, entry.at.isoformat(), event_to_json(entry.event)] for entry in entries]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def entries_of_json(epoch: int, text: str) -> Iterator[Entry]:
    """The entries, decoded one by one."""
    for generation, at, event in json.loads(text):
        yield Entry(epoch, generation, datetime.fromisoformat(at), _event_of_json(event, TurnEvent))


def _pair(kind: type[T]) -> tuple[Callable[[T], str], Callable[[str], T]]:
    """The functions that encode values of a type as JSON, and decode them."""

    def of_json(text: str) -> T:
        value: T = decode(text, kind, _CONVERTER)
        return value

    return lambda value: encode(value, kind, _CONVERTER), of_json


record_to_json, record_of_json = _pair(TaskRecord)
message_to_json, message_of_json = _pair(UserMessage)
transcript_to_json, transcript_of_json = _pair(Transcript)
artifacts_to_json, artifacts_of_json = _pair(Mapping[str, TaskArtifact])  # type: ignore[type-abstract]
