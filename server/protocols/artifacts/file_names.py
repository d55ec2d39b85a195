"""Safe file names for content that a model or strangers have named. Pure.

Rule 1: a name is one piece of a path on any system: no separators, no control or formatting characters (which could
        show `exe.txt` for `txt.exe`), none of the names that Windows reserves, no dot or space at an end. So it
        never leaves its folder. It has up to MAX_BYTES, its extension included.
Rule 2: names in one folder differ, even where case does not count: the second `a.md` is `a (2).md`.
Rule 3: a name without an extension gets that of its media type.
"""

from __future__ import annotations

import re
import unicodedata
from mimetypes import MimeTypes
from urllib.parse import quote

MAX_BYTES = 180
"""UTF-8 bytes of a name: most file systems allow 255, and a number may be added."""

_TYPES = MimeTypes()  # those of Python, not of this machine
_TYPES.add_type("text/markdown", ".md")
_FORBIDDEN = re.compile(r'[/\\:*?"<>|]')
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_EXTENSION = re.compile(r"(.*[^.].*)(\.[A-Za-z0-9]{1,12})", re.DOTALL)


def file_name(*wanted: str, media_type: str = "") -> str:
    """A name for a file: the first of `wanted` that is not empty after applying rule 1."""
    stem, extension = split_extension(next(filter(None, map(_safe, wanted)), "untitled"))
    extension = extension or _TYPES.guess_extension(media_type.partition(";")[0].strip().lower()) or ""
    return f"{_cut(stem, MAX_BYTES - len(extension))}{extension}"


def unused_name(name: str, taken: set[str]) -> str:
    """`name`, with a number if it is in `taken`; the result is added there (rule 2)."""
    stem, extension = split_extension(name)
    number = 1
    while (found := name if number == 1 else f"{stem} ({number}){extension}").casefold() in taken:
        number += 1
    taken.add(found.casefold())
    return found


def attachment(name: str) -> str:
    """The Content-Disposition header that saves a body under a name (RFC 6266)."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return f"attachment; filename=\"{plain or 'download'}\"; filename*=UTF-8''{quote(name, safe='')}"


def split_extension(name: str) -> tuple[str, str]:
    """A name without its extension, and the extension with its dot, or empty."""
    found = _EXTENSION.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


def _safe(name: str) -> str:
    visible = ("_" if unicodedata.category(each) in _INVISIBLE else each for each in name)
    safe = _FORBIDDEN.sub("_", "".join(visible)).strip(". ")
    return f"_{safe}" if _RESERVED.match(safe) else safe


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore").rstrip(". ")
