"""What an artifact is: frozen values, no behaviour beyond reading them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from typing_extensions import TypeAliasType

from a2a_canvas.store.text.rope import Rope
from a2a_canvas.store.text.spans import Span

JsonValue = TypeAliasType("JsonValue", "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None")
Metadata = Mapping[str, JsonValue]
Kind = Literal["text", "file", "data"]
Author = Literal["agent", "user"]

NO_METADATA: Metadata = {}
"""Shared by all parts without any, because there is a part per token."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text. Make one with `text_part`."""

    kind: ClassVar[Kind] = "text"
    body: Rope
    media_type: str = ""
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)

    @property
    def text(self) -> str:
        return str(self.body)

    @property
    def size(self) -> int:
        """UTF-8 bytes."""
        return self.body.size


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file, by `content` (bytes) or by `url`: exactly one of them is set."""

    kind: ClassVar[Kind] = "file"
    content: bytes | None = None
    url: str = ""
    name: str = ""
    media_type: str = ""
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)

    @property
    def size(self) -> int:
        """Bytes of the content, or of the URL."""
        return len(self.url if self.content is None else self.content)


@dataclass(frozen=True, slots=True)
class DataPart:
    """A JSON value. `size` is the length of its JSON text in bytes, told by whoever made the part."""

    kind: ClassVar[Kind] = "data"
    data: JsonValue
    media_type: str = ""
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
    size: int = 0


Part = TextPart | FilePart | DataPart
Parts = tuple[Part, ...]


def replace_surrogates(text: str) -> str:
    """`text` with U+FFFD in place of every lone surrogate, which no transport and no encoding can carry."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def text_part(text: str, media_type: str = "", metadata: Metadata | None = None) -> TextPart:
    """A text part; its text is `replace_surrogates`."""
    return TextPart(Rope(replace_surrogates(text)), media_type, metadata or NO_METADATA)


def text_of(parts: Parts) -> TextPart | None:
    """The one text part of grouped parts."""
    return next((part for part in parts if isinstance(part, TextPart)), None)


@dataclass(frozen=True, slots=True)
class Content:
    """What an artifact consists of at one moment."""

    name: str = ""
    description: str = ""
    parts: Parts = ()

    @property
    def text(self) -> str:
        """The text of its one text part, or nothing."""
        part = text_of(self.parts)
        return part.text if part else ""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """What an edit did to its version's parent: `span` of its text was replaced by `length` code points."""

    span: Span
    length: int


@dataclass(frozen=True, slots=True)
class Version:
    """A closed draft: numbered 1, 2, 3… per artifact, never altered.

    Attributes:
        parent: the number of the version it was made from; 0 for none.
        incomplete: the call that wrote it was cut off and nothing came after it.
        edited: the passage that was edited, if that is how it was made.
        pruned: its content is no longer kept: it reads as if there had been none.
    """

    number: int
    content: Content
    author: Author
    task_id: str
    parent: int
    incomplete: bool = False
    edited: TextEdit | None = None
    pruned: bool = False


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact as it stands, with what an open draft has added.

    Attributes:
        version: the number of the current version, which after an undo is not the newest; 0 while there is none.
        open: whether a draft is open.
        changed_by: the task that changed it last.
        never_completed: its only call was cut off; the next change begins afresh (`mutation.py`, rule 4).
    """

    artifact_id: str
    content: Content
    version: int
    open: bool
    changed_by: str = ""
    never_completed: bool = False

    @property
    def name(self) -> str:
        return self.content.name

    @property
    def title(self) -> str:
        """What it is called: by its name, or by its id if it has none."""
        return self.name or self.artifact_id

    @property
    def description(self) -> str:
        return self.content.description

    @property
    def parts(self) -> Parts:
        return self.content.parts

    @property
    def text(self) -> str:
        """The text of its one text part, or nothing."""
        return self.content.text


@dataclass(frozen=True, slots=True)
class Ref:
    """An artifact of a context, as one task addresses it: the task is the writer of whatever is changed."""

    context_id: str
    artifact_id: str
    task_id: str
    author: Author = "agent"


def new_incarnation() -> int:
    """Tells something from whatever had its id before and was removed: never 0, and, being random, of no clock."""
    return secrets.randbits(62) + 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one artifact: bytes of all its parts together, and number of parts."""

    artifact_bytes: int = 10 * 1024 * 1024
    parts: int = 100
