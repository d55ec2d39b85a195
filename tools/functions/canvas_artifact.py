"""An artifact as an agent's function sees it: what it may read and change.

The call in which the function runs does both (`ArtifactHost`), because its record decides which changes are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.models import Artifact, Author, DataPart, FilePart, JsonValue, Part, text_part
from a2a_canvas.store.text.unicode import replace_unstorable
from a2a_canvas.tools.functions.results import File, ToolError
from a2a_canvas.tools.part_inputs import require_portable
from a2a_canvas.tools.tool import to_json

Written = str | File | JsonValue


class ListedArtifact(str):
    """The id of an artifact.

    Attributes:
        name: for example `report.md`; may be empty.
        version: the number of the current version; 0 while it is written for the first time.
    """

    __slots__ = ("name", "version")
    name: str
    version: int

    def __new__(cls, artifact_id: str, name: str, version: int) -> ListedArtifact:
        listed = super().__new__(cls, artifact_id)
        listed.name, listed.version = name, version
        return listed


@dataclass(frozen=True, slots=True)
class CanvasVersion:
    """A version of an artifact.

    Attributes:
        number: 1, 2, 3…
        text: empty if it has none, or if `pruned`.
        author: who made it.
        current: it is the one that readers see; after an undo it is not the newest.
        pruned: the server's retention has removed its content.
    """

    number: int
    text: str
    author: Author
    current: bool
    pruned: bool


class ArtifactHost(Protocol):
    """Reads and changes artifacts: the `RecordedCall`."""

    async def pace(self, size: int) -> None: ...

    async def read(self, artifact_id: str) -> Artifact | None: ...

    async def read_versions(self, artifact_id: str) -> list[CanvasVersion]: ...

    async def apply(self, artifact_id: str, change: AppendParts | ReplaceParts) -> None: ...

    async def edit_passage(self, artifact_id: str, old: str, new: str) -> None: ...


@dataclass(frozen=True, slots=True)
class CanvasArtifact:
    """An artifact, as a tool sees it. Subscribers see each change immediately.

    The changes of one call become one version when the call ends, or before it asks.
    """

    canvas: ArtifactHost
    artifact_id: str
    name: str | None = None

    async def read(self, version: int | None = None) -> str:
        """Its text; empty if it has none, or does not exist.

        Args:
            version: the number of a version; by default, the current one with what is being written.

        Raises:
            ToolError: there is no such version, or its content was removed.
        """
        if version is None:
            artifact = await self.canvas.read(self.artifact_id)
            return artifact.text if artifact else ""
        found = next((each for each in await self.versions() if each.number == version), None)
        if found is None or found.pruned:
            why = "is no longer kept" if found else "does not exist"
            raise ToolError(f"Version {version} of artifact {self.artifact_id!r} {why}.")
        return found.text

    async def versions(self) -> list[CanvasVersion]:
        """Its versions, oldest first; what is being written is not one yet."""
        return await self.canvas.read_versions(self.artifact_id)

    async def append(self, *parts: Written, name: str | None = None, media_type: str = "") -> None:
        """Add to its end: a `str` to its text, a `File` to its files, any other JSON value to its data.

        Args:
            name: its new name, for example `report.md`.
            media_type: of the text.

        Raises:
            ToolError: it cannot be changed now, or would be too large.
        """
        added = tuple(_part(part, media_type) for part in parts)
        await self.canvas.apply(self.artifact_id, AppendParts(added, _name(name or self.name), done=False))

    async def replace(self, *parts: Written, name: str | None = None, media_type: str = "") -> None:
        """Replace all its text, files or data: of the kinds in `parts`. Arguments and errors as in `append`."""
        new = tuple(_part(part, media_type) for part in parts)
        await self.canvas.apply(self.artifact_id, ReplaceParts(new, _name(name or self.name), done=False))

    async def edit(self, old: str, new: str) -> None:
        """Replace a passage of its text, which is a new version at once.

        Args:
            old: must occur in the text, once.

        Raises:
            ToolError: it does not, or the artifact cannot be changed now.
        """
        await self.canvas.pace(len(new))
        await self.canvas.edit_passage(self.artifact_id, old, new)


def _name(name: str | None) -> str | None:
    return name if name is None else replace_unstorable(name)


def _part(value: Written, media_type: str) -> Part:
    match value:
        case str():
            return text_part(value, media_type)
        case File():
            return FilePart(value.content, value.url, value.name, value.media_type)
        case _:
            return DataPart(require_portable(value), size=len(to_json(value).encode()))
