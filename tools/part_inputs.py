"""Artifact ids and parts as the model writes and reads them, converted to and from those of the store."""

from __future__ import annotations

import binascii
import json
import math
from base64 import b64decode
from typing import Annotated, Any, Literal, assert_never

from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from a2a_canvas.store.models import DataPart, FilePart, JsonValue, Part, TextPart, text_part
from a2a_canvas.store.text.unicode import require_utf8, valid_id
from a2a_canvas.tools.tool import StrictInput

MAX_DEPTH = 30
"""Levels of nesting. A protobuf message may nest 100 deep, a level of JSON takes three, and a task is around it."""


def require_portable(value: Any, depth: int = MAX_DEPTH) -> Any:
    """`value`, if every transport of A2A can encode it.

    Raises:
        ValueError: it has NaN, an infinity, a number that no double can hold or a lone surrogate in it, or nests
            deeper than `depth`.
    """
    match value:
        case dict() | list() if not depth:
            raise ValueError(f"must not nest deeper than {MAX_DEPTH} levels")
        case dict():
            for key, item in value.items():
                require_utf8(key)
                require_portable(item, depth - 1)
        case list():
            for item in value:
                require_portable(item, depth - 1)
        case str():
            require_utf8(value)
        case int() | float():
            _finite(value)
    return value


def _finite(number: float) -> None:
    try:
        finite = math.isfinite(number)
    except OverflowError:  # an integer too large for a double
        finite = False
    if not finite:
        raise ValueError("must not contain NaN, infinite numbers or numbers larger than a double can hold")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


ArtifactId = Annotated[
    str,
    Field(max_length=200, description="Short and stable, for example 'report'. The same id means the same artifact."),
    AfterValidator(_not_blank),
    AfterValidator(valid_id),
]


Encodable = Annotated[str, AfterValidator(require_utf8)]
Json = Annotated[Any, AfterValidator(lambda value: require_portable(value))]
Metadata = Annotated[dict[str, Any], AfterValidator(lambda value: require_portable(value))]


class TextInput(StrictInput):
    """Text. All text of an artifact is one text part. `mimeType` and `metadata` come before `text`."""

    kind: Literal["text"]
    mimeType: Encodable = Field(default="", description="For example text/markdown or text/x-python.")
    metadata: Metadata | None = None
    text: str

    def part(self) -> Part:
        return text_part(self.text, self.mimeType, self.metadata)


class FileContent(StrictInput):
    """The file: `bytes` or `uri`, exactly one of them."""

    name: Encodable = ""
    mimeType: Encodable = ""
    base64: str | None = Field(default=None, alias="bytes", description="The content in base64.")
    uri: Annotated[str, Field(min_length=1), AfterValidator(require_utf8)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> FileContent:
        if (self.base64 is None) == (self.uri is None):
            raise ValueError("give exactly one of 'bytes' (base64) and 'uri'")
        self.decode()
        return self

    def decode(self) -> bytes | None:
        """The content, or None for a file by `uri`."""
        if self.base64 is None:
            return None
        try:
            return b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError("'bytes' is not valid base64") from error


class FileInput(StrictInput):
    """A file of any type."""

    kind: Literal["file"]
    file: FileContent
    metadata: Metadata | None = None

    def part(self) -> Part:
        file = self.file
        return FilePart(file.decode(), file.uri or "", file.name, file.mimeType, self.metadata or {})


class DataInput(StrictInput):
    """Structured data: any JSON value. A collection belongs inside one data part."""

    kind: Literal["data"]
    data: Json
    metadata: Metadata | None = None

    def part(self) -> Part:
        return DataPart(self.data, metadata=self.metadata or {}, size=len(json.dumps(self.data).encode()))


PartInput = Annotated[TextInput | FileInput | DataInput, Field(discriminator="kind")]
part_input: TypeAdapter[TextInput | FileInput | DataInput] = TypeAdapter(PartInput)


def part_output(part: Part) -> dict[str, JsonValue]:
    """A part as `artifact_read` shows it: in the form of an input, but files by size instead of content."""
    shown: dict[str, JsonValue]
    match part:
        case TextPart():
            shown = {"mimeType": part.media_type or None, "metadata": None, "text": part.text}
        case FilePart():
            file: dict[str, JsonValue] = {
                "name": part.name or None,
                "mimeType": part.media_type or None,
                "uri": part.url or None,
                "size": None if part.content is None else len(part.content),
            }
            shown = {"file": _without_none(file)}
        case DataPart():
            shown = {"data": part.data}
        case _:
            assert_never(part)
    return {"kind": part.kind, **_without_none(shown | {"metadata": dict(part.metadata) or None})}


def _without_none(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in fields.items() if value is not None or name == "data"}
