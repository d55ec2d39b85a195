"""Tasks and their entries as JSON, by the rules of `store/codec.py`.

Rule: an artifact of a task, and the change that closes a version, may be written without the content of the version:
      they name it then. What is decoded has the content, from `contents`, or says that it was pruned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

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
from a2a_canvas.server.tasks.record import Entry, TaskArtifact, TaskRecord, pruned_content
from a2a_canvas.store.codec import decode, encode, make_converter, to_json
from a2a_canvas.store.models import Content, TextPart

T = TypeVar("T")

Contents = Mapping[tuple[str, int], Content]
"""The contents of versions, by the artifact's id and the version's number."""
NO_CONTENTS: Final[Contents] = {}

_CONVERTER = make_converter()
# Inner unions first: a hook is made of those that its members have by then.
for _union in (ModelText | Thinking | ToolUse, ModelContent, TranscriptItem, UserMessage | AgentMessage, TurnEvent):
    configure_tagged_union(_union, _CONVERTER)

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


def _closing_to_json(event: ArtifactChanged) -> dict[str, Any]:
    """A change that closes a version, without the content of the version."""
    return {name: getattr(event, name) for name in _CHANGED if name != "description"} | {"_type": "ArtifactChanged"}


def _closing_of_json(row: dict[str, Any], contents: Contents) -> ArtifactChanged:
    content = contents.get((row["artifact_id"], row["version"])) or pruned_content(row["name"], row["version"])
    named = {name: row[name] for name in _CHANGED if name != "description"}
    return ArtifactChanged(**named, description=content.description, parts=content.parts)


def entries_to_json(entries: Iterable[Entry], naming: Container[int] = ()) -> str:
    """Consecutive entries of one epoch.

    Args:
        naming: the generations of the entries that name the version they close.
    """
    rows: list[list[Any]] = []
    for entry in entries:
        match entry.event:
            case ArtifactChanged() as event if entry.generation in naming:
                row = _closing_to_json(event)
            case event:
                row = event_to_json(event)
        rows.append([entry.generation, entry.at.isoformat(), row])
    return to_json(rows)


def entries_of_json(epoch: int, text: str, contents: Contents = NO_CONTENTS) -> Iterator[Entry]:
    """The entries, decoded one by one."""
    for generation, at, row in json.loads(text):
        named = row["_type"] == "ArtifactChanged" and "parts" not in row
        event = _closing_of_json(row, contents) if named else _event_of_json(row, TurnEvent)
        yield Entry(epoch, generation, datetime.fromisoformat(at), event)


def _pair(kind: type[T]) -> tuple[Callable[[T], str], Callable[[str], T]]:
    """The functions that encode values of a type as JSON, and decode them."""

    def of_json(text: str) -> T:
        value: T = decode(text, kind, _CONVERTER)
        return value

    return lambda value: encode(value, kind, _CONVERTER), of_json


record_to_json, record_of_json = _pair(TaskRecord)
message_to_json, message_of_json = _pair(UserMessage)
transcript_to_json, transcript_of_json = _pair(Transcript)


def first_message_of_json(record: str) -> UserMessage:
    """The message that began a task; the rest of its record is not decoded."""
    return _CONVERTER.structure(json.loads(record)["history"][0], UserMessage)


def artifacts_to_json(artifacts: Mapping[str, TaskArtifact], naming: Container[str] = ()) -> str:
    """The artifacts of a task.

    Args:
        naming: the ids of the artifacts that name their version.
    """
    rows = {
        artifact_id: _name_of_artifact(each) if artifact_id in naming else _CONVERTER.unstructure(each, TaskArtifact)
        for artifact_id, each in artifacts.items()
    }
    return to_json(rows)


def _name_of_artifact(artifact: TaskArtifact) -> dict[str, Any]:
    of = {"artifact_id": artifact.artifact_id, "name": artifact.content.name}
    return {**of, "version": artifact.version, "author": artifact.author}


def artifacts_of_json(text: str, contents: Contents = NO_CONTENTS) -> dict[str, TaskArtifact]:
    """The artifacts of a task."""
    return {artifact_id: _artifact_of_json(row, contents) for artifact_id, row in json.loads(text).items()}


def _artifact_of_json(row: dict[str, Any], contents: Contents) -> TaskArtifact:
    if "content" in row:
        return _CONVERTER.structure(row, TaskArtifact)
    artifact_id, version = row["artifact_id"], row["version"]
    content = contents.get((artifact_id, version))
    shown = content or pruned_content(row["name"], version)
    return TaskArtifact(artifact_id, shown, version, row["author"], closed=version, pruned=content is None)


class NamedVersion(NamedTuple):
    """A version that a row names. `size`: bytes of its content, approximately."""

    artifact_id: str
    number: int
    size: int


def names_to_json(named: Collection[NamedVersion]) -> str | None:
    """The versions that a row names; None for none."""
    return json.dumps([*named], ensure_ascii=False, separators=(",", ":")) if named else None


def names_of_json(text: str | None) -> tuple[NamedVersion, ...]:
    """The versions that a row names."""
    return tuple(NamedVersion(*row) for row in json.loads(text)) if text else ()
