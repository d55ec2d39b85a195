"""An artifact, its versions and its draft, as frozen values. `mutation.py` changes them. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from typing_extensions import TypeAliasType

from a2a_canvas.store.errors import VersionNotFound, VersionPruned
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.text.rope import Rope
from a2a_canvas.store.text.spans import Span
from a2a_canvas.store.text.unicode import replace_surrogates

JsonValue = TypeAliasType("JsonValue", "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None")
Metadata = Mapping[str, JsonValue]
Kind = Literal["text", "file", "data"]
Author = Literal["agent", "user"]

NO_METADATA: Metadata = {}
"""Shared by all parts that have no metadata, because there is a part per token."""


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
    """A JSON value. `size` is the length of its JSON text in bytes, as given by the caller."""

    kind: ClassVar[Kind] = "data"
    data: JsonValue
    media_type: str = ""
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
    size: int = 0


Part = TextPart | FilePart | DataPart
Parts = tuple[Part, ...]


def text_part(text: str, media_type: str = "", metadata: Metadata | None = None) -> TextPart:
    """A text part. Lone surrogates in `text` are replaced."""
    return TextPart(Rope(replace_surrogates(text)), media_type, metadata or NO_METADATA)


def text_of(parts: Parts) -> TextPart | None:
    """The one text part of grouped parts."""
    return next((part for part in parts if isinstance(part, TextPart)), None)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of an artifact at one moment."""

    name: str = ""
    description: str = ""
    parts: Parts = ()

    @property
    def text(self) -> str:
        """The text of its one text part, or nothing."""
        part = text_of(self.parts)
        return part.text if part else ""

    @property
    def size(self) -> int:
        """Bytes of its parts."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class TextEdit:
    """How an edit made a version from its parent: `span` of the parent's text became `length` code points."""

    span: Span
    length: int


@dataclass(frozen=True, slots=True)
class TextSplice:
    """How one text became another: UTF-16 code units `start` to `end` of it, `end` exclusive, became `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Version:
    """A closed draft: numbered 1, 2, 3… per artifact, never altered.

    Attributes:
        parent: the number of the version it was made from; 0 for none.
        incomplete: the call that wrote it was cut off, and no other call followed.
        edits: what made it from its parent, if that is known: one edit, or several at once. Each is a range of the
            parent's text; they are disjoint, and in order. Empty if a whole text replaced another one.
        pruned: its content was removed by the retention rules; `content` is empty.
    """

    number: int
    content: Content
    author: Author
    task_id: str
    parent: int
    incomplete: bool = False
    edits: tuple[TextEdit, ...] = ()
    pruned: bool = False

    @property
    def edited(self) -> TextEdit | None:
        """The edit that made it, if one did."""
        return self.edits[0] if len(self.edits) == 1 else None


@dataclass(frozen=True, slots=True)
class Artifact:
    """The current state of an artifact, including its open draft.

    Attributes:
        version: the number of the current version, which after an undo is not the newest; 0 if there is none.
        open: whether a draft is open.
        changed_by: the task that changed it last.
        never_completed: its only call was cut off; the next change starts from scratch (`mutation.py`, rule 4).
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
        """Its name; its id if it has no name."""
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
    """An artifact of a context, addressed by a task, which is the writer of its changes."""

    context_id: ContextKey
    artifact_id: str
    task_id: str
    author: Author = "agent"


def new_incarnation() -> int:
    """A random number, never 0, that distinguishes a row from a removed one with the same key."""
    return secrets.randbits(62) + 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one artifact: total bytes of its parts, and number of parts."""

    artifact_bytes: int = 10 * 1024 * 1024
    parts: int = 100


# ------------------------------------------------------------------- drafts and versions


@dataclass(frozen=True, slots=True)
class Draft:
    """Changes that are not yet a version.

    Attributes:
        completed: the content after the last completed call; None if no call has completed.
        shown: the content including the call being written.
        dirty: whether a call is being written.
    """

    task_id: str
    author: Author
    completed: Content | None
    shown: Content
    dirty: bool

    @property
    def never_completed(self) -> bool:
        """Whether the draft contains only a call that was cut off (`mutation.py`, rule 4)."""
        return self.completed is None and not self.dirty


@dataclass(frozen=True, slots=True)
class Document:
    """An artifact with its versions and its draft.

    Attributes:
        current: the number of the current version; 0 if there is none.
        changed_by: the task that changed it last.
    """

    artifact_id: str
    versions: tuple[Version, ...] = ()
    draft: Draft | None = None
    current: int = 0
    changed_by: str = ""

    @property
    def exists(self) -> bool:
        return bool(self.versions or self.draft)

    @property
    def tip(self) -> int:
        """The number of the last version of the undo line: the newest one (`mutation.py`, rule 5)."""
        return len(self.versions)

    @property
    def current_content(self) -> Content:
        """The content of the current version; empty if there is none."""
        return self.versions[self.current - 1].content if self.current else Content()

    @property
    def artifact(self) -> Artifact:
        draft = self.draft
        if draft is None:
            return Artifact(self.artifact_id, self.current_content, self.current, False, self.changed_by)
        return Artifact(self.artifact_id, draft.shown, self.current, True, self.changed_by, draft.never_completed)

    def version(self, number: int) -> Version:
        """Raises `VersionNotFound`, `VersionPruned`."""
        count = len(self.versions)
        if not 1 <= number <= count:
            raise VersionNotFound(self.artifact_id, number, count)
        version = self.versions[number - 1]
        if version.pruned:
            raise VersionPruned(self.artifact_id, number, count)
        return version

    def parent(self, number: int) -> int:
        return self.versions[number - 1].parent if number else 0

    def maker(self, number: int) -> str:
        """The task that made a version."""
        return self.versions[number - 1].task_id


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """The result of a mutation, with instructions for subscribers.

    Attributes:
        artifact: the artifact after the mutation.
        append: whether a subscriber with the artifact only needs to add `new` to its parts.
        new: the parts that were added (only with `append`).
        last_chunk: whether no draft is open: `version` was made, or made current.
        version: the number of the version that this change belongs to, closed or still a draft.
        author: of that version.
        parent: the number of the version it was made from; 0 for none.
        closed: the end of the draft that became a version before this change; subscribers receive it first.
        suggestions: the numbers of the suggestions that were made instead; None if it is a change.
        resent: nothing has changed; the task's own subscribers get the artifact again.
        splice: what an edit did to the text, for a subscriber with the artifact as it was; None for any other change.
        rolled_back: the artifact is again as it was: by undo, or because a call was cut off.
    """

    artifact: Artifact
    append: bool
    new: Parts
    last_chunk: bool
    version: int
    author: Author
    parent: int
    closed: AppliedChange | None = None
    suggestions: tuple[int, ...] | None = None
    resent: bool = False
    splice: TextSplice | None = None
    rolled_back: bool = False

    @property
    def parts(self) -> Parts:
        """The parts to send to a subscriber: the new ones, or all."""
        return self.new if self.append else self.artifact.parts
