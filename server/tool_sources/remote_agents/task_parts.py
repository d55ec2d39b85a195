"""Converts parts, artifacts and messages between another agent's task and ours. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_canvas.server.tool_sources.document_names import heading_name
from a2a_canvas.server.wire import whole_numbers
from a2a_canvas.store.changes import AppendParts, ReplaceParts, by_kind
from a2a_canvas.store.models import Artifact, DataPart, FilePart, JsonValue, Part, Parts, TextPart, text_of, text_part
from a2a_canvas.tools.functions.results import File

AGENT_KEY = "agent"
"""The key in the metadata of parts from another agent, with its address, its conversation and its artifact."""
MAX_LENGTH = 200
"""The maximum length of another agent's ids and names."""

MAX_BEGINNING = 1_000
"""Characters of a text that are kept until its first line is complete."""
MARKDOWN = ("", "text/markdown", "text/plain")

Origin = Mapping[str, JsonValue]


def parts_of(wire: Sequence[pb.Part], origin: Origin | None = None, *, append: bool = False) -> Parts:
    """Our parts. An artifact of ours has one text, so the first media type applies to all of it.

    Args:
        append: the parts are appended to existing ones.

    Raises:
        ValueError: a data part is not plain JSON.
    """
    found: list[Part] = []
    for part in wire:
        metadata = {AGENT_KEY: dict(origin)} if origin else None
        match part.WhichOneof("content"):
            case "text":
                first = not append and not any(isinstance(each, TextPart) for each in found)
                found.append(text_part(part.text, part.media_type if first else "", metadata if first else None))
            case "raw":
                found.append(FilePart(part.raw, "", line(part.filename), part.media_type, metadata or {}))
            case "url":
                found.append(FilePart(None, part.url, line(part.filename), part.media_type, metadata or {}))
            case "data":
                data = _json(part.data)
                found.append(DataPart(data, part.media_type, metadata or {}, len(json.dumps(data).encode())))
            case _:
                continue
    return tuple(found)


def _json(value: Any) -> JsonValue:
    plain: JsonValue = whole_numbers(MessageToDict(value))
    return plain


def line(text: str) -> str:
    """Another agent's name or id, shortened and printable."""
    return "".join(each if each.isprintable() else "_" for each in text[:MAX_LENGTH]).strip()


def candidates(artifact_id: str, agent: str) -> Iterator[str]:
    """The possible ids here of another agent's artifact, the best first."""
    own = line(artifact_id) or "artifact"
    yield own
    yield f"{agent}-{own}"
    yield from (f"{agent}-{own}-{number}" for number in range(2, 100))


_OPAQUE = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]|^[\W\d_]*$", re.IGNORECASE)
"""Matches generated ids, such as UUIDs."""


def title_of(artifact: pb.Artifact, text: str = "") -> str | None:
    """The title of another agent's artifact: its name, its file's name, its first heading, or empty to use its id.

    None if the id is generated, too: then the agent's name has to do.

    Args:
        text: of the artifact so far.
    """
    given = (artifact.name, *(part.filename for part in artifact.parts))
    if named := next(filter(None, map(line, given)), "") or heading_name(text):
        return named
    return None if _OPAQUE.search(line(artifact.artifact_id)) else ""


def markdown_of(artifact: pb.Artifact) -> str:
    """The text of an artifact, if it may be Markdown."""
    texts = [part for part in artifact.parts if part.WhichOneof("content") == "text"]
    return "".join(part.text for part in texts if part.media_type in MARKDOWN)


def awaits_heading(text: str) -> bool:
    """Whether a text so far may begin with a heading whose end is missing."""
    begun = text.lstrip()
    return begun.startswith("#") and "\n" not in begun and len(begun) < MAX_BEGINNING


def origin(url: str, context_id: str) -> Origin:
    """The mark of what an agent has written in a conversation."""
    return {"url": url, "contextId": context_id}


