"""A prompt of an editor, as what a message to an agent says. Pure.

Rule 1: a file of the editor's folder is the artifact of its path in the folder. A file elsewhere is only named.
Rule 2: lines are in the fragment of a file's address: `#L10`, `#L10:20` (Zed) or `#L10-L20`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from a2a.types import a2a_pb2 as pb
from acp import schema

_LINES = re.compile(r"L([1-9]\d{0,8})(?:[:-]L?([1-9]\d{0,8}))?")

Block = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)


@dataclass(frozen=True, slots=True)
class MentionedFile:
    """A file that the user has mentioned.

    Attributes:
        name: its path in the editor's folder.
        text: all of it, if the editor has sent it.
        lines: the first and the last one of a selection; None for all of it.
    """

    name: str
    text: str | None = None
    lines: tuple[int, int] | None = None


@dataclass(slots=True)
class Prompt:
    """What the user says, the files of the folder that it is about, and pictures."""

    text: str = ""
    files: list[MentionedFile] = field(default_factory=list)
    parts: list[pb.Part] = field(default_factory=list)

    @property
    def selection(self) -> MentionedFile | None:
        """The only file that is mentioned, if lines of it are selected: then they are rewritten, and nothing else."""
        return self.files[0] if len(self.files) == 1 and self.files[0].lines else None


def read_prompt(blocks: Sequence[Block], folder: str) -> Prompt:
    """The prompt of an editor whose folder has this path."""
    prompt, said = Prompt(), list[str]()
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                said.append(block.text)
            case schema.ImageContentBlock():
                prompt.parts.append(pb.Part(raw=_decode(block.data), media_type=block.mime_type))
            case schema.ResourceContentBlock():
                file = _file_of(block.uri, folder)
                prompt.files += [file] if file else []
                said.append(file.name if file else block.uri)
            case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as resource):
                file = _file_of(resource.uri, folder, resource.text)
                prompt.files += [file] if file else []
                said.append(f"({file.name})" if file else f"\n{resource.uri}:\n{resource.text}\n")
            case _:
                pass  # the agent has said that it takes no others
    prompt.text = " ".join(each for each in said if each.strip()).strip()
    return prompt


def _file_of(uri: str, folder: str, text: str | None = None) -> MentionedFile | None:
    """The file that an address names; None if it is not in the folder."""
    parts = urlsplit(uri)
    path = PurePosixPath(unquote(parts.path))
    if parts.scheme != "file" or not path.is_relative_to(folder) or ".." in path.parts or str(path) == folder:
        return None
    lines = _LINES.fullmatch(unquote(parts.fragment))
    name = str(path.relative_to(folder))
    if not lines:
        return MentionedFile(name, text)
    return MentionedFile(name, None, (int(lines[1]), int(lines[2] or lines[1])))


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        return b""
