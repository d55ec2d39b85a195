"""Tasks and their entries as JSON, by the rules of `store/codec.py`.

Rule 1: an artifact of a task, and the change that closes a version, may be written without the content of the version:
        they name it then. What is decoded has the content, from `contents`, or says that it was pruned.
Rule 2: a file that carries its name (`KeptFile`) is written as this name if the caller collects the `files`: it stores
        them elsewhere. What is decoded has the content, from `files`; a file that is not among them is empty.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeVar

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
from a2a_canvas.server.tasks.kept_files import NO_FILES, Files, KeptFile, NamedFile
from a2a_canvas.server.tasks.record import Entry, TaskArtifact, TaskRecord, pruned_content
from a2a_canvas.store.codec import NameOf, encode, make_converter, to_json
from a2a_canvas.store.models import Content, TextPart

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

Contents = Mapping[tuple[str, int], Content]
"""The contents of versions, by the artifact's id and the version's number."""
NO_CONTENTS: Final[Contents] = {}

FoundFiles = dict[str, KeptFile]
"""Collects the files that something names, by their digests."""

_read: ContextVar[Files] = ContextVar("files", default=NO_FILES)
"""Of what is being decoded: a converter's hooks are given the value alone."""


def _bytes_of_json(value: Any) -> bytes:
    if isinstance(value, str):
        return b64decode(value)
    found = _read.get().get(value["digest"])
    return KeptFile.from_row(b"", value["digest"], value["size"]) if found is None else found


def _naming(files: FoundFiles | None) -> NameOf:
    """Names the files that carry a name, and collects them; without a collection, no file."""

    def name_of(content: bytes) -> dict[str, Any] | None:
        if files is None or not isinstance(content, KeptFile):
            return None
        files[content.digest] = content
        return {"digest": content.digest, "size": content.size}

    return name_of


_CONVERTER = make_converter(read_bytes=_bytes_of_json)
# Inner unions first: a hook is made of those that its members have by then.
for _union in (ModelText | Thinking | ToolUse, ModelContent, TranscriptItem, UserMessage | AgentMessage, TurnEvent):
    configure_tagged_union(_union, _CONVERTER)

_event_to_json = _CONVERTER.get_unstructure_hook(TurnEvent)


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
            return {**fields, "parts": [{"body": part.text, "_type": "TextPart"}], **_CHANGE_TYPE}
        case _:
            row: dict[str, Any] = _event_to_json(event)
            return row


_CHANGED = ("artifact_id", "name", "description", "append", "last_chunk", "version", "author", "parent")
_CHANGE_TYPE = {"_type": "ArtifactChanged"}


def _place(place: BlockPosition) -> dict[str, int]:
    return {"index": place.index, "round": place.round, "llm_index": place.llm_index}


def _closing_to_json(event: ArtifactChanged) -> dict[str, Any]:
    """A change that closes a version, without the content of the version."""
    kept = {name: value for name, value in _event_to_json(event).items() if name not in ("description", "parts")}
    return kept | _CHANGE_TYPE


def _closing_of_json(row: dict[str, Any], contents: Contents) -> ArtifactChanged:
    content = contents.get((row["artifact_id"], row["version"])) or pruned_content(row["name"], row["version"])
    event = _structure({**row, "description": content.description, "parts": []}, TurnEvent, NO_FILES)
    closing: ArtifactChanged = replace(event, parts=content.parts)
    return closing


def entries_to_json(entries: Iterable[Entry], naming: Container[int] = (), files: FoundFiles | None = None) -> str:
    """Consecutive entries of one epoch.

    Args:
        naming: the generations of the entries that name the version they close.
        files: collects the files that the entries name; None if they name none.
    """
    rows: list[list[Any]] = []
    for entry in entries:
        match entry.event:
            case ArtifactChanged() as event if entry.generation in naming:
                row = _closing_to_json(event)
            case event:
                row = event_to_json(event)
        rows.append([entry.generation, entry.at.isoformat(), row])
    return to_json(rows, _naming(files))