def is_from(artifact: Artifact, origin: Origin) -> bool:
    """Whether an artifact was written in this conversation with another agent."""
    return any(origin.items() <= each.items() for each in origins(artifact))


def origins(artifact: Artifact) -> list[Origin]:
    """The marks of an artifact's parts. A client may have written them: they are no proof."""
    marks = (part.metadata.get(AGENT_KEY) for part in artifact.parts)
    return [mark for mark in marks if isinstance(mark, Mapping)]


def artifact_text(artifact: pb.Artifact) -> str:
    """The text of another agent's artifact."""
    return "".join(part.text for part in artifact.parts)


def catch_up_change(ours: Parts, theirs: Parts) -> AppendParts | ReplaceParts | None:
    """The change that makes our parts those of a snapshot; None if they are."""
    mine = {kind: [_content(part) for part in parts] for kind, parts in by_kind(ours).items()}
    new = {
        kind: parts for kind, parts in by_kind(theirs).items() if _contents(parts) != _join_texts(mine.get(kind, []))
    }
    if not new:
        return None
    before, after = text_of(ours), _text(theirs)
    if set(new) == {"text"} and before and before.text and after.startswith(before.text):
        return AppendParts((text_part(after[len(before.text) :]),), done=False)
    return ReplaceParts(tuple(part for parts in new.values() for part in parts), done=False)


def _contents(parts: Sequence[Part]) -> list[JsonValue]:
    return _join_texts([_content(part) for part in parts])


def _join_texts(contents: list[JsonValue]) -> list[JsonValue]:
    """Texts are compared as one."""
    texts = [each for each in contents if isinstance(each, str)]
    return ["".join(texts)] if texts else contents


def _content(part: Part) -> JsonValue:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            content = hashlib.sha256(part.content).hexdigest() if part.content is not None else part.url
            return {"name": part.name, "type": part.media_type, "content": content}
        case DataPart():
            return {"data": part.data}
        case _:
            assert_never(part)


def _text(parts: Parts) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def fingerprint(artifact: pb.Artifact) -> str:
    """A hash of the content."""
    return hashlib.sha256(artifact.SerializeToString(deterministic=True)).hexdigest()


def message_text(message: pb.Message) -> str:
    """The text of a message, with data as JSON."""
    texts = []
    for part in message.parts:
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                texts.append(json.dumps(_json(part.data), ensure_ascii=False))
            case _:
                continue
    return "\n".join(filter(None, texts)).strip()


def files_of(message: pb.Message) -> tuple[File, ...]:
    """The files of a message."""
    return tuple(
        File(part.name, part.media_type or "application/octet-stream", part.content, part.url)
        for part in parts_of(message.parts)
        if isinstance(part, FilePart) and (part.content is not None or part.url)
    )


def to_wire(artifact: Artifact) -> Iterator[pb.Part]:
    """One of our artifacts as parts for another agent. Most agents read only text, so a text begins with its name."""
    for part in artifact.parts:
        match part:
            case TextPart():
                yield pb.Part(text=f"{artifact.title}:\n\n{part.text}", media_type=part.media_type)
            case FilePart():
                yield file_to_wire(part.content, part.url, part.name or artifact.title, part.media_type)
            case DataPart():
                yield data_to_wire(part.data, part.media_type)
            case _:
                assert_never(part)


def file_to_wire(content: bytes | None, url: str, name: str, media_type: str) -> pb.Part:
    """A file for another agent."""
    if content is None:
        return pb.Part(url=url, filename=name, media_type=media_type)
    return pb.Part(raw=content, filename=name, media_type=media_type)


def data_to_wire(data: JsonValue, media_type: str = "") -> pb.Part:
    """A JSON value for another agent."""
    wire = pb.Part(media_type=media_type)
    ParseDict(data, wire.data)  # type: ignore[arg-type]  # a Value takes any JSON value
    return wire
