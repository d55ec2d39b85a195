"""The raw content of an artifact, and whether a client prefers it to JSON. Pure.

Rule 1: the raw content is the artifact's text, whatever else it has; without text, its only file or its only data item.
        Several files or items, and a file that is a URL, have no raw content.
Rule 2: the answer is JSON, unless `?raw=1` asks for the raw content or `Accept` (RFC 9110, section 12.5.1) prefers its
        media type. A text is also available as text/plain. On a tie, as with `*/*`, it is JSON.
Rule 3: content comes from a model or from strangers. It is sent with a header that keeps a browser from running it, and
        a malformed media type is replaced.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from a2a_canvas.store.models import Content, DataPart, FilePart, text_of

JSON = "application/json"
PLAIN = "text/plain"
SANDBOXED = {"Content-Security-Policy": "sandbox; default-src 'none'"}

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,127}"
_TYPE = re.compile(f"{_TOKEN}/{_TOKEN}")
_FULL = re.compile(rf'{_TYPE.pattern}(?: ?; ?{_TOKEN}=(?:{_TOKEN}|"[ !#-\[\]-~]*"))*')


@dataclass(frozen=True, slots=True)
class RawContent:
    """A body, and its whole Content-Type header."""

    body: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class NoRawContent:
    """Why there is no raw content: a sentence for the client."""

    reason: str


def raw_content(content: Content) -> tuple[RawContent, ...] | NoRawContent:
    """The raw content in each available media type, its own first."""
    text = text_of(content.parts)
    if text is not None:
        own = _TYPE.match(text.media_type)
        types = dict.fromkeys((own[0].lower() if own else PLAIN, PLAIN))
        return tuple(RawContent(text.text.encode(), f"{name}; charset=utf-8") for name in types)
    match content.parts:
        case (DataPart() as part,):
            body = json.dumps(part.data, ensure_ascii=False).encode()
            return (RawContent(body, _well_formed(part.media_type, JSON)),)
        case (FilePart(content=bytes() as body) as part,):
            return (RawContent(body, _well_formed(part.media_type, "application/octet-stream")),)
        case (FilePart() as part,):
            return NoRawContent(f"The file is a URL: {part.url} Ask for application/json to get the artifact.")
        case ():
            return NoRawContent("The artifact is empty. Ask for application/json.")
        case _:
            return NoRawContent("The artifact has several parts and no text. Ask for application/json to get them all.")


def _well_formed(media_type: str, fallback: str) -> str:
    return media_type if _FULL.fullmatch(media_type) else fallback