def entries_of_json(
    epoch: int, text: str, contents: Contents = NO_CONTENTS, files: Files = NO_FILES
) -> Iterator[Entry]:
    """The entries, decoded one by one."""
    for generation, at, row in json.loads(text):
        named = row["_type"] == "ArtifactChanged" and "parts" not in row
        event = _closing_of_json(row, contents) if named else _structure(row, TurnEvent, files)
        yield Entry(epoch, generation, datetime.fromisoformat(at), event)


def _structure(row: Any, kind: Any, files: Files) -> Any:
    reading = _read.set(files)
    try:
        return _CONVERTER.structure(row, kind)
    finally:
        _read.reset(reading)


class _Encode(Protocol[T_contra]):
    def __call__(self, value: T_contra, files: FoundFiles | None = None, /) -> str: ...


class _Decode(Protocol[T_co]):
    def __call__(self, text: str, files: Files = NO_FILES, /) -> T_co: ...


def _pair(kind: type[T]) -> tuple[_Encode[T], _Decode[T]]:
    """The functions that encode values of a type as JSON, and decode them."""

    def to_json(value: T, files: FoundFiles | None = None, /) -> str:
        return encode(value, kind, _CONVERTER, _naming(files))

    def of_json(text: str, files: Files = NO_FILES, /) -> T:
        value: T = _structure(json.loads(text), kind, files)
        return value

    return to_json, of_json


record_to_json, record_of_json = _pair(TaskRecord)
message_to_json, message_of_json = _pair(UserMessage)
transcript_to_json, transcript_of_json = _pair(Transcript)


def first_message_of_json(record: str) -> UserMessage:
    """The message that began a task, without its large files; the rest of its record is not decoded."""
    return _CONVERTER.structure(json.loads(record)["history"][0], UserMessage)


def artifacts_to_json(
    artifacts: Mapping[str, TaskArtifact], naming: Container[str] = (), files: FoundFiles | None = None
) -> str:
    """The artifacts of a task.

    Args:
        naming: the ids of the artifacts that name their version.
        files: as in `entries_to_json`.
    """
    rows = {
        artifact_id: _name_of_artifact(each) if artifact_id in naming else _CONVERTER.unstructure(each, TaskArtifact)
        for artifact_id, each in artifacts.items()
    }
    return to_json(rows, _naming(files))


def _name_of_artifact(artifact: TaskArtifact) -> dict[str, Any]:
    of = {"artifact_id": artifact.artifact_id, "name": artifact.content.name}
    return {**of, "version": artifact.version, "author": artifact.author}


def artifacts_of_json(text: str, contents: Contents = NO_CONTENTS, files: Files = NO_FILES) -> dict[str, TaskArtifact]:
    """The artifacts of a task."""
    return {artifact_id: _artifact_of_json(row, contents, files) for artifact_id, row in json.loads(text).items()}


def _artifact_of_json(row: dict[str, Any], contents: Contents, files: Files) -> TaskArtifact:
    if "content" in row:
        artifact: TaskArtifact = _structure(row, TaskArtifact, files)
        return artifact
    artifact_id, version = row["artifact_id"], row["version"]
    content = contents.get((artifact_id, version))
    shown = content or pruned_content(row["name"], version)
    return TaskArtifact(artifact_id, shown, version, row["author"], closed=version, pruned=content is None)


class NamedVersion(NamedTuple):
    """A version that a row names. `size`: bytes of its content, approximately."""

    artifact_id: str
    number: int
    size: int


def names_to_json(versions: Collection[NamedVersion], files: Collection[KeptFile] = ()) -> str | None:
    """The versions and files that a row names; None for none."""
    named = [*versions, *((file.digest, file.size) for file in files)]
    return json.dumps(named, ensure_ascii=False, separators=(",", ":")) if named else None


def names_of_json(text: str | None) -> tuple[NamedVersion, ...]:
    """The versions that a row names."""
    return tuple(NamedVersion(*row) for row in json.loads(text) if len(row) > 2) if text else ()


def files_of_json(text: str | None) -> tuple[NamedFile, ...]:
    """The files that a row names."""
    return tuple(NamedFile(*row) for row in json.loads(text) if len(row) == 2) if text else ()
