"""The files of the page: read once, and compressed once.

Rules:
1. A name is looked up among the files that were read, not on disk: a request cannot reach any other file.
2. The digest covers all names and contents. It is part of an asset's address, so the content of an address never
   changes.
3. Both reading and compressing take milliseconds: call them in a thread.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

import zstandard

INDEX: Final = "index.html"
PROGRAM: Final = "program.html"
EMBED: Final = "embed.html"
HOST: Final = "host.html"
"""The view in an MCP host, which `protocols/mcp_server` gives it."""
PLACE: Final = "{assets}"
"""The placeholder in the page for the relative address of its files."""
NONCE: Final = "{nonce}"
"""The placeholder in the page for the nonce of its style sheet."""

_TEXT_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
_BINARY_TYPES: Final = {".png": "image/png", ".woff2": "font/woff2"}
"""Already compressed."""

IDENTITY: Final = "identity"
CODINGS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "zstd": lambda body: zstandard.ZstdCompressor(level=19).compress(body),
    "gzip": lambda body: gzip.compress(body, compresslevel=9, mtime=0),
}
"""Content codings, the smallest first: of the page's modules, zstd is a tenth smaller than gzip."""
QUICK_CODINGS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "zstd": lambda body: zstandard.ZstdCompressor(level=9).compress(body),
    "gzip": lambda body: gzip.compress(body, compresslevel=6, mtime=0),
    IDENTITY: lambda body: body,
}
"""Faster levels, for a body that is compressed for each answer: about a millisecond for the page."""

DIGEST_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class Asset:
    """One file.

    Attributes:
        media_type: the whole Content-Type header.
    """

    body: bytes
    media_type: str
    _encoded: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    _encoding: Lock = field(default_factory=Lock, compare=False, repr=False)

    @property
    def codings(self) -> tuple[str, ...]:
        """The available content codings, the best first."""
        return (*CODINGS, IDENTITY) if self.media_type.endswith("charset=utf-8") else (IDENTITY,)

    def encode(self, coding: str) -> bytes:
        """The body in one of `codings`."""
        if coding == IDENTITY:
            return self.body
        with self._encoding:
            if coding not in self._encoded:
                self._encoded[coding] = CODINGS[coding](self.body)
            return self._encoded[coding]


@dataclass(frozen=True, slots=True)
class Assets:
    """The page and its files.

    Attributes:
        digest: in hexadecimal (rule 2).
        index: the page, with the address of its files.
        program: the frame of HTML programs.
        embed: the documents of a shared conversation, for frames of other pages, with the address of its files.
        files: all others, by their paths below the folder.
    """

    digest: str
    index: Asset
    program: Asset
    embed: Asset
    files: Mapping[str, Asset]

    @property
    def address(self) -> str:
        """Where the files are, relative to the page."""
        return address_of(self.digest)


def read_assets(folders: Mapping[str, Path]) -> Assets:
    """Read the files of known types below folders.

    Args:
        folders: by the prefix of the names of their files: empty, or a path that ends with a slash.

    Raises:
        OSError: they cannot be read.
        KeyError: there is no page, no frame of programs or no page for other frames among them.
    """
    paths = {
        f"{prefix}{path.relative_to(folder).as_posix()}": path
        for prefix, folder in folders.items()
        for path in folder.rglob("*")
        if media_type_of(path.name)
    }
    files = {name: Asset(path.read_bytes(), media_type_of(name)) for name, path in sorted(paths.items())}
    digest = hashlib.sha256()
    for name, asset in files.items():
        for piece in (name.encode(), asset.body):
            digest.update(len(piece).to_bytes(8, "big") + piece)
    name = digest.hexdigest()[:DIGEST_LENGTH]
    files.pop(HOST, None)
    program = files.pop(PROGRAM)
    index, embed = (_with_address(files.pop(page), address_of(name)) for page in (INDEX, EMBED))
    return Assets(name, index, program, embed, files)


def _with_address(page: Asset, address: str) -> Asset:
    return Asset(page.body.replace(PLACE.encode(), address.encode()), page.media_type)


def address_of(digest: str) -> str:
    return f"page/{digest}"


def media_type_of(name: str) -> str:
    """The Content-Type header; empty for a type that the page does not have."""
    suffix = Path(name).suffix
    text = _TEXT_TYPES.get(suffix)
    return f"{text}; charset=utf-8" if text else _BINARY_TYPES.get(suffix, "")
