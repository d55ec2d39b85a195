"""Large files of messages, which are stored once: rows that repeat a message name them. Pure.

Rule: a message keeps its files apart if they have more than `LARGE_BYTES` together; those of less than `SMALL_BYTES`
      stay in it all the same. The content of such a file carries its name, wherever the message is repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.store.models import FilePart, Part

LARGE_BYTES: Final = 128 * 1024
"""The files of a message that have more than this together are stored apart from it."""
SMALL_BYTES: Final = 4 * 1024
"""A smaller file is not worth a row."""


class KeptFile(bytes):
    """The content of a file that is stored apart from its message.

    Attributes:
        digest: its name: SHA-256 of the content.
        size: bytes of the content.
    """

    digest: str
    size: int

    @staticmethod
    def from_content(content: bytes) -> KeptFile:
        """A file to be stored. It reads the whole content."""
        return KeptFile.from_row(content, hashlib.sha256(content).hexdigest(), len(content))

    @staticmethod
    def from_row(content: bytes, digest: str, size: int) -> KeptFile:
        """A file as its row has it; without the row it is empty, and keeps its name."""
        file = KeptFile(content)
        file.digest, file.size = digest, size
        return file

    @property
    def is_whole(self) -> bool:
        """Whether the content was found."""
        return len(self) == self.size


class NamedFile(NamedTuple):
    """A file that a row names. `size`: bytes of its content."""

    digest: str
    size: int


Files = Mapping[str, KeptFile]
"""Files by their digests."""
NO_FILES: Final[Files] = {}


def has_large_files(message: UserMessage) -> bool:
    """Whether `name_files` changes the message."""
    return sum(len(content) for part in message.parts if (content := _unnamed_content(part))) > LARGE_BYTES


def name_files(message: UserMessage) -> UserMessage:
    """The message, whose files carry their names. It reads them, so it belongs in a thread."""
    return replace(message, parts=tuple(_name_part(part) for part in message.parts))


def files_of(message: UserMessage) -> tuple[KeptFile, ...]:
    """The files of a message that are stored apart from it."""
    contents = (part.content for part in message.parts if isinstance(part, FilePart))
    return tuple({each.digest: each for each in contents if isinstance(each, KeptFile)}.values())


def _name_part(part: Part) -> Part:
    content = _unnamed_content(part)
    if content is None or len(content) < SMALL_BYTES:
        return part
    assert isinstance(part, FilePart)
    return replace(part, content=KeptFile.from_content(content))


def _unnamed_content(part: Part) -> bytes | None:
    """The content of a file that has no name yet."""
    if not isinstance(part, FilePart) or isinstance(part.content, KeptFile):
        return None
    return part.content
